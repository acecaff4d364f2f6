//! The findings of a cell: those of most of its repeats.

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::{Finding, RULES};
use super::view::View;
use crate::measurement::Outcome;
use crate::record::Record;

/// What is found in a cell, the findings that explain most first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CellFindings {
    /// Findings of at least half of the repeats with evidence. Their figures are those of the repeat in the middle.
    pub findings: Vec<Finding>,
    /// Repeats that had evidence.
    pub repeats: usize,
}

impl CellFindings {
    /// The one that explains most.
    pub fn first(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// Whether there is a finding of that name.
    pub fn has(&self, name: &str) -> bool {
        self.findings.iter().any(|finding| finding.name == name)
    }
}

/// Explains the repeats of one cell. `sysctls` are those of the machine that ran it.
pub fn explain(repeats: &[&Record], sysctls: &BTreeMap<String, String>) -> CellFindings {
    let mut seen: Vec<&Record> = repeats
        .iter()
        .copied()
        .filter(|record| {
            matches!(record.measurement.outcome, Outcome::Measured | Outcome::Incomplete | Outcome::TimedOut)
        })
        .collect();
    // By what they took, so that the one in the middle speaks for the cell. Time-outs took longest.
    seen.sort_by_key(|record| {
        let measurement = &record.measurement;
        (measurement.completion_ns.unwrap_or(u64::MAX), measurement.goodput_bps, record.repeat)
    });
    let findings = RULES
        .iter()
        .filter_map(|rule| {
            let found: Vec<(usize, Finding)> = seen
                .iter()
                .enumerate()
                .filter_map(|(place, record)| Some((place, rule.find(&View::new(record, sysctls))?)))
                .collect();
            let middle = seen.len() / 2;
            let enough = !found.is_empty() && found.len() * 2 >= seen.len();
            let nearest = found.into_iter().min_by_key(|(place, _)| place.abs_diff(middle));
            nearest.filter(|_| enough).map(|(_, finding)| finding)
        })
        .collect();
    CellFindings { findings, repeats: seen.len() }
}

#[cfg(test)]
mod evidence_tests;
#[cfg(test)]
mod tests;
