//! Why there is no picture.

use crate::record::StoreError;
use crate::settings::nearest;

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// A word that names nothing.
    #[error("there is no {what} `{typed}`: {fix}")]
    Unknown {
        /// What it should name.
        what: &'static str,
        /// As typed.
        typed: String,
        /// What could be meant.
        fix: String,
    },
    /// Two roles on one axis.
    #[error("`{0}` cannot be on both axes: name another one for --x or --y")]
    SameAxis(String),
    /// Nothing was run.
    #[error("the run has no repeats yet, so there is nothing to draw")]
    Empty,
    /// Two runs without a cell in common.
    #[error("the two runs have no cell in common, so there is no ratio to draw: their axes are {0} and {1}")]
    NothingInCommon(String, String),
    /// Cells that have no such figures.
    #[error("none of the chosen cells has {0}")]
    NoFigures(String),
    /// Cells that were not sampled.
    #[error(
        "none of the chosen cells has samples of its buffers over time: streams take them, echoes do not, and neither did \
         earlier versions of sweep"
    )]
    NoSamples,
    /// The picture is larger than any program could show.
    #[error("the picture would be {width} × {height} pixels: choose fewer values, or put other axes on --x and --y")]
    TooLarge {
        /// Pixels across.
        width: i64,
        /// Pixels down.
        height: i64,
    },
    /// The drawing library failed.
    #[error("could not draw: {0}")]
    Draw(String),
    /// The picture could not be turned into pixels.
    #[error("could not turn the picture into a PNG: {0}")]
    Raster(String),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] StoreError),
}

impl PlotError {
    /// A word that names nothing, with what it could mean.
    pub(crate) fn unknown(what: &'static str, typed: &str, known: &[&str]) -> Self {
        let fix = match nearest(typed, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "this run has none".to_owned(),
            None => format!("it is one of {}", known.join(", ")),
        };
        Self::Unknown { what, typed: typed.to_owned(), fix }
    }
}
