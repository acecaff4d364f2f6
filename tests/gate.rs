//! Baselines, comparisons and the gate, from the command line, on runs of the fake backend.
//!
//! A cell's figures are decided by its settings, so "the change" is made in two honest ways: the sweep's shared settings are changed and
//! cells matched by their axes, as a user would who changes a service's options; or the records of the stored run are edited, as a
//! kernel or a host would change them.
//!
//! The fake backend's repeats of a cell differ widely, by up to 2.6 ms: by their start phase. Where a small change matters, records are
//! steadied first.

mod common;

use common::{Ran, Workshop};
use serde_json::{Value, json};

const SWEEP: &str = r#"
name = "made_up"
[run]
repeat = 8
[workload]
chunk_size = 64
[axes]
rcvbuf = ["4KiB", "64KiB", "default"]
nodelay = [false, true]
"#;

fn workshop(sweep: &str) -> Workshop {
    let workshop = Workshop::new(sweep);
    run(&workshop, "base", &[]);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    workshop
}

fn run(workshop: &Workshop, out: &str, more: &[&str]) {
    let arguments = ["run", "sweep.toml", "--backend", "fake", "--no-plot", "--quiet", "--out", out];
    workshop.run(&[&arguments, more].concat()).expect(0);
}

fn gate(workshop: &Workshop, run: &str, more: &[&str]) -> Ran {
    workshop.run(&[&["gate", run, "--baseline", "baseline.json"], more].concat())
}

/// Edits each record of a run.
fn edit(workshop: &Workshop, run: &str, change: impl Fn(&mut Value)) {
    let file = workshop.path().join(run).join("records.jsonl");
    let mut records = common::records(&workshop.path().join(run));
    records.iter_mut().for_each(change);
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(file, lines.concat()).expect("written");
}

/// Makes all completions of a run lie within 1 % of a millisecond, in an order without a trend.
fn steady(workshop: &Workshop, run: &str) {
    edit(workshop, run, |record| {
        let (repeat, sequence) =
            (record["repeat"].as_u64().expect("a number"), record["sequence"].as_u64().expect("a number"));
        record["completion_ns"] = json!(1_000_000 + 1000 * ((repeat * 5 + 3) % 8) + (sequence * 7919) % 997);
    });
}

/// Makes one cell's completion that many percent of what it was.
fn scale_one_cell(workshop: &Workshop, run: &str, percent: u64) {
    edit(workshop, run, |record| {
        if record["axes"]["rcvbuf"] == 4096 && record["axes"]["nodelay"] == true {
            let completion = record["completion_ns"].as_u64().expect("a completion");
            record["completion_ns"] = json!(completion * percent / 100);
        }
    });
}

fn edit_manifest(workshop: &Workshop, run: &str, change: impl Fn(&mut Value)) {
    let file = workshop.path().join(run).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("a manifest");
    change(&mut manifest);
    std::fs::write(file, manifest.to_string()).expect("written");
}

#[test]
fn the_same_run_passes_and_its_baseline_is_stable() {
    let workshop = workshop(SWEEP);
    let ran = gate(&workshop, "base", &[]).expect(0);
    assert!(ran.out.contains("passed: 6 unchanged"), "{}", ran.out);
    let read = || std::fs::read_to_string(workshop.path().join("baseline.json")).expect("a file");
    let text = read();
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    assert_eq!(read(), text, "the same run gives the same file");
    assert_eq!(text.lines().filter(|line| line.contains("completion_ns")).count(), 6, "a line for each cell");
    // And a new run of the same sweep passes too.
    run(&workshop, "again", &[]);
    gate(&workshop, "again", &[]).expect(0);
}

