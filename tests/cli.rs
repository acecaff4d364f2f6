//! The whole program from its command line to its files, with the fake backend: exact figures, no root, no kernel.

mod common;

use common::{Workshop, repeats};
use serde_json::Value;

const SWEEP: &str = r#"
name = "made_up"
[run]
repeat = 3
warmup = 1
[axes]
rcvbuf = ["4KiB", "default"]
chunk_count = [1, 1000]
"#;

const OUTCOMES: &str = r#"
name = "outcomes"
[run]
repeat = 2
[axes]
rcvbuf = [1, 2, 3, 4, "64KiB"]
"#;

fn run(workshop: &Workshop, more: &[&str]) -> common::Ran {
    workshop.run(&[&["run", "sweep.toml", "--backend", "fake"], more].concat())
}

#[test]
fn a_run_leaves_what_the_design_says() {
    let workshop = Workshop::new(SWEEP);
    let ran = run(&workshop, &[]).expect(0);
    let results = workshop.path().join("results");
    let latest = std::fs::read_link(results.join("latest")).expect("a link");
    assert!(latest.to_string_lossy().ends_with("-made_up"), "{latest:?}");
    for file in ["manifest.json", "records.jsonl", "summary.csv"] {
        assert!(results.join(&latest).join(file).is_file(), "{file}");
    }
    let records = workshop.records("latest");
    assert_eq!(records.len(), 4 * (3 + 1));
    for record in &records {
        assert_eq!(record["format"], 1);
        assert_eq!(record["outcome"], "measured");
        assert_eq!(record["reason"], Value::Null);
        let chunks = record["axes"]["chunk_count"].as_u64().expect("a count");
        let completion = record["completion_ns"].as_u64().expect("a completion");
        assert!((1_000_000 + 1000 * chunks..1_010_000 + 1000 * chunks).contains(&completion));
        assert_eq!(record["chunk_latency_ns"]["count"].as_u64(), Some(chunks));
        assert_eq!(record["chunk_latency_ns"]["p99_9"].is_null(), chunks < 1000);
    }
    let manifest: Value = serde_json::from_slice(&std::fs::read(results.join("latest/manifest.json")).expect("read"))
        .expect("a manifest");
    assert_eq!(manifest["sweep"]["name"], "made_up");
    assert!(manifest["finished"].is_string());
    // The table shows no axis value, figure or reason that is not in the records.
    insta::with_settings!({filters => vec![(r" +\n", "\n")]}, {
        insta::assert_snapshot!(ran.out);
    });
}

