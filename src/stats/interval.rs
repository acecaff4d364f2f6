//! How well a median is known, without assuming any distribution.

use serde::Serialize;
use statrs::function::factorial::ln_binomial;

/// An interval that holds the true median, in the unit of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MedianInterval {
    /// Its lower end: one of the figures.
    pub low: u64,
    /// Its upper end: one of the figures.
    pub high: u64,
    /// How often such an interval holds the median: at least what was asked for, and usually more, since there are only so
    /// many figures to choose ends from.
    pub coverage: f64,
}

impl MedianInterval {
    /// The wider side of the interval over the median: 0.02 where both ends lie within 2 % of it. `None` for a median of 0.
    pub fn precision(&self, median: u64) -> Option<f64> {
        let wider = median.saturating_sub(self.low).max(self.high.saturating_sub(median));
        #[expect(clippy::cast_precision_loss, reason = "a ratio to be shown with three digits")]
        (median > 0).then(|| wider as f64 / median as f64)
    }
}

/// The narrowest interval between two order statistics of the same depth that holds the median of the distribution with at least
/// that confidence. `None` where so few figures cannot support it: 95 % takes six, 99 % eight.
///
/// A figure lies below the median with probability one half, so the number below it is binomial, whatever the distribution
/// (David and Nagaraja, Order Statistics, section 7.1). With ties the coverage is a lower bound.
pub fn median_interval(figures: &[u64], confidence: f64) -> Option<MedianInterval> {
    let count = figures.len();
    let mut outside = 0.0;
    let mut depth = None;
    // The interval from the figure of this depth (from 0) misses the median if at most `index` figures lie on one side.
    for index in 0..count / 2 {
        outside += 2.0 * binomial_half(count, index);
        if 1.0 - outside < confidence {
            break;
        }
        depth = Some((index, 1.0 - outside));
    }
    let (depth, coverage) = depth?;
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    Some(MedianInterval { low: *sorted.get(depth)?, high: *sorted.get(count - 1 - depth)?, coverage })
}

/// The probability of `k` heads in `n` tosses of a fair coin.
pub(super) fn binomial_half(n: usize, k: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let tosses = n as f64;
    (ln_binomial(n as u64, k as u64) - tosses * std::f64::consts::LN_2).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MedianInterval, median_interval};

    #[test]
    fn few_figures_support_no_interval() {
        let figures: Vec<u64> = (1..=20).collect();
        assert_eq!(median_interval(&[], 0.95), None);
        assert_eq!(median_interval(&figures[..5], 0.95), None, "1 - 2/32 is 93.75 %");
        let six = median_interval(&figures[..6], 0.95).expect("1 - 2/64 is 96.9 %");
        assert_eq!((six.low, six.high), (1, 6));
        assert!((six.coverage - 0.96875).abs() < 1e-12);
        assert_eq!(median_interval(&figures[..7], 0.99), None);
        assert!(median_interval(&figures[..8], 0.99).is_some());
    }

    #[test]
    fn figures_that_are_all_the_same_are_known_exactly() {
        let interval = median_interval(&[7; 6], 0.95).expect("six");
        assert_eq!((interval.low, interval.high, interval.precision(7)), (7, 7, Some(0.0)));
        assert_eq!(interval.precision(0), None);
        assert_eq!(MedianInterval { low: 98, high: 101, coverage: 0.95 }.precision(100), Some(0.02));
    }

    proptest! {
        #[test]
        fn it_holds_the_sample_median_and_shrinks_with_less_confidence(
            figures in prop::collection::vec(any::<u64>(), 8..60)
        ) {
            let wide = median_interval(&figures, 0.99).expect("eight or more");
            let narrow = median_interval(&figures, 0.90).expect("eight or more");
            let median = crate::stats::Figures::of(figures).expect("some").median;
            prop_assert!(wide.low <= narrow.low && narrow.low <= median && median <= narrow.high && narrow.high <= wide.high);
            prop_assert!(wide.coverage >= 0.99 && narrow.coverage >= 0.90 && wide.coverage <= 1.0);
        }
    }
}