#[test]
fn a_regression_that_is_there_again_fails_with_1() {
    let workshop = workshop(SWEEP);
    // The baseline was faster: running the cell again gives what the run gave.
    scale_one_cell(&workshop, "base", 10);
    workshop.run(&["baseline", "base", "-o", "baseline.json", "--reason", "was faster then"]).expect(0);
    run(&workshop, "slow", &[]);
    let ran = gate(&workshop, "slow", &[]).expect(1);
    assert!(ran.out.contains("REGRESSION: 1 regressed, 5 unchanged"), "{}", ran.out);
    assert!(ran.out.contains("confirmed by running it again"), "{}", ran.out);
    assert!(ran.out.contains("rcvbuf=4 KiB nodelay=on") && ran.out.contains("×10.0"), "{}", ran.out);
    assert!(ran.err.contains("1 cell may be worse and is run again, 8 times each"), "{}", ran.err);
    let again = common::records(&workshop.path().join("slow/confirm"));
    assert_eq!(again.len(), 8, "only that cell was run again, and as often as tells so large a change");
    // The other way round it is an improvement, and a hint.
    let text = std::fs::read_to_string(workshop.path().join("baseline.json")).expect("a file");
    assert!(text.contains("was faster then"));
    workshop.run(&["baseline", "slow", "-o", "baseline.json", "--reason", "slower on purpose"]).expect(0);
    let ran = gate(&workshop, "base", &[]).expect(0);
    assert!(ran.out.contains("1 improved") && ran.out.contains("renew the baseline"), "{}", ran.out);
}

#[test]
fn a_regression_that_is_not_there_again_is_told_and_passes() {
    let workshop = workshop(SWEEP);
    run(&workshop, "slow", &[]);
    scale_one_cell(&workshop, "slow", 1000);
    let ran = gate(&workshop, "slow", &["--quiet"]).expect(0);
    assert!(
        ran.out.contains("1 not confirmed") && ran.out.contains("running it again does not show it"),
        "{}",
        ran.out
    );
    assert_eq!(ran.err, "");
    let ran = gate(&workshop, "slow", &["--no-confirm"]).expect(1);
    assert!(ran.out.contains("not run again: --no-confirm"), "{}", ran.out);
    // A smaller share than it changed by, and a larger one; an amount that it does not reach.
    gate(&workshop, "slow", &["--no-confirm", "--max-regression", "950%"]).expect(0);
    gate(&workshop, "slow", &["--no-confirm", "--floor", "30ms"]).expect(0);
    // A run that was made elsewhere cannot be run again here, and its regression stands.
    edit_manifest(&workshop, "slow", |manifest| manifest["host"]["hostname"] = json!("elsewhere"));
    let ran = gate(&workshop, "slow", &["--allow", "host"]).expect(1);
    assert!(ran.out.contains("not run again: the run was made on another host"), "{}", ran.out);
}

#[test]
fn a_changed_setting_is_judged_by_the_axes_and_named() {
    let workshop = workshop(SWEEP);
    // 32 chunks become 10000, and each costs a microsecond.
    run(&workshop, "change", &["--set", "chunk_count=10000"]);
    let ran = gate(&workshop, "change", &[]).expect(2);
    assert!(ran.out.contains("6 missing, 6 new") && ran.out.contains("--match axes"), "{}", ran.out);
    let ran = gate(&workshop, "change", &["--match", "axes"]).expect(1);
    assert!(ran.out.contains("6 regressed"), "{}", ran.out);
    assert!(ran.out.contains("workload.chunk_count: was not set, is 10000"), "{}", ran.out);
}

#[test]
fn throughput_is_judged_downwards() {
    let workshop = workshop(SWEEP);
    run(&workshop, "change", &["--set", "chunk_size=8"]);
    // An eighth of the bytes in the same time: an eighth of the goodput.
    let ran = gate(&workshop, "change", &["--match", "axes", "--metric", "goodput"]).expect(1);
    assert!(ran.out.contains("6 regressed") && ran.out.contains("−88 %"), "{}", ran.out);
    run(&workshop, "better", &["--set", "chunk_size=1024"]);
    let ran = gate(&workshop, "better", &["--match", "axes", "--metric", "goodput"]).expect(0);
    assert!(ran.out.contains("6 improved"), "{}", ran.out);
}

#[test]
fn too_few_repeats_are_never_a_pass() {
    let workshop = workshop(&SWEEP.replace("repeat = 8", "repeat = 3"));
    let ran = gate(&workshop, "base", &[]).expect(2);
    assert!(ran.out.contains("NOT JUDGED: 6 underpowered"), "{}", ran.out);
    assert!(ran.out.contains("3 repeats against 3 can reach p = 0.10"), "{}", ran.out);
}

