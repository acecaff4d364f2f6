//! The repeats behind each summary, and the figure that a metric and a statistic make of them.

use super::metric::{Metric, Stat};
use super::unit::Unit;
use crate::measurement::{Number, Outcome};
use crate::record::Record;
use crate::stats::Figures;
pub(crate) use crate::stats::by_cell;

/// What the measured repeats of a cell make of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CellFigure {
    /// By the statistic.
    pub(crate) value: f64,
    /// Smallest of the repeats.
    pub(crate) low: f64,
    /// Largest of the repeats.
    pub(crate) high: f64,
    /// Range over the median, where there are several repeats.
    pub(crate) spread: Option<f64>,
}

/// A figure as a float, which is precise enough to be drawn.
#[expect(clippy::cast_precision_loss, reason = "drawn or shown with three digits")]
pub(crate) const fn float(figure: u64) -> f64 {
    figure as f64
}

impl CellFigure {
    /// `None` where no measured repeat has the metric, or too few for the statistic.
    pub(crate) fn of(repeats: &[&Record], metric: &Metric, stat: Stat) -> Option<Self> {
        let measured = repeats.iter().filter(|record| record.measurement.outcome == Outcome::Measured);
        let values: Vec<Number> = measured.filter_map(|record| metric.of(&record.measurement)).collect();
        let sum: f64 = values.iter().map(|value| value.get()).sum();
        let figures = Figures::of(values)?;
        // Half a nanosecond is not measured.
        let rounded = |figure: f64| if metric.is_printed() { figure } else { figure.floor() };
        let (min, median, max) = (figures.min.get(), rounded(figures.median.get()), figures.max.get());
        let spread = (figures.count > 1 && median > 0.0).then(|| (max - min) / median);
        let value = match stat {
            Stat::Median => median,
            Stat::Min => min,
            Stat::Max => max,
            Stat::Mean => rounded(sum / float(figures.count)),
            Stat::Spread => spread?,
        };
        let (low, high) = if stat == Stat::Spread { (value, value) } else { (min, max) };
        Some(Self { value, low, high, spread })
    }
}

impl CellFigure {
    /// Of the figure by the median, the one by another statistic. `None` for the mean, which it does not tell, and where the
    /// repeats are too few.
    pub(crate) fn with(self, stat: Stat) -> Option<Self> {
        match stat {
            Stat::Median => Some(self),
            Stat::Min => Some(Self { value: self.low, ..self }),
            Stat::Max => Some(Self { value: self.high, ..self }),
            Stat::Mean => None,
            Stat::Spread => self.spread.map(|spread| Self { value: spread, low: spread, high: spread, ..self }),
        }
    }
}

/// What the statistic of a metric is written in.
pub(crate) fn unit(metric: &Metric, stat: Stat) -> Unit {
    match stat {
        Stat::Spread => Unit::Share,
        _ => metric.unit(),
    }
}
