//! Exit codes, all in one place.

use std::process::ExitCode;

use crate::measurement::Outcome;
use crate::record::Record;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done, or no regression.
    Done,
    /// A gate found a regression.
    Regression,
    /// The request, the file or the host is wrong.
    Wrong,
    /// The run finished and some cells failed, or none was measured.
    SomeFailed,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// How a run that went to its end is to be judged. A skipped cell is no fault of the run's, unless all are, and chunks
    /// lost over UDP are what was to be found out.
    pub(super) fn of(records: &[Record]) -> Self {
        let mut measured = false;
        for record in records {
            match record.measurement.outcome {
                Outcome::Measured | Outcome::Incomplete => measured = true,
                Outcome::Skipped => {}
                Outcome::TimedOut | Outcome::Invalid | Outcome::Failed => return Self::SomeFailed,
            }
        }
        if measured { Self::Done } else { Self::SomeFailed }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Regression => 1,
            Exit::Wrong => 2,
            Exit::SomeFailed => 3,
            Exit::Interrupted => 130,
        })
    }
}
