//! Tests of the folder: collisions, the lock, `latest`, and a disk that is really full or really read-only.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::{LATEST, MANIFEST, RECORDS, RunDir, StoreError, plain};
use crate::record::Warning;
use crate::record::format::tests::example;
use crate::record::manifest::tests::example as manifest;

#[test]
fn runs_at_the_same_time_get_folders_of_their_own() {
    let results = tempfile::tempdir().expect("a folder");
    let names: HashSet<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| RunDir::create(results.path(), &manifest("smoke")).expect("a folder of its own")))
            .collect();
        runs.into_iter().map(|run| run.join().expect("no panic").dir().path().to_owned()).collect()
    });
    assert_eq!(names.len(), 8);
    let base = fs::canonicalize(results.path()).expect("exists");
    assert!(names.contains(&base.join("20261130T140501Z-smoke")));
    assert!(names.contains(&base.join("20261130T140501Z-smoke-8")));
    assert!(names.contains(RunDir::open(&results.path().join(LATEST)).expect("one of them").path()));
    assert_eq!(fs::read_dir(&base).expect("listed").count(), 9, "the folders and `latest`");
}

#[test]
fn latest_is_the_newest_and_stays_right_when_results_move() {
    let parent = tempfile::tempdir().expect("a folder");
    let results = parent.path().join("results");
    RunDir::create(&results, &manifest("first")).expect("a run");
    RunDir::create(&results, &manifest("second")).expect("a run");
    let moved = parent.path().join("moved");
    fs::rename(&results, &moved).expect("moved");
    let latest = RunDir::open(&moved.join(LATEST)).expect("a run");
    assert_eq!(latest.manifest().expect("read").sweep.name, "second");
}

#[test]
fn a_folder_called_latest_is_an_error_that_leaves_nothing() {
    let results = tempfile::tempdir().expect("a folder");
    fs::create_dir(results.path().join(LATEST)).expect("made");
    let error = RunDir::create(results.path(), &manifest("smoke")).expect_err("in the way");
    assert!(matches!(error, StoreError::LatestIsNotALink(_)), "{error}");
    assert_eq!(fs::read_dir(results.path()).expect("listed").count(), 1);
}

#[test]
fn out_must_be_new_or_empty() {
    let parent = tempfile::tempdir().expect("a folder");
    RunDir::create_at(parent.path(), &manifest("smoke")).expect("empty");
    let error = RunDir::create_at(parent.path(), &manifest("smoke")).expect_err("used");
    assert!(matches!(error, StoreError::NotEmpty(_)), "{error}");
    let writer = RunDir::create_at(&parent.path().join("new/one"), &manifest("smoke")).expect("new");
    assert_eq!(writer.dir().manifest().expect("read"), manifest("smoke"));
}

#[test]
fn a_run_that_was_killed_before_it_began_leaves_a_folder_that_can_be_used_and_says_so() {
    let parent = tempfile::tempdir().expect("a folder");
    let out = parent.path().join("out");
    fs::create_dir(&out).expect("made");
    // What SIGKILL between the two files of a run leaves.
    fs::write(out.join(RECORDS), "").expect("written");
    fs::write(out.join(".new-a1b2c3"), "{").expect("written");
    let error = RunDir::open(&out).expect_err("no run");
    assert!(error.to_string().contains("it was cut off before anything was measured: run it anew"), "{error}");

    // Another process that is just beginning there is not disturbed.
    let other = fs::File::open(out.join(RECORDS)).expect("there");
    other.lock().expect("held");
    let error = RunDir::create_at(&out, &manifest("smoke")).expect_err("held");
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert!(out.join(RECORDS).exists(), "it is the other's");
    drop(other);

    let mut writer = RunDir::create_at(&out, &manifest("smoke")).expect("taken over");
    writer.append(&example("9f2c", 0, 1_000_000)).expect("appended");
    drop(writer);
    assert_eq!(fs::read_dir(&out).expect("listed").count(), 2, "both files and no other");

    // Records without a manifest are nobody's to write over.
    fs::remove_file(out.join(MANIFEST)).expect("removed");
    let error = RunDir::create_at(&out, &manifest("smoke")).expect_err("used");
    assert!(matches!(error, StoreError::NotEmpty(_)), "{error}");
    let error = RunDir::open(&out).expect_err("no run");
    assert!(error.to_string().contains("no manifest.json, which says what was run: restore that"), "{error}");
}

