//! Programs of the user's as a workload, on this machine's own kernel: how they are started, overseen and ended, whatever they do, and what
//! is read from them. The programs are shell scripts, and a few lines of our own that listen and connect.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{PROGRAM, Ran, Workshop, root_or_skip};
use serde_json::{Value, json};

/// A sweep of one cell with these scripts: the server is ready when it has said so.
fn sweep(server: &str, client: &str, more: &str) -> Workshop {
    Workshop::new(&text(server, client, "ready = { line = \"^ready$\" }\ngrace = \"300ms\"", more))
}

fn text(server: &str, client: &str, of_server: &str, more: &str) -> String {
    format!(
        r#"
name = "programs"
[run]
repeat = 1
timeout = "5s"
[kernel]
image = "host"
[workload]
kind = "exec"
[workload.server]
command = ["sh", "-c", '{server}']
{of_server}
[workload.client]
command = ["sh", "-c", '{client}']
{more}
"#
    )
}

/// A server that does what it should.
const GOOD: &str = "echo ready; exec sleep 100";

/// The one record of a run.
fn only(workshop: &Workshop, code: i32) -> Value {
    workshop.run(&["run", "sweep.toml", "--quiet", "--no-plot"]).expect(code);
    let mut records = workshop.records("latest");
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn reason(record: &Value) -> &str {
    record["reason"].as_str().expect("a reason")
}

/// Processes with this text in their command line.
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(text)).collect()
}

