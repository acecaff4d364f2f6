//! Which cell of one side belongs to which of the other, and which of their figures are compared.

use std::collections::HashMap;

use serde::Serialize;

use super::baseline::{Baseline, BaselineCell};
use super::metric::Metric;
use crate::measurement::{Number, Outcome};
use crate::settings::{Axes, Clock, Value};
use crate::stats::{Figures, MannWhitney, Ratio, mann_whitney, ratio};
use crate::units::choice;

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

choice! {
    /// How cells of two sides are matched.
    Matching {
        /// By their id: everything that decides a cell is the same.
        #[default] Id = "id",
        /// By their values on the axes: settings that all cells share may differ, and are what is compared. An axis with one value is such a
        /// setting.
        Axes = "axes",
    }
}

/// A cell of two sides; at least one has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched<'a> {
    pub(super) before: Option<&'a BaselineCell>,
    pub(super) after: Option<&'a BaselineCell>,
}

/// All cells: those of the second side in its order, then those that only the first side has.
pub(super) fn matched<'a>(before: &'a Baseline, after: &'a Baseline, matching: Matching) -> Vec<Matched<'a>> {
    let changed = changed_as_a_whole(before, after);
    let key = |cell: &BaselineCell| match matching {
        Matching::Id => cell.cell.clone(),
        Matching::Axes => place(&cell.axes, &changed),
    };
    let mut left: HashMap<String, &BaselineCell> = before.cells.iter().map(|cell| (key(cell), cell)).collect();
    let mut all: Vec<Matched<'_>> =
        after.cells.iter().map(|cell| Matched { before: left.remove(&key(cell)), after: Some(cell) }).collect();
    let gone = before.cells.iter().filter(|cell| left.contains_key(&key(cell)));
    all.extend(gone.map(|cell| Matched { before: Some(cell), after: None }));
    all
}

/// An axis on which all cells of a side have one value, and all of the other side another: a setting that they share, and that changed.
pub(super) struct Changed {
    /// Its name.
    pub(super) axis: String,
    /// Both values, as a person reads them.
    pub(super) values: [String; 2],
}

/// Those axes.
pub(super) fn changed_as_a_whole(before: &Baseline, after: &Baseline) -> Vec<Changed> {
    let only = |side: &Baseline, axis: &str| {
        let mut values = side.cells.iter().map(|cell| cell.axes.get(axis));
        let first = values.next()??;
        values.all(|value| value == Some(first)).then(|| first.clone())
    };
    let shown = |axis: &str, value: &Value| {
        let shown = Axes(vec![(axis.to_owned(), value.clone())]).to_string();
        shown.split_once('=').map_or(shown.clone(), |(_, value)| value.to_owned())
    };
    let axes = after.cells.first().map(|cell| &cell.axes.0[..]).unwrap_or_default();
    let changed = axes.iter().filter_map(|(axis, _)| {
        let (was, is) = (only(before, axis)?, only(after, axis)?);
        (was != is).then(|| Changed { axis: axis.clone(), values: [shown(axis, &was), shown(axis, &is)] })
    });
    changed.collect()
}

/// Where a cell lies, whatever the order of its axes, without those that changed for all.
fn place(axes: &Axes, changed: &[Changed]) -> String {
    let stays = |name: &str| changed.iter().all(|changed| changed.axis != name);
    let values = axes.0.iter().filter(|(name, _)| stays(name));
    let mut values: Vec<String> = values.map(|(name, value)| format!("{name}={value:?}")).collect();
    values.sort_unstable();
    values.join("\n")
}

