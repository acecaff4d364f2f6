//! `records.jsonl`: whole lines, appended one by one, and read back with what a crash may have left at the end.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::{StoreError, Warning};
use super::format::{LineError, Record};

/// What tells one repeat from all others of its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepeatKey {
    /// Id of the cell.
    pub cell: String,
    /// The repeat, from 0.
    pub repeat: u32,
    /// Whether it is a warm-up.
    pub warmup: bool,
}

impl From<&Record> for RepeatKey {
    fn from(record: &Record) -> Self {
        Self { cell: record.cell.clone(), repeat: record.repeat, warmup: record.warmup }
    }
}

/// The records of a run, in the order in which they were appended, each repeat once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The records.
    pub records: Vec<Record>,
    /// What a person should know about the file.
    pub warnings: Vec<Warning>,
}

impl Loaded {
    /// The repeats that need not be run again, whatever their outcome.
    pub fn completed(&self) -> HashSet<RepeatKey> {
        self.records.iter().map(RepeatKey::from).collect()
    }

    /// The place of the next record in the order of the run.
    pub fn next_sequence(&self) -> u64 {
        self.records.iter().map(|record| record.sequence + 1).max().unwrap_or(0)
    }
}

/// Reads all whole lines of a file that may not exist yet. Also returns their length in bytes and their number.
pub(super) fn read(path: &Path) -> Result<(Loaded, Extent), StoreError> {
    let mut loaded = Loaded::default();
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            loaded.warnings.push(Warning::Missing { path: path.to_owned() });
            Vec::new()
        }
        read => read.map_err(StoreError::io("read", path))?,
    };
    let mut extent = Extent::default();
    let mut seen = HashSet::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let number = extent.lines + 1;
        let last = extent.bytes + line.len() as u64 == bytes.len() as u64;
        let torn = |loaded: &mut Loaded| {
            loaded.warnings.push(Warning::Torn { path: path.to_owned(), line: number, bytes: line.len() as u64 });
        };
        let damaged = |why| Err(StoreError::Damaged { path: path.to_owned(), line: number, why });
        // A line without its newline is not whole, even if all of the record is there: what is appended must not join it.
        let Some(whole) = line.strip_suffix(b"\n") else {
            torn(&mut loaded);
            break;
        };
        match Record::from_line(whole) {
            Ok(record) => {
                let key = RepeatKey::from(&record);
                if seen.insert(key) {
                    loaded.records.push(record);
                } else {
                    let Record { cell, repeat, warmup, .. } = record;
                    let path = path.to_owned();
                    loaded.warnings.push(Warning::Duplicate { path, line: number, cell, repeat, warmup });
                }
            }
            Err(LineError::NotJson(_)) if last => {
                torn(&mut loaded);
                break;
            }
            Err(LineError::NotJson(why) | LineError::NotARecord(why)) => return damaged(why),
            Err(LineError::Newer(found)) => return Err(StoreError::NewerFormat { path: path.to_owned(), found }),
        }
        extent.bytes += line.len() as u64;
        extent.lines += 1;
    }
    Ok((loaded, extent))
}

/// The whole lines of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Their length.
    pub(super) bytes: u64,
    /// Their number.
    pub(super) lines: u64,
}

/// Something that lines are appended to and that can be cut back.
pub(super) trait Sink: Write {
    /// Cuts it to a length in bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Appends records, each of them whole or not at all.
#[derive(Debug)]
pub(super) struct Journal<S> {
    sink: S,
    path: PathBuf,
    extent: Extent,
    /// Whether a half line may lie behind the whole ones.
    torn: bool,
}

impl<S: Sink> Journal<S> {
    /// Appends to `sink`, which must write at its end and whose whole lines have this extent. Anything behind is cut off.
    pub(super) fn new(mut sink: S, path: PathBuf, extent: Extent) -> Result<Self, StoreError> {
        sink.truncate(extent.bytes).map_err(StoreError::io("cut the incomplete last line off", &path))?;
        Ok(Self { sink, path, extent, torn: false })
    }

    /// Appends one record as one line. The kernel has it when this returns: it outlasts the process, not a power cut.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let line = record.to_line().map_err(|error| StoreError::Unstorable {
            what: format!("repeat {} of cell `{}`", record.repeat, record.cell),
            why: error.to_string(),
        })?;
        self.write(&line).map_err(|source| StoreError::Append {
            cell: record.cell.clone(),
            repeat: record.repeat,
            path: self.path.clone(),
            intact: self.extent.lines,
            undone: !self.torn,
            source,
        })?;
        self.extent.bytes += line.len() as u64;
        self.extent.lines += 1;
        Ok(())
    }

    /// One call of `write` in all but the rarest cases. After a short one, the next says what is wrong.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.cut_back()?;
        self.torn = true;
        let written = self.sink.write_all(line).and_then(|()| self.sink.flush());
        match written {
            Ok(()) => self.torn = false,
            // What matters is why the line was not written; if it cannot be taken back either, `torn` remembers that.
            Err(_) => drop(self.cut_back()),
        }
        written
    }

    /// Takes back a half line, if there is one.
    fn cut_back(&mut self) -> io::Result<()> {
        if self.torn {
            self.sink.truncate(self.extent.bytes)?;
            self.torn = false;
        }
        Ok(())
    }
}

impl Journal<File> {
    /// Waits until the disk has every line.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.sink.sync_all().map_err(StoreError::io("synchronise", &self.path))
    }
}

#[cfg(test)]
mod tests;
