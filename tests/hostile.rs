//! What a run, a file or a terminal may do to the program that nobody meant: it says what is wrong and what to do, and loses nothing.

mod common;

use common::Workshop;
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

fn run(workshop: &Workshop, more: &[&str]) -> common::Ran {
    workshop.run(&[&["run", "sweep.toml", "--backend", "fake"], more].concat())
}

/// The program with these streams in a shell's words: `2>&-`, `>/dev/full`.
fn redirected(workshop: &Workshop, arguments: &str, streams: &str) -> Option<i32> {
    let script = format!("exec \"$0\" {arguments} {streams}");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script, common::PROGRAM]).current_dir(workshop.path());
    shell.output().expect("a shell").status.code()
}

#[test]
fn messages_that_nobody_can_read_lose_no_measurement_and_change_no_exit_code() {
    let workshop = Workshop::new(SWEEP);
    let run = "run sweep.toml --backend fake --no-plot";
    for (index, streams) in ["2>/dev/full", "2>&-", ">&- 2>&-"].into_iter().enumerate() {
        let out = format!("out{index}");
        assert_eq!(redirected(&workshop, &format!("{run} --out {out}"), streams), Some(0), "{streams}");
        assert_eq!(common::records(&workshop.path().join(out)).len(), 16, "{streams}");
    }
    redirected(&workshop, &format!("{run} --out gone"), "2>&1 | head -1");
    assert_eq!(common::records(&workshop.path().join("gone")).len(), 16);
    for wrong in ["check nothing.toml", "show nothing", "gate nothing --baseline nothing", "kernel remove nothing"] {
        assert_eq!(redirected(&workshop, wrong, "2>/dev/full"), Some(2), "{wrong}");
    }
}

#[test]
fn output_that_did_not_reach_its_file_is_told() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &["--no-plot"]).expect(0);
    for command in ["show results/latest --json", "explain results/latest", "check sweep.toml", "schema"] {
        assert_eq!(redirected(&workshop, command, ">/dev/full 2>err.txt"), Some(2), "{command}");
        let said = std::fs::read_to_string(workshop.path().join("err.txt")).expect("standard error");
        assert!(said.contains("standard output: No space left on device"), "{command}: {said}");
        // A reader that has seen enough is no fault.
        assert_eq!(redirected(&workshop, command, "2>err.txt | head -1"), Some(0), "{command}");
        assert_eq!(std::fs::read_to_string(workshop.path().join("err.txt")).expect("standard error"), "", "{command}");
    }
}

#[test]
fn a_sweep_from_a_pipe_is_kept_with_its_text() {
    let workshop = Workshop::new(SWEEP);
    assert_eq!(
        redirected(&workshop, "run /dev/stdin --backend fake --no-plot --quiet --out piped", "<sweep.toml >table.txt"),
        Some(0)
    );
    let script = "cat sweep.toml | \"$0\" run /dev/stdin --backend fake --no-plot --quiet --out piped-2";
    let mut shell = std::process::Command::new("sh");
    let ran = shell.args(["-c", script, common::PROGRAM]).current_dir(workshop.path()).output().expect("a shell");
    assert!(ran.status.success());
    for out in ["piped", "piped-2"] {
        let manifest = std::fs::read(workshop.path().join(out).join("manifest.json")).expect("read");
        let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest");
        assert_eq!(manifest["sweep"]["source"], SWEEP, "{out}");
    }
}

#[test]
fn a_run_is_not_finished_on_another_kernel_than_it_was_begun_on() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let file = workshop.path().join("results/latest/records.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    let cut = text.match_indices('\n').nth(6).expect("seven lines").0 + 1;
    std::fs::write(&file, &text[..cut]).expect("written");
    // `auto` once meant another place than it does now, as for a user who had no namespaces then.
    let ran = workshop.run(&["run", "--resume"]).expect(2);
    assert!(ran.err.contains("what kernel.image = \"auto\" stands for was fake then and is "), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).expect("records"), text[..cut], "nothing was mixed in");
    run(&workshop, &["--resume"]).expect(0);
}

#[test]
fn records_that_are_gone_are_told() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    std::fs::remove_file(workshop.path().join("results/latest/records.jsonl")).expect("removed");
    for command in ["show", "explain", "report"] {
        let ran = workshop.run(&[command, "results/latest"]).expect(0);
        assert!(ran.err.contains("records.jsonl` is not there") && ran.err.contains("--resume"), "{}", ran.err);
    }
}

#[test]
fn a_baseline_of_figures_that_the_run_does_not_have_is_refused() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let ran = workshop.run(&["baseline", "results/latest", "-o", "b.json", "--metric", "completion,cpu"]).expect(2);
    assert!(ran.err.contains("no cell of `results/latest` has cpu"), "{}", ran.err);
    assert!(!workshop.path().join("b.json").exists());
}

#[test]
fn what_cannot_be_written_is_named() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    for arguments in [
        ["plot", "results/latest", "--out", "sweep.toml"],
        ["report", "results/latest", "--out", "sweep.toml/page"],
        ["baseline", "results/latest", "-o", "sweep.toml/b.json"],
    ] {
        let ran = workshop.run(&arguments).expect(2);
        assert!(ran.err.contains("cannot make the folder `sweep.toml"), "{}", ran.err);
    }
    let junit = ["gate", "results/latest", "--baseline", "results/latest", "--no-confirm", "--junit", "no/x.xml"];
    let ran = workshop.run(&junit).expect(2);
    assert_eq!(ran.err, "error: cannot write `no/x.xml`: No such file or directory (os error 2); check the path\n");
}

#[test]
fn what_a_terminal_would_obey_is_not_passed_on_and_a_long_name_is_cut() {
    let workshop = Workshop::new("name = \"a\\u001b[31mred\"\n[axes]\nrcvbuf = [1]\n");
    let ran = workshop.run(&["check", "sweep.toml"]).expect(2);
    assert!(!ran.err.contains('\u{1b}') && ran.err.contains("\\u{1b}[31mred"), "{}", ran.err);
    for arguments in [["show", "no\u{1b}[31m"], ["check", "no\u{1b}[31m"]] {
        let ran = workshop.run(&arguments).expect(2);
        assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    }
    let text = format!("name = \"made_up\"\n[axes]\n{} = [1]\n", "x".repeat(100_000));
    std::fs::write(workshop.path().join("sweep.toml"), text).expect("written");
    let ran = workshop.run(&["check", "sweep.toml"]).expect(2);
    assert!(ran.err.contains('…'), "{}", ran.err.len());
}
