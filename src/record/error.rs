//! What can go wrong with a run's folder, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::format::FORMAT;

/// Why a run's folder could not be made, read or written. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused something.
    #[error("cannot {doing} `{}`: {source}; {}", path.display(), advice(source))]
    Io {
        /// What was tried, as a verb: `create`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record did not reach the disk. All earlier lines did.
    #[error(
        "cannot append repeat {repeat} of cell `{cell}` to `{}`: {source}; the {intact} earlier line(s) are intact{}; {}",
        path.display(),
        if *undone { "" } else { ", and the half line after them is dropped when the file is next read" },
        advice(source)
    )]
    Append {
        /// Id of the record's cell.
        cell: String,
        /// Its repeat, from 0.
        repeat: u32,
        /// The file.
        path: PathBuf,
        /// Whole lines in the file.
        intact: u64,
        /// Whether the half line was taken back.
        undone: bool,
        /// What the system said.
        source: io::Error,
    },
    /// Written by a newer program.
    #[error(
        "`{}` is of format {found}, and this program reads formats up to {FORMAT}: use the version of `sweep` that wrote \
         it (named in its manifest.json) or a newer one",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A line that is no record, with whole lines after it.
    #[error(
        "`{}`, line {line} is damaged ({why}): restore the file, or delete that line and run again with `--resume` to \
         measure its repeat anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The manifest cannot be understood.
    #[error("`{}` is damaged ({why}): restore it, or run the sweep again into a new folder", path.display())]
    DamagedManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The folder asked for with `--out` holds something.
    #[error(
        "`{}` already holds something: choose another folder with `--out`, or finish the run in it with `--resume`",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// There is no run where one was named.
    #[error("`{}` is not the folder of a run ({why}): name a folder under `results/`, or `results/latest`", path.display())]
    NoRun {
        /// What was named.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// `results/latest` is something other than the link it has to be.
    #[error("`{}` is not a symbolic link: move it away, so that it can point to the newest run", .0.display())]
    LatestIsNotALink(PathBuf),
    /// Another process writes to the run.
    #[error("another `sweep` is writing to `{}`: wait until it has ended", .0.display())]
    Locked(PathBuf),
    /// A value that cannot be stored. A fault of the program.
    #[error("cannot store {what}: {why}; please report this as a bug in `sweep`")]
    Unstorable {
        /// What was to be stored.
        what: String,
        /// Why not.
        why: String,
    },
}

impl StoreError {
    /// For `map_err`: what was tried on which path.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source: without_temporary(source) }
    }
}

/// The error without the name of a temporary file, which `tempfile` puts behind it and nobody knows.
fn without_temporary(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path \"") {
        Some((what, _)) if error.raw_os_error().is_none() => io::Error::new(error.kind(), what.to_owned()),
        _ => error,
    }
}

/// What to do about an error of the system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space there (`sweep run --resume=RUN` finishes a run that was cut short), or name another folder"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "make the folder writable for this user, or name another one"
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "check the path",
        io::ErrorKind::AlreadyExists => "there is a file of that name: name another folder",
        io::ErrorKind::IsADirectory => "there is a folder of that name: name another file",
        _ => "check that disk (`dmesg` may say more), or name another folder",
    }
}

/// Something about stored records that a person should know, and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The last line was cut off.
    #[error(
        "`{}`, line {line} is incomplete ({bytes} bytes): the run was cut off while it wrote it, or is writing it now; \
         the line is left out, and `--resume` measures its repeat",
        path.display()
    )]
    Torn {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Bytes left out.
        bytes: u64,
    },
    /// The manifest is there and the records are not.
    #[error(
        "`{}` is not there: what was measured was taken away or lost, since a run has that file from its beginning; restore it, or \
         measure anew with `--resume`",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The same repeat stands in the file twice.
    #[error(
        "`{}`, line {line} is {} {repeat} of cell `{cell}` again: the first one counts",
        path.display(),
        if *warmup { "warm-up" } else { "repeat" }
    )]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The later line, from 1.
        line: u64,
        /// Id of the cell.
        cell: String,
        /// The repeat, from 0.
        repeat: u32,
        /// Whether it is a warm-up.
        warmup: bool,
    },
}
