//! `[find]`: searching a value instead of measuring every cell, with the fake backend, whose completion is a millisecond and a
//! microsecond a chunk, and which measures no cell with a receive buffer below 5 bytes.

mod common;

use std::collections::BTreeSet;

use common::{Workshop, repeats};
use serde_json::Value;

const LARGEST: &str = r#"
name = "largest"
[run]
repeat = 2
warmup = 1
[find]
axis = "chunk_count"
largest_where = "completion < 1450us"
[axes]
nodelay = [false, true]
chunk_count = { from = 10, to = 1000, step = 10 }
"#;

const SMALLEST: &str = r#"
name = "smallest"
[run]
repeat = 1
[find]
axis = "rcvbuf"
smallest_where = "goodput > 1Mbit/s"
[axes]
rcvbuf = ["default", { from = 1, to = 64, step = 1 }]
"#;

fn run(workshop: &Workshop, more: &[&str]) -> common::Ran {
    workshop.run(&[&["run", "sweep.toml", "--backend", "fake", "--no-plot"], more].concat())
}

/// The values of an axis that were measured.
fn values(records: &[Value], axis: &str) -> BTreeSet<u64> {
    records.iter().filter_map(|record| record["axes"][axis].as_u64()).collect()
}

#[test]
fn the_largest_value_is_found_in_each_combination_with_few_cells() {
    let workshop = Workshop::new(LARGEST);
    let ran = run(&workshop, &[]).expect(0);
    let records = workshop.records("latest");
    // 440 chunks take 1440 us, 450 take 1450 us and the repeat's phase.
    let measured = values(&records, "chunk_count");
    for needed in [10, 430, 440, 450, 460, 1000] {
        assert!(measured.contains(&needed), "{needed}: {measured:?}");
    }
    assert!(measured.len() <= 11, "{measured:?}");
    assert_eq!(records.len(), measured.len() * 2 * 3, "all repeats of each, in both combinations");
    assert!(records.iter().all(|record| record["axes"]["chunk_count"].as_u64().is_some()));
    let lines: Vec<&str> = ran.out.lines().rev().take(3).collect();
    let heading = format!(
        "find the largest chunk_count where completion < 1ms450us ({} of 200 cells: the search did not need the others, which were not run)",
        2 * measured.len()
    );
    assert_eq!(lines[2], heading);
    assert!(
        lines[1].starts_with("  nodelay=off: 440, with completion 1.44 ms; not at 450, with completion 1.45 ms"),
        "{}",
        ran.out
    );
    assert!(lines[0].starts_with("  nodelay=on: 440"), "{}", ran.out);
    // Shown again, explained, and for machines.
    let tail = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
    for command in ["show", "explain"] {
        let shown = workshop.run(&[command, "results/latest"]).expect(0).out;
        assert!(shown.contains(&tail), "{shown}");
        assert!(!shown.contains("as good as the best"), "cells that were not run may be better: {shown}");
        let json: Value =
            serde_json::from_str(&workshop.run(&[command, "results/latest", "--json"]).expect(0).out).expect("JSON");
        assert_eq!(json["find"]["condition"], "completion < 1ms450us");
        assert_eq!(json["find"]["found"][1]["at"]["value"], 440);
        assert_eq!(json["find"]["found"][1]["ending"], "found");
        assert!(json["find"]["found"][1]["neighbour"]["figure"].as_u64().is_some_and(|figure| figure >= 1_450_000));
    }
    let page = workshop.run(&["report", "results/latest"]).expect(0).out;
    let page = std::fs::read_to_string(workshop.path().join(page.trim())).expect("a page");
    assert!(page.contains("440, with completion 1.44 ms; not at 450"));
}

#[test]
fn cells_without_figures_satisfy_nothing_and_values_without_order_are_measured_beside() {
    let workshop = Workshop::new(SMALLEST);
    let ran = run(&workshop, &[]).expect(3);
    let records = workshop.records("latest");
    let measured = values(&records, "rcvbuf");
    assert!(measured.is_superset(&[1, 3, 4, 5, 6, 64].into()), "{measured:?}");
    assert!(measured.len() <= 10, "{measured:?}");
    assert!(records.iter().any(|record| record["axes"]["rcvbuf"] == "default"));
    let line = ran.out.lines().last().expect("a line");
    assert!(line.starts_with("  5 B, with goodput "), "{}", ran.out);
    assert!(line.ends_with("; not at 4 B, with no goodput (failed: made up: failed)"), "{}", ran.out);
    let ran = run(&workshop, &["--set", "rcvbuf=1,2,3,4"]).expect(3);
    assert!(ran.out.contains("  none: not even at 4 B, the largest that was run, with no goodput"), "{}", ran.out);
    assert_eq!(values(&workshop.records("latest"), "rcvbuf"), [1, 4].into(), "the ends say all");
    let ran = run(&workshop, &["--set", "rcvbuf=8,16,32,64"]).expect(0);
    assert!(ran.out.contains("the smallest of all, and a smaller one may do too"), "{}", ran.out);
    assert_eq!(values(&workshop.records("latest"), "rcvbuf"), [8, 64].into());
}

#[test]
fn a_condition_that_holds_at_the_wrong_end_is_told() {
    let workshop = Workshop::new(&LARGEST.replace("largest_where", "smallest_where"));
    let ran = run(&workshop, &[]).expect(0);
    assert_eq!(values(&workshop.records("latest"), "chunk_count"), [10, 1000].into(), "nothing to bisect");
    assert!(
        ran.out.contains("but it holds at 10 (completion 1.01 ms) and not at 1000 (completion 2.00 ms)"),
        "{}",
        ran.out
    );
}