#[test]
fn cells_of_one_side_are_named_and_an_error_unless_allowed() {
    let workshop = workshop(SWEEP);
    run(&workshop, "part", &["--filter", "rcvbuf=default"]);
    let ran = gate(&workshop, "part", &[]).expect(2);
    assert!(ran.out.contains("4 missing, 2 unchanged") && ran.out.contains("rcvbuf=64 KiB nodelay=on"), "{}", ran.out);
    gate(&workshop, "part", &["--allow", "cells"]).expect(0);
    run(&workshop, "more", &["--set", "rcvbuf=4KiB,64KiB,default,1MiB"]);
    assert!(gate(&workshop, "more", &[]).expect(2).out.contains("2 new"));
    gate(&workshop, "more", &["--allow", "kernel,cells"]).expect(0);
}

// C44, C47: the differences are listed, and nothing is judged without an explicit word.
#[test]
fn another_kernel_host_or_clock_is_named_and_an_error_unless_allowed() {
    for (aspect, text) in [("kernel", "is 7.0"), ("clock", "was real time, is virtual time"), ("host", "is elsewhere")]
    {
        let workshop = workshop(SWEEP);
        run(&workshop, "other", &[]);
        match aspect {
            "kernel" => edit(&workshop, "other", |record| record["kernel"]["release"] = json!("7.0")),
            "clock" => edit(&workshop, "other", |record| record["clock"] = json!("virtual")),
            _ => edit_manifest(&workshop, "other", |manifest| manifest["host"]["hostname"] = json!("elsewhere")),
        }
        let ran = gate(&workshop, "other", &[]).expect(2);
        assert!(ran.out.contains(text) && ran.out.contains(&format!("--allow {aspect}")), "{}", ran.out);
        assert!(ran.out.contains("6 withheld"), "{}", ran.out);
        let ran = gate(&workshop, "other", &["--allow", aspect]).expect(0);
        assert!(ran.out.contains(text), "stated beside the figures: {}", ran.out);
    }
}

#[test]
fn in_virtual_time_one_repeat_and_the_share_decide() {
    let workshop = Workshop::new(&SWEEP.replace("repeat = 8", "repeat = 1"));
    run(&workshop, "base", &[]);
    edit(&workshop, "base", |record| record["clock"] = json!("virtual"));
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    assert!(gate(&workshop, "base", &["--max-regression", "0%"]).expect(0).out.contains("6 unchanged"));
    run(&workshop, "slow", &[]);
    edit(&workshop, "slow", |record| {
        record["clock"] = json!("virtual");
        let completion = record["completion_ns"].as_u64().expect("a completion");
        record["completion_ns"] = json!(completion + completion / 1000);
    });
    let ran = gate(&workshop, "slow", &["--max-regression", "0.05%"]).expect(1);
    assert!(ran.out.contains("6 regressed") && ran.out.contains("+0.10 %") && ran.out.contains("exact"), "{}", ran.out);
    gate(&workshop, "slow", &[]).expect(0);
}

#[test]
fn a_cell_that_times_out_now_is_a_regression() {
    let workshop = workshop(SWEEP);
    run(&workshop, "stuck", &[]);
    edit(&workshop, "stuck", |record| {
        if record["axes"]["rcvbuf"] == 4096 && record["repeat"] == 3 {
            record["outcome"] = json!("timed-out");
            record["reason"] = json!("no echo");
            record["completion_ns"] = Value::Null;
        }
    });
    let ran = gate(&workshop, "stuck", &["--no-confirm"]).expect(1);
    assert!(ran.out.contains("was measured, is timed-out: no echo"), "{}", ran.out);
}

#[test]
fn a_machine_that_changes_while_it_measures_has_its_verdicts_withheld() {
    let workshop = workshop(&SWEEP.replace("[axes]", "[axes]\nchunk_count = [1, 2, 3]"));
    run(&workshop, "restless", &[]);
    steady(&workshop, "restless");
    workshop.run(&["baseline", "restless", "-o", "baseline.json", "--reason", "steady"]).expect(0);
    assert!(gate(&workshop, "restless", &[]).expect(0).out.contains("18 unchanged"));
    edit(&workshop, "restless", |record| {
        if record["repeat"].as_u64() >= Some(4) {
            record["completion_ns"] = json!(record["completion_ns"].as_u64().expect("a completion") * 13 / 10);
        }
    });
    let ran = gate(&workshop, "restless", &["--no-confirm"]).expect(2);
    assert!(
        ran.out.contains("the machine changed while it measured") && ran.out.contains("18 withheld"),
        "{}",
        ran.out
    );
}

