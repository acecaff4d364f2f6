//! From where on more of something does not help.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::settings::{Axes, Value};
use crate::stats::CellSummary;

/// How much slower than the best still counts as good, in per cent, beside the spread of the repeats.
const AS_GOOD: u64 = 5;

/// Fewest values of an axis that can bend.
const FEWEST: usize = 3;

/// The smallest value of an axis that is as good as the best one, for one choice of the other axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Knee {
    /// The axis. Of several that move together, the first.
    pub axis: String,
    /// Axes that move together with it, with their values there.
    #[serde(skip_serializing_if = "Axes::is_empty")]
    pub together: Axes,
    /// The smallest value from which on no other is better than by 5 % or the spread.
    pub value: Value,
    /// Whether it is the smallest of all, so that the axis makes no difference.
    pub flat: bool,
    /// Whether leaving it to the kernel is as good, where there is such a cell.
    pub default_as_good: Option<bool>,
    /// The other axes, those with one value left out.
    pub others: Axes,
    /// What was compared: `completion` or `goodput`.
    pub metric: &'static str,
}

/// Where the figures of one cell lie: the median and its range.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) median: u64,
    pub(super) spread: u64,
}

/// The knees of all axes with an order.
pub(super) fn knees(cells: &[CellSummary]) -> Vec<Knee> {
    let Some(first) = cells.first() else { return Vec::new() };
    let names: Vec<&str> = first.axes.0.iter().map(|(name, _)| name.as_str()).collect();
    let varying = |name: &str| cells.iter().any(|cell| cell.axes.get(name) != first.axes.get(name));
    let mut knees = Vec::new();
    for (place, &axis) in names.iter().enumerate() {
        let follow: Vec<&str> =
            names.iter().copied().filter(|other| *other != axis && follows(cells, axis, other)).collect();
        // Of axes that follow each other the first speaks for all.
        if names[..place].iter().any(|earlier| follow.contains(earlier) && follows(cells, earlier, axis)) {
            continue;
        }
        // For each choice of the others: the values of this axis, in order, with the cell; what is left to the kernel comes last.
        let mut lines: BTreeMap<Vec<(&str, &Value)>, BTreeMap<&Value, &CellSummary>> = BTreeMap::new();
        for cell in cells {
            let Some(value) = cell.axes.get(axis).filter(|value| value.has_size() || value.is_default()) else {
                continue;
            };
            let others = cell.axes.0.iter().filter(|(name, _)| name != axis && varying(name));
            let others = others.filter(|(name, _)| !follow.contains(&name.as_str()));
            let others = others.map(|(name, value)| (name.as_str(), value));
            lines.entry(others.collect()).or_default().insert(value, cell);
        }
        for (others, line) in lines {
            let echo = line.values().all(|cell| cell.completion_ns.is_some());
            let cost = |cell: &CellSummary| -> Option<Cost> {
                let figures = if echo { cell.completion_ns } else { cell.goodput_bps }?;
                Some(Cost { median: figures.median, spread: figures.max - figures.min })
            };
            let costs: Option<Vec<(&Value, Cost)>> =
                line.iter().map(|(&value, cell)| Some((value, cost(cell)?))).collect();
            let Some(mut costs) = costs else { continue };
            let default = costs.pop_if(|(value, _)| value.is_default()).map(|(_, cost)| cost);
            if let Some(Bend { place, default_as_good }) = bend(&costs, default, echo) {
                let value = costs[place].0;
                let there =
                    follow.iter().filter_map(|name| Some(((*name).to_owned(), line[value].axes.get(name)?.clone())));
                knees.push(Knee {
                    axis: axis.to_owned(),
                    together: Axes(there.collect()),
                    value: value.clone(),
                    flat: place == 0,
                    default_as_good,
                    others: Axes(others.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()),
                    metric: if echo { "completion" } else { "goodput" },
                });
            }
        }
    }
    knees
}

