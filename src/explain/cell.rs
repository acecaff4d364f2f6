//! The findings of a cell: those of most of its repeats, and why some of the others stand out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::{Finding, RULES, Severity};
use super::view::{View, median};
use crate::measurement::Outcome;
use crate::record::Record;

/// What is found in a cell, the findings that explain most first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CellFindings {
    /// Findings of at least half of the repeats with evidence. Their figures are those of the repeat in the middle.
    pub findings: Vec<Finding>,
    /// Why some of the repeats, fewer than half, took longer than the others. Their median does not show it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub now_and_then: Vec<NowAndThen>,
    /// Repeats that had evidence.
    pub repeats: usize,
}

/// A stall of fewer than half of a cell's repeats, that took half as long again as the others, or more, or did not end as they did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NowAndThen {
    /// What is found in the slowest of them.
    #[serde(flatten)]
    pub finding: Finding,
    /// Their numbers, ascending.
    pub in_repeats: Vec<u32>,
}

impl NowAndThen {
    /// How often, as `in 2 of 20 repeats`.
    pub fn how_often(&self, of: usize) -> String {
        format!("in {} of {of} repeats", self.in_repeats.len())
    }
}

impl CellFindings {
    /// The one that explains most.
    pub fn first(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// All findings, each with how often it was made where that is not in most repeats.
    pub fn all(&self) -> impl Iterator<Item = (Option<String>, &Finding)> {
        let now_and_then = self.now_and_then.iter().map(|one| (Some(one.how_often(self.repeats)), &one.finding));
        self.findings.iter().map(|finding| (None, finding)).chain(now_and_then)
    }

    /// Whether there is a finding of that name in most repeats.
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
    let (mut findings, mut now_and_then) = (Vec::new(), Vec::new());
    for rule in RULES {
        let found: Vec<Option<Finding>> = seen.iter().map(|record| rule.find(&View::new(record, sysctls))).collect();
        let places = || (0..found.len()).filter(|&place| found[place].is_some());
        let number = places().count();
        if number * 2 >= seen.len() {
            let middle = seen.len() / 2;
            let nearest = places().min_by_key(|place| place.abs_diff(middle));
            findings.extend(nearest.and_then(|place| found[place].clone()));
        } else if number > 0 && rule.severity == Severity::Stall {
            now_and_then.extend(stands_out(&seen, found));
        }
    }
    CellFindings { findings, now_and_then, repeats: seen.len() }
}

/// A stall of few repeats, if these stand out from the ones without it. Both are in the order of what they took.
fn stands_out(seen: &[&Record], found: Vec<Option<Finding>>) -> Option<NowAndThen> {
    let others: Vec<&Record> =
        seen.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(&record, _)| record).collect();
    let figure = |figure: fn(&Record) -> Option<u64>| {
        median(&others.iter().filter_map(|record| figure(record)).collect::<Vec<u64>>())
    };
    let completion = figure(|record| record.measurement.completion_ns);
    let goodput = figure(|record| record.measurement.goodput_bps);
    let usual = others.first()?.measurement.outcome;
    let slow = |record: &Record| {
        let measurement = &record.measurement;
        match (measurement.completion_ns.zip(completion), measurement.goodput_bps.zip(goodput)) {
            _ if measurement.outcome != usual => others.iter().all(|other| other.measurement.outcome == usual),
            (Some((own, usual)), _) => u128::from(own) * 2 >= u128::from(usual) * 3,
            (None, Some((own, usual))) => u128::from(own) * 3 <= u128::from(usual) * 2,
            (None, None) => false,
        }
    };
    let mut slow: Vec<(u32, Finding)> = seen
        .iter()
        .zip(found)
        .filter(|(record, _)| slow(record))
        .filter_map(|(record, found)| Some((record.repeat, found?)))
        .collect();
    // The slowest is the last, and speaks for them.
    let finding = slow.last()?.1.clone();
    slow.sort_by_key(|&(repeat, _)| repeat);
    Some(NowAndThen { finding, in_repeats: slow.into_iter().map(|(repeat, _)| repeat).collect() })
}

#[cfg(test)]
mod evidence_tests;
#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod tests;
