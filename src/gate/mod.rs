//! The verdict on a run: baselines, what differs between two environments, comparisons cell by cell, and what they look like to a
//! person and to CI. Measures nothing. Imports `stats`, `record`, `settings`, `measurement` and `units`.

mod again;
mod baseline;
mod cells;
mod ci;
mod compare;
mod environment;
mod error;
mod judge;
mod judged;
mod look;
mod metric;
mod rules;
mod table;
mod words;

pub use again::Round;
pub use baseline::{Accepted, BASELINE_FORMAT, Baseline, BaselineCell, all_metrics, load};
pub use cells::{Matching, Side};
pub use ci::{annotations, junit, markdown};
pub use compare::{Compared, Comparison, Difference as CellDifference};
pub use environment::{Aspect, Difference, Environment, HostFacts, MachineFacts};
pub use error::GateError;
pub use judge::{Judgement, Overall, Verdict};
pub use judged::Judged;
pub use look::{Look, Shift};
pub use metric::{Metric, ProgramMetric, Worse};
pub use rules::{DEFAULT_ALPHA, DEFAULT_MAX_REGRESSION, Rules, TRIES};
pub use table::{comparison_text, judgement_text};
