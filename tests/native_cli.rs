//! Native runs of the whole program: as root, as an ordinary user, killed in the middle, and two at once.

mod common;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{PROGRAM, Ran, Workshop, records, repeats, root_or_skip};
use serde_json::Value;

/// The user `nobody` of every distribution.
const NOBODY: u32 = 65534;

const SHORT: &str = r#"
name = "short"
[run]
repeat = 2
[axes]
"link.topology" = ["veth", "loopback"]
rcvbuf = ["32KiB", "default"]
"#;

const LONG: &str = r#"
name = "long"
[run]
repeat = 6
[workload]
kind = "stream"
duration = "100ms"
[axes]
rcvbuf = ["32KiB", "default"]
"#;

/// Names of this namespace's interfaces.
fn interfaces() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/net/dev").expect("interfaces");
    text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Processes whose program is ours, other than the given one.
fn ours(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("proc").flatten() {
        let cwd = std::fs::read_link(entry.path().join("cwd"));
        if cwd.is_ok_and(|cwd| cwd.starts_with(folder)) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[test]
fn a_killed_run_leaves_nothing_behind_and_is_finished_by_resume() {
    let workshop = Workshop::new(LONG);
    let before = interfaces();
    let named = || std::fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let named_before = named();
    let mut child = Command::new(PROGRAM)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml", "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let file = workshop.path().join("results/latest/records.jsonl");
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::fs::read_to_string(&file).map_or(0, |text| text.lines().count()) < 3 {
        assert!(Instant::now() < deadline, "no records came");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed with SIGKILL");
    child.wait().expect("gone");
    let there = std::fs::read_to_string(&file).expect("records");
    let whole = there.lines().count();
    assert!((3..12).contains(&whole), "killed in the middle: {whole}");
    assert_eq!(interfaces(), before);
    assert_eq!(named(), named_before);
    assert_eq!(ours(workshop.path()), Vec::<String>::new());

    workshop.run(&["run", "--resume", "--quiet"]).expect(0);
    let all = repeats(&workshop.records("latest"));
    let once: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), once.len()), (12, 12), "every repeat is there, once");
    assert!(std::fs::read_to_string(&file).expect("records").starts_with(&there), "nothing that was measured is lost");
}

#[test]
fn ctrl_c_ends_a_run_with_130_and_says_how_to_go_on() {
    let workshop = Workshop::new(LONG);
    let child = Command::new(PROGRAM)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml", "--set", "workload.duration=2s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let manifest = workshop.path().join("results/latest/manifest.json");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !manifest.exists() {
        assert!(Instant::now() < deadline, "no run began");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let ran = Ran::from(child.wait_with_output().expect("ends")).expect(130);
    assert!(asked.elapsed() < Duration::from_millis(1900), "it does not wait for the repeat under way");
    assert!(ran.err.contains("sweep run --resume="), "{}", ran.err);
    assert!(
        workshop.records("latest").iter().all(|record| record["outcome"] == "measured"),
        "no half repeat is recorded"
    );
}

/// Runs the sweep of a workshop as the user `nobody`. `None` where the host refuses it namespaces.
fn run_as_nobody(workshop: &Workshop) -> Option<Ran> {
    // Where the user may go: the build folder may be closed to it.
    let program = workshop.path().join("sweep");
    std::fs::copy(PROGRAM, &program).expect("copied");
    for path in [workshop.path(), &program] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, mode).expect("opened");
    }
    let output = Command::new(&program)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml"])
        .env("HOME", workshop.path())
        .env_remove("XDG_CACHE_HOME")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("the program starts");
    let ran = Ran::from(output);
    if ran.code == Some(3) && ran.err.contains("user namespaces") {
        // C41: where the host refuses, the sysctl and the way out are named.
        assert!(ran.err.contains("sysctl") || ran.err.contains("root"), "{}", ran.err);
        eprintln!("SKIPPED: this host refuses user namespaces to ordinary users");
        return None;
    }
    Some(ran)
}