#[test]
fn a_cell_without_figures_says_why_and_never_shows_as_zero() {
    let workshop = Workshop::new(OUTCOMES);
    let ran = run(&workshop, &[]).expect(3);
    for outcome in ["timed-out", "invalid", "skipped", "failed"] {
        assert!(ran.out.contains(&format!("made up: {outcome}")), "{}", ran.out);
    }
    let mut seen = std::collections::BTreeSet::new();
    for record in workshop.records("latest") {
        let outcome = record["outcome"].as_str().expect("an outcome").to_owned();
        if outcome != "measured" {
            assert!(record["completion_ns"].is_null() && record["goodput_bps"].is_null());
            assert!(record["reason"].is_string());
        }
        seen.insert(outcome);
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    insta::assert_snapshot!(ran.out);
}

#[test]
fn a_skipped_cell_is_no_fault_unless_all_are() {
    let workshop = Workshop::new(OUTCOMES);
    run(&workshop, &["--filter", "rcvbuf=3,64KiB"]).expect(0);
    run(&workshop, &["--filter", "rcvbuf=3"]).expect(3);
}

#[test]
fn a_torn_run_is_finished_by_resume_with_every_repeat_once() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let whole = repeats(&workshop.records("latest"));
    let file = workshop.path().join("results/latest/records.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    // What a kill in the middle of a write leaves: some lines, and a part of one.
    let cut = text.match_indices('\n').nth(6).expect("seven lines").0 + 40;
    std::fs::write(&file, &text[..cut]).expect("written");

    let resumed = run(&workshop, &["--resume"]).expect(0);
    assert!(resumed.err.contains("7 of 16 repeats are there already"), "{}", resumed.err);
    assert_eq!(repeats(&workshop.records("latest")), whole);
    assert!(std::fs::read_to_string(&file).expect("records").starts_with(&text[..cut - 40]), "nothing is lost");

    // Nothing is left to do, and the file may be left out: the run has its sweep stored.
    let again = workshop.run(&["run", "--resume", "--backend", "fake"]).expect(0);
    assert!(again.err.contains("16 of 16"), "{}", again.err);
    assert_eq!(repeats(&workshop.records("latest")), whole);
}

#[test]
fn a_run_of_another_program_is_finished_only_if_that_is_allowed_and_noted() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let whole = repeats(&workshop.records("latest"));
    let file = workshop.path().join("results/latest/records.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    let cut = text.match_indices('\n').nth(6).expect("seven lines").0 + 1;
    std::fs::write(&file, &text[..cut]).expect("written");
    let file = workshop.path().join("results/latest/manifest.json");
    let manifest = || -> Value { serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("a manifest") };
    let mut other = manifest();
    other["program"]["executable_sha256"] = "0123456789abcdef".into();
    std::fs::write(&file, other.to_string()).expect("written");

    let ran = run(&workshop, &["--resume"]).expect(2);
    assert!(
        ran.err.contains("program: was 0123456789abcdef, is ") && ran.err.contains("--allow program"),
        "{}",
        ran.err
    );
    assert_eq!(workshop.records("latest").len(), 7, "nothing was mixed in");
    run(&workshop, &["--resume", "--allow", "program"]).expect(0);
    assert_eq!(repeats(&workshop.records("latest")), whole);
    assert!(manifest()["allowed"].to_string().contains("program: was 0123456789abcdef"), "{}", manifest()["allowed"]);
    assert!(run(&workshop, &["--allow", "program"]).expect(2).err.contains("--resume"));
}

#[test]
fn a_changed_sweep_is_not_resumed_and_the_change_is_named() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    std::fs::write(workshop.path().join("sweep.toml"), SWEEP.replace("4KiB", "8KiB")).expect("written");
    let ran = run(&workshop, &["--resume"]).expect(2);
    assert!(ran.err.contains("rcvbuf") && ran.err.contains("8192"), "{}", ran.err);
    let ran = run(&workshop, &["--resume", "--repeat", "9"]).expect(2);
    assert!(ran.err.contains("run.repeat: was 3, is 9"), "{}", ran.err);
}

#[test]
fn arguments_change_the_sweep() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &["--set", "chunk_count=7", "--filter", "rcvbuf=default", "--repeat", "2"]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(records.len(), 2 + 1);
    assert!(records.iter().all(|record| record["axes"]["chunk_count"] == 7 && record["axes"]["rcvbuf"] == "default"));
}

#[test]
fn a_dry_run_and_a_check_leave_nothing() {
    let workshop = Workshop::new(SWEEP);
    let dry = run(&workshop, &["--dry-run"]).expect(0);
    let check = workshop.run(&["check", "sweep.toml"]).expect(0);
    for text in [&dry.out, &check.out] {
        assert!(text.contains("4 (2 × 2)") && text.contains("where   4 cells"), "{text}");
    }
    assert!(!workshop.path().join("results").exists());
    let json: Value =
        serde_json::from_str(&workshop.run(&["check", "sweep.toml", "--json"]).expect(0).out).expect("JSON");
    assert_eq!((json["cells"].as_u64(), json["runs"].as_u64()), (Some(4), Some(16)));
    assert!(json["places"][0]["why"].is_string());
}