#[test]
fn a_run_on_a_machine_that_did_not_hold_still_is_run_again_as_a_whole() {
    let workshop = workshop(&SWEEP.replace("[axes]", "[axes]\nchunk_count = [1, 2, 3]"));
    run(&workshop, "restless", &[]);
    edit(&workshop, "restless", |record| {
        if record["repeat"].as_u64() >= Some(4) {
            record["completion_ns"] = json!(record["completion_ns"].as_u64().expect("a completion") * 3);
        }
    });
    assert!(gate(&workshop, "restless", &["--no-confirm"]).expect(2).out.contains("18 withheld"));
    let ran = gate(&workshop, "restless", &[]).expect(0);
    assert!(
        ran.err.contains("the machine did not hold still, and the whole run is run again: 18 cells"),
        "{}",
        ran.err
    );
    assert!(
        ran.out.contains("18 unchanged") && ran.out.contains("the machine changed while it measured"),
        "{}",
        ran.out
    );
    assert_eq!(common::records(&workshop.path().join("restless/confirm")).len(), 18 * 8, "all of it, once");
    // A regression does not hide behind a restless machine.
    scale_one_cell(&workshop, "base", 10);
    workshop.run(&["baseline", "base", "-o", "baseline.json", "--reason", "was faster then"]).expect(0);
    let ran = gate(&workshop, "restless", &[]).expect(1);
    assert!(ran.out.contains("3 regressed"), "{}", ran.out);
}

#[test]
fn ci_gets_a_summary_annotations_junit_and_json() {
    let workshop = workshop(SWEEP);
    run(&workshop, "slow", &[]);
    steady(&workshop, "slow");
    workshop.run(&["baseline", "slow", "-o", "baseline.json", "--reason", "steady"]).expect(0);
    scale_one_cell(&workshop, "slow", 150);
    let summary = workshop.path().join("summary.md");
    std::fs::write(&summary, "what was there\n").expect("written");
    let arguments = ["gate", "slow", "--baseline", "baseline.json", "--no-confirm", "--junit", "gate.xml", "--json"];
    let mut command = workshop.command(&arguments);
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_ACTIONS", "true");
    let ran = Ran::from(command.output().expect("it starts")).expect(1);
    let json: Value = serde_json::from_str(&ran.out).expect("nothing but JSON");
    assert_eq!((&json["overall"], &json["metric"]), (&json!("regression"), &json!("completion")));
    assert_eq!((&json["unit"], &json["better"], &json["floor"]), (&json!("ns"), &json!("lower"), &json!(10_000)));
    let regressed: Vec<&Value> =
        json["cells"].as_array().expect("cells").iter().filter(|cell| cell["verdict"] == "regressed").collect();
    assert_eq!(regressed.len(), 1);
    assert_eq!(regressed[0]["axes"], json!({"rcvbuf": 4096, "nodelay": true}));
    assert!(regressed[0]["ratio"]["medians"].as_f64().expect("a ratio") > 1.49);
    assert!(ran.err.lines().any(|line| line.starts_with("::error title=sweep gate%3A regression::")), "{}", ran.err);
    let text = std::fs::read_to_string(&summary).expect("a summary");
    assert!(text.starts_with("what was there\n") && text.contains("| rcvbuf=4 KiB nodelay=on |"), "{text}");
    let xml = std::fs::read_to_string(workshop.path().join("gate.xml")).expect("a file");
    assert_eq!((xml.matches("<testcase ").count(), xml.matches("<failure").count()), (7, 1), "{xml}");
}

#[test]
fn compare_shows_both_sides_and_never_fails_for_a_difference() {
    let workshop = workshop(SWEEP);
    run(&workshop, "slow", &[]);
    steady(&workshop, "base");
    steady(&workshop, "slow");
    workshop.run(&["baseline", "base", "-o", "baseline.json", "--reason", "steady"]).expect(0);
    scale_one_cell(&workshop, "slow", 150);
    let ran = workshop.run(&["compare", "base", "slow"]).expect(0);
    assert!(ran.out.contains("1 worse, 0 better, 5 with no difference, of 6 cells"), "{}", ran.out);
    let ran = workshop.run(&["compare", "slow", "baseline.json", "--json"]).expect(0);
    let json: Value = serde_json::from_str(&ran.out).expect("JSON");
    let better = json["cells"].as_array().expect("cells").iter().filter(|cell| cell["difference"] == "better").count();
    assert_eq!(better, 1);
    run(&workshop, "other", &["--set", "chunk_size=65"]);
    let ran = workshop.run(&["compare", "base", "other", "--match", "axes"]).expect(0);
    assert!(ran.out.contains("workload.chunk_size: was 64, is 65"), "{}", ran.out);
}