#[test]
fn a_search_that_was_cut_off_is_finished_by_resume() {
    let workshop = Workshop::new(LARGEST);
    run(&workshop, &[]).expect(0);
    let whole = repeats(&workshop.records("latest"));
    let file = workshop.path().join("results/latest/records.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    for lines in [3, 17, 30, whole.len() - 1] {
        let kept: Vec<&str> = text.lines().take(lines).collect();
        std::fs::write(&file, kept.join("\n") + "\n").expect("written");
        run(&workshop, &["--resume"]).expect(0);
        assert_eq!(repeats(&workshop.records("latest")), whole, "after {lines}");
    }
    let changed = LARGEST.replace("1450us", "1300us");
    std::fs::write(workshop.path().join("sweep.toml"), changed).expect("written");
    let ran = run(&workshop, &["--resume"]).expect(2);
    assert!(ran.err.contains("find: was the largest chunk_count where completion < 1ms450us, is"), "{}", ran.err);
}

#[test]
fn check_says_how_many_cells_are_run_at_most() {
    let workshop = Workshop::new(LARGEST);
    let text = workshop.run(&["check", "sweep.toml"]).expect(0).out;
    let line = "find     the largest chunk_count where completion < 1ms450us, by bisection: at most 11 of 100 cells in each of 2 combinations of the other axes, 22 in all";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("runs     at most 66"), "{text}");
    let json: Value =
        serde_json::from_str(&workshop.run(&["check", "sweep.toml", "--json"]).expect(0).out).expect("JSON");
    assert_eq!((json["find"]["cells_at_most"].as_u64(), json["runs"].as_u64()), (Some(22), Some(66)));
    let whole = LARGEST.replace("[find]\naxis = \"chunk_count\"\nlargest_where = \"completion < 1450us\"\n", "");
    std::fs::write(workshop.path().join("sweep.toml"), whole).expect("written");
    let all: Value =
        serde_json::from_str(&workshop.run(&["check", "sweep.toml", "--json"]).expect(0).out).expect("JSON");
    let estimate = |json: &Value| json["at_most_ns"].as_u64().expect("an estimate");
    assert_eq!(estimate(&json), estimate(&all) * 22 / 200);
}

#[test]
fn what_is_wrong_with_a_search_is_said_at_its_place() {
    let head = "name = \"x\"\n[axes]\nrcvbuf = [1024, 2048]\nnodelay = [false, true]\n[find]\n";
    for (find, said, label) in [
        ("axis = \"rcvbuf\"", "[find] has neither `smallest_where` nor `largest_where`", "[find]"),
        ("smallest_where = \"completion < 1s\"", "[find] names no `axis`", "[find]"),
        ("axis = \"sndbuf\"\nsmallest_where = \"completion < 1s\"", "`sndbuf` is no axis of this sweep", "\"sndbuf\""),
        ("axis = \"rcvbuff\"\nsmallest_where = \"completion < 1s\"", "unknown axis `rcvbuff`", "\"rcvbuff\""),
        (
            "axis = \"nodelay\"\nsmallest_where = \"completion < 1s\"",
            "the values of `nodelay` have no order",
            "\"nodelay\"",
        ),
        ("axis = 7\nsmallest_where = \"completion < 1s\"", "`find.axis`: `7` is not a text", "7"),
        ("axis = \"rcvbuf\"\nsmallest_where = \"completion < 1Mbit/s\"", "is not a span of time", "1Mbit/s"),
        ("axis = \"rcvbuf\"\nsmallest_where = \"latency < 1s\"", "`latency` is no figure", "latency"),
        (
            "axis = \"rcvbuf\"\nsmalest_where = \"completion < 1s\"",
            "unknown key `smalest_where` in [find]",
            "smalest_where",
        ),
        (
            "axis = \"rcvbuf\"\nsmallest_where = \"completion < 1s\"\nlargest_where = \"completion < 1s\"",
            "[find] has `smallest_where` and `largest_where`",
            "again here",
        ),
        (
            "axis = \"rcvbuf\"\nsmallest_where = \"completion < 1s\"\n[workload]\nkind = \"stream\"\nduration = \"1s\"",
            "`completion` is in no cell of this sweep",
            "never measured",
        ),
    ] {
        let workshop = Workshop::new(&format!("{head}{find}\n"));
        let ran = workshop.run(&["check", "sweep.toml"]).expect(2);
        assert!(ran.err.contains(said) && ran.err.contains(label), "{find}:\n{}", ran.err);
        assert_eq!(ran.err.matches("help:").count(), 1, "one error only, with what to do\n{}", ran.err);
    }
}

#[test]
fn zipped_axes_are_searched_by_row() {
    let zipped = r#"
name = "zipped"
[run]
repeat = 1
[find]
axis = "chunk_count"
largest_where = "completion < 1450us"
[[zip]]
rcvbuf = ["1KiB", "1KiB", "8KiB", "9KiB"]
chunk_count = [100, 800, 200, 400]
"#;
    let workshop = Workshop::new(zipped);
    let ran = run(&workshop, &[]).expect(0);
    assert!(ran.out.contains("  400, with completion 1.40 ms; not at 800"), "{}", ran.out);
    let twice = zipped.replace("800, 200", "400, 200");
    std::fs::write(workshop.path().join("sweep.toml"), twice).expect("written");
    let ran = workshop.run(&["check", "sweep.toml"]).expect(2);
    assert!(ran.err.contains("`chunk_count` has 400 in two rows of its [[zip]]"), "{}", ran.err);
}