#[test]
fn a_wrong_file_is_refused_with_every_error_and_exit_code_2() {
    let workshop = Workshop::new("name = \"x\"\n[workload]\nprotocoll = \"tcp\"\n[axes]\nrcvbuf = []\n");
    for command in ["run", "check"] {
        let ran = workshop.run(&[command, "sweep.toml"]).expect(2);
        assert!(ran.err.contains("protocoll") && ran.err.contains("rcvbuf"), "{}", ran.err);
    }
    assert!(!workshop.path().join("results").exists());
    workshop.run(&["run", "absent.toml"]).expect(2);
    workshop.run(&["run"]).expect(2);
}

#[test]
fn show_prints_the_table_again_and_a_cell_by_its_id_or_values() {
    let workshop = Workshop::new(SWEEP);
    let ran = run(&workshop, &[]).expect(0);
    let shown = workshop.run(&["show", "results/latest"]).expect(0);
    assert_eq!(ran.out, shown.out);
    let id = workshop.records("latest")[0]["cell"].as_str().expect("an id").to_owned();
    assert!(workshop.run(&["show", "results/latest", &id[..8]]).expect(0).out.contains(&id));
    let by_value = workshop.run(&["show", "results/latest", "rcvbuf=4KiB", "chunk_count=1", "--json"]).expect(0);
    let cells: Value = serde_json::from_str(&by_value.out).expect("JSON");
    assert_eq!(cells.as_array().map(Vec::len), Some(1));
    assert_eq!(cells[0]["summary"]["axes"]["rcvbuf"], 4096);
    let wrong = workshop.run(&["show", "results/latest", "sndbuf=1"]).expect(2);
    assert!(wrong.err.contains("rcvbuf, chunk_count"), "{}", wrong.err);
    workshop.run(&["show", "results/nowhere"]).expect(2);
}

#[test]
fn plot_draws_what_there_is_and_says_what_there_is_not() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &["--no-plot"]).expect(0);
    let drawn = |arguments: &[&str]| workshop.run(&[&["plot", "results/latest"], arguments].concat());
    let paths = drawn(&[]).expect(0).out;
    assert_eq!(paths.lines().count(), 2);
    assert!(paths.lines().all(|path| workshop.path().join(path).is_file()), "{paths}");
    assert!(drawn(&["--distribution", "repeats"]).expect(0).out.ends_with("distribution.svg\n"));
    let ran = drawn(&["--over-time"]).expect(2);
    assert!(ran.err.contains("streams take them, echoes do not"), "{}", ran.err);
    assert!(!workshop.path().join("results/latest/over-time.svg").exists());
    for clash in
        [&["--over-time", "--metric", "cpu"][..], &["--over-time", "--distribution", "chunks"], &["--cell", "a"]]
    {
        assert!(drawn(clash).expect(2).err.contains("--over-time"), "{clash:?}");
    }
}

#[test]
fn json_on_standard_output_is_nothing_but_json() {
    let workshop = Workshop::new(SWEEP);
    let ran = run(&workshop, &["--json"]).expect(0);
    let json: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(4));
    let quiet = run(&workshop, &["--quiet"]).expect(0);
    assert_eq!(quiet.err, "");
}

/// Half a report with an exit code of 0 is taken for a whole one.
#[test]
fn standard_output_that_cannot_be_written_is_an_error_and_a_reader_that_leaves_is_none() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    for arguments in
        [&["show", "results/latest"][..], &["show", "results/latest", "--json"], &["schema"], &["check", "sweep.toml"]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let mut command = std::process::Command::new(common::PROGRAM);
        let ran = common::Ran::from(
            command.current_dir(workshop.path()).args(arguments).stdout(full).output().expect("it starts"),
        );
        assert!(
            ran.err.contains("could not be written to standard output: No space left"),
            "{arguments:?}: {}",
            ran.err
        );
        ran.expect(2);

        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = std::process::Command::new(common::PROGRAM);
        let ran = command.current_dir(workshop.path()).args(arguments).stdout(writer).output().expect("it starts");
        common::Ran::from(ran).expect(0);
    }
}