#[test]
fn a_baseline_wants_a_reason_for_other_figures_and_keeps_all_of_them() {
    let workshop = workshop(SWEEP);
    run(&workshop, "slow", &[]);
    scale_one_cell(&workshop, "slow", 150);
    let ran = workshop.run(&["baseline", "slow", "-o", "baseline.json"]).expect(2);
    assert!(ran.err.contains("--reason"), "{}", ran.err);
    for reason in ["first", "second"] {
        workshop.run(&["baseline", "slow", "-o", "baseline.json", "--reason", reason]).expect(0);
    }
    let text = std::fs::read_to_string(workshop.path().join("baseline.json")).expect("a file");
    let baseline: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(baseline["accepted"].as_array().map(Vec::len), Some(2));
    gate(&workshop, "slow", &[]).expect(0);
}

#[test]
fn what_cannot_be_judged_is_an_error_that_says_why() {
    let workshop = workshop(SWEEP);
    for (arguments, text) in [
        (&["gate", "nowhere", "--baseline", "baseline.json"][..], "nowhere"),
        (&["gate", "base", "--baseline", "nowhere.json"], "nowhere.json"),
        (&["gate", "base", "--baseline", "sweep.toml"], "is not a baseline"),
        (&["gate", "base"], "--baseline"),
        (
            &["gate", "base", "--baseline", "baseline.json", "--metric", "chunk-p99"],
            "no cell has chunk-p99 on both sides",
        ),
        (&["gate", "base", "--baseline", "baseline.json", "--metric", "speed"], "completion, goodput"),
        (&["gate", "base", "--baseline", "baseline.json", "--max-regression", "0.05"], "in percent"),
        (&["gate", "base", "--baseline", "baseline.json", "--floor", "20"], "with its unit"),
        (&["gate", "base", "--baseline", "baseline.json", "--allow", "everything"], "kernel, clock, host"),
        (&["baseline", "baseline.json", "-o", "other.json"], "is a file"),
        (&["compare", "base", "nowhere"], "nowhere"),
    ] {
        let ran = workshop.run(arguments).expect(2);
        assert!(ran.err.contains(text), "{arguments:?}: {}", ran.err);
    }
    edit_manifest(&workshop, "base", |manifest| manifest["finished"] = Value::Null);
    let ran = gate(&workshop, "base", &[]).expect(2);
    assert!(ran.err.contains("has not come to its end"), "{}", ran.err);
}

const PRINTED: &str = r#"
name = "made_up"
[run]
repeat = 8
[workload]
kind = "exec"
[workload.server]
command = ["true"]
[workload.client]
command = ["true", "{mode}"]
[[workload.metric]]
name = "level"
unit = "dB"
better = "higher"
regex = '(\d+)'
[axes]
"var.mode" = ["plain", "other"]
"#;

/// Sets what the program printed in each repeat.
fn print_levels(workshop: &Workshop, run: &str, level: impl Fn(&Value, f64) -> f64) {
    edit(workshop, run, |record| {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let wobble = ((record["repeat"].as_u64().expect("a number") * 5 + 3) % 8) as f64 / 1000.0;
        record["metrics"]["level"]["value"] = json!(level(&record["axes"], wobble));
    });
}