/// Waits until no process has this text in its command line.
fn are_gone(text: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !processes_with(text).is_empty() {
        assert!(Instant::now() < deadline, "still there: {:?}", processes_with(text));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_clients_life_is_the_completion_and_numbers_are_read() {
    let metrics = r#"
[[workload.metric]]
name = "level"
unit = "dB"
better = "higher"
regex = '^level ([0-9.]+)$'
[[workload.metric]]
name = "seen"
better = "lower"
from = "server"
regex = 'saw (\d+)'
"#;
    let server = r#"echo ready >&2; trap "echo saw 3; exit 7" TERM; while :; do sleep 0.02; done"#;
    let client = "echo level 1; sleep 0.2; echo level 12.5";
    let workshop = sweep(server, client, metrics);
    let record = only(&workshop, 0);
    assert_eq!(record["outcome"], "measured");
    let completion = record["completion_ns"].as_u64().expect("a completion");
    assert!((200_000_000..2_000_000_000).contains(&completion), "{completion}");
    assert_eq!(record["goodput_bps"], Value::Null, "nobody said so");
    assert_eq!(record["metrics"]["level"], json!({"value": 12.5, "unit": "dB", "better": "higher"}));
    assert_eq!(record["metrics"]["seen"]["value"], 3.0, "what a server says when it ends counts");
    let [client, server] = ["client", "server"].map(|end| &record[end]["program"]);
    assert_eq!((&client["exit_code"], &client["stdout"]["head"]), (&json!(0), &json!("level 1\nlevel 12.5\n")));
    assert_eq!(server["exit_code"], 7, "after a signal no code is asked for");
    assert!(server["stderr"]["head"].as_str().is_some_and(|text| text.starts_with("ready\n")));
    assert!(server["ready_ns"].as_u64().is_some_and(|ns| ns > 0));
    assert!(record["client"]["cpu_user_ns"].is_u64());
    let shown = workshop.run(&["show", "results/latest"]).expect(0).out;
    assert!(shown.contains("level") && shown.contains("12.50 dB"), "{shown}");
    let cell = workshop.run(&["show", "results/latest", record["cell"].as_str().expect("an id")]).expect(0).out;
    assert!(cell.contains("level: median 12.50 dB, 12.50 dB to 12.50 dB, of 1 (higher is better)"), "{cell}");
    assert!(cell.contains("sh -c 'echo level 1; sleep 0.2; echo level 12.5', exit code 0"), "{cell}");
    let csv = std::fs::read_to_string(workshop.path().join("results/latest/summary.csv")).expect("a file");
    assert!(csv.contains("metric_level_median,metric_level_min,metric_level_max,metric_level_unit"), "{csv}");
    assert!(csv.contains(",12.5,12.5,12.5,dB,3,3,3,,"), "{csv}");
}

#[test]
fn a_completion_and_a_goodput_can_be_read_too() {
    let client = r#"echo "{{\"time\": 1.25, \"rate\": [2, \"40.5\"]}}""#;
    let metrics = r#"
[[workload.metric]]
name = "took"
is = "completion"
unit = "ms"
json = "/time"
[[workload.metric]]
name = "rate"
is = "goodput"
unit = "Mbit/s"
json = "/rate/1"
"#;
    let record = only(&sweep(GOOD, client, metrics), 0);
    assert_eq!((&record["completion_ns"], &record["goodput_bps"]), (&json!(1_250_000), &json!(40_500_000)));
    assert_eq!(record.get("metrics"), None, "they stand where such figures stand");
}

#[test]
fn a_number_that_is_not_printed_fails_the_repeat() {
    let metric = "[[workload.metric]]\nname = \"level\"\nbetter = \"lower\"\nregex = 'level (\\d+)'\n";
    let record = only(&sweep(GOOD, "echo hello; echo bye", metric), 3);
    assert_eq!(record["outcome"], "failed");
    assert!(reason(&record).starts_with("no metric `level`: nothing that was printed matches"), "{record}");
    assert!(reason(&record).ends_with("its last lines: hello | bye"), "{}", reason(&record));
    assert_eq!(record["metrics"]["level"]["value"], Value::Null);
    assert!(record["metrics"]["level"]["reason"].is_string(), "null says why");
}

#[test]
fn values_addresses_and_folders_stand_in_commands() {
    let file = r#"
name = "templates"
[run]
repeat = 1
[kernel]
image = "host"
[workload]
kind = "exec"
port = 4000
files = ["data.txt"]
[workload.server]
command = ["sh", "-c", 'echo ready; exec sleep 100']
ready = { line = "ready" }
[workload.client]
command = ["./show", "{rcvbuf}", "{{}}", "{server_addr}:{port}", "{client_addr}", ["-w", "{window}"], ["-N", "{nodelay}"]]
env = { NAGLE = "x{nodelay}", GONE = "{var.window}" }
[axes]
rcvbuf = ["64KiB"]
nodelay = [true]
"var.window" = ["64 K", "default"]
"#;
    let workshop = Workshop::new(file);
    let script =
        "#!/bin/sh\nfor word; do echo \"<$word>\"; done\necho $NAGLE ${GONE-unset} $HOME; pwd; ls /sys/class/net\n";
    let path = workshop.path().join("show");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let checked = workshop.run(&["check", "sweep.toml"]).expect(0).out;
    assert!(
        checked.contains("client  'GONE=64 K' NAGLE=xtrue ./show 65536 {{}} {server_addr}:4000 {client_addr} -w '64 K' -N true  (1 cell)"),
        "{checked}"
    );
    workshop.run(&["run", "sweep.toml", "--quiet", "--no-plot"]).expect(0);
    let records = workshop.records("latest");
    assert_eq!(records.len(), 2);
    for record in records {
        let program = &record["client"]["program"];
        let lines: Vec<&str> = program["stdout"]["head"].as_str().expect("a text").lines().collect();
        let group = if record["axes"]["var.window"] == "default" { [].as_slice() } else { &["<-w>", "<64 K>"] };
        let begin = ["<65536>", "<{}>", "<198.18.0.1:4000>", "<198.18.0.2>"];
        let words: Vec<&str> = [&begin, group, &["<-N>", "<true>"]].concat();
        assert_eq!(lines[..words.len()], words, "{lines:?}");
        let rest = &lines[words.len()..];
        let gone = if group.is_empty() { "unset" } else { "64 K" };
        let scratch = rest[1];
        assert_eq!(rest[0], format!("xtrue {gone} {scratch}"));
        assert!(scratch.contains("sweep-") && !Path::new(scratch).exists(), "removed: {scratch}");
        assert!(rest.contains(&"lo") && rest.len() <= 6, "/sys is its namespace's: {rest:?}");
        assert_eq!(program["command"][0], json!(workshop.path().join("./show").display().to_string()));
    }
}

#[test]
fn a_server_is_ready_when_it_listens_or_after_a_time() {
    let after = text("exec sleep 100", "true", "ready = { after = \"150ms\" }", "");
    let record = only(&Workshop::new(&after), 0);
    let ready = record["server"]["program"]["ready_ns"].as_u64().expect("a time");
    assert!((150_000_000..1_500_000_000).contains(&ready), "{ready}");
    let never = text("echo hello; exec sleep 100", "true", "ready_timeout = \"200ms\"", "");
    let record = only(&Workshop::new(&never), 3);
    assert_eq!(
        reason(&record),
        "the server was not ready after 200 ms: nothing listens on tcp port 7001 in its namespace; its last lines: hello"
    );
}

#[test]
fn what_ends_too_early_says_how() {
    for (server, client, part) in [
        (
            "echo oops >&2; exit 4",
            "true",
            "the server ended with exit code 4 before it was ready; its last lines: oops",
        ),
        ("exit 0", "true", "the server ended with exit code 0 before it was ready; it printed nothing"),
        (
            "echo ready; sleep 0.2; echo bad; exit 5",
            "sleep 3",
            "the server ended with exit code 5 before the client did; its last lines: ready | bad",
        ),
        (GOOD, "echo a; echo b >&2; exit 3", "the client ended with exit code 3; its last lines: b"),
        (GOOD, "kill -9 $$", "the client was ended by signal 9; it printed nothing"),
    ] {
        let begun = Instant::now();
        let record = only(&sweep(server, client, ""), 3);
        assert_eq!((record["outcome"].as_str(), reason(&record)), (Some("failed"), part));
        assert!(begun.elapsed() < Duration::from_secs(3), "the other is not waited for");
        assert_eq!(record["completion_ns"], Value::Null);
    }
    let workshop = Workshop::new(
        &text(GOOD, "exit 3", "ready = { line = \"ready\" }", "").replace("'exit 3']", "'exit 3']\nsuccess = [3]"),
    );
    assert_eq!(only(&workshop, 0)["client"]["program"]["exit_code"], 3);
}

#[test]
fn a_client_that_does_not_end_is_a_time_out_and_gone() {
    let workshop = sweep(GOOD, "echo begun; sleep 98.7", "");
    let begun = Instant::now();
    workshop.run(&["run", "sweep.toml", "--quiet", "--no-plot", "--set", "run.timeout=700ms"]).expect(3);
    assert!(begun.elapsed() < Duration::from_secs(4));
    let record = &workshop.records("latest")[0];
    assert_eq!(record["outcome"], "timed-out");
    assert!(reason(record).ends_with("the client had not ended; its last lines: begun"), "{record}");
    assert_eq!(record["client"]["program"]["stdout"]["head"], "begun\n", "what it printed is kept");
    are_gone("sleep 98.7");
}

#[test]
fn a_server_that_ignores_signals_is_killed() {
    let server = "trap \"\" TERM INT; echo ready; while :; do sleep 97.6; done";
    let record = only(&sweep(server, "true", ""), 0);
    assert_eq!(record["server"]["program"]["signal"], 9);
    assert_eq!(record["remarks"], json!(["the server did not end within 300 ms of SIGTERM and was killed"]));
    are_gone("sleep 97.6");
}

#[test]
fn what_goes_to_the_background_is_ended_with_the_repeat_and_told() {
    let daemon = "(setsid sh -c \"exec sleep 96.5\" > /dev/null 2>&1 &) ; echo ready; exec sleep 100";
    let record = only(&sweep(daemon, "setsid sleep 95.4 & sleep 0.3", ""), 0);
    assert_eq!(record["server"]["program"]["left_behind"], json!(["sleep"]));
    assert_eq!(
        record["remarks"],
        json!([
            "the client left a process behind (sleep), ended with the repeat",
            "the server left a process behind (sleep), ended with the repeat"
        ])
    );
    are_gone("sleep 96.5");
    are_gone("sleep 95.4");
}

#[test]
fn a_flood_neither_blocks_nor_fills_anything() {
    let flood = "echo first; yes 0123456789abcdef | head -c 40000000; echo last";
    let begun = Instant::now();
    let workshop = sweep("echo ready; yes flooooood", flood, "");
    let record = only(&workshop, 0);
    assert!(begun.elapsed() < Duration::from_secs(20));
    let stdout = &record["client"]["program"]["stdout"];
    assert_eq!(stdout["bytes"], 40_000_000 + 6 + 5);
    assert!(stdout["head"].as_str().is_some_and(|head| head.starts_with("first\n0123") && head.len() == 4096));
    assert!(stdout["tail"].as_str().is_some_and(|tail| tail.ends_with("last\n") && tail.len() == 12288));
    assert_eq!(stdout["left_out_bytes"], 40_000_011 - 4096 - 12288);
    assert!(record["server"]["program"]["stdout"]["bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000));
    let stored = std::fs::metadata(workshop.path().join("results/latest/records.jsonl")).expect("a file").len();
    assert!(stored < 100_000, "{stored}");
}

#[test]
fn what_is_not_installed_is_skipped_with_its_package() {
    let file = text(GOOD, "true", "ready = { line = \"ready\" }", "package = \"no-such-package\"")
        .replace("command = [\"sh\", \"-c\", 'true']", "command = [\"no-such-program\"]");
    let workshop = Workshop::new(&file);
    let record = only(&workshop, 3);
    assert_eq!(record["outcome"], "skipped", "{record}");
    assert_eq!(reason(&record), "`no-such-program` is not installed here: install the package `no-such-package`");
    let checked = workshop.run(&["check", "sweep.toml"]).expect(0).out;
    assert!(checked.contains("missing `no-such-program` is not installed here"), "{checked}");
}

#[test]
fn a_server_may_end_by_itself_and_must_if_it_says_so() {
    let own = "ready = { line = \"ready\" }\nstop = \"itself\"\ngrace = \"300ms\"";
    let server = "echo ready; while ! test -e \"$HOME/done\"; do sleep 0.02; done; echo ended";
    let workshop = Workshop::new(&text(server, "touch \"$HOME/done\"", own, ""));
    let record = only(&workshop, 0);
    assert_eq!(record["server"]["program"]["stdout"]["head"], "ready\nended\n");
    assert_eq!(record["server"]["program"]["exit_code"], 0);
    let record = only(&Workshop::new(&text(GOOD, "true", own, "")), 3);
    assert!(reason(&record).starts_with("the server did not end by itself within 300 ms"), "{record}");
}

#[test]
fn programs_die_with_the_program_that_started_them() {
    let server = "(setsid sleep 94.3 &) ; echo ready; exec sleep 93.2";
    let workshop = sweep(server, "sleep 92.1", "");
    let mut child = Command::new(PROGRAM)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml", "--quiet", "--set", "run.timeout=60s"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    while processes_with("sleep 92.1").is_empty() {
        assert!(Instant::now() < deadline, "the client never ran");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!processes_with("sleep 94.3").is_empty());
    child.kill().expect("killed with SIGKILL");
    child.wait().expect("gone");
    for sleeper in ["sleep 92.1", "sleep 93.2", "sleep 94.3"] {
        are_gone(sleeper);
    }
}

#[test]
fn an_ordinary_user_runs_programs_too() {
    use std::os::unix::process::CommandExt;
    if !root_or_skip("an_ordinary_user_runs_programs_too, which becomes `nobody`,") {
        return;
    }
    let workshop = sweep("(setsid sleep 91.9 &) ; echo ready; exec sleep 100", "ls /sys/class/net; id -u", "");
    let program = workshop.path().join("sweep");
    std::fs::copy(PROGRAM, &program).expect("copied");
    for path in [workshop.path(), &program] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, mode).expect("opened");
    }
    let output = Command::new(&program)
        .current_dir(workshop.path())
        .args(["run", "sweep.toml", "--quiet", "--no-plot"])
        .env("HOME", workshop.path())
        .env_remove("XDG_CACHE_HOME")
        .uid(65534)
        .gid(65534)
        .output()
        .expect("the program starts");
    Ran::from(output).expect(0);
    let record = &workshop.records("latest")[0];
    let printed = record["client"]["program"]["stdout"]["head"].as_str().expect("a text");
    assert!(printed.ends_with("\n65534\n"), "{printed}");
    assert_eq!(record["server"]["program"]["left_behind"], json!(["sleep"]));
    are_gone("sleep 91.9");
}

/// Changes the manifest of a run.
fn edit_manifest(run: &Path, change: impl Fn(&mut Value)) {
    let file = run.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("a manifest");
    change(&mut manifest);
    std::fs::write(file, manifest.to_string()).expect("written");
}

#[test]
fn a_run_is_taken_up_again_without_its_file_being_named_while_that_is_as_it_was() {
    let workshop = sweep(GOOD, "true", "");
    only(&workshop, 0);
    let run = workshop.path().join("results/latest");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("manifest.json")).expect("read")).expect("a manifest");
    assert!(manifest["programs"]["sh"].as_str().is_some_and(|digest| digest.len() == 64), "{manifest}");
    let more = ["run", "--more", "results/latest", "--repeat", "2", "--quiet", "--no-plot"];
    workshop.run(&more).expect(0);
    assert_eq!(workshop.records("latest").len(), 3);
    edit_manifest(&run, |manifest| manifest["finished"] = Value::Null);
    workshop.run(&["run", "--resume", "--quiet", "--no-plot"]).expect(0);

    let file = workshop.path().join("sweep.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, format!("# a comment\n{text}")).expect("written");
    let refused = workshop.run(&more).expect(2).err;
    assert!(refused.contains("`results/latest` cannot have more repeats: its sweep runs programs"), "{refused}");
    let changed = format!("`{}`, has changed since the run: put it back as it was", file.display());
    assert!(refused.contains(&changed), "{refused}");
    let refused = workshop.run(&["run", "--resume", "--quiet"]).expect(2).err;
    assert!(
        refused.contains(&changed) && refused.contains("sweep run sweep.toml --resume=results/latest"),
        "{refused}"
    );
    workshop.run(&["run", "sweep.toml", "--resume", "--quiet", "--no-plot"]).expect(0);
    std::fs::remove_file(&file).expect("removed");
    let refused = workshop.run(&more).expect(2).err;
    assert!(refused.contains(&format!("`{}`, is gone (No such file", file.display())), "{refused}");
}

