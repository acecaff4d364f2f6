//! What a median and a range do not tell about the repeats of a cell: outliers, two modes, a drift, no variation at all.

use std::fmt;

use serde::Serialize;

use super::figures::Figure;
use super::trend::{Trend, trend};

/// Fewest figures among which an outlier is told: quartiles of fewer mean little.
const FEWEST_FOR_OUTLIERS: usize = 5;
/// How many interquartile ranges beyond the quartiles a figure is an outlier: Tukey's far fences.
const FAR_FENCE: f64 = 3.0;
/// How far from the nearer quartile an outlier lies at least, as a share of the median: where half of the figures are the same, as in virtual
/// time, the range between the quartiles is 0.
const LEAST_OUTLIER: f64 = 0.01;
/// Fewest figures among which two modes are told.
const FEWEST_FOR_MODES: usize = 10;
/// The least share of the figures in the smaller mode.
const SMALLER_MODE: f64 = 0.2;
/// How many times as wide as both modes together the gap between them must be.
const GAP: f64 = 2.0;
/// How wide the gap must be, as a share of the median.
const LEAST_GAP: f64 = 0.05;
/// A drift is told where figures without one would show as much this rarely: about once in a thousand cells.
const DRIFT_P: f64 = 0.001;
/// The least drift that is told, from the first to the last repeat, as a share of the median.
const LEAST_DRIFT: f64 = 0.01;

/// What stands out among the repeats of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shape<T = u64> {
    /// Whether there are two or more figures and all are the same.
    pub constant: bool,
    /// Figures that lie far from the rest. They are told and never left out.
    pub outliers: Vec<Outlier<T>>,
    /// Two modes, where there are.
    pub modes: Option<Modes<T>>,
    /// A drift over the order of the run, where there is one.
    pub drift: Option<Drift>,
}

/// A figure beyond Tukey's far fences: more than three interquartile ranges from the nearer quartile, and than 1 % of the median.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outlier<T = u64> {
    /// Its place in the order of the run, from 0.
    pub index: usize,
    /// The figure.
    pub figure: T,
}

/// Two groups of figures with nothing between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Modes<T = u64> {
    /// Figures in the lower one.
    pub low_count: usize,
    /// The middle of the lower one.
    pub low: T,
    /// Figures in the upper one.
    pub high_count: usize,
    /// The middle of the upper one.
    pub high: T,
}

/// A drift over the order of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// From the first repeat to the last, as a share of the median: 0.1 is 10 % more.
    pub change: f64,
    /// How often figures without a drift would show as much, either way (Mann-Kendall).
    pub p: f64,
}

impl<T: Figure> Shape<T> {
    /// The shape of figures in the order in which they were measured.
    ///
    /// Two modes are told where, of ten or more figures, the smaller group holds a fifth, and the gap between the groups is twice as
    /// wide as both groups together and 5 % of the median. Of ten figures from one normal distribution fewer than 0.1 % look so, of
    /// ten from an exponential or log-normal (σ = 1) one fewer than 1.5 %, and fewer still of more.
    pub fn of(figures: &[T]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_unstable();
        let constant = sorted.len() > 1 && sorted.first() == sorted.last();
        if constant {
            return Self { constant, ..Self::default() };
        }
        Self { constant, outliers: outliers(figures, &sorted), modes: modes(&sorted), drift: drift(figures, &sorted) }
    }

    /// Whether nothing stands out.
    pub fn is_plain(&self) -> bool {
        self.outliers.is_empty() && self.modes.is_none() && self.drift.is_none()
    }

    /// What stands out, a phrase each, with figures as `show` writes them.
    pub fn notes(&self, show: &dyn Fn(T) -> String) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(Modes { low_count, low, high_count, high }) = self.modes {
            let (low, high) = (show(low), show(high));
            notes.push(format!("two modes: {low_count} near {low}, {high_count} near {high}"));
        }
        if let Some(drift) = self.drift {
            notes.push(format!("drifts: {drift}"));
        }
        if !self.outliers.is_empty() {
            let named: Vec<_> = self
                .outliers
                .iter()
                .map(|outlier| format!("{} (run {})", show(outlier.figure), outlier.index + 1))
                .collect();
            notes.push(format!("outliers: {}", named.join(", ")));
        }
        notes
    }
}

