//! What was typed, and what it means: a sweep file becomes a [`Sweep`], or every error in it at once, each with its place and
//! the fix. Imports `settings` and `units` only.
//!
//! `raw` holds the file as paths and values; `check`, `axis`, `range`, `cases` and `exec` take each key by itself; `precision` takes `repeat`
//! as a table; `overrides` are the command line's changes; `own` tells a sweep of a file from one that only looks like it; `grid` says what holds between keys and for all cells. Only the [`Sweep`] is used outside, and `schema` and
//! `reference`, which describe the file to editors and people.

mod axis;
mod cases;
mod cells;
mod check;
mod differences;
mod error;
mod exec;
mod file;
mod find;
mod grid;
mod overrides;
mod own;
mod precision;
mod program;
mod range;
mod raw;

mod reference;
mod run;
mod schema;

mod sweep;
mod unknown;
mod value;

pub use cases::MAX_EXCLUDES;
pub use check::MAX_NAME;
pub use error::{SpecError, SpecErrors};
pub use file::MAX_FILE;
pub use grid::{MAX_BURST_BYTES, MAX_CAPTURE_BYTES, MAX_CELLS, MAX_RUNS};
pub use overrides::{Overrides, ParseAssignmentError};
pub use program::{Argument, ExecTemplate, ProgramTemplate};

pub use reference::reference;
pub use run::{
    MAX_CAPTURE_PACKETS, MAX_CAPTURE_SNAP, MAX_REPEATS, MAX_TIMEOUT, MAX_WARMUP, Order, RUN_KEYS, RunKey, RunOptions,
};

pub use schema::schema;
pub use sweep::{Axis, Sweep};
