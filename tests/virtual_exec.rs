//! Programs of the user's in a guest in virtual time: what they need comes along, what is missing is told, and a real runtime does what it was
//! reported to do.
//!
//! They need QEMU, and fetch a kernel where the store has none; `scripts/setup` installs what is missing, Erlang included.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Cache, Workshop};
use serde_json::Value;

/// Two shell scripts beside the sweep: the server is one by its first line, the client is handed to a shell.
const SCRIPTS: &str = r#"
name = "scripts"
[run]
repeat = 1
timeout = "20s"
[kernel]
clock = "virtual"
[workload]
kind = "exec"
files = ["data", "sleep", "date", "cat", "mkdir", "id", "uname"]
[workload.server]
command = ["{dir}/tools/serve", "{scratch}"]
ready = { line = "^ready$" }
[workload.client]
command = ["{program}", "{dir}/client.sh", "{dir}/data/number", "{scratch}"]
[[workload.metric]]
name = "number"
better = "higher"
regex = '^number ([0-9]+)$'
[axes]
"var.program" = ["sh", "no-such-shell"]
"#;

/// Says what a program finds in a guest, and sleeps for a second.
const CLIENT: &str = r#"
number=$(cat "$1")
echo "number $number"
echo "who $(id -un) $(id -gn)"
echo "home $HOME path $PATH"
echo x > "$2/x" && echo "scratch can be written"
( echo x > /usr/x ) 2> /dev/null || echo "files cannot be written"
( echo x > "$1" ) 2> /dev/null || echo "data cannot be written"
echo x > /dev/shm/x && echo "shared memory can be written"
read -r first < /etc/hosts && echo "hosts $first"
[ -c /dev/urandom ] && [ -c /dev/null ] || echo "there are no devices"
sleep 1
"#;

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

fn scripts(number: &str) -> Workshop {
    let workshop = Workshop::new(SCRIPTS);
    // A link on the way to the server, as to many programs.
    script(&workshop.path().join("versions/serve-2"), "#!/usr/bin/env sh\necho ready; exec sleep 1000\n");
    fs::create_dir(workshop.path().join("tools")).expect("made");
    std::os::unix::fs::symlink("../versions/serve-2", workshop.path().join("tools/serve")).expect("linked");
    fs::write(workshop.path().join("client.sh"), CLIENT).expect("written");
    fs::create_dir(workshop.path().join("data")).expect("made");
    fs::write(workshop.path().join("data/number"), number).expect("written");
    workshop
}

fn of<'a>(records: &'a [Value], program: &str) -> &'a Value {
    records.iter().find(|record| record["axes"]["var.program"] == program).expect("a record")
}

#[test]
fn scripts_and_what_they_need_come_along_and_a_missing_program_is_told() {
    // Of its own, so that nothing is known of an earlier run of this test.
    let cache = Cache::new();
    let workshop = scripts("7");
    cache.run(&workshop, &["run", "sweep.toml", "--no-plot"]).expect(0);
    let records = workshop.records("latest");
    let record = of(&records, "sh");
    assert_eq!(record["outcome"], "measured", "{}", record["reason"]);
    assert_eq!((&record["clock"], &record["machine"]), (&Value::from("virtual"), &Value::from("guest:tcg")));
    assert_eq!(record["metrics"]["number"]["value"], 7.0);
    let completion = record["completion_ns"].as_u64().expect("a completion");
    assert!((1_000_000_000..1_500_000_000).contains(&completion), "the guest's second, and the shell: {completion}");
    let printed = record["client"]["program"]["stdout"]["head"].as_str().expect("an output");
    for line in [
        "who root root",
        "path /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "scratch can be written",
        "files cannot be written",
        "data cannot be written",
        "shared memory can be written",
        "hosts 127.0.0.1 localhost",
    ] {
        assert!(printed.contains(line), "no `{line}` in:\n{printed}");
    }
    assert!(!printed.contains("no devices"), "{printed}");

    // The other cell is not measured, and breaks nothing.
    let missing = of(&records, "no-such-shell");
    assert_eq!(missing["outcome"], "skipped");
    let reason = missing["reason"].as_str().expect("a reason");
    assert!(reason.contains("`no-such-shell` is not installed here"), "{reason}");

    // The same again is known, wherever the sweep lies; with another file it is another machine.
    let reused = |workshop: &Workshop| {
        cache.run(workshop, &["run", "sweep.toml", "--no-plot"]).expect(0);
        let records = workshop.records("latest");
        let record = of(&records, "sh");
        (record["reused_from"].is_string(), record["metrics"]["number"]["value"].as_f64())
    };
    assert_eq!(reused(&scripts("7")), (true, Some(7.0)));
    assert_eq!(reused(&scripts("8")), (false, Some(8.0)));
}

