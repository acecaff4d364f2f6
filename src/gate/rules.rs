//! When a change is a regression.

use std::collections::BTreeSet;

use super::cells::Matching;
use super::environment::Aspect;
use super::metric::{Metric, Worse};
use crate::measurement::Number;
use crate::stats::count;

/// The share by which a median may worsen.
pub const DEFAULT_MAX_REGRESSION: f64 = 0.05;
/// How often a gate over cells that did not change may take one for changed by chance, over all its cells together.
pub const DEFAULT_ALPHA: f64 = 0.01;

/// So many times a run is tried on a machine that does not hold still: the first, and these again.
pub const TRIES: usize = 3;

/// The share of the allowed change from which on a cell may be worse, and is run again. The p of a few repeats is not asked: of a cell
/// with two modes they would often hold too many of the faster one.
pub(super) const MAY_BE_WORSE: f64 = 0.5;
/// How many times a cell that may be worse is run again, in all, before each look at what that gave. Most are told from a real change by
/// the first.
pub(super) const LOOKS: [usize; 3] = [20, 60, 160];
/// After a look that tells nothing a cell is run again once more if chance would make it look as bad less often than this.
pub(super) const GO_ON: f64 = 0.3;
/// A cell that is worse by this share is looked at before the first of [`LOOKS`], once it has the fewest repeats that can be significant.
pub(super) const PLAIN: f64 = 0.5;
/// So many cells that nobody suspects are run once more beside those that are worse.
pub(super) const CONTROLS: usize = 16;
/// With fewer of them nothing is told of the machine.
pub(super) const FEWEST_CONTROLS: usize = 8;
/// Where chance would make the controls move one way as evenly less often than this, and they moved by more than a cell may, the machine
/// is not as it was, and nothing is said.
pub(super) const CONTROLS_MOVED: f64 = 0.05;
/// On a machine that is not as it was a change counts beyond so many times what the controls moved by.
const ON_ANOTHER_MACHINE: f64 = 5.0;
/// The most looks at a cell.
const MOST_LOOKS: usize = LOOKS.len() + 1;
/// Each look may find a change by chance, and has its share of the probability of that. The last one, to which only cells come that are hard
/// to tell, has this, and the others the rest, in equal parts.
const LAST_LOOK: f64 = 0.7;

/// Where the repeats of a cell vary by more than is allowed (the median of their distances from their median), a change counts beyond so
/// many times that. On a busy machine such cells move by as much from one run to the next as their repeats do within one.
pub(super) const RESTLESS: f64 = 3.0;

/// When a change is a regression: it is significant over all cells together, and larger than a share, and larger than an amount. In
/// virtual time, where a figure is the same every time, the share alone decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// What is compared; `None` for the usual figure of the cells.
    pub metric: Option<Metric>,
    /// The share by which a median may worsen: 0.05 is 5 %.
    pub max_regression: f64,
    /// The probability of a significant change anywhere among cells that did not change.
    pub alpha: f64,
    /// The least change of a median in real time, in the metric's unit; `None` for the metric's own.
    pub floor: Option<Number>,
    /// How cells are matched.
    pub matching: Matching,
    /// Differences that are not refused.
    pub allow: BTreeSet<Aspect>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            metric: None,
            max_regression: DEFAULT_MAX_REGRESSION,
            alpha: DEFAULT_ALPHA,
            floor: None,
            matching: Matching::Id,
            allow: BTreeSet::new(),
        }
    }
}

/// What became of a median, by the size of its change alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Worse,
    Better,
    Small,
}

impl Rules {
    /// These, for a cell that may be worse.
    pub(super) fn screening(&self) -> Self {
        Self { max_regression: self.max_regression * MAY_BE_WORSE, ..self.clone() }
    }

    /// These, for one of several looks at the same cell, once it has been run again so many times.
    pub(super) fn of_a_look(&self, asked: usize) -> Self {
        let last = asked >= LOOKS[LOOKS.len() - 1];
        let share = if last { LAST_LOOK } else { (1.0 - LAST_LOOK) / count(MOST_LOOKS - 1) };
        Self { alpha: self.alpha * share, ..self.clone() }
    }

    /// These, for a machine on which cells that did not change take so many times as long: what is beyond several times that is none of
    /// its doing.
    pub(super) fn on_another_machine(&self, ratio: f64) -> Self {
        Self { max_regression: self.max_regression.max(ON_ANOTHER_MACHINE * (ratio - 1.0).abs()), ..self.clone() }
    }

    /// What became of a median: worse or better if it changed by more than the share and the floor.
    pub(super) fn size(&self, metric: &Metric, before: Number, after: Number, exact: bool) -> Size {
        let floor = if exact { 0.0 } else { self.floor.unwrap_or_else(|| metric.floor()).get() };
        let change = (after.get() - before.get()).abs();
        if change <= floor || change <= self.max_regression * before.get().abs() {
            return Size::Small;
        }
        match (metric.worse(), after > before) {
            (Worse::Up, true) | (Worse::Down, false) => Size::Worse,
            (Worse::Up, false) | (Worse::Down, true) => Size::Better,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rules, Size};
    use crate::gate::metric::Metric;

    #[test]
    fn a_change_counts_beyond_the_share_and_beyond_the_floor() {
        let rules = Rules::default();
        let size = |before: u64, after: u64, exact| rules.size(&Metric::Completion, before.into(), after.into(), exact);
        assert_eq!(size(1_000_000, 1_050_000, false), Size::Small, "5 % is not more than 5 %");
        assert_eq!(size(1_000_000, 1_050_001, false), Size::Worse);
        assert_eq!(size(1_000_000, 949_999, false), Size::Better);
        assert_eq!(size(20_000, 30_000, false), Size::Small, "50 %, and no more than 10 µs");
        assert_eq!(size(20_000, 30_000, true), Size::Worse, "virtual time has no floor");
        assert_eq!(size(990, 1100, true), Size::Worse, "990 ns to 1.1 µs is 11 %");
    }

    #[test]
    fn throughput_down_is_worse() {
        let rules = Rules::default();
        let size = |before: u64, after: u64| rules.size(&Metric::Goodput, before.into(), after.into(), false);
        assert_eq!((size(100_000_000, 90_000_000), size(90_000_000, 100_000_000)), (Size::Worse, Size::Better));
        assert_eq!(size(100_000_000, 0), Size::Worse);
        assert_eq!(size(1_000_000, 2_000_000), Size::Small, "no more than 1 Mbit/s");
    }

    #[test]
    fn a_figure_of_zero_is_compared_without_a_ratio() {
        let rules = Rules::default();
        assert_eq!(rules.size(&Metric::Completion, 0.into(), 0.into(), true), Size::Small);
        assert_eq!(rules.size(&Metric::Completion, 0.into(), 1.into(), true), Size::Worse);
        assert_eq!(rules.size(&Metric::Goodput, 0.into(), 5_000_000.into(), false), Size::Better);
    }
}
