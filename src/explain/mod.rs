//! Why a cell is as it is: findings, each a rule that fires on evidence the kernel gave during that very repeat, with the
//! figures behind it; and what separates the slow cells of a sweep from the fast ones. Pure functions. Imports `stats`,
//! `record`, `settings`, `measurement` and `units`.
//!
//! A wrong sentence is worse than none: a rule fires on what the kernel counted or told, never on what was asked alone.

mod buffers;
mod cell;
mod common;
mod finding;
mod knee;
mod limits;
mod losses;
mod packets;
mod queues;
mod sweep;
mod timers;
mod view;

pub use cell::{CellFindings, NowAndThen, explain};
pub use finding::{Finding, RULES, Rule, Severity, spoken};
pub use knee::Knee;
pub use sweep::{ClearFrom, Group, Seldom, SweepExplanation, explain_run, explain_sweep};
