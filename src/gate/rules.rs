//! When a change is a regression.

use std::collections::BTreeSet;

use super::cells::Matching;
use super::environment::Aspect;
use super::metric::{Metric, Worse};
use crate::measurement::Number;

/// The share by which a median may worsen.
pub const DEFAULT_MAX_REGRESSION: f64 = 0.05;
/// How often a gate over cells that did not change may take one for changed by chance, over all its cells together.
pub const DEFAULT_ALPHA: f64 = 0.01;

/// A cell that looks worse is run again if chance would make it look so one time in ten: what is then measured decides by itself, and
/// a cell that is run again for nothing costs a little time.
pub(super) const SCREEN: f64 = 0.1;
/// The share of the allowed change from which on a cell looks worse.
pub(super) const SCREEN_SHARE: f64 = 0.5;
/// So many times a cell is run again, unless so many are that it would take longer than the run did.
pub(super) const CONFIRM: usize = 40;

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
    /// These, for a cell that only looks worse.
    pub(super) fn screening(&self) -> Self {
        Self { max_regression: self.max_regression * SCREEN_SHARE, ..self.clone() }
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