#[test]
fn another_program_by_the_same_name_does_not_belong_into_a_run() {
    use std::os::unix::fs::PermissionsExt;
    let workshop = Workshop::new(
        &text(GOOD, "true", "ready = { line = \"ready\" }", "").replace("[\"sh\", \"-c\", 'true']", "[\"./client\"]"),
    );
    let client = workshop.path().join("client");
    std::fs::write(&client, "#!/bin/sh\n").expect("written");
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).expect("executable");
    only(&workshop, 0);
    let more = ["run", "--more", "results/latest", "--repeat", "1", "--quiet", "--no-plot"];
    let resume = ["run", "sweep.toml", "--resume", "--quiet", "--no-plot"];
    workshop.run(&more).expect(0);
    std::fs::write(&client, "#!/bin/sh\nsleep 0.1\n").expect("written");
    for again in [&more[..], &resume] {
        let refused = workshop.run(again).expect(2).err;
        assert!(
            refused.contains("`./client` or what it needs: was ") && refused.contains("(--allow program)"),
            "{refused}"
        );
        assert!(!refused.contains("`sh`"), "{refused}");
    }
    workshop.run(&[&more[..], &["--allow", "program"]].concat()).expect(0);
    assert_eq!(workshop.records("latest").len(), 3);
}

/// What somebody writes into a manifest.
type Forge<'a> = &'a dyn Fn(&mut Value);

