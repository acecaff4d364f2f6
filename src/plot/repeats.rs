//! The repeats behind each summary, and the figure that a metric and a statistic make of them.

use super::metric::{Metric, Stat};
use super::unit::Unit;
use crate::measurement::Outcome;
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
    pub(crate) fn of(repeats: &[&Record], metric: Metric, stat: Stat) -> Option<Self> {
        let measured = repeats.iter().filter(|record| record.measurement.outcome == Outcome::Measured);
        let values: Vec<u64> = measured.filter_map(|record| metric.of(&record.measurement)).collect();
        let sum: u128 = values.iter().copied().map(u128::from).sum();
        let figures = Figures::of(values)?;
        let spread = figures.spread();
        let value = match stat {
            Stat::Median => float(figures.median),
            Stat::Min => float(figures.min),
            Stat::Max => float(figures.max),
            Stat::Mean => float(u64::try_from(sum / u128::from(figures.count)).unwrap_or(u64::MAX)),
            Stat::Spread => spread?,
        };
        let (low, high) = if stat == Stat::Spread { (value, value) } else { (float(figures.min), float(figures.max)) };
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
pub(crate) const fn unit(metric: Metric, stat: Stat) -> Unit {
    match stat {
        Stat::Spread => Unit::Share,
        _ => metric.unit(),
    }
}
