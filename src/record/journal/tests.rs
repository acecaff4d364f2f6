//! Tests of the journal: an injected disk that runs full, every way a crash can cut the file, damage and duplicates.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Extent, Journal, RepeatKey, Sink, StoreError, Warning, read};
use crate::record::format::tests::example;

/// A disk with room for so many bytes, that may also refuse to cut a file.
#[derive(Debug)]
struct SmallDisk {
    file: Vec<u8>,
    room: usize,
    stuck: bool,
}

impl Write for &mut SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.room - self.file.len());
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for &mut SmallDisk {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        if self.stuck && length < self.file.len() {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.file.truncate(length);
        Ok(())
    }
}

fn line_of(repeat: u32) -> Vec<u8> {
    example("9f2c", repeat, 1_000_000).to_line().expect("a line")
}

/// Two and a half lines of room.
fn small_disk(stuck: bool) -> SmallDisk {
    SmallDisk { file: Vec::new(), room: line_of(0).len() * 5 / 2, stuck }
}

fn loaded_from(bytes: &[u8]) -> Result<(super::Loaded, Extent), StoreError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records.jsonl");
    fs::write(&path, bytes).expect("written");
    read(&path)
}

#[test]
fn a_full_disk_takes_the_half_line_back() {
    let mut disk = small_disk(false);
    let mut journal = Journal::new(&mut disk, PathBuf::from("records.jsonl"), Extent::default()).expect("a journal");
    journal.append(&example("9f2c", 0, 1_000_000)).expect("room");
    journal.append(&example("9f2c", 1, 1_000_000)).expect("room");
    let error = journal.append(&example("9f2c", 2, 1_000_000)).expect_err("no room").to_string();
    for part in ["repeat 2", "`9f2c`", "`records.jsonl`", "2 earlier line(s) are intact", "--resume"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    journal.append(&example("9f2c", 2, 1_000_000)).expect_err("still no room");
    assert_eq!(disk.file, [line_of(0), line_of(1)].concat());
}

#[test]
fn nothing_is_appended_to_a_half_line_that_could_not_be_taken_back() {
    let mut disk = small_disk(true);
    let mut journal = Journal::new(&mut disk, PathBuf::from("records.jsonl"), Extent::default()).expect("a journal");
    journal.append(&example("9f2c", 0, 1_000_000)).expect("room");
    journal.append(&example("9f2c", 1, 1_000_000)).expect("room");
    let error = journal.append(&example("9f2c", 2, 1_000_000)).expect_err("no room").to_string();
    assert!(error.contains("half line"), "{error}");
    journal.sink.room = usize::MAX;
    journal.append(&example("9f2c", 2, 1_000_000)).expect_err("the half line is still there");
    journal.sink.stuck = false;
    journal.append(&example("9f2c", 2, 1_000_000)).expect("taken back first");
    assert_eq!(disk.file, [line_of(0), line_of(1), line_of(2)].concat());
}

#[test]
fn a_missing_file_is_an_empty_one() {
    let (loaded, extent) = read(Path::new("/nowhere/records.jsonl")).expect("none yet");
    assert!(loaded.records.is_empty() && matches!(loaded.warnings[..], [Warning::Missing { .. }]));
    assert_eq!((extent, loaded.next_sequence()), (Extent::default(), 0));
}

#[test]
fn damage_in_the_middle_names_the_line() {
    let bytes = [line_of(0), b"{\"format\": 1, \"ce\n".to_vec(), line_of(1)].concat();
    let error = loaded_from(&bytes).expect_err("damaged");
    assert!(matches!(error, StoreError::Damaged { line: 2, .. }), "{error}");
    assert!(error.to_string().contains("delete that line"), "{error}");
}

#[test]
fn a_whole_last_line_that_is_no_record_is_not_taken_for_a_torn_one() {
    let error = loaded_from(&[line_of(0), b"{\"format\": 1}\n".to_vec()].concat()).expect_err("no record");
    assert!(matches!(error, StoreError::Damaged { line: 2, .. }), "{error}");
    let error = loaded_from(&[line_of(0), b"{\"format\": 7}\n".to_vec()].concat()).expect_err("newer");
    assert!(matches!(error, StoreError::NewerFormat { found: 7, .. }), "{error}");
}

#[test]
fn zeros_at_the_end_are_a_torn_line() {
    let (loaded, extent) = loaded_from(&[line_of(0), vec![0; 300]].concat()).expect("read");
    assert_eq!((loaded.records.len(), extent.lines), (1, 1));
    assert!(matches!(loaded.warnings[..], [Warning::Torn { line: 2, bytes: 300, .. }]));
    let with_newline = [line_of(0), vec![0; 300], vec![b'\n']].concat();
    assert_eq!(loaded_from(&with_newline).expect("read").1, extent);
}

#[test]
fn the_first_of_two_counts() {
    let mut again = example("9f2c", 0, 2_000_000);
    let mut warmup = again.clone();
    warmup.warmup = true;
    again.sequence = 9;
    let bytes = [line_of(0), warmup.to_line().expect("a line"), again.to_line().expect("a line")].concat();
    let (loaded, extent) = loaded_from(&bytes).expect("read");
    assert_eq!(loaded.records, [example("9f2c", 0, 1_000_000), warmup]);
    assert!(matches!(loaded.warnings[..], [Warning::Duplicate { line: 3, repeat: 0, warmup: false, .. }]));
    assert_eq!(extent.lines, 3, "the file is left as it is");
    let completed = loaded.completed();
    assert_eq!(completed.len(), 2);
    assert!(completed.contains(&RepeatKey { cell: "9f2c".into(), repeat: 0, warmup: true }));
}

proptest! {
    /// Wherever the file is cut, the whole lines before the cut are there, and appending goes on behind them.
    #[test]
    fn any_cut_leaves_the_lines_before_it(lines in 1_u32..5, cut in any::<prop::sample::Index>()) {
        let all: Vec<u8> = (0..lines).flat_map(line_of).collect();
        let cut = cut.index(all.len() + 1);
        let whole = all[..cut].split(|&byte| byte == b'\n').count() - 1;
        let (loaded, extent) = loaded_from(&all[..cut]).expect("read");
        prop_assert_eq!(loaded.records.len(), whole);
        let at_a_line = cut == 0 || all[cut - 1] == b'\n';
        prop_assert_eq!(loaded.warnings.is_empty(), at_a_line);

        let mut disk = SmallDisk { file: all[..cut].to_vec(), room: usize::MAX, stuck: false };
        let mut journal = Journal::new(&mut disk, PathBuf::new(), extent).expect("a journal");
        for repeat in u32::try_from(whole).expect("few")..lines {
            journal.append(&example("9f2c", repeat, 1_000_000)).expect("room");
        }
        prop_assert_eq!(disk.file, all);
    }
}
