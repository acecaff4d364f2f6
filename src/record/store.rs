//! The folder of a run: made so that two runs never share one, written by one process at a time, read by anyone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::files::{is_temporary, probe_room, swap_link, sweep_up, sync_folder};
use super::format::Record;
use super::journal::{Extent, Journal, Loaded, read};
use super::manifest::Manifest;
use crate::measurement::Capture;

const RECORDS: &str = "records.jsonl";
const MANIFEST: &str = "manifest.json";
const LATEST: &str = "latest";
/// Folder of captures.
const CAPTURES: &str = "capture";
/// Longest part of a folder's name that is taken from the sweep's. A name may have 255 bytes.
const MAX_NAME: usize = 100;

/// The folder of a run, to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// The folder of a run, held by this process until the value is dropped, to be written.
#[derive(Debug)]
pub struct Writer {
    dir: RunDir,
    journal: Journal<File>,
}

impl RunDir {
    /// Makes `results/<UTC time>-<name>/` from the time and name in the manifest, with the manifest in it, and points
    /// `results/latest` to it. Where that folder exists, `-2` and so on is added.
    ///
    /// # Errors
    /// If it cannot be written, or `latest` is something other than a symbolic link. Nothing is left behind then.
    pub fn create(results: &Path, manifest: &Manifest) -> Result<Writer, StoreError> {
        fs::create_dir_all(results).map_err(StoreError::io("create", results))?;
        let time = manifest.started.strftime("%Y%m%dT%H%M%SZ");
        let base = format!("{time}-{}", plain(&manifest.sweep.name));
        let name = make_folder(results, &base)?;
        let made = results.join(&name);
        Self::begin(&made, manifest)
            .and_then(|writer| match point_latest(results, &name) {
                Ok(()) => Ok(writer),
                Err(error) => {
                    clear(&made);
                    Err(error)
                }
            })
            .inspect_err(|_| {
                // Empty by now. The error that matters is the first.
                let _ = fs::remove_dir(&made);
            })
    }

    /// Makes the folder that `--out` names, with the manifest in it. It may exist if it is empty, or holds no more than what a run left that
    /// was killed before it began.
    ///
    /// # Errors
    /// If it holds something or cannot be written. Nothing is left in it then.
    pub fn create_at(out: &Path, manifest: &Manifest) -> Result<Writer, StoreError> {
        fs::create_dir_all(out).map_err(StoreError::io("create", out))?;
        let mut entries = fs::read_dir(out).map_err(StoreError::io("read", out))?.flatten();
        if !entries.all(|entry| entry.file_name() == RECORDS || is_temporary(&entry.file_name())) {
            return Err(StoreError::NotEmpty(out.to_owned()));
        }
        Self::begin(out, manifest)
    }

    /// Starts the run in an empty folder. Of two processes that try, one fails.
    fn begin(path: &Path, manifest: &Manifest) -> Result<Writer, StoreError> {
        let dir = Self { path: fs::canonicalize(path).map_err(StoreError::io("open", path))? };
        let records = dir.path.join(RECORDS);
        let file =
            OpenOptions::new().append(true).create(true).open(&records).map_err(StoreError::io("create", &records))?;
        // Whoever gets the lock has the folder. Another one may have begun in it before, and even have come to its end.
        dir.lock(&file)?;
        let begun = file.metadata().map_err(StoreError::io("look at", &records))?.len() > 0;
        if begun || dir.path.join(MANIFEST).exists() {
            return Err(StoreError::NotEmpty(path.to_owned()));
        }
        sweep_up(&dir.path);
        manifest
            .write(&dir.path.join(MANIFEST))
            .and_then(|()| sync_folder(&dir.path).map_err(StoreError::io("synchronise", &dir.path)))
            .inspect_err(|_| clear(&dir.path))?;
        Ok(Writer { journal: Journal::new(file, records, Extent::default())?, dir })
    }

