//! What a person reads, and a spreadsheet or a script: tables of summaries, everything about one cell, `summary.csv`, and
//! the JSON of both, and the page to explore a run with. Imports `plot`, `explain`, `stats`, `record`, `measurement`, `settings` and
//! `units`.

mod cell;
mod csv;
mod html;
mod json;
mod table;
mod why;
mod words;

pub use cell::show_cell;
pub use csv::{SUMMARY, write_csv};
pub use html::{PAGE, page};
pub use json::{CellReport, RunReport};
pub use table::table;
pub use why::explanation;
pub use words::imprecise;
