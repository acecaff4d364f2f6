//! What a whole sweep says: what the cells with a finding have in common, and from where on more does not help.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cell::{CellFindings, explain};
use super::finding::{RULES, Severity};
use crate::record::{Manifest, Record};
use crate::settings::{Axes, Value, find};
use crate::stats::{CellSummary, by_cell};

/// Most axes that a group of cells is told apart by.
const MOST_AXES: usize = 3;

/// How much slower than the best still counts as good, in per cent, beside the spread of the repeats.
const AS_GOOD: u64 = 5;

/// What separates the cells of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepExplanation {
    /// The findings of each cell, in the order of the summaries.
    pub cells: Vec<CellFindings>,
    /// One entry for each kind of finding, the ones that explain most first.
    pub groups: Vec<Group>,
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
    /// What they and no others have in common, as `rcvbuf ≤ 4 KiB and nodelay off`; `None` if no three axes tell them apart.
    pub rule: Option<String>,
    /// The sentence of the cell with the longest completion among them.
    pub example: String,
    /// What to try.
    pub advice: &'static str,
}

/// The smallest value of an axis that is as good as the best one, for one choice of the other axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Knee {
    /// The axis.
    pub axis: String,
    /// The smallest value from which on no other is better than by 5 % or the spread.
    pub value: Value,
    /// The other axes, those with one value left out.
    pub others: Axes,
    /// What was compared: `completion` or `goodput`.
    pub metric: &'static str,
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
    SweepExplanation { groups: groups(cells, &found), knees: knees(cells), cells: found }
}

/// The same with the sysctls that the run's manifest tells of each machine.
pub fn explain_run(manifest: &Manifest, cells: &[CellSummary], records: &[Record]) -> SweepExplanation {
    explain_sweep(cells, records, |cell| manifest.sysctls_of(&cell.kernel))
}

fn groups(cells: &[CellSummary], found: &[CellFindings]) -> Vec<Group> {
    let explained: Vec<usize> = (0..cells.len()).filter(|&index| found[index].repeats > 0).collect();
    RULES
        .iter()
        .filter_map(|rule| {
            let with: BTreeSet<usize> =
                explained.iter().copied().filter(|&index| found[index].has(rule.name)).collect();
            let worst = with.iter().copied().max_by_key(|&index| {
                // A cell without a completion timed out.
                cells[index].completion_ns.map_or(u64::MAX, |figures| figures.median)
            })?;
            let example = found[worst].findings.iter().find(|finding| finding.name == rule.name)?;
            let axes = |index: &usize| &cells[*index].axes;
            let inside: Vec<&Axes> = with.iter().map(axes).collect();
            let outside: Vec<&Axes> = explained.iter().filter(|index| !with.contains(index)).map(axes).collect();
            Some(Group {
                name: rule.name,
                severity: rule.severity,
                cells: with.len(),
                of: explained.len(),
                rule: common(&inside, &outside),
                example: example.sentence.clone(),
                advice: rule.advice,
            })
        })
        .collect()
}

/// A condition on one axis: the values that satisfy it.
struct Condition<'a> {
    axis: &'a str,
    values: BTreeSet<&'a Value>,
}

impl Condition<'_> {
    fn holds(&self, axes: &Axes) -> bool {
        axes.get(self.axis).is_some_and(|value| self.values.contains(value))
    }
}

/// What all of `inside` and none of `outside` have in common, on as few axes as can be.
fn common(inside: &[&Axes], outside: &[&Axes]) -> Option<String> {
    if outside.is_empty() {
        return Some("every cell".to_owned());
    }
    let names: Vec<&str> = inside.first()?.0.iter().map(|(name, _)| name.as_str()).collect();
    let conditions: Vec<Condition<'_>> = names
        .iter()
        .map(|&axis| Condition { axis, values: inside.iter().filter_map(|axes| axes.get(axis)).collect() })
        .collect();
    let all: Vec<&Axes> = inside.iter().chain(outside).copied().collect();
    let excludes = |conditions: &[&Condition<'_>]| {
        outside.iter().all(|axes| conditions.iter().any(|condition| !condition.holds(axes)))
    };
    let say = |conditions: &[&Condition<'_>]| {
        conditions.iter().map(|condition| describe(condition, &all)).collect::<Vec<_>>().join(" and ")
    };
    // The fewest axes that do.
    (1..=MOST_AXES.min(conditions.len()))
        .find_map(|number| chosen(&conditions, number).into_iter().find(|chosen| excludes(chosen)))
        .map(|chosen| say(&chosen))
        .or_else(|| names.iter().find_map(|axis| in_two_parts(axis, inside, outside, &all)))
}