impl Matched<'_> {
    /// The side that says what cell it is.
    fn known(&self) -> Option<&BaselineCell> {
        self.after.or(self.before)
    }

    pub(super) fn axes(&self) -> Axes {
        self.known().map(|cell| cell.axes.clone()).unwrap_or_default()
    }

    pub(super) fn id(&self) -> String {
        self.known().map(|cell| cell.cell.clone()).unwrap_or_default()
    }

    /// Whether both sides measured in virtual time, so that figures are compared as they are.
    pub(super) fn exact(&self) -> bool {
        [self.before, self.after].into_iter().flatten().all(|cell| cell.clock == Clock::Virtual)
    }

    /// The test of both sides' figures, and the second median over the first with an interval. In virtual time there is no chance, and
    /// so neither test nor interval.
    pub(super) fn contrast(&self, first: Option<&Side>, second: Option<&Side>) -> (Option<MannWhitney>, Option<Ratio>) {
        let Some((first, second)) = first.zip(second) else { return (None, None) };
        let found = ratio(&first.figures, &second.figures, CONFIDENCE);
        if self.exact() {
            return (None, found.map(|ratio| Ratio { interval: None, ..ratio }));
        }
        (mann_whitney(&first.figures, &second.figures), found)
    }

    /// The figures of both sides. In virtual time the same repeats of both: each repeat begins at a moment of its own, and another
    /// one is another measurement.
    pub(super) fn sides(&self, metric: &Metric) -> (Option<Side>, Option<Side>) {
        let [before, after] = [self.before, self.after].map(|cell| cell.map(|cell| (cell, cell.repeats(metric))));
        let common = |index: usize| {
            let has = |repeats: &[Option<Number>]| repeats.get(index).copied().flatten().is_some();
            !self.exact()
                || before.as_ref().zip(after.as_ref()).is_none_or(|((_, before), (_, after))| has(before) && has(after))
        };
        let side = |(cell, repeats): &(&BaselineCell, Vec<Option<Number>>)| {
            let figures = repeats.iter().enumerate();
            let figures: Vec<Number> =
                figures.filter(|(index, _)| common(*index)).filter_map(|(_, figure)| *figure).collect();
            Side {
                outcome: cell.outcome,
                reason: cell.reason.clone(),
                median: Figures::of(figures.clone()).map(|figures| figures.median),
                repeats: repeats.len(),
                measured: repeats.iter().flatten().count(),
                figures,
            }
        };
        (before.as_ref().map(side), after.as_ref().map(side))
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The worst outcome among its repeats.
    pub outcome: Outcome,
    /// Why, for every outcome but `measured`.
    pub reason: Option<String>,
    /// The median of the figures.
    pub median: Option<Number>,
    /// All repeats.
    pub repeats: usize,
    /// Repeats that have a figure.
    pub measured: usize,
    /// The figures that are compared, in the order of the run.
    pub figures: Vec<Number>,
}

#[cfg(test)]
mod tests {
    use super::{Matching, changed_as_a_whole, matched};
    use crate::gate::baseline::tests::of_completions;
    use crate::gate::metric::Metric;
    use crate::measurement::Number;
    use crate::settings::Clock;

    #[test]
    fn cells_of_either_side_alone_are_kept() {
        let before = of_completions(Clock::Real, &[vec![1], vec![2], vec![3]]);
        let mut after = before.clone();
        after.cells.remove(0);
        after.cells[1].cell = "new".into();
        let both = |matching| {
            let found = matched(&before, &after, matching);
            found.iter().map(|cell| (cell.before.is_some(), cell.after.is_some())).collect::<Vec<_>>()
        };
        assert_eq!(both(Matching::Id), [(true, true), (false, true), (true, false), (true, false)]);
        assert_eq!(both(Matching::Axes), [(true, true), (true, true), (true, false)]);
    }

    #[test]
    fn an_axis_with_one_value_is_a_setting_that_cells_share() {
        let with = |rcvbuf: &[u64]| {
            let mut side = of_completions(Clock::Real, &[vec![1], vec![2], vec![3]]);
            for (index, cell) in side.cells.iter_mut().enumerate() {
                cell.axes.0.push(("rcvbuf".to_owned(), crate::settings::Value::Int(rcvbuf[index % rcvbuf.len()])));
                cell.cell = format!("{rcvbuf:?}{index}");
            }
            side
        };
        let pairs = |before: &[u64], after: &[u64]| {
            let (before, after) = (with(before), with(after));
            let found = matched(&before, &after, Matching::Axes);
            let changed =
                changed_as_a_whole(&before, &after).into_iter().map(|changed| changed.values).collect::<Vec<_>>();
            (found.iter().filter(|cell| cell.before.is_some() && cell.after.is_some()).count(), changed)
        };
        assert_eq!(pairs(&[65536], &[1024]), (3, vec![["64 KiB".to_owned(), "1 KiB".to_owned()]]));
        assert_eq!(pairs(&[65536], &[65536]), (3, vec![]));
        // With two values it says where a cell lies.
        assert_eq!(pairs(&[65536, 1024], &[65536, 2048]).1, Vec::<[String; 2]>::new());
        assert_eq!(pairs(&[65536, 1024], &[65536, 2048]).0, 2);
    }

    #[test]
    fn in_virtual_time_the_same_repeats_are_compared() {
        for (clock, compared) in [(Clock::Virtual, vec![10, 30]), (Clock::Real, vec![10_u64, 20, 30])] {
            let before = of_completions(clock, &[vec![10, 20, 30]]);
            let mut after = of_completions(clock, &[vec![11, 21, 31, 41]]);
            after.cells[0].figures.get_mut("completion_ns").expect("figures")[1] = None;
            let cells = matched(&before, &after, Matching::Id);
            let (first, second) = cells[0].sides(&Metric::Completion);
            assert_eq!(first.expect("there").figures, compared.into_iter().map(Number::from).collect::<Vec<_>>());
            let second = second.expect("there");
            assert_eq!((second.repeats, second.measured), (4, 3));
        }
    }
}