#[test]
fn a_run_that_somebody_else_made_runs_nothing() {
    let workshop = sweep(GOOD, "true", "");
    only(&workshop, 0);
    let run = workshop.path().join("results/latest");
    let (trap, original) = (workshop.path().join("trap"), std::fs::read(run.join("manifest.json")).expect("read"));
    let evil = text(GOOD, &format!("touch {}", trap.display()), "ready = { line = \"^ready$\" }", "");
    std::fs::write(run.join("evil.toml"), &evil).expect("written");
    let real = std::fs::canonicalize(&run).expect("a folder");
    let attempts: [(&str, Forge<'_>); 3] = [
        ("not those of the file (workload.client)", &|manifest| {
            manifest["sweep"]["resolved"]["exec"]["client"]["command"] = json!(["touch", trap]);
        }),
        ("has changed since the run", &|manifest| {
            manifest["sweep"]["source"] = json!(evil);
            manifest["sweep"]["resolved"]["exec"]["client"]["command"] = json!(["touch", trap]);
        }),
        ("lies in the run's own folder", &|manifest| {
            manifest["sweep"]["source"] = json!(evil);
            manifest["sweep"]["path"] = json!("evil.toml");
            manifest["sweep"]["resolved"]["exec"]["dir"] = json!(real);
            manifest["sweep"]["resolved"]["exec"]["client"]["command"] = json!(["touch", trap]);
        }),
    ];
    for (why, forge) in attempts {
        for finished in [true, false] {
            std::fs::write(run.join("manifest.json"), &original).expect("written");
            edit_manifest(&run, |manifest| {
                forge(manifest);
                if !finished {
                    manifest["finished"] = Value::Null;
                }
            });
            let again: &[&str] =
                if finished { &["run", "--more=results/latest", "--repeat", "1"] } else { &["run", "--resume"] };
            let refused = workshop.run(again).expect(2).err;
            assert!(refused.contains(why), "{why}: {refused}");
        }
    }
    assert!(!trap.exists());
}

#[test]
fn a_file_of_another_users_runs_nothing_unless_that_user_called_sudo() {
    if !root_or_skip("a_file_of_another_users_runs_nothing_unless_that_user_called_sudo") {
        return;
    }
    let workshop = sweep(GOOD, "true", "");
    only(&workshop, 0);
    std::os::unix::fs::chown(workshop.path().join("sweep.toml"), Some(65534), None).expect("given away");
    let more = |caller: &str| {
        let mut command = workshop.command(&["run", "--more=results/latest", "--repeat", "1", "--quiet", "--no-plot"]);
        Ran::from(command.env("SUDO_UID", caller).output().expect("it starts"))
    };
    let refused = more("65533").expect(2).err;
    assert!(refused.contains("sweep.toml`, belongs to another user (65534): run the sweep from a copy"), "{refused}");
    more("65534").expect(0);
}
