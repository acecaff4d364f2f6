//! Whether the median of a cell is known well enough.

use serde::Serialize;

use super::interval::median_interval;
use crate::measurement::{Measurement, Outcome};
use crate::settings::Precision;

/// How well the median of a cell is known, beside how well it was to be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// The median of what: `completion`, or `goodput` where nothing has a completion.
    pub metric: &'static str,
    /// Repeats that have that figure.
    pub repeats: usize,
    /// How far the interval of the median reaches from it, as a share of the median: 0.02 is 2 %. `None` where so few repeats give no
    /// interval, and where the median is 0 and its interval is not.
    pub reached: Option<f64>,
    /// How far it may reach.
    pub asked: f64,
    /// How often such an interval is to hold the median.
    pub confidence: f64,
    /// Whether it is known well enough.
    pub enough: bool,
}

/// The figures by which a cell is known well enough, of the repeats that were measured: their completions, or their goodputs where none
/// has a completion. With the name of the metric.
pub fn deciding<'a>(repeats: impl Iterator<Item = &'a Measurement> + Clone) -> (&'static str, Vec<u64>) {
    let measured = repeats.filter(|measurement| measurement.outcome == Outcome::Measured);
    let completions: Vec<u64> = measured.clone().filter_map(|measurement| measurement.completion_ns).collect();
    if completions.is_empty() {
        let goodputs: Vec<u64> = measured.filter_map(|measurement| measurement.goodput_bps).collect();
        if !goodputs.is_empty() {
            return ("goodput", goodputs);
        }
    }
    ("completion", completions)
}

/// How well the median of these figures is known.
///
/// Identical figures have an interval of no width, and are known well enough as soon as they are as many as any interval takes.
pub fn reached(metric: &'static str, figures: &[u64], asked: &Precision) -> Reached {
    let confidence = asked.confidence.share();
    let interval = median_interval(figures, confidence);
    let median = super::Figures::of(figures.to_vec()).map(|figures| figures.median);
    let reached = interval.zip(median).and_then(|(interval, median)| {
        if interval.low == interval.high { Some(0.0) } else { interval.precision(median) }
    });
    Reached {
        metric,
        repeats: figures.len(),
        reached,
        asked: asked.share.share(),
        confidence,
        enough: reached.is_some_and(|reached| reached <= asked.share.share()),
    }
}

#[cfg(test)]
mod tests {
    use super::{deciding, reached};
    use crate::measurement::{Measurement, Outcome};
    use crate::settings::Precision;

    fn asked() -> Precision {
        let share = |text: &str| text.parse().expect("a share");
        Precision { min: 5, share: share("2%"), confidence: share("95%") }
    }

    #[test]
    fn it_is_the_wider_side_of_the_interval_that_counts() {
        // Of six figures the interval is from the lowest to the highest.
        let known = reached("completion", &[990, 1000, 1000, 1000, 1000, 1020], &asked());
        assert_eq!((known.reached, known.enough), (Some(0.02), true));
        let known = reached("completion", &[990, 1000, 1000, 1000, 1000, 1021], &asked());
        assert_eq!((known.reached, known.enough), (Some(0.021), false));
    }

    #[test]
    fn identical_figures_are_enough_as_soon_as_there_is_an_interval() {
        assert_eq!(reached("completion", &[7; 5], &asked()).reached, None, "5 repeats give no interval at 95 %");
        for figure in [0, 7] {
            let known = reached("goodput", &[figure; 6], &asked());
            assert_eq!((known.reached, known.enough), (Some(0.0), true));
        }
        let stalls = reached("goodput", &[0, 0, 0, 0, 0, 0, 5], &asked());
        assert_eq!((stalls.reached, stalls.enough), (None, false), "a share of 0 is no share");
    }

    #[test]
    fn completion_decides_and_goodput_where_there_is_none() {
        let figures = Measurement { completion_ns: Some(1), goodput_bps: Some(2), ..Measurement::default() };
        let echo = Measurement { outcome: Outcome::Measured, ..figures };
        let stream = Measurement { completion_ns: None, ..echo.clone() };
        let lost = Measurement { outcome: Outcome::TimedOut, ..echo.clone() };
        assert_eq!(deciding([&echo, &echo, &lost].into_iter()), ("completion", vec![1, 1]));
        assert_eq!(deciding([&stream, &stream].into_iter()), ("goodput", vec![2, 2]));
        assert_eq!(deciding([&lost].into_iter()), ("completion", vec![]));
    }
}