#[test]
fn resume_sweeps_up_what_a_killed_writer_left() {
    let results = tempfile::tempdir().expect("a folder");
    let dir = RunDir::create(results.path(), &manifest("smoke")).expect("a run").dir().clone();
    fs::write(dir.path().join(".new-a1b2c3"), "{").expect("written");
    dir.resume().expect("resumed");
    assert!(!dir.path().join(".new-a1b2c3").exists());
}

#[test]
fn only_one_process_writes() {
    let results = tempfile::tempdir().expect("a folder");
    let mut writer = RunDir::create(results.path(), &manifest("smoke")).expect("a run");
    writer.append(&example("9f2c", 0, 1_000_000)).expect("appended");
    let dir = writer.dir().clone();
    let error = dir.resume().expect_err("held");
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert_eq!(dir.read().expect("reading needs no lock").records.len(), 1);
    drop(writer);
    dir.resume().expect("let go");
}

#[test]
fn resume_goes_on_behind_a_torn_line() {
    let results = tempfile::tempdir().expect("a folder");
    let mut writer = RunDir::create(results.path(), &manifest("smoke")).expect("a run");
    writer.append(&example("9f2c", 0, 1_000_000)).expect("appended");
    let dir = writer.dir().clone();
    drop(writer);
    let records = dir.path().join(RECORDS);
    let mut file = OpenOptions::new().append(true).open(&records).expect("opened");
    file.write_all(b"{\"format\": 1, \"cell\": \"9f").expect("torn");
    drop(file);

    let (mut writer, loaded) = dir.resume().expect("resumed");
    assert_eq!((loaded.records.len(), loaded.next_sequence()), (1, 1));
    assert!(matches!(loaded.warnings[..], [Warning::Torn { line: 2, .. }]));
    writer.append(&example("9f2c", 1, 1_000_000)).expect("appended");
    writer.sync().expect("synchronised");
    let loaded = dir.read().expect("whole again");
    assert_eq!((loaded.records.len(), loaded.warnings.len(), loaded.completed().len()), (2, 0, 2));
}

#[test]
fn the_manifest_can_grow() {
    let results = tempfile::tempdir().expect("a folder");
    let mut manifest = manifest("smoke");
    let writer = RunDir::create(results.path(), &manifest).expect("a run");
    manifest.interrupted = true;
    manifest.tools.insert("qemu".into(), "10.0".into());
    writer.update(&manifest).expect("updated");
    assert_eq!(writer.dir().manifest().expect("read"), manifest);
}

#[test]
fn what_is_not_a_run_is_said_to_be_none() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().to_owned(), folder.path().join("nothing")] {
        let error = RunDir::open(&path).expect_err("no run");
        assert!(matches!(error, StoreError::NoRun { .. }), "{error}");
    }
}

#[test]
fn names_are_plain() {
    assert_eq!(plain("../a b/ü"), "..-a-b--");
    assert_eq!(plain(""), "sweep");
    assert_eq!(plain(&"x".repeat(300)).len(), 100);
}

