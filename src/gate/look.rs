//! The A/A look: the first half of a run against its second half, which nothing but the machine can make differ.

use serde::Serialize;

use super::baseline::Baseline;
use super::metric::Metric;
use super::rules::{Rules, Size};
use crate::measurement::Number;
use crate::settings::Clock;
use crate::stats::{Figures, holm, mann_whitney, sign_test};

/// How often a look at a machine that did not change may alarm, for each of its two tests.
const ALPHA: f64 = 0.001;

/// What the look found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Cells measured in real time that have two halves.
    pub cells: usize,
    /// Cells that are slower or faster in the second half, as a gate would tell it: places on the axes.
    pub changed: Vec<String>,
    /// Cells whose second half is slower, and cells whose second half is faster.
    pub slower: usize,
    /// See `slower`.
    pub faster: usize,
    /// The median of the cells' ratios of second to first half.
    pub ratio: Option<f64>,
    /// Whether the machine changed while it measured.
    pub alarm: bool,
}

/// How the run as a whole compares with the baseline, where nearly all cells moved one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Cells measured in real time on both sides.
    pub cells: usize,
    /// Of them, those with more, and those with less.
    pub more: usize,
    /// See `more`.
    pub less: usize,
    /// The median of the cells' ratios of run to baseline.
    pub ratio: f64,
}

impl Shift {
    /// How cells with these ratios moved; `None` of none.
    pub(super) fn by(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_unstable_by(f64::total_cmp);
        let count = |of: &dyn Fn(f64) -> bool| ratios.iter().filter(|&&ratio| of(ratio)).count();
        let (more, less) = (count(&|ratio| ratio > 1.0), count(&|ratio| ratio < 1.0));
        let ratio = *ratios.get(ratios.len() / 2)?;
        Some(Self { cells: ratios.len(), more, less, ratio })
    }

    /// The shift of a run whose cells have these ratios; `None` where as uneven a split comes about by chance more often than once in a
    /// thousand, as it does for any ten cells.
    pub(super) fn of(ratios: Vec<f64>) -> Option<Self> {
        Self::by(ratios).filter(|shift| shift.p() <= ALPHA)
    }

    /// How often chance splits cells as unevenly.
    pub(super) fn p(&self) -> f64 {
        sign_test(self.more, self.less)
    }

    /// Whether the run as a whole changed by more than a cell may.
    pub(super) fn is_large(&self, rules: &Rules) -> bool {
        (self.ratio - 1.0).abs() > rules.max_regression
    }
}

/// Looks at the cells of one side that were measured in real time. `None` if it has none with two figures.
///
/// It alarms if a cell's halves differ as two sides of a gate would (at 0.001 over all cells, beyond the share and the floor), or if
/// so many cells changed in one direction, by more than the share in the middle, as would happen by chance once in a thousand.
pub(super) fn look(side: &Baseline, metric: &Metric, rules: &Rules) -> Option<Look> {
    let mut tests: Vec<(String, f64, Size)> = Vec::new();
    let mut ratios: Vec<f64> = Vec::new();
    for cell in side.cells.iter().filter(|cell| cell.clock != Clock::Virtual) {
        let figures: Vec<Number> = cell.repeats(metric).into_iter().flatten().collect();
        let (first, second) = figures.split_at(figures.len() / 2);
        let median = |half: &[Number]| Figures::of(half.to_vec()).map(|figures| figures.median);
        let (Some(test), Some(before), Some(after)) = (mann_whitney(first, second), median(first), median(second))
        else {
            continue;
        };
        tests.push((cell.axes.to_string(), test.p, rules.size(metric, before, after, false)));
        if before.get() > 0.0 && after.get() >= 0.0 {
            ratios.push(after.get() / before.get());
        }
    }
    if tests.is_empty() {
        return None;
    }
    let corrected = holm(&tests.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
    let changed: Vec<String> = tests
        .iter()
        .zip(corrected)
        .filter(|((_, _, size), p)| *p <= ALPHA && *size != Size::Small)
        .map(|((axes, ..), _)| axes.clone())
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios.get(ratios.len() / 2).copied();
    let (slower, faster) =
        (ratios.iter().filter(|&&ratio| ratio > 1.0).count(), ratios.iter().filter(|&&ratio| ratio < 1.0).count());
    let together =
        sign_test(slower, faster) <= ALPHA && ratio.is_some_and(|ratio| (ratio - 1.0).abs() > rules.max_regression);
    Some(Look { cells: tests.len(), alarm: together || !changed.is_empty(), changed, slower, faster, ratio })
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::gate::baseline::tests::of_completions;
    use crate::gate::metric::Metric;
    use crate::gate::rules::Rules;
    use crate::settings::Clock;

    fn of(cells: &[Vec<u64>]) -> Option<super::Look> {
        look(&of_completions(Clock::Real, cells), &Metric::Completion, &Rules::default())
    }

    #[test]
    fn a_machine_that_stays_as_it_is_raises_no_alarm() {
        let steady: Vec<Vec<u64>> =
            (0..40).map(|cell| (0..10).map(|i| 1_000_000 + (i * 7919 + cell * 31) % 1009 * 50).collect()).collect();
        let found = of(&steady).expect("forty cells");
        assert_eq!((found.alarm, found.cells), (false, 40), "{found:?}");
    }

    #[test]
    fn a_machine_that_slows_down_half_way_alarms_even_with_few_repeats() {
        let slowed: Vec<Vec<u64>> =
            (0..20).map(|cell| vec![1_000_000 + cell, 1_001_000, 1_000_500, 1_080_000, 1_081_000]).collect();
        let found = of(&slowed).expect("twenty cells");
        assert!(found.alarm && found.changed.is_empty() && found.slower == 20, "{found:?}");
    }

    #[test]
    fn one_cell_that_changes_half_way_is_named() {
        let mut cells = vec![vec![1_000_000; 20]; 3];
        cells[1] = (0..20).map(|i| if i < 10 { 1_000_000 + i } else { 1_200_000 + i }).collect();
        let found = of(&cells).expect("three cells");
        assert_eq!((found.alarm, found.changed.len()), (true, 1), "{found:?}");
        assert!(found.changed[0].contains("chunk_count=2"));
    }

    #[test]
    fn virtual_time_and_single_figures_have_nothing_to_look_at() {
        let virtual_time = of_completions(Clock::Virtual, &[vec![1, 2, 3, 4]]);
        assert_eq!(look(&virtual_time, &Metric::Completion, &Rules::default()), None);
        assert_eq!(of(&[vec![1]]), None);
        assert!(!of(&[vec![0, 0, 0, 5]]).expect("two halves").alarm);
    }
}