/// In real time one guest runs all repeats, and each finds the files as the first did.
#[test]
fn a_guest_in_real_time_runs_programs_too() {
    let workshop = scripts("7");
    let text = SCRIPTS.replace("\"virtual\"", "\"real\"").replace("[\"sh\", \"no-such-shell\"]", "[\"sh\"]");
    // Never this machine's own.
    let image = "image = \"debian:6.1\"\nclock";
    let text = text.replace("clock", image).replace("repeat = 1", "repeat = 2");
    fs::write(workshop.path().join("sweep.toml"), text).expect("written");
    workshop.run(&["run", "sweep.toml", "--no-plot"]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(record["outcome"], "measured", "{}", record["reason"]);
        assert_eq!(record["clock"], "real");
        assert!(record["machine"].as_str().is_some_and(|machine| machine.starts_with("guest:")));
        assert_eq!(record["metrics"]["number"]["value"], 7.0);
        let printed = record["client"]["program"]["stdout"]["head"].as_str().expect("an output");
        assert!(printed.contains("data cannot be written"), "{printed}");
    }
}

#[test]
fn what_is_not_there_is_told_before_a_guest_boots() {
    let workshop = scripts("7");
    fs::remove_dir_all(workshop.path().join("data")).expect("removed");
    // Nothing at all was measured.
    let ran = workshop.run(&["run", "sweep.toml", "--no-plot"]).expect(3);
    assert!(!ran.err.contains("booting"), "{}", ran.err);
    for record in workshop.records("latest") {
        assert_eq!(record["outcome"], "skipped");
    }
    let reason = of(&workshop.records("latest"), "sh")["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.starts_with("`data`, which `files` names, is not there (there is no `"), "{reason}");
}

/// The report that started this project, by the runtime that it was reported of.
#[test]
fn erlangs_own_defaults_stall_and_a_larger_buffer_does_not() {
    let erlang = Path::new("/usr/lib/erlang").is_dir();
    if !erlang {
        eprintln!("SKIPPED: erlang-base is not installed (scripts/setup installs it)");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sweeps");
    let workshop = Workshop::new("");
    let sweep = folder.join("exec_gen_sctp.toml");
    let sweep = sweep.to_str().expect("a path");
    workshop.run(&["run", sweep, "--repeat", "1", "--fresh", "--no-plot"]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(record["outcome"], "measured", "{record}");
        let metric = |name: &str| record["metrics"][name]["value"].clone();
        let asks = record["axes"]["rcvbuf"] == 65536;
        let nodelay = record["axes"]["nodelay"] == true;
        let milliseconds = record["completion_ns"].as_u64().expect("a completion") / 1_000_000;
        let printed = record["client"]["program"]["stdout"]["head"].as_str().expect("an output");
        assert!(printed.contains(&format!("has_nodelay {nodelay}\n")), "{printed}");
        assert_eq!(metric("has_sndbuf"), 131_072.0, "the runtime asks for 65536");
        if asks {
            assert_eq!(metric("asked_recbuf"), 65536.0);
            assert_eq!(metric("has_recbuf"), 131_072.0);
            let expected = if nodelay { 0..30 } else { 195..240 };
            assert!(expected.contains(&milliseconds), "{milliseconds} ms with nodelay {nodelay}");
        } else if printed.contains("asked_recbuf 1024\n") {
            // Its default before OTP 28.
            assert_eq!(metric("has_recbuf"), 2304.0);
            assert!(milliseconds > 1000, "a stall, and not {milliseconds} ms");
        }
    }
}
