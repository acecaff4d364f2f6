//! What a whole sweep says: what the cells with a finding have in common, and from where on more does not help.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cell::{CellFindings, explain};
use super::common::{Common, common};
use super::finding::{RULES, Rule, Severity};
use super::knee::{Knee, knees};
use crate::record::{Manifest, Record};
use crate::settings::{Axes, Value, find};
use crate::stats::{CellSummary, by_cell};

/// What separates the cells of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepExplanation {
    /// The findings of each cell, in the order of the summaries.
    pub cells: Vec<CellFindings>,
    /// One entry for each kind of finding, the ones that explain most first.
    pub groups: Vec<Group>,
    /// One entry for each stall of few of a cell's repeats.
    pub now_and_then: Vec<Seldom>,
    /// For each axis with an order, from where on more does not help.
    pub knees: Vec<Knee>,
}

/// The cells that share a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Name of the finding.
    pub name: &'static str,
    /// How much it says.
    pub severity: Severity,
    /// How many cells have it.
    pub cells: usize,
    /// Of how many that were measured or timed out.
    pub of: usize,
    /// What they have in common and, but for `others`, no other cell has, as `rcvbuf ≤ 4 KiB and nodelay off`; `None` if no three axes tell
    /// them apart.
    pub rule: Option<String>,
    /// How many cells without the finding the rule holds for too: at most one for every four with it.
    pub others: usize,
    /// Axes of sockets, sysctls and limits of queues from some value of which on no cell has it, while some below do.
    pub clear_from: Vec<ClearFrom>,
    /// The sentence of the cell with the longest completion among them, or the smallest goodput.
    pub example: String,
    /// What to try.
    pub advice: &'static str,
}

/// A stall of few repeats, over all cells in which it makes some stand out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seldom {
    /// Name of the finding.
    pub name: &'static str,
    /// How many cells have such repeats.
    pub cells: usize,
    /// How many such repeats there are.
    pub repeats: usize,
    /// Of how many repeats of these cells.
    pub of_repeats: usize,
    /// The axes of the cell with most of them.
    pub cell: Axes,
    /// What is said of it.
    pub example: String,
    /// What to try.
    pub advice: &'static str,
}

/// The smallest value of an axis without a finding: no cell with that value or a larger one has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClearFrom {
    /// The axis.
    pub axis: String,
    /// The value.
    pub value: Value,
}

/// Explains all cells of a run. `sysctls` finds those of the machine that ran a cell.
pub fn explain_sweep<'a>(
    cells: &[CellSummary],
    records: &[Record],
    sysctls: impl Fn(&CellSummary) -> &'a BTreeMap<String, String>,
) -> SweepExplanation {
    let repeats = by_cell(cells, records);
    let found: Vec<CellFindings> =
        cells.iter().zip(&repeats).map(|(cell, repeats)| explain(repeats, sysctls(cell))).collect();
    SweepExplanation {
        groups: groups(cells, &found),
        now_and_then: now_and_then(cells, &found),
        knees: knees(cells),
        cells: found,
    }
}

/// The same with the sysctls that the run's manifest tells of each machine.
pub fn explain_run(manifest: &Manifest, cells: &[CellSummary], records: &[Record]) -> SweepExplanation {
    let mut explained = explain_sweep(cells, records, |cell| manifest.sysctls_of(&cell.kernel));
    // A search leaves cells out, and a smaller one of them may be as good.
    if manifest.sweep.resolved.get("find").is_some() {
        explained.knees.clear();
    }
    explained
}

fn groups(cells: &[CellSummary], found: &[CellFindings]) -> Vec<Group> {
    let explained: Vec<usize> = (0..cells.len()).filter(|&index| found[index].repeats > 0).collect();
    RULES
        .iter()
        .filter_map(|rule| {
            let with: BTreeSet<usize> =
                explained.iter().copied().filter(|&index| found[index].has(rule.name)).collect();
            let worst = with.iter().copied().max_by_key(|&index| {
                let CellSummary { completion_ns, goodput_bps, .. } = &cells[index];
                // A cell without a completion timed out, or is a stream.
                let completion = completion_ns.map_or(u64::MAX, |figures| figures.median);
                (completion, Reverse(goodput_bps.map_or(0, |figures| figures.median)))
            })?;
            let example = found[worst].findings.iter().find(|finding| finding.name == rule.name)?;
            let axes = |index: &usize| &cells[*index].axes;
            let inside: Vec<&Axes> = with.iter().map(axes).collect();
            let outside: Vec<&Axes> = explained.iter().filter(|index| !with.contains(index)).map(axes).collect();
            let Common { rule: in_common, others } = common(&inside, &outside);
            Some(Group {
                name: rule.name,
                severity: rule.severity,
                cells: with.len(),
                of: explained.len(),
                rule: in_common,
                others,
                clear_from: clear_from(&inside, &outside),
                example: example.sentence.clone(),
                advice: rule.advice,
            })
        })
        .collect()
}

fn now_and_then(cells: &[CellSummary], found: &[CellFindings]) -> Vec<Seldom> {
    let of = |rule: &Rule| {
        let with = || {
            let pairs = cells.iter().zip(found);
            pairs.filter_map(|(cell, found)| {
                let one = found.now_and_then.iter().find(|one| one.finding.name == rule.name)?;
                Some((cell, one, found.repeats))
            })
        };
        let (cell, most, _) = with().max_by_key(|(_, one, _)| one.in_repeats.len())?;
        Some(Seldom {
            name: rule.name,
            cells: with().count(),
            repeats: with().map(|(_, one, _)| one.in_repeats.len()).sum(),
            of_repeats: with().map(|(.., repeats)| repeats).sum(),
            cell: cell.axes.clone(),
            example: most.finding.sentence.clone(),
            advice: rule.advice,
        })
    };
    RULES.iter().filter_map(of).collect()
}

/// For each axis the smallest value from which on it is clear.
fn clear_from(inside: &[&Axes], outside: &[&Axes]) -> Vec<ClearFrom> {
    let Some(first) = inside.first() else { return Vec::new() };
    let clear = |axis: &str| {
        let sizes = |cells: &[&Axes]| -> Option<BTreeSet<Value>> {
            let values = cells.iter().map(|axes| axes.get(axis).filter(|value| value.has_size()).cloned());
            values.collect()
        };
        // A cell that leaves it to the kernel is on neither side.
        let ordered: Vec<&Axes> =
            outside.iter().copied().filter(|axes| axes.get(axis).is_some_and(Value::has_size)).collect();
        let largest = sizes(inside)?.pop_last()?;
        sizes(&ordered)?.into_iter().find(|value| *value > largest)
    };
    // What the path and the workload are is asked, not chosen.
    let chosen = |axis: &str| {
        let path = find(axis).map_or(axis, |key| key.path);
        ["socket.", "sysctl."].iter().any(|room| path.starts_with(room)) || path.contains(".limit")
    };
    let axes = first
        .0
        .iter()
        .filter(|(axis, _)| chosen(axis))
        .filter_map(|(axis, _)| Some(ClearFrom { axis: axis.clone(), value: clear(axis)? }));
    axes.collect()
}

#[cfg(test)]
mod tests;
