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

#[test]
fn a_baseline_of_figures_that_the_run_does_not_have_is_refused() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, &[]).expect(0);
    let ran = workshop.run(&["baseline", "results/latest", "-o", "b.json", "--metric", "completion,cpu"]).expect(2);
    assert!(ran.err.contains("no cell of `results/latest` has cpu"), "{}", ran.err);
    assert!(!workshop.path().join("b.json").exists());
}