#[test]
fn what_a_program_printed_is_gated_compared_and_drawn() {
    let workshop = Workshop::new(PRINTED);
    run(&workshop, "base", &[]);
    print_levels(&workshop, "base", |_, wobble| 0.5 + wobble);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    let text = std::fs::read_to_string(workshop.path().join("baseline.json")).expect("a file");
    assert!(text.contains(r#""metrics":{"level":[0.503,0.5"#), "{text}");
    gate(&workshop, "base", &["--metric", "level"]).expect(0);

    // Less is worse, by a fifth, in one cell of two; the completion is as it was.
    run(&workshop, "less", &[]);
    let is_on = |axes: &Value| axes.to_string().contains("other");
    print_levels(&workshop, "less", |axes, wobble| (0.5 + wobble) * if is_on(axes) { 0.8 } else { 1.0 });
    gate(&workshop, "less", &[]).expect(0);
    // To run it again would make other figures up.
    let ran = gate(&workshop, "less", &["--metric", "level", "--no-confirm"]).expect(1);
    assert!(
        ran.out.contains("metric  level") && ran.out.contains("0.5035 dB") && ran.out.contains("0.4028 dB"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("1 regressed") && !ran.out.contains("in real time"), "no floor: {}", ran.out);
    gate(&workshop, "less", &["--metric", "level", "--floor", "0.2 dB"]).expect(0);
    // Each output says what the figures are in, and what a change of them means.
    let summary = workshop.path().join("summary.md");
    let arguments = [
        "gate",
        "less",
        "--baseline",
        "baseline.json",
        "--metric",
        "level",
        "--json",
        "--junit",
        "gate.xml",
        "--no-confirm",
    ];
    let mut command = workshop.command(&arguments);
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_ACTIONS", "true");
    let ran = Ran::from(command.output().expect("it starts")).expect(1);
    let json: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((&json["metric"], &json["floor"]), (&json!("level"), &json!(0)));
    assert_eq!((&json["unit"], &json["better"]), (&json!("dB"), &json!("higher")));
    let read = |name: &str| std::fs::read_to_string(workshop.path().join(name)).expect("a file");
    for text in [ran.err, read("gate.xml"), read("summary.md")] {
        assert!(text.contains("0.5035 dB") && text.contains("0.4028 dB"), "{text}");
    }
    let ran = workshop.run(&["compare", "base", "less", "--metric", "level", "--json"]).expect(0);
    let json: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((&json["unit"], &json["better"]), (&json!("dB"), &json!("higher")));
    let json: Value =
        serde_json::from_str(&workshop.run(&["compare", "base", "less", "--json"]).expect(0).out).expect("JSON");
    assert_eq!((&json["unit"], &json["better"]), (&json!("ns"), &json!("lower")));

    let ran = workshop.run(&["compare", "base", "less", "--metric", "level"]).expect(0);
    assert!(ran.out.contains("1 worse, 0 better, 1 with no difference"), "{}", ran.out);
    let ran = workshop.run(&["compare", "less", "base", "--metric", "level"]).expect(0);
    assert!(ran.out.contains("0 worse, 1 better"), "{}", ran.out);

    for other in [&["base"][..], &["base", "less"]] {
        let ran = workshop.run(&[&["plot"], other, &["--metric", "level"]].concat()).expect(0);
        let picture = std::fs::read_to_string(workshop.path().join(ran.out.trim())).expect("a picture");
        assert!(picture.contains("level (dB)"), "{picture}");
    }
    for command in [&["plot", "base"][..], &["compare", "base", "less"], &["gate", "base", "--baseline", "less"]] {
        let ran = workshop.run(&[command, &["--metric", "speed"]].concat()).expect(2);
        assert!(ran.err.contains("speed") && ran.err.contains("level"), "{command:?}: {}", ran.err);
    }
    let ran = workshop.run(&["baseline", "base", "-o", "level.json", "--metric", "level"]).expect(0);
    assert!(!ran.err.contains("no figures"), "{}", ran.err);
    workshop.run(&["gate", "base", "--baseline", "level.json", "--metric", "level"]).expect(0);

    // A baseline of an earlier version holds none, and is read.
    let mut old: Value = serde_json::from_str(&text).expect("JSON");
    old.as_object_mut().expect("an object").remove("metrics");
    old["cells"]
        .as_array_mut()
        .expect("cells")
        .iter_mut()
        .for_each(|cell| drop(cell.as_object_mut().expect("a cell").remove("metrics")));
    std::fs::write(workshop.path().join("old.json"), old.to_string()).expect("written");
    workshop.run(&["gate", "base", "--baseline", "old.json"]).expect(0);
    let ran = workshop.run(&["gate", "base", "--baseline", "old.json", "--metric", "level"]).expect(2);
    assert!(ran.err.contains("no cell has level on both sides; the baseline has none"), "{}", ran.err);
}