    /// The run in that folder. A link such as `results/latest` is followed now, so that it stays the same run later.
    ///
    /// # Errors
    /// If there is no folder with a manifest.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let no_run = |why: String| StoreError::NoRun { path: path.to_owned(), why };
        let dir = Self { path: fs::canonicalize(path).map_err(|error| no_run(error.to_string()))? };
        if dir.path.is_file() {
            return Err(no_run("it is a file".to_owned()));
        }
        if dir.path.join(MANIFEST).is_file() {
            return Ok(dir);
        }
        Err(no_run(match fs::metadata(dir.path.join(RECORDS)) {
            Err(_) => format!("it has no {MANIFEST}"),
            Ok(records) if records.len() == 0 => {
                format!(
                    "it has no {MANIFEST}, for it was cut off before anything was measured: run it anew, into the same folder if you like"
                )
            }
            Ok(_) => format!("it has {RECORDS}, but no {MANIFEST}, which says what was run: restore that"),
        }))
    }

    /// The folder itself, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the run comes from.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or was written by a newer program.
    pub fn manifest(&self) -> Result<Manifest, StoreError> {
        Manifest::read(&self.path.join(MANIFEST))
    }

    /// All records. A torn last line is left out, with a warning.
    ///
    /// # Errors
    /// If the file cannot be read, a line before the last is damaged, or it was written by a newer program.
    pub fn read(&self) -> Result<Loaded, StoreError> {
        read(&self.path.join(RECORDS)).map(|(loaded, _)| loaded)
    }

    /// Takes the run up again: what it has, and a writer that goes on behind it. A torn last line is cut off.
    ///
    /// # Errors
    /// As [`RunDir::read`], and if another process is writing to the run or the folder cannot be written.
    pub fn resume(&self) -> Result<(Writer, Loaded), StoreError> {
        let records = self.path.join(RECORDS);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&records)
            .map_err(StoreError::io("open for writing", &records))?;
        self.lock(&file)?;
        sweep_up(&self.path);
        let (loaded, extent) = read(&records)?;
        Ok((Writer { journal: Journal::new(file, records, extent)?, dir: self.clone() }, loaded))
    }

    /// Keeps other writers out for as long as the file is open, and no longer: the kernel lets go when a process dies.
    fn lock(&self, file: &File) -> Result<(), StoreError> {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => StoreError::Locked(self.path.clone()),
            TryLockError::Error(error) => StoreError::io("lock", &self.path)(error),
        })
    }
}

impl Writer {
    /// The folder.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Learns, before anything is measured, whether the folder has room for `bytes` more bytes.
    ///
    /// # Errors
    /// If it cannot be written or has less room.
    pub fn probe_room(&self, bytes: u64) -> Result<(), StoreError> {
        probe_room(&self.dir.path, bytes)
    }

    /// Appends one record. When this returns, it outlasts the process, even one killed by SIGKILL.
    ///
    /// # Errors
    /// If there is no room, the folder has become read-only or the disk fails. All earlier lines are then intact, and
    /// nothing of this one is left.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.journal.append(record)
    }

    /// Puts the packets of a capture into a file of that name below `capture/`, and the file's name into the capture. Where that fails the
    /// capture says why, and nothing of the file is left.
    pub fn keep_capture(&self, name: &str, capture: &mut Capture) {
        if capture.pcapng.is_empty() {
            return;
        }
        let folder = self.dir.path.join(CAPTURES);
        let path = folder.join(name);
        match fs::create_dir_all(&folder).and_then(|()| fs::write(&path, &capture.pcapng)) {
            Ok(()) => {
                capture.pcapng = Vec::new();
                capture.file = Some(format!("{CAPTURES}/{name}"));
            }
            Err(error) => {
                // The error that matters is why it could not be written.
                let _ = fs::remove_file(&path);
                capture.lose(format!("its file could not be written: {error}"));
            }
        }
    }

    /// Takes the file of a capture away again, and says why.
    pub fn drop_capture(&self, capture: &mut Capture, why: &str) {
        if let Some(file) = &capture.file {
            // What stays is not named by any record.
            let _ = fs::remove_file(self.dir.path.join(file));
        }
        capture.lose(why);
    }

    /// Writes the manifest anew: when a machine has come up, and at the end.
    ///
    /// # Errors
    /// If it cannot be written. The old one is then still there.
    pub fn update(&self, manifest: &Manifest) -> Result<(), StoreError> {
        manifest.write(&self.dir.path.join(MANIFEST))
    }

    /// Waits until the disk has all records: at the end of a run, not between repeats, which it would disturb.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.journal.sync()
    }
}

/// Takes the files of a run that could not start out of the folder that was just made for it.
fn clear(folder: &Path) {
    for file in [MANIFEST, RECORDS] {
        // The error that matters is why it could not start.
        let _ = fs::remove_file(folder.join(file));
    }
}

/// Makes `base`, or `base-2` and so on, in `results`, and returns the name. `mkdir` settles who gets which.
fn make_folder(results: &Path, base: &str) -> Result<String, StoreError> {
    let names = std::iter::once(base.to_owned()).chain((2_u32..).map(|number| format!("{base}-{number}")));
    for name in names {
        match fs::create_dir(results.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                return made.map(|()| name).map_err(StoreError::io("create a folder in", results));
            }
        }
    }
    Err(StoreError::NotEmpty(results.join(base)))
}

/// Points `results/latest` to a run, and makes both names outlast a crash.
fn point_latest(results: &Path, name: &str) -> Result<(), StoreError> {
    swap_link(&results.join(LATEST), Path::new(name))?;
    sync_folder(results).map_err(StoreError::io("synchronise", results))
}

/// A name that is good on any file system and needs no quotes in a shell.
fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .take(MAX_NAME)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .collect();
    if plain.is_empty() { "sweep".to_owned() } else { plain }
}

#[cfg(test)]
mod tests;
