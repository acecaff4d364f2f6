//! What records say when they are taken together: one summary per cell, how well its figures are known, and whether two sets of
//! figures differ. Pure functions, compared with `SciPy`'s in `tests/statistics.rs`. Imports `record`, `measurement`, `settings` and
//! `units`.

mod correct;
mod figures;
mod interval;
mod metric;
mod precision;
mod rank;
mod ratio;
mod search;
mod shape;
mod summary;
mod trend;

pub use correct::{benjamini_hochberg, holm};
pub use figures::{Figure, Figures};
pub use interval::{MedianInterval, median_interval};
pub use metric::MetricSummary;
pub use precision::{Reached, deciding, reached};
pub use rank::{MannWhitney, as_f64 as count, mann_whitney, minimum_p, repeats_needed, sign_test};
pub use ratio::{Ratio, RatioInterval, ratio};
pub use search::{Ending, Found, Searched, Tried, Verdict, figure_of};
pub use shape::{Drift, Modes, Outlier, Shape};
pub use summary::{
    BufferSummary, CellOutcome, CellSummary, Counts, EndSummary, Reason, by_cell, select, summarise, summarise_run,
};
