//! The gate on native runs in real time: the same sweep again, and changes made on purpose. This machine may be busy, so an A/A gate may
//! withhold its verdict, but it never calls a cell regressed.

mod common;

use common::{Ran, Workshop, root_or_skip};

const SWEEP: &str = r#"
name = "echo"
[run]
repeat = 8
warmup = 1
timeout = "2s"
[workload]
kind = "echo"
protocol = "tcp"
[socket]
rcvbuf = "64KiB"
[axes]
chunk_count = [8, 256]
chunk_size = ["1KiB"]
nodelay = [false, true]
"#;

fn run(workshop: &Workshop, out: &str, more: &[&str]) -> Ran {
    workshop.run(&[&["run", "sweep.toml", "--no-plot", "--quiet", "--out", out], more].concat())
}

#[test]
fn the_same_native_sweep_again_is_no_regression() {
    if !root_or_skip("the_same_native_sweep_again_is_no_regression") {
        return;
    }
    let workshop = Workshop::new(SWEEP);
    run(&workshop, "base", &[]).expect(0);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    for repetition in 0..3 {
        let out = format!("again-{repetition}");
        run(&workshop, &out, &[]).expect(0);
        let ran = workshop.run(&["gate", &out, "--baseline", "baseline.json", "--all"]);
        let withheld = ran.code == Some(2) && ran.out.contains("the machine changed while it measured");
        assert!(ran.code == Some(0) || withheld, "{}\n{}", ran.out, ran.err);
    }
}

#[test]
fn a_receive_buffer_of_1_kib_instead_of_64_kib_fails_the_gate() {
    if !root_or_skip("a_receive_buffer_of_1_kib_instead_of_64_kib_fails_the_gate") {
        return;
    }
    let workshop = Workshop::new(SWEEP);
    run(&workshop, "base", &["--filter", "chunk_count=8"]).expect(0);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    // 8 KiB into a window of about 1 KiB.
    let code = run(&workshop, "change", &["--filter", "chunk_count=8", "--set", "socket.rcvbuf=1KiB"]).code;
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    let ran = workshop.run(&["gate", "change", "--baseline", "baseline.json", "--match", "axes"]).expect(1);
    assert!(ran.out.contains("socket.rcvbuf: was 65536, is 1024"), "{}", ran.out);
    assert!(ran.out.contains("confirmed by running it again"), "{}", ran.out);
}
