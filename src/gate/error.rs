//! Why a baseline or a run cannot be used, and what to do about it.

use std::path::PathBuf;

use super::baseline::BASELINE_FORMAT;
use super::metric::Metric;
use crate::record::StoreError;

/// Why a baseline could not be made or read, or two sides not compared. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The run cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing at that path, or it cannot be read.
    #[error("cannot read `{}`: {source}; name a folder under `results/`, or a file that `sweep baseline` wrote", path.display())]
    Read {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no baseline.
    #[error("`{}` is not a baseline ({why}): make one with `sweep baseline RUN -o FILE`", path.display())]
    NotABaseline {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Written by a newer program.
    #[error(
        "`{}` is a baseline of format {found}, and this program reads formats up to {BASELINE_FORMAT}: use a newer `sweep`",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The run has not come to its end.
    #[error("`{}` has not come to its end: finish it with `sweep run --resume={}`", path.display(), path.display())]
    Unfinished {
        /// The run.
        path: PathBuf,
    },
    /// A cell ran on several kernels or clocks within one run.
    #[error(
        "cell `{cell}` ({axes}) ran on {where_}: a run that is compared runs each cell on one kernel and by one clock"
    )]
    Ambiguous {
        /// Its id.
        cell: String,
        /// Where it lies.
        axes: String,
        /// The kernels and clocks.
        where_: String,
    },
    /// The run has no repeats.
    #[error("`{}` has no repeats: there is nothing to compare", path.display())]
    Empty {
        /// The run.
        path: PathBuf,
    },
    /// No cell has that figure.
    #[error(
        "no cell has {metric} on both sides; {which}: choose another with `--metric`, or make the baseline anew with `sweep baseline RUN --metric {metric} -o FILE`"
    )]
    NoFigures {
        /// What was to be compared.
        metric: Metric,
        /// What each side has.
        which: String,
    },
    /// No cell of the run has a figure that a baseline is to keep.
    #[error("no cell of `{}` has {metric}, so there is nothing to keep of it: leave it out of `--metric`", run.display())]
    NothingToKeep {
        /// What was to be kept.
        metric: Metric,
        /// The run.
        run: PathBuf,
    },
    /// A program's number is another one on each side.
    #[error(
        "{metric} is {before} in the baseline and {after} in the run: make the baseline anew, or give one of the two metrics another name"
    )]
    NotTheSame {
        /// What was to be compared.
        metric: Metric,
        /// Its unit and direction on one side.
        before: String,
        /// And on the other.
        after: String,
    },
    /// A baseline would be replaced without a reason.
    #[error("`{}` exists and its figures would change: say why they may with `--reason TEXT`", path.display())]
    NoReason {
        /// The file.
        path: PathBuf,
    },
    /// A fault of the program.
    #[error("cannot write the baseline ({0}); please report this as a bug in `sweep`")]
    Unstorable(#[from] serde_json::Error),
}
