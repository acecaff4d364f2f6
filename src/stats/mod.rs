//! What records say when they are taken together: one summary per cell. Pure functions. Imports `record`,
//! `measurement`, `settings` and `units`.

mod figures;
mod summary;

pub use figures::Figures;
pub use summary::{BufferSummary, CellOutcome, CellSummary, Counts, EndSummary, Reason, by_cell, select, summarise};