#[test]
fn an_ordinary_user_measures_natively() {
    if !root_or_skip("an_ordinary_user_measures_natively, which becomes `nobody`,") {
        return;
    }
    let workshop = Workshop::new(SHORT);
    let Some(ran) = run_as_nobody(&workshop) else { return };
    ran.expect(0);
    let all = records(&workshop.path().join("results/latest"));
    assert_eq!(all.len(), 8);
    for record in all {
        assert_eq!((record["outcome"].as_str(), record["machine"].as_str()), (Some("measured"), Some("native")));
        if record["axes"]["rcvbuf"] == 32768 {
            for end in ["client", "server"] {
                assert_eq!(record[end]["rcvbuf"]["initial"], 65536);
                assert_eq!(record[end]["rcvbuf"]["final"], 65536);
            }
        }
    }
}

/// C06: in a user namespace `SO_RCVBUFFORCE` is refused (EPERM), also to the root of that namespace. The cell is skipped with the reason, and
/// those beside it are measured (crun#598, quic-go#3795). Allowed it is in `tests/sockets/options.rs`.
#[test]
fn a_forced_buffer_is_skipped_in_a_user_namespace() {
    if !root_or_skip("a_forced_buffer_is_skipped_in_a_user_namespace, which becomes `nobody`,") {
        return;
    }
    let workshop = Workshop::new(
        "name = \"force\"\n[run]\nrepeat = 1\n[kernel]\nimage = \"host\"\n[axes]\n\"socket.client.rcvbuf_force\" = [\"default\", \"16MiB\"]\n",
    );
    let Some(ran) = run_as_nobody(&workshop) else { return };
    ran.expect(0);
    let all = records(&workshop.path().join("results/latest"));
    let (forced, usual): (Vec<_>, Vec<_>) =
        all.iter().partition(|record| record["axes"]["socket.client.rcvbuf_force"] != "default");
    assert_eq!((forced.len(), usual.len(), &usual[0]["outcome"]), (1, 1, &Value::from("measured")));
    assert_eq!(forced[0]["outcome"], "skipped", "{}", forced[0]);
    let reason = forced[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("SO_RCVBUFFORCE") && reason.contains("os error 1)"), "{reason}");
}

/// An end that is refused a buffer when the connection stands lets go of its socket. What the other end sees then is a consequence, whichever of
/// the two says so first.
#[test]
fn a_buffer_that_is_refused_after_the_handshake_is_the_reason_every_time() {
    if !root_or_skip("a_buffer_that_is_refused_after_the_handshake_is_the_reason_every_time, which becomes `nobody`,") {
        return;
    }
    let workshop = Workshop::new(
        "name = \"late\"\n[run]\nrepeat = 20\n[kernel]\nimage = \"host\"\n[placement]\nclient_cpu = 0\nserver_cpu = 0\n[socket]\nset_at = \"after\"\n[socket.client]\nrcvbuf_force = 100000\n",
    );
    let Some(ran) = run_as_nobody(&workshop) else { return };
    ran.expect(3);
    let records = records(&workshop.path().join("results/latest"));
    assert_eq!(records.len(), 20);
    for record in records {
        assert_eq!(record["outcome"], "skipped", "{record}");
        assert!(record["reason"].as_str().is_some_and(|reason| reason.contains("SO_RCVBUFFORCE")), "{record}");
    }
}

