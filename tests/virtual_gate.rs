//! The gate in virtual time: one repeat is enough, the same sweep again gives the same figures, and changes made on purpose are found.

mod common;

use common::{Ran, Workshop};

const SWEEP: &str = r#"
name = "burst"
[run]
repeat = 1
timeout = "180s"
[kernel]
image = "debian:6.12"
clock = "virtual"
[link]
topology = "loopback"
[workload]
kind = "echo"
protocol = "sctp"
chunk_size = 64
[socket]
rcvbuf = "64KiB"
nodelay = true
[axes]
chunk_count = [8, 32]
"#;

fn run(workshop: &Workshop, out: &str, more: &[&str]) {
    workshop.run(&[&["run", "sweep.toml", "--fresh", "--no-plot", "--quiet", "--out", out], more].concat()).expect(0);
}

fn gate(workshop: &Workshop, run: &str, more: &[&str]) -> Ran {
    workshop.run(&[&["gate", run, "--baseline", "baseline.json", "--match", "axes", "--all"], more].concat())
}

#[test]
fn one_repeat_in_virtual_time_is_enough_for_any_change() {
    let workshop = Workshop::new(SWEEP);
    run(&workshop, "base", &[]);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);

    // The same again: not one nanosecond.
    run(&workshop, "again", &[]);
    let ran = gate(&workshop, "again", &["--max-regression", "0%"]).expect(0);
    assert!(ran.out.contains("passed: 2 unchanged"), "{}", ran.out);

    // Nagle's algorithm: 200 ms for the peer's delayed acknowledgement.
    run(&workshop, "nagle", &["--set", "socket.nodelay=false"]);
    let ran = gate(&workshop, "nagle", &[]).expect(1);
    assert!(ran.out.contains("socket.nodelay: was true, is false"), "{}", ran.out);

    // The report that this program began with.
    run(&workshop, "tiny", &["--set", "socket.rcvbuf=1KiB"]);
    let ran = gate(&workshop, "tiny", &[]).expect(1);
    assert!(ran.out.contains("socket.rcvbuf: was 65536, is 1024"), "{}", ran.out);

    // A byte more in each chunk: a little more to copy and to sum, far below 5 %, and seen all the same.
    run(&workshop, "byte", &["--set", "chunk_size=65"]);
    gate(&workshop, "byte", &["--max-regression", "0%"]).expect(1);
    gate(&workshop, "byte", &[]).expect(0);
}

// C46, and C18 as its control: does the gate bite, and only where it should?
#[test]
fn nodelay_turned_off_fails_exactly_the_cells_that_wait_for_it() {
    let workshop = Workshop::new(
        r#"
name = "writes"
[run]
repeat = 1
[kernel]
image = "debian:6.12"
clock = "virtual"
[link]
topology = "loopback"
[workload]
kind = "echo"
protocol = "tcp"
chunk_count = 40
chunk_size = 64
[socket]
nodelay = true
[axes]
"workload.pattern" = ["write-read", "write-write-read"]
"#,
    );
    run(&workshop, "base", &[]);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    run(&workshop, "nagle", &["--set", "socket.nodelay=false"]);
    let ran = gate(&workshop, "nagle", &[]).expect(1);
    assert!(ran.out.contains("1 regressed, 1 unchanged"), "{}", ran.out);
    let line = ran.out.lines().find(|line| line.contains("REGRESSED")).expect("a regression");
    assert!(line.contains("workload.pattern=write-write-read"), "{}", ran.out);
}
