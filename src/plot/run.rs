//! A run, as pictures need it.

use crate::explain::SweepExplanation;
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;

/// A run: where it comes from, what it measured, and why that is so.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where it comes from.
    pub manifest: &'a Manifest,
    /// The summaries of its records.
    pub cells: &'a [CellSummary],
    /// Its records.
    pub records: &'a [Record],
    /// What [`crate::explain::explain_sweep`] says of these cells, in the same order. The default says nothing.
    pub explained: &'a SweepExplanation,
}
