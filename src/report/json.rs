//! What `--json` prints. Figures keep the names and units that they have in records.

use jiff::Timestamp;
use serde::Serialize;

use crate::explain::CellFindings;
use crate::record::{FORMAT, Loaded, Manifest, Record};

use super::search::searched;
use crate::stats::{CellSummary, Searched};

/// A run: what [`super::table`] shows.
#[derive(Debug, Serialize)]
pub struct RunReport<'a> {
    /// The format of records, whose names this shares.
    pub format: u32,
    /// The sweep's name.
    pub sweep: &'a str,
    /// When the run started (UTC).
    pub started: Timestamp,
    /// When it ended, or `None` while it runs and after it was killed.
    pub finished: Option<Timestamp>,
    /// Whether it ended early because someone asked it to.
    pub interrupted: bool,
    /// What a search found, where the sweep has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find: Option<Searched>,
    /// One summary per cell, kernel and clock.
    pub cells: &'a [CellSummary],
    /// What a person should know about the stored records.
    pub warnings: Vec<String>,
}

impl<'a> RunReport<'a> {
    /// The report of a run.
    pub fn new(manifest: &'a Manifest, cells: &'a [CellSummary], loaded: &Loaded) -> Self {
        Self {
            format: FORMAT,
            sweep: &manifest.sweep.name,
            started: manifest.started,
            finished: manifest.finished,
            interrupted: manifest.interrupted,
            find: searched(manifest, cells, &loaded.records),
            cells,
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A cell: what [`super::show_cell`] shows.
#[derive(Debug, Serialize)]
pub struct CellReport<'a> {
    /// The repeats together.
    pub summary: &'a CellSummary,
    /// Why it is as it is.
    pub findings: &'a CellFindings,
    /// Each repeat, as recorded.
    pub repeats: &'a [&'a Record],
}