#[test]
fn a_page_that_cannot_be_written_costs_no_table() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let page = workshop.path().join("results/latest/report.html");
    std::fs::remove_file(&page).expect("a page");
    std::fs::create_dir(&page).expect("made");
    let ran = workshop.run(&["run", "--resume", "--backend", "fake"]).expect(2);
    assert!(ran.out.contains("completion"), "{}", ran.out);
    assert!(ran.err.contains("report.html") && ran.err.contains("results in "), "{}", ran.err);
}

#[test]
fn out_takes_an_empty_folder_and_no_other() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &["--out", "here"]).expect(0);
    assert_eq!(common::records(&workshop.path().join("here")).len(), 16);
    let ran = run(&workshop, &["--out", "here"]).expect(2);
    assert!(ran.err.contains("here"), "{}", ran.err);
    assert_eq!(common::records(&workshop.path().join("here")).len(), 16, "what is there stays");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_before_measuring() {
    let workshop = Workshop::new(SWEEP);
    let ran = run(&workshop, &["--results", "/proc/nowhere"]).expect(2);
    assert!(ran.err.contains("/proc/nowhere"), "{}", ran.err);
}

#[test]
fn order_is_seeded_and_repeats_of_cells_are_interleaved() {
    let workshop = Workshop::new(SWEEP);
    let order = || -> Vec<String> {
        run(&workshop, &[]).expect(0);
        workshop.records("latest").iter().map(|record| record["cell"].to_string()).collect()
    };
    let first = order();
    assert_eq!(first, order(), "the same seed gives the same order");
    for round in first.chunks(4) {
        let cells: std::collections::BTreeSet<_> = round.iter().collect();
        assert_eq!(cells.len(), 4, "each round holds every cell once: {first:?}");
    }
}

const ZIPPED: &str = r#"
name = "zipped"
preset = "erlang-otp-28"
[run]
repeat = 2
[[zip]]
rcvbuf = ["32KiB", "64KiB"]
sndbuf = ["16KiB", "16KiB"]
[axes]
chunk_count = { from = 1, to = 9, step = 4 }
[[exclude]]
rcvbuf = "64KiB"
chunk_count = 9
[[include]]
rcvbuf = "1MiB"
sndbuf = "1MiB"
chunk_count = 1000
"#;

#[test]
fn a_zipped_sweep_is_run_drawn_and_taken_up_again() {
    let workshop = Workshop::new(ZIPPED);
    run(&workshop, &[]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(records.len(), (2 * 3 - 1 + 1) * 2);
    let places: std::collections::BTreeSet<String> = records.iter().map(|record| record["axes"].to_string()).collect();
    assert_eq!(places.len(), 6);
    assert!(places.contains(r#"{"rcvbuf":1048576,"sndbuf":1048576,"chunk_count":1000}"#), "{places:?}");
    assert!(!places.contains(r#"{"rcvbuf":65536,"sndbuf":16384,"chunk_count":9}"#), "{places:?}");
    let results = workshop.path().join("results/latest");
    for file in ["latency.svg", "report.html", "summary.csv"] {
        assert!(results.join(file).is_file(), "{file}");
    }
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(results.join("manifest.json")).expect("read")).expect("JSON");
    let resolved = &manifest["sweep"]["resolved"];
    assert_eq!(resolved["zip"][0][1], "socket.sndbuf");
    assert_eq!(resolved["presets"]["erlang-otp-28"]["workload.style"], "one-to-many");

    // Half of it is lost, and is measured again.
    let file = results.join("records.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    let half: Vec<&str> = text.lines().take(6).collect();
    std::fs::write(&file, half.join("\n") + "\n").expect("written");
    run(&workshop, &["--resume"]).expect(0);
    let again = workshop.records("latest");
    assert_eq!(again.len(), 12);
    let cells = |records: &[Value]| {
        records.iter().map(|record| record["cell"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(cells(&again), cells(&records));

    let ran = run(&workshop, &["--resume", "--filter", "rcvbuf=1MiB"]).expect(2);
    assert!(ran.err.contains("include") || ran.err.contains("rcvbuf"), "{}", ran.err);
}
