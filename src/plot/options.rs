//! What is to be drawn, and how.

use std::str::FromStr;

use super::error::PlotError;
use super::metric::{Metric, Stat};
use crate::units::choice;

choice! {
    /// Colours of the picture around the cells.
    Theme {
        /// Dark on white.
        #[default] Light = "light",
        /// Light on nearly black.
        Dark = "dark",
    }
}

choice! {
    /// The kind of file.
    Format {
        /// Lines and text: sharp at every size.
        #[default] Svg = "svg",
        /// Pixels, two for each unit of the SVG.
        Png = "png",
    }
}

impl FromStr for Theme {
    type Err = PlotError;

    fn from_str(typed: &str) -> Result<Self, PlotError> {
        Self::named(typed).ok_or_else(|| PlotError::unknown("theme", typed, Self::NAMES))
    }
}

impl FromStr for Format {
    type Err = PlotError;

    fn from_str(typed: &str) -> Result<Self, PlotError> {
        Self::named(typed).ok_or_else(|| PlotError::unknown("format", typed, Self::NAMES))
    }
}

/// What is to be drawn. The default is the latency of a run, on axes that are chosen by their number of values.
#[derive(Clone, Debug)]
pub struct PlotOptions {
    /// Which figure of each repeat.
    pub metric: Metric,
    /// How repeats become one figure.
    pub stat: Stat,
    /// The axis from left to right: an axis of the sweep, `kernel` or `clock`.
    pub x: Option<String>,
    /// The axis from bottom to top.
    pub y: Option<String>,
    /// Axes with one small picture for each value, in this order. Whatever else varies is added.
    pub facet: Vec<String>,
    /// The kind of file that [`super::encode`] and [`super::write`] make.
    pub format: Format,
    /// Colours around the cells.
    pub theme: Theme,
    /// The title, instead of one made of metric, statistic and sweep.
    pub title: Option<String>,
}

impl Default for PlotOptions {
    fn default() -> Self {
        Self {
            metric: Metric::COMPLETION,
            stat: Stat::default(),
            x: None,
            y: None,
            facet: Vec::new(),
            format: Format::default(),
            theme: Theme::default(),
            title: None,
        }
    }
}

impl PlotOptions {
    /// The default picture of that metric.
    pub fn of(metric: Metric) -> Self {
        Self { metric, ..Self::default() }
    }
}