/// Every choice of so many, in order.
fn chosen<T>(from: &[T], number: usize) -> Vec<Vec<&T>> {
    if number == 0 {
        return vec![Vec::new()];
    }
    from.iter()
        .enumerate()
        .flat_map(|(index, first)| {
            chosen(&from[index + 1..], number - 1).into_iter().map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}

/// Two parts: all cells with some values of an axis, and of the rest those that one or two axes tell apart.
fn in_two_parts(axis: &str, inside: &[&Axes], outside: &[&Axes], all: &[&Axes]) -> Option<String> {
    let values =
        |cells: &[&'_ Axes]| -> BTreeSet<Value> { cells.iter().filter_map(|axes| axes.get(axis)).cloned().collect() };
    let (within, without) = (values(inside), values(outside));
    let full: BTreeSet<&Value> = within.difference(&without).collect();
    let is_full = |axes: &&&Axes| axes.get(axis).is_some_and(|value| full.contains(value));
    let rest: Vec<&Axes> = inside.iter().filter(|axes| !is_full(axes)).copied().collect();
    if full.is_empty() || rest.is_empty() {
        return None;
    }
    let whole = describe(&Condition { axis, values: full }, all);
    let conditions: Vec<Condition<'_>> = rest
        .first()?
        .0
        .iter()
        .map(|(axis, _)| Condition { axis, values: rest.iter().filter_map(|axes| axes.get(axis)).collect() })
        .collect();
    let telling = |chosen: &[&Condition<'_>]| {
        outside.iter().all(|axes| chosen.iter().any(|condition| !condition.holds(axes)))
            && inside.iter().all(|axes| chosen.iter().all(|condition| condition.holds(axes)) == rest.contains(axes))
    };
    conditions.iter().enumerate().find_map(|(index, one)| {
        let other = conditions[index + 1..].iter().find(|other| telling(&[one, other]))?;
        Some(format!("{whole}, or {} and {}", describe(one, all), describe(other, all)))
    })
}

/// A condition as a person reads it: `rcvbuf ≤ 4 KiB` where its values are the smallest ones, else the values.
fn describe(condition: &Condition<'_>, all: &[&Axes]) -> String {
    let Condition { axis, values } = condition;
    let show = |value: &Value| find(axis).map_or_else(|| value.to_string(), |key| key.kind.show(value));
    let every: BTreeSet<&Value> = all.iter().filter_map(|axes| axes.get(axis)).collect();
    if values.len() > 1 && values.iter().all(|value| value.int().is_some()) {
        let (smallest, largest) = (values.first(), values.last());
        let below = every.iter().take_while(|value| smallest.is_some_and(|smallest| *value < smallest)).count();
        let above: Vec<_> = every.iter().filter(|value| largest.is_some_and(|largest| *value > largest)).collect();
        if let (Some(smallest), Some(largest)) = (smallest, largest) {
            if below == 0 && values.len() + above.len() == every.len() {
                return format!("{axis} ≤ {}", show(largest));
            }
            if above.is_empty() && below + values.len() == every.len() {
                return format!("{axis} ≥ {}", show(smallest));
            }
        }
    }
    let listed: Vec<String> = values.iter().map(|value| show(value)).collect();
    format!("{axis} {}", listed.join(" or "))
}

/// Where the figures of one cell lie: the median and its range, larger is worse.
#[derive(Clone, Copy)]
struct Cost {
    median: u64,
    spread: u64,
}

fn knees(cells: &[CellSummary]) -> Vec<Knee> {
    let Some(first) = cells.first() else { return Vec::new() };
    let names: Vec<&str> = first.axes.0.iter().map(|(name, _)| name.as_str()).collect();
    let varying = |name: &str| cells.iter().any(|cell| cell.axes.get(name) != first.axes.get(name));
    let mut knees = Vec::new();
    for axis in names {
        // For each choice of the others: the values of this axis, in order, with the cell.
        let mut lines: BTreeMap<Vec<(&str, &Value)>, BTreeMap<u64, &CellSummary>> = BTreeMap::new();
        for cell in cells {
            let Some(value) = cell.axes.get(axis).and_then(Value::int) else { continue };
            let others = cell
                .axes
                .0
                .iter()
                .filter(|(name, _)| name != axis && varying(name))
                .map(|(name, value)| (name.as_str(), value));
            lines.entry(others.collect()).or_default().insert(value, cell);
        }
        for (others, line) in lines {
            if line.len() < 3 {
                continue;
            }
            let echo = line.values().all(|cell| cell.completion_ns.is_some());
            let cost = |cell: &CellSummary| -> Option<Cost> {
                let figures = if echo { cell.completion_ns } else { cell.goodput_bps }?;
                Some(Cost { median: figures.median, spread: figures.max - figures.min })
            };
            let costs: Option<Vec<(u64, Cost)>> =
                line.iter().map(|(&value, cell)| Some((value, cost(cell)?))).collect();
            let Some(costs) = costs else { continue };
            if let Some(value) = knee(&costs, echo) {
                let others = Axes(others.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect());
                let metric = if echo { "completion" } else { "goodput" };
                knees.push(Knee { axis: axis.to_owned(), value: Value::Int(value), others, metric });
            }
        }
    }
    knees
}

/// The smallest value from which on every one is as good as the best: within 5 % or the spread of the repeats. `None` where the
/// smallest of all is, since then nothing bends.
fn knee(costs: &[(u64, Cost)], smaller_is_better: bool) -> Option<u64> {
    let best = if smaller_is_better {
        costs.iter().map(|(_, cost)| *cost).min_by_key(|cost| cost.median)?
    } else {
        costs.iter().map(|(_, cost)| *cost).max_by_key(|cost| cost.median)?
    };
    let good = |cost: &Cost| {
        let room = (best.median / 100 * AS_GOOD).max(best.spread).max(cost.spread.min(best.median));
        cost.median.abs_diff(best.median) <= room
    };
    let from = costs.iter().rposition(|(_, cost)| !good(cost))? + 1;
    costs.get(from).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests;