impl fmt::Display for Drift {
    /// `+12 % from first to last (p = 0.0004)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.0} % from first to last (p = {:.1e})", self.change * 100.0, self.p)
    }
}

/// A quantile by linear interpolation between the two nearest figures (type 7 of Hyndman and Fan, as in R and in Python's `numpy`).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places of figures in a list"
)]
fn quantile<T: Figure>(sorted: &[T], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted.get(place.floor() as usize)?.float(), sorted.get(place.ceil() as usize)?.float());
    Some(below + (above - below) * place.fract())
}

fn outliers<T: Figure>(figures: &[T], sorted: &[T]) -> Vec<Outlier<T>> {
    if figures.len() < FEWEST_FOR_OUTLIERS {
        return Vec::new();
    }
    let quartiles = (quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75));
    let (Some(lower), Some(median), Some(upper)) = quartiles else { return Vec::new() };
    let reach = (FAR_FENCE * (upper - lower)).max(LEAST_OUTLIER * median.abs());
    let far = |figure: T| figure.float() < lower - reach || figure.float() > upper + reach;
    figures
        .iter()
        .enumerate()
        .filter(|&(_, &figure)| far(figure))
        .map(|(index, &figure)| Outlier { index, figure })
        .collect()
}

fn modes<T: Figure>(sorted: &[T]) -> Option<Modes<T>> {
    let count = sorted.len();
    if count < FEWEST_FOR_MODES {
        return None;
    }
    let middle = |of: &[T]| of.get((of.len() - 1) / 2).copied();
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
    let (smallest, median) = ((SMALLER_MODE * count as f64).ceil() as usize, middle(sorted)?.float());
    let width = |low: &T, high: &T| high.float() - low.float();
    (smallest..=count - smallest)
        .filter_map(|split| {
            let (low, high) = sorted.split_at(split);
            let gap = width(low.last()?, high.first()?);
            let within = width(low.first()?, low.last()?) + width(high.first()?, high.last()?);
            (gap > GAP * within && gap > LEAST_GAP * median.abs()).then_some((gap, low, high))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .and_then(|(_, low, high)| {
            Some(Modes { low_count: low.len(), low: middle(low)?, high_count: high.len(), high: middle(high)? })
        })
}

fn drift<T: Figure>(figures: &[T], sorted: &[T]) -> Option<Drift> {
    let Trend { p, slope } = trend(figures)?;
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let (steps, median) = ((figures.len() - 1) as f64, sorted.get((sorted.len() - 1) / 2)?.float());
    let change = slope * steps / median.abs();
    (p <= DRIFT_P && change.is_finite() && change.abs() >= LEAST_DRIFT).then_some(Drift { change, p })
}

#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up figures of moderate size"
)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::{Modes, Outlier, Shape, quantile};

    // C48: a slow first run, and two modes.
    #[test]
    fn a_slow_first_run_is_an_outlier_and_stays() {
        let shape = Shape::of(&[900, 101, 103, 102, 100, 104]);
        assert_eq!(shape.outliers, [Outlier { index: 0, figure: 900 }]);
        assert_eq!(shape.notes(&|figure| format!("{figure} ns")), ["outliers: 900 ns (run 1)"]);
        assert!(Shape::of(&[900, 100, 102, 101]).is_plain(), "four have no quartiles worth the name");
    }

    /// In virtual time most repeats are the same to the nanosecond.
    #[test]
    fn a_nanosecond_beside_figures_that_are_all_the_same_is_no_outlier() {
        let same = 202_400_000;
        assert!(Shape::of(&[same, same, same + 1, same, same, same]).is_plain());
        let shape = Shape::of(&[same, same, same + same / 50, same, same, same]);
        assert_eq!(shape.outliers, [Outlier { index: 2, figure: same + same / 50 }], "2 % are");
    }

    // C48
    #[test]
    fn two_modes_are_seen_and_said() {
        // Nagle's algorithm against delayed acknowledgements: nothing, or 40 ms.
        let figures =
            [300_000, 40_300_000, 310_000, 290_000, 40_100_000, 305_000, 295_000, 40_200_000, 300_500, 299_000];
        let shape = Shape::of(&figures);
        assert_eq!(shape.modes, Some(Modes { low_count: 7, low: 300_000, high_count: 3, high: 40_200_000 }));
        assert!(shape.notes(&|figure| figure.to_string())[0].starts_with("two modes: 7 near 300000"));
        assert_eq!(Shape::of(&figures[..9]).modes, None, "nine are too few to tell");
    }

    #[test]
    fn a_drift_is_seen_in_the_order_and_not_in_the_figures() {
        let rising: Vec<u64> = (0..10).map(|step| 1000 + 20 * step + (step * 7) % 5).collect();
        let drift = Shape::of(&rising).drift.expect("a drift");
        assert!((drift.change - 0.18).abs() < 0.02 && drift.p < 0.001, "{drift:?}");
        let mut mixed = rising;
        mixed.rotate_left(5);
        assert_eq!(Shape::of(&mixed).drift, None);
        let slight: Vec<u64> = (0..10).map(|step| 100_000 + step).collect();
        assert_eq!(Shape::of(&slight).drift, None, "0.01 % is none to speak of");
    }

    #[test]
    fn no_variation_is_said_and_divides_nothing() {
        let shape = Shape::of(&[5; 10]);
        assert!(shape.constant && shape.is_plain());
        assert!(Shape::of(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]).drift.is_none_or(|drift| drift.change.is_finite()));
        assert!(!Shape::of(&[5]).constant && Shape::<u64>::of(&[]).is_plain());
    }

    /// Ten figures from one distribution that is given as a function of two uniform numbers.
    fn two_modes_in(draw: fn(f64, f64) -> f64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let trials = 4000;
        let hits = (0..trials)
            .filter(|_| {
                let figures: Vec<u64> = (0..10)
                    .map(|_| {
                        let (a, b): (f64, f64) = (rng.random_range(1e-12..1.0), rng.random_range(0.0..1.0));
                        (1e9 * draw(a, b)) as u64
                    })
                    .collect();
                Shape::of(&figures).modes.is_some()
            })
            .count();
        hits as f64 / f64::from(trials)
    }

    #[test]
    fn one_distribution_seldom_looks_like_two_modes() {
        assert!(two_modes_in(|a, b| 10.0 + normal_of(a, b)) < 0.001);
        assert!(two_modes_in(|a, _| -a.ln()) < 0.015, "exponential");
        assert!(two_modes_in(|a, b| normal_of(a, b).exp()) < 0.015, "log-normal");
    }

    fn normal_of(a: f64, b: f64) -> f64 {
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    proptest! {
        #[test]
        fn nothing_is_left_out_and_nothing_breaks(figures in prop::collection::vec(any::<u64>(), 0..40)) {
            let shape = Shape::of(&figures);
            for outlier in &shape.outliers {
                prop_assert_eq!(figures[outlier.index], outlier.figure);
            }
            prop_assert!(shape.outliers.len() * 2 <= figures.len());
            if let Some(modes) = shape.modes {
                prop_assert!(modes.low < modes.high);
                prop_assert_eq!(modes.low_count + modes.high_count, figures.len());
            }
        }

        #[test]
        fn quantiles_lie_within_the_figures(mut figures in prop::collection::vec(0..1_000_000_u64, 1..40), share in 0.0..=1.0_f64) {
            figures.sort_unstable();
            let found = quantile(&figures, share).expect("some");
            prop_assert!(found >= figures[0] as f64 && found <= figures[figures.len() - 1] as f64);
        }
    }
}
