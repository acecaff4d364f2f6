//! Programs of which one ends since the other did. A program's sockets, here a pipe, are closed before its end can be seen, so either may be seen to
//! end first, and more so on one processor.

mod common;

use common::Workshop;
use serde_json::Value;

/// The records of some repeats. Both programs know the pipe as `$HOME/pipe`.
fn records(server: &str, client: &str, timeout: &str, code: i32) -> Vec<Value> {
    let workshop = Workshop::new(&format!(
        r#"
name = "endings"
[run]
repeat = 12
timeout = "{timeout}"
[kernel]
image = "host"
[placement]
client_cpu = 0
server_cpu = 0
[workload]
kind = "exec"
[workload.server]
command = ["sh", "-c", 'mkfifo "$HOME/pipe"; echo ready; {server}']
ready = {{ line = "^ready$" }}
grace = "300ms"
[workload.client]
command = ["sh", "-c", '{client}']
"#
    ));
    workshop.run(&["run", "sweep.toml", "--quiet", "--no-plot"]).expect(code);
    workshop.records("latest")
}

fn reason(record: &Value) -> &str {
    record["reason"].as_str().expect("a reason")
}

#[test]
fn a_server_that_breaks_is_always_told() {
    let server = "exec 4> \"$HOME/pipe\"; sleep 0.1; exit 3";
    for record in records(server, "cat \"$HOME/pipe\"; exit 1", "5s", 3) {
        assert_eq!(record["outcome"], "failed");
        assert!(reason(&record).contains("the server ended with exit code 3"), "{}", reason(&record));
    }
}

#[test]
fn a_client_that_ends_well_is_measured_whatever_its_server_makes_of_that() {
    let client = "exec 4> \"$HOME/pipe\"; sleep 0.1; exit 0";
    for record in records("cat \"$HOME/pipe\"; exit 4", client, "5s", 0) {
        assert_eq!((&record["outcome"], &record["reason"]), (&"measured".into(), &Value::Null));
    }
}

#[test]
fn a_client_that_does_not_end_is_a_time_out_whatever_its_server_makes_of_being_left() {
    for record in records("cat \"$HOME/pipe\"; exit 4", "exec sleep 90.8 > \"$HOME/pipe\"", "300ms", 3) {
        assert_eq!(record["outcome"], "timed-out", "{}", reason(&record));
    }
}
