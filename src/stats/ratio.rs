//! How much larger one set of figures is than another.

use serde::Serialize;

use super::figures::{Figure, Figures};
use super::rank::pairs_outside;

/// The second side over the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the two medians. `None` where the first median is 0, or a figure is negative, and there is no ratio.
    pub medians: Option<f64>,
    /// The median of the ratios of all pairs (Hodges and Lehmann's estimate, of a factor instead of a shift).
    pub pairs: Option<f64>,
    /// The interval of that factor.
    pub interval: Option<RatioInterval>,
}

/// An interval of the factor by which the first side's figures must be multiplied to look like the second side's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end; `None` where there is none, because too many figures of the first side are 0.
    pub high: Option<f64>,
    /// How often such an interval holds the factor, at least.
    pub confidence: f64,
}

impl RatioInterval {
    /// Whether a factor lies in it.
    pub fn holds(&self, factor: f64) -> bool {
        self.low <= factor && self.high.is_none_or(|high| factor <= high)
    }
}

/// The second side over the first. `None` if one is empty.
///
/// The interval is the Mann-Whitney test turned round: it holds each factor that the test would not reject at that confidence. So it
/// needs no distribution, it exists with as few as four repeats a side, where no interval of a ratio of medians does, and it
/// excludes 1 just where the test rejects. Where a figure is negative there is no factor at all. It is one of the factor between the two distributions: where one side has two modes,
/// the ratio of the medians may lie outside it. It is `None` where so few figures support none.
pub fn ratio<T: Figure>(first: &[T], second: &[T], confidence: f64) -> Option<Ratio> {
    let median = |side: &[T]| Figures::of(side.to_vec()).map(|figures| figures.median);
    let (before, after) = (median(first)?, median(second)?);
    if first.iter().chain(second).any(|figure| figure.float() < 0.0) {
        return Some(Ratio { medians: None, pairs: None, interval: None });
    }
    let mut ratios: Vec<f64> =
        first.iter().flat_map(|&before| second.iter().map(move |&after| quotient(before, after))).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let count = ratios.len();
    let (lower, upper) = (ratios.get((count - 1) / 2)?, ratios.get(count / 2)?);
    let outside = pairs_outside(first.len(), second.len(), confidence);
    let interval = (outside > 0).then(|| {
        let (low, high) = (ratios[outside - 1], ratios[count - outside]);
        RatioInterval { low, high: high.is_finite().then_some(high), confidence }
    });
    Some(Ratio {
        medians: (before.float() > 0.0).then(|| quotient(before, after)),
        pairs: Some(f64::midpoint(*lower, *upper)).filter(|pairs| pairs.is_finite()),
        // An interval of infinite factors alone says nothing.
        interval: interval.filter(|interval| interval.low.is_finite()),
    })
}

/// `after / before`; nothing over nothing is no change.
fn quotient<T: Figure>(before: T, after: T) -> f64 {
    if before == after { 1.0 } else { after.float() / before.float() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ratio;
    use crate::stats::mann_whitney;

    #[test]
    fn a_change_is_one_of_figures_and_not_of_units() {
        let change = ratio(&[990], &[1100], 0.95).expect("both sides").medians.expect("a ratio");
        assert!((change - 1.111).abs() < 0.001, "990 ns to 1.1 µs is 11 %: {change}");
    }

    #[test]
    fn a_previous_figure_of_zero_gives_no_ratio_and_no_nan() {
        let from_zero = ratio(&[0; 5], &[3; 5], 0.95).expect("both sides");
        assert_eq!((from_zero.medians, from_zero.pairs, from_zero.interval), (None, None, None));
        let stayed = ratio(&[0; 5], &[0; 5], 0.95).expect("both sides");
        assert_eq!((stayed.medians, stayed.pairs), (None, Some(1.0)));
        let partly = ratio(&[0, 0, 2, 2, 2], &[2; 5], 0.95).expect("both sides").interval.expect("an interval");
        assert_eq!((partly.low, partly.high), (1.0, None));
        assert_eq!(ratio(&[], &[1], 0.95), None);
    }

    #[test]
    fn too_few_figures_have_a_ratio_but_no_interval() {
        let few = ratio(&[10, 11, 12], &[20, 21, 22], 0.95).expect("both sides");
        assert_eq!((few.interval, few.medians), (None, Some(21.0 / 11.0)));
        assert!(ratio(&[10, 11, 12, 13], &[20, 21, 22, 23], 0.95).expect("both sides").interval.is_some());
    }

    proptest! {
        #[test]
        fn the_interval_excludes_one_just_where_the_test_rejects(
            first in prop::collection::hash_set(1000..2000_u64, 4..12),
            second in prop::collection::hash_set(1000..2000_u64, 4..12)
        ) {
            prop_assume!(first.is_disjoint(&second));
            let (first, second): (Vec<_>, Vec<_>) = (first.into_iter().collect(), second.into_iter().collect());
            let found = ratio(&first, &second, 0.95).expect("both sides");
            let interval = found.interval.expect("four or more");
            let p = mann_whitney(&first, &second).expect("both sides").p;
            prop_assert_eq!(!interval.holds(1.0), p <= 0.05, "{:?} {}", interval, p);
            let pairs = found.pairs.expect("no zeros");
            prop_assert!(interval.holds(pairs));
        }

        #[test]
        fn turned_round_it_is_the_inverse(
            first in prop::collection::vec(1..1000_u64, 4..10),
            second in prop::collection::vec(1..1000_u64, 4..10)
        ) {
            let there = ratio(&first, &second, 0.95).expect("both").interval.expect("four or more");
            let back = ratio(&second, &first, 0.95).expect("both").interval.expect("four or more");
            prop_assert!((there.low * back.high.expect("no zeros") - 1.0).abs() < 1e-9);
            prop_assert!((there.high.expect("no zeros") * back.low - 1.0).abs() < 1e-9);
        }
    }
}
