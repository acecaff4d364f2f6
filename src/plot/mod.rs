//! Pictures of a run: maps of cells, lines, ratios of two runs, distributions, buffers over time. Each is an SVG that names no font and is the
//! same bytes for the same run, and can be turned into a PNG. Imports `explain`, `stats`, `record`, `settings`,
//! `measurement` and `units`.

mod axes;
mod canvas;
pub(crate) mod colour;
mod ecdf;
mod error;
pub(crate) mod facts;
mod files;
mod given;
mod grid;
mod heatmap;
mod labels;
mod layout;
mod line;
mod map;
mod metric;
mod notes;
mod options;
mod over_time;
mod png;
mod ratio;
pub(crate) mod repeats;
mod run;
pub(crate) mod scale;
mod sheet;
pub(crate) mod space;
pub(crate) mod text;
pub(crate) mod tile;
pub(crate) mod tracks;
mod unit;
pub(crate) mod why;

pub use ecdf::{Sample, distribution};
pub use error::PlotError;
pub use files::{LATENCY, THROUGHPUT, encode, write, write_run};
pub use heatmap::{has_figures, heatmap};
pub use metric::{Direction, Metric, Stat};
pub use options::{Format, PlotOptions, Theme};
pub use over_time::over_time;
pub use png::png;
pub use ratio::ratio;
pub use run::Run;
pub use unit::Unit;
pub(crate) use unit::whole;