/// Whether one axis moves together with another, as those of a `[[zip]]` do: its value is the same wherever that of the other is,
/// varies, never shrinks where the other grows, and is left to the kernel only where the other is.
fn follows(cells: &[CellSummary], axis: &str, other: &str) -> bool {
    let mut pairs: BTreeMap<&Value, &Value> = BTreeMap::new();
    for cell in cells {
        let (Some(value), Some(with)) = (cell.axes.get(axis), cell.axes.get(other)) else { return false };
        let ordered = value.has_size() && with.has_size() || value.is_default() && with.is_default();
        if !ordered || pairs.insert(value, with).is_some_and(|before| before != with) {
            return false;
        }
    }
    let mut sizes: Vec<&Value> = pairs.values().copied().collect();
    let grow = sizes.is_sorted();
    sizes.dedup();
    grow && sizes.len() > 1
}

/// Where a line bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bend {
    /// Place of the smallest value from which on every one is as good as the best.
    pub(super) place: usize,
    /// Whether leaving it to the kernel is.
    pub(super) default_as_good: Option<bool>,
}

/// The smallest value from which on every one is as good as the best, that of the kernel among them: within 5 % or the spread of the
/// repeats. `None` where the largest is not, or is the only one, for beyond it nothing was measured; or where there are too few.
pub(super) fn bend<T>(costs: &[(T, Cost)], default: Option<Cost>, smaller_is_better: bool) -> Option<Bend> {
    if costs.len() < FEWEST {
        return None;
    }
    let all = || costs.iter().map(|(_, cost)| *cost).chain(default);
    let best =
        if smaller_is_better { all().min_by_key(|cost| cost.median) } else { all().max_by_key(|cost| cost.median) }?;
    let good = |cost: &Cost| {
        let room = (best.median / 100 * AS_GOOD).max(best.spread).max(cost.spread.min(best.median));
        cost.median.abs_diff(best.median) <= room
    };
    let place = costs.iter().rposition(|(_, cost)| !good(cost)).map_or(0, |last| last + 1);
    let default_as_good = default.as_ref().map(good);
    let beyond = place + 1 < costs.len() || place < costs.len() && default_as_good == Some(true);
    beyond.then_some(Bend { place, default_as_good })
}

#[cfg(test)]
mod tests {
    use super::{Bend, Cost, bend};

    #[test]
    fn a_line_bends_where_more_does_not_help_and_nothing_later_is_worse() {
        let sure = |median| Cost { median, spread: 0 };
        let place = |medians: &[u64], smaller| {
            let costs: Vec<((), Cost)> = medians.iter().map(|&median| ((), sure(median))).collect();
            bend(&costs, None, smaller).map(|bend| bend.place)
        };
        assert_eq!(place(&[1000, 500, 100, 101], true), Some(2));
        assert_eq!(place(&[100, 101, 100], true), Some(0), "it makes no difference");
        assert_eq!(place(&[1000, 100, 500, 100, 100], true), Some(3), "the third is bad again");
        assert_eq!(place(&[1000, 500, 100], true), None, "nothing more was measured");
        assert_eq!(place(&[10, 500, 980, 1000], false), Some(2));
        assert_eq!(place(&[1000, 100, 500], true), None, "the best one is not the end of it");
        assert_eq!(place(&[1000, 100], true), None, "two do not bend");

        let costs = [((), sure(1000)), ((), sure(100)), ((), sure(100))];
        let with = |default| bend(&costs, Some(sure(default)), true);
        assert_eq!(with(101), Some(Bend { place: 1, default_as_good: Some(true) }));
        assert_eq!(with(1000), Some(Bend { place: 1, default_as_good: Some(false) }));
        assert_eq!(with(10), None, "the kernel does better than any size");
        let last = |default| bend(&[((), sure(1000)), ((), sure(500)), ((), sure(100))], Some(sure(default)), true);
        assert_eq!(last(101), Some(Bend { place: 2, default_as_good: Some(true) }), "and the kernel's is more");
        assert_eq!(last(1000), None);
    }
}
