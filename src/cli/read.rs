//! A stored run, read and explained, as the commands that print or draw it want it.

use std::path::Path;

use crate::explain::{SweepExplanation, explain_run};
use crate::plot::Run;
use crate::record::{Loaded, Manifest, RunDir};
use crate::stats::{CellSummary, summarise_run};

use super::complain;
use super::exit::Exit;
use super::output::say;

/// A run, read.
pub(super) struct Read {
    pub(super) dir: RunDir,
    pub(super) manifest: Manifest,
    pub(super) loaded: Loaded,
    pub(super) cells: Vec<CellSummary>,
    pub(super) explained: SweepExplanation,
}

impl Read {
    /// The run in that folder. Tells of each line of it that was left out.
    pub(super) fn open(run: &Path) -> Result<Self, Exit> {
        let read = Self::of(RunDir::open(run).map_err(|error| complain(&error))?)?;
        read.warn();
        Ok(read)
    }

    /// The run of a folder that is open, without a word.
    pub(super) fn of(dir: RunDir) -> Result<Self, Exit> {
        let manifest = dir.manifest().map_err(|error| complain(&error))?;
        let loaded = dir.read().map_err(|error| complain(&error))?;
        let cells = summarise_run(&manifest, &loaded.records);
        let explained = explain_run(&manifest, &cells, &loaded.records);
        Ok(Self { dir, manifest, loaded, cells, explained })
    }

    /// Tells of each line that was left out.
    pub(super) fn warn(&self) {
        for warning in &self.loaded.warnings {
            say!("warning: {warning}");
        }
    }

    /// What pictures are drawn of.
    pub(super) fn parts(&self) -> Run<'_> {
        let Self { manifest, loaded, cells, explained, .. } = self;
        Run { manifest, cells, records: &loaded.records, explained }
    }
}
