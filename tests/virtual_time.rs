//! Virtual time: figures depend on the cell, the kernel, the program and QEMU, and on nothing else.

mod common;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{Cache, PROGRAM, Ran, Workshop, root_or_skip};
use serde_json::Value;

const ECHO: &str = r#"
name = "echo"
[run]
repeat = 2
timeout = "60s"
[kernel]
clock = "virtual"
[workload]
kind = "echo"
[axes]
"link.topology" = ["loopback", "veth"]
"workload.protocol" = ["tcp", "sctp"]
rcvbuf = ["64KiB"]
nodelay = [true]
"#;

const STREAM: &str = r#"
name = "stream"
[run]
repeat = 1
[kernel]
clock = "virtual"
[workload]
kind = "stream"
bytes = "1MiB"
[axes]
"workload.protocol" = ["tcp", "sctp"]
"workload.direction" = ["upload", "download"]
"#;

/// Every measured figure of a run, by cell and repeat.
fn figures(workshop: &Workshop) -> BTreeMap<String, String> {
    let figures = |record: &Value| {
        assert_eq!(record["outcome"], "measured", "{record}");
        let mut figures = record.clone();
        for when in ["sequence", "started", "reused_from"] {
            figures.as_object_mut().expect("an object").remove(when);
        }
        (format!("{} {}", record["cell"], record["repeat"]), figures.to_string())
    };
    workshop.records("latest").iter().map(figures).collect()
}

/// Keeps every core busy while it lives.
struct Load(std::sync::Arc<AtomicBool>);

impl Load {
    fn new() -> Self {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        for _ in 0..thread::available_parallelism().map_or(2, std::num::NonZero::get) {
            let stop = std::sync::Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stop)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn figures_do_not_depend_on_load_parallelism_or_the_boot() {
    let cache = Cache::new();
    for sweep in [ECHO, STREAM] {
        let workshop = Workshop::new(sweep);
        cache.run(&workshop, &["run", "sweep.toml", "--fresh", "-j", "1"]).expect(0);
        let alone = figures(&workshop);
        assert!(!alone.is_empty());
        {
            let _load = Load::new();
            cache.run(&workshop, &["run", "sweep.toml", "--fresh", "-j", "2"]).expect(0);
        }
        assert_eq!(alone, figures(&workshop), "beside a load, two at once");
        for machine in cache.machines() {
            std::fs::remove_dir_all(machine).expect("removed");
        }
        let ran = cache.run(&workshop, &["run", "sweep.toml", "--fresh", "-j", "2"]).expect(0);
        assert!(ran.err.contains("freezing"), "{}", ran.err);
        assert_eq!(alone, figures(&workshop), "on a machine that was booted anew");
    }
}

#[test]
fn without_the_right_to_order_threads_a_repeat_is_run_until_two_guests_agree() {
    if !root_or_skip("without_the_right_to_order_threads_a_repeat_is_run_until_two_guests_agree") {
        return;
    }
    let cache = Cache::new();
    let workshop = Workshop::new(ECHO);
    let few = ["run", "sweep.toml", "--fresh", "--filter", "link.topology=loopback"];
    cache.run(&workshop, &few).expect(0);
    let ordered = figures(&workshop);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_nice", PROGRAM]).args(few).current_dir(workshop.path());
    let ran = Ran::from(command.env("XDG_CACHE_HOME", cache.path()).output().expect("setpriv starts")).expect(0);
    assert!(ran.err.contains("run until two guests agreed"), "{}", ran.err);
    assert_eq!(figures(&workshop), ordered);
}

#[test]
fn a_known_result_is_not_run_again_and_a_grown_sweep_runs_the_new_cells_only() {
    let cache = Cache::new();
    let workshop = Workshop::new(ECHO);
    let few = ["run", "sweep.toml", "--filter", "link.topology=loopback", "--filter", "workload.protocol=tcp"];
    cache.run(&workshop, &few).expect(0);
    let first = figures(&workshop);
    let again = cache.run(&workshop, &few).expect(0);
    assert!(again.err.contains("2 results were known"), "{}", again.err);
    assert_eq!(figures(&workshop), first);
    assert!(workshop.records("latest").iter().all(|record| record["reused_from"].is_string()));

    let more = ["run", "sweep.toml", "--filter", "link.topology=loopback", "--filter", "workload.protocol=tcp"];
    let grown = cache.run(&workshop, &[&more[..], &["--set", "chunk_count=32,33"]].concat()).expect(0);
    assert!(grown.err.contains("2 results were known"), "{}", grown.err);
    let records = workshop.records("latest");
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record["reused_from"].is_string() == (record["axes"]["chunk_count"] == 32)));

    cache.run(&workshop, &[&few[..], &["--fresh"]].concat()).expect(0);
    assert!(workshop.records("latest").iter().all(|record| record["reused_from"].is_null()));
    assert_eq!(figures(&workshop), first, "and the figures are the same");
}

#[test]
fn a_damaged_machine_is_noticed_and_made_again() {
    let cache = Cache::new();
    let workshop = Workshop::new(ECHO);
    let few = ["run", "sweep.toml", "--fresh", "--repeat", "1", "--filter", "link.topology=loopback"];
    cache.run(&workshop, &few).expect(0);
    let before = figures(&workshop);
    let [machine] = &cache.machines()[..] else { panic!("one machine") };
    let memory = machine.join("memory");
    let length = std::fs::metadata(&memory).expect("a file").len();
    std::fs::File::options().write(true).open(&memory).and_then(|file| file.set_len(length / 2)).expect("cut");
    let ran = cache.run(&workshop, &few).expect(0);
    assert!(ran.err.contains("is damaged") && ran.err.contains("made again"), "{}", ran.err);
    assert_eq!(before, figures(&workshop));
}

#[test]
fn a_guest_that_never_rests_is_stopped_by_its_own_clock() {
    let cache = Cache::new();
    let workshop = Workshop::new(&ECHO.replace("60s", "100ms"));
    let few = [
        "run",
        "sweep.toml",
        "--fresh",
        "--repeat",
        "1",
        "--set",
        "link.topology=loopback",
        "--set",
        "workload.protocol=tcp",
    ];
    let mut command = workshop.command(&few);
    command.env("XDG_CACHE_HOME", cache.path()).env("SWEEP_TEST_FAULT", "spin@0").timeout(Duration::from_mins(4));
    Ran::from(command.output().expect("the program starts")).expect(3);
    let records = workshop.records("latest");
    let reason = records[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("never came to rest") && reason.contains("of its own time") && reason.contains("of the host's"),
        "{reason}"
    );
}

#[test]
fn timers_of_the_guest_are_exact() {
    let workshop = Workshop::new(
        r#"
name = "timer"
[run]
repeat = 2
[kernel]
clock = "virtual"
[workload]
kind = "stream"
duration = "50ms"
"#,
    );
    workshop.run(&["run", "sweep.toml", "--fresh"]).expect(0);
    for record in workshop.records("latest") {
        let elapsed = record["elapsed_ns"].as_u64().expect("a time");
        assert!((50_000_000..60_000_000).contains(&elapsed), "a stream of 50 ms takes 50 ms: {elapsed} ns");
    }
}
