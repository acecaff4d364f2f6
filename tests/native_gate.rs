//! The gate on native runs in real time: the same sweep again, and changes made on purpose. This machine may be busy, so an A/A gate may
//! withhold its verdict, but it never calls a cell regressed.

mod common;

use std::path::Path;

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

const PROGRAMS: &str = r#"
name = "programs"
[run]
repeat = 8
timeout = "5s"
[kernel]
image = "host"
[workload]
kind = "exec"
files = ["data"]
[workload.server]
command = ["sh", "-c", 'echo ready; exec sleep 100']
ready = { line = "ready" }
[workload.client]
command = ["./client", "{chunk_count}", "{dir}/data"]
[axes]
chunk_count = [8]
"#;

/// Writes the client: it takes that many seconds.
fn client(workshop: &Workshop, seconds: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = workshop.path().join("client");
    std::fs::write(&path, format!("#!/bin/sh\nsleep {seconds}\n")).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn a_program_that_became_slower_is_confirmed_while_its_sweep_and_itself_are_as_they_were() {
    if !root_or_skip("a_program_that_became_slower_is_confirmed_while_its_sweep_and_itself_are_as_they_were") {
        return;
    }
    let workshop = Workshop::new(PROGRAMS);
    std::fs::write(workshop.path().join("data"), "1").expect("written");
    client(&workshop, "0.02");
    run(&workshop, "base", &[]).expect(0);
    workshop.run(&["baseline", "base", "-o", "baseline.json"]).expect(0);
    client(&workshop, "0.2");
    run(&workshop, "change", &[]).expect(0);
    // From elsewhere: the file is looked for where it was.
    let [change, baseline] = ["change", "baseline.json"].map(|name| workshop.path().join(name).display().to_string());
    let arguments = ["gate", &change, "--baseline", &baseline];
    let gate =
        |code| Ran::from(workshop.command(&arguments).current_dir("/").output().expect("it starts")).expect(code);
    let confirmed = gate(1);
    assert!(confirmed.out.contains("confirmed by running it again"), "{}\n{}", confirmed.out, confirmed.err);
    assert!(confirmed.out.contains("program `./client`: was "), "what differs is said: {}", confirmed.out);
    let again = common::records(&workshop.path().join("change/confirm"));
    assert!(again.iter().all(|record| record["completion_ns"].as_u64() > Some(200_000_000)), "{again:?}");

    let not_again = |why: &str| {
        let text = gate(1).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not run again: ") && text.contains(why) && !text.contains("confirmed by"), "{text}");
        assert!(!Path::new(&change).join("confirm-2").exists());
    };
    let file = workshop.path().join("sweep.toml");
    std::fs::write(&file, format!("{PROGRAMS}# changed\n")).expect("written");
    not_again(&format!("the file that they come from, `{}`, has changed since the run: put it back", file.display()));
    std::fs::remove_file(&file).expect("removed");
    not_again(&format!("`{}`, is gone", file.display()));
    std::fs::write(&file, PROGRAMS).expect("written");
    client(&workshop, "0.02");
    not_again("`./client`, which its sweep names, or what that needs, has changed since the run");
    client(&workshop, "0.2");
    std::fs::write(workshop.path().join("data"), "2").expect("written");
    not_again("run again: `data`, which its sweep names");
}