#[test]
fn cells_at_once_are_all_measured_and_the_run_says_what_that_does() {
    if !root_or_skip("cells_at_once_are_all_measured_and_the_run_says_what_that_does") {
        return;
    }
    let workshop = Workshop::new(SHORT);
    workshop.run(&["run", "sweep.toml", "-j", "3"]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(repeats(&records).len(), 8);
    assert!(records.iter().all(|record| record["outcome"] == "measured"), "{records:?}");
    let manifest = std::fs::read_to_string(workshop.path().join("results/latest/manifest.json")).expect("a manifest");
    assert!(manifest.contains("3 cells at once"), "{manifest}");
}

#[test]
fn two_runs_at_once_never_collide() {
    let workshops = [Workshop::new(SHORT), Workshop::new(SHORT)];
    let children = workshops.each_ref().map(|workshop| {
        Command::new(PROGRAM)
            .current_dir(workshop.path())
            .args(["run", "sweep.toml", "--quiet", "--repeat", "8"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts")
    });
    for mut child in children {
        assert_eq!(child.wait().expect("ends").code(), Some(0));
    }
    for workshop in &workshops {
        assert!(workshop.records("latest").iter().all(|record| record["outcome"] == "measured"));
    }
}

#[test]
fn one_run_cannot_be_resumed_twice_at_once() {
    let workshop = Workshop::new(LONG);
    let mut first = Command::new(PROGRAM)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml", "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let manifest = workshop.path().join("results/latest/manifest.json");
    while !manifest.exists() {
        thread::sleep(Duration::from_millis(2));
    }
    let ran = workshop.run(&["run", "--resume"]).expect(2);
    assert!(ran.err.contains("results"), "{}", ran.err);
    assert_eq!(first.wait().expect("ends").code(), Some(0));
    assert_eq!(workshop.records("latest").len(), 12);
}

#[test]
fn a_missing_protocol_is_skipped_natively_with_what_to_do() {
    let workshop = Workshop::new(SHORT);
    let ran = workshop.run(&["run", "sweep.toml", "--set", "workload.protocol=sctp", "--set", "kernel.image=host"]);
    for record in workshop.records("latest") {
        match record["outcome"].as_str().expect("an outcome") {
            "measured" => {}
            outcome => {
                assert_eq!((outcome, ran.code), ("skipped", Some(3)));
                let reason = record["reason"].as_str().expect("a reason");
                assert!(reason.starts_with("no SCTP in this kernel") && reason.contains("kernel.image"), "{reason}");
            }
        }
    }
}

#[test]
fn doctor_tells_what_to_do_about_each_no() {
    let workshop = Workshop::new("");
    let ran = workshop.run(&["doctor", "--json"]).expect(0);
    let findings: Vec<Value> = serde_json::from_str(&ran.out).expect("JSON");
    assert!(findings.len() >= 10);
    for finding in findings {
        assert_eq!(finding["works"] == false, finding["remedy"].is_string(), "{finding}");
    }
}

#[test]
fn doctor_tells_whether_packets_can_be_captured() {
    let workshop = Workshop::new("");
    let captures = |out: &str| {
        let findings: Vec<Value> = serde_json::from_str(out).expect("JSON");
        let found = |what: &str| findings.iter().find(|finding| finding["what"] == what).cloned();
        (found("captures").expect("a line"), found("loopback").expect("a line"))
    };
    let (finding, loopback) = captures(&workshop.run(&["doctor", "--json"]).expect(0).out);
    if loopback["works"] == false {
        eprintln!("SKIPPED: no cell runs natively here");
        return;
    }
    assert!(finding["works"] == true && finding["seen"].to_string().contains("CAP_NET_RAW"), "{finding}");

    // As root in a container that was not given the capability.
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw", PROGRAM, "doctor", "--json"]);
    let ran = without.current_dir(workshop.path()).output().expect("setpriv, which is part of util-linux");
    if !ran.status.success() {
        eprintln!("SKIPPED: only root can give a capability up");
        return;
    }
    let (finding, loopback) = captures(&String::from_utf8_lossy(&ran.stdout));
    assert_eq!(loopback["works"], true, "only captures want it: {loopback}");
    assert!(finding["works"] == false && finding["seen"].to_string().contains("no packet socket"), "{finding}");
    assert!(finding["remedy"].to_string().contains("CAP_NET_RAW"), "{finding}");
}