/// Runs one of the ignored tests below inside a mount namespace of its own, on a file system mounted there: nothing is
/// left mounted however the test ends. Works for root, and for others where they may make user namespaces.
fn on_a_file_system_of_its_own(test: &str, size: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let can_mount = |namespace: &&[&str]| {
        let mount = ["mount", "-t", "tmpfs", "none"];
        Command::new("unshare")
            .args(*namespace)
            .args(mount)
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let namespaces: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let Some(namespace) = namespaces.into_iter().find(can_mount) else {
        eprintln!("skipped {test}: nothing can be mounted here, with `unshare` as root or in a user namespace");
        return;
    };
    let script = format!("mount -t tmpfs -o size={size} none \"$DISK\" && exec \"$0\" --exact \"$1\" --ignored");
    let output = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", &script])
        .arg(std::env::current_exe().expect("this test"))
        .arg(format!("record::store::tests::{test}"))
        .env("DISK", folder.path())
        .output()
        .expect("unshare was there a moment ago");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// The file system of the ignored tests, or `None` if they were started in some other way.
fn disk() -> Option<String> {
    let disk = std::env::var("DISK").ok();
    if disk.is_none() {
        eprintln!("skipped: this test is run by another one, on a file system of its own");
    }
    disk
}

#[test]
fn a_disk_that_runs_full() {
    on_a_file_system_of_its_own("run_until_the_disk_is_full", "64k");
}

#[test]
#[ignore = "run by `a_disk_that_runs_full` on a small file system"]
fn run_until_the_disk_is_full() {
    let Some(disk) = disk() else { return };
    let mut writer = RunDir::create(Path::new(&disk), &manifest("smoke")).expect("room for a start");
    writer.probe_room(1000).expect("room for a little");
    let error = writer.probe_room(1 << 20).expect_err("not for a lot").to_string();
    assert!(error.contains("free some space"), "{error}");

    let mut appended = 0;
    let error = loop {
        match writer.append(&example("9f2c", appended, 1_000_000)) {
            Ok(()) => appended += 1,
            Err(error) => break error.to_string(),
        }
        assert!(appended < 1000, "64 KiB hold no thousand records");
    };
    assert!(appended > 3, "{appended}");
    assert!(error.contains(&format!("repeat {appended} of cell `9f2c`")), "{error}");
    assert!(error.contains("No space left") && error.contains("free some space"), "{error}");
    let loaded = writer.dir().read().expect("intact");
    assert_eq!((loaded.records.len(), loaded.warnings.len()), (appended as usize, 0));

    // The manifest does not fit either, and the old one stays.
    let mut larger = manifest("smoke");
    larger.sweep.source = "x".repeat(100_000);
    writer.update(&larger).expect_err("no room");
    assert_eq!(writer.dir().manifest().expect("the old one"), manifest("smoke"));
    let left: Vec<_> = fs::read_dir(writer.dir().path()).expect("listed").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // A run that cannot even start leaves nothing.
    RunDir::create(Path::new(&disk), &larger).expect_err("no room");
    assert_eq!(fs::read_dir(&disk).expect("listed").count(), 2, "the first run and `latest`");
    let out = Path::new(&disk).join("out");
    RunDir::create_at(&out, &larger).expect_err("no room");
    assert_eq!(fs::read_dir(&out).expect("listed").count(), 0, "so that `--out` can be tried again");
    // With room again, the same writer goes on.
    fs::remove_file(writer.dir().path().join(MANIFEST)).expect("room");
    writer.append(&example("9f2c", appended, 1_000_000)).expect("room");
}

#[test]
fn a_folder_that_becomes_read_only() {
    on_a_file_system_of_its_own("run_on_a_read_only_disk", "1m");
}

#[test]
#[ignore = "run by `a_folder_that_becomes_read_only` on a file system that it may remount"]
fn run_on_a_read_only_disk() {
    let Some(disk) = disk() else { return };
    let mut writer = RunDir::create(Path::new(&disk), &manifest("smoke")).expect("a run");
    writer.append(&example("9f2c", 0, 1_000_000)).expect("appended");
    let dir = writer.dir().clone();
    drop(writer);
    let remount = Command::new("mount").args(["-o", "remount,bind,ro", &disk]).status().expect("mount runs");
    assert!(remount.success());
    let error = dir.resume().expect_err("read-only").to_string();
    assert!(error.contains("make the folder writable"), "{error}");
    let error = RunDir::create(Path::new(&disk), &manifest("smoke")).expect_err("read-only").to_string();
    assert!(error.contains("make the folder writable"), "{error}");
    assert_eq!(dir.read().expect("readable").records.len(), 1);
}
