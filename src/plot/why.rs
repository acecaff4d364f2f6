//! What the explanation of a sweep adds to a picture: letters in cells for what they wait for or are bounded by, and the
//! place on an axis from which on more does not help.

use super::metric::{Direction, Metric, Stat};
use super::run::Run;
use super::sheet::Mark;
use crate::explain::{CellFindings, Knee, RULES, Severity};
use crate::stats::CellSummary;

/// Most letters in a cell.
const MOST: usize = 3;

/// What one cell is marked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Why {
    /// The letters of its findings, those that explain most first.
    pub(crate) letters: String,
    /// On the axes of these names, more than its value does not help.
    pub(crate) knees: Vec<String>,
}

/// What each cell is marked with, and what the legend says of it.
pub(crate) fn of(run: Run<'_>, metric: &Metric, stat: Stat) -> (Vec<Why>, Vec<Mark>) {
    let Run { cells, explained, .. } = run;
    let mut marks: Vec<Mark> = Vec::new();
    let mut why = vec![Why::default(); cells.len()];
    if metric.direction() == Direction::Neutral {
        return (why, marks);
    }
    // Notes do not bound a cell by themselves, and sizes that the kernel gave have a mark of their own.
    let told = |found: &CellFindings, name: &str| {
        let said = found.findings.iter().filter(|finding| finding.severity != Severity::Note);
        said.take(MOST).any(|finding| finding.name == name)
    };
    let names = RULES.iter().map(|rule| rule.name).filter(|name| explained.cells.iter().any(|cell| told(cell, name)));
    for (letter, name) in ('A'..='Z').zip(names) {
        marks.push(Mark::Finding(letter, name));
        for (why, found) in why.iter_mut().zip(&explained.cells) {
            if told(found, name) {
                why.letters.push(letter);
            }
        }
    }
    // Where an axis makes no difference there is no place to mark.
    let bends = explained.knees.iter().filter(|knee| !knee.flat);
    let of_metric = bends.filter(|knee| stat == Stat::Median && knee.metric == metric.name());
    for knee in of_metric {
        for (why, cell) in why.iter_mut().zip(cells) {
            if is_at(knee, cell) {
                why.knees.push(knee.axis.clone());
            }
        }
    }
    (why, marks)
}

/// Whether that is the cell from which on more does not help.
fn is_at(knee: &Knee, cell: &CellSummary) -> bool {
    cell.axes.get(&knee.axis) == Some(&knee.value)
        && knee.others.0.iter().all(|(name, value)| cell.axes.get(name) == Some(value))
}
