//! Guests for real: a kernel with SCTP in virtual time, and in real time each way in which a guest can be lost.
//!
//! They need QEMU, and fetch a kernel where the store has none; `scripts/setup` installs what is missing.

mod common;

use common::Workshop;
use serde_json::Value;

const SCTP: &str = r#"
name = "sctp"
[run]
repeat = 1
timeout = "180s"
[kernel]
clock = "virtual"
[link]
topology = "loopback"
[workload]
protocol = "sctp"
style = "one-to-many"
[axes]
rcvbuf = [1024, "64KiB"]
sndbuf = ["64KiB"]
nodelay = [false, true]
"#;

/// Three TCP cells in one guest in real time.
const FAULTY: &str = r#"
name = "faulty"
[run]
repeat = 1
timeout = "3s"
order = "listed"
[kernel]
image = "auto"
clock = "real"
[axes]
"kernel.image" = []
chunk_count = [1, 2, 3]
"#;

/// The newest kernel of the store, fetched first where there is none: real-time guests of the tests run it.
fn kernel() -> String {
    let workshop = Workshop::new("");
    let list =
        || -> Value { serde_json::from_str(&workshop.run(&["kernel", "list", "--json"]).expect(0).out).expect("JSON") };
    let newest = |list: Value| list["kernels"].as_array().and_then(|kernels| kernels.last().cloned());
    let kernel = newest(list()).unwrap_or_else(|| {
        workshop.run(&["kernel", "add", "debian:6.1"]).expect(0);
        newest(list()).expect("a kernel")
    });
    kernel["image"].as_str().expect("an image").to_owned()
}

/// The reference figures of the first report, in shape.
#[test]
fn the_sctp_report_is_reproduced_in_virtual_time() {
    let workshop = Workshop::new(SCTP);
    workshop.run(&["run", "sweep.toml", "--fresh"]).expect(0);
    let records = workshop.records("latest");
    let completion = |rcvbuf: u64, nodelay: bool| {
        let record = records
            .iter()
            .find(|record| record["axes"]["rcvbuf"] == rcvbuf && record["axes"]["nodelay"] == nodelay)
            .expect("a record");
        assert_eq!(record["clock"], "virtual");
        assert_eq!(record["machine"], "guest:tcg");
        let given = if rcvbuf == 1024 { 2304 } else { 131_072 };
        let verdict = if rcvbuf == 1024 { "raised to the minimum" } else { "doubled" };
        for end in ["client", "server"] {
            assert_eq!(record[end]["rcvbuf"]["initial"], given, "{end}");
            assert_eq!(record[end]["rcvbuf"]["final"], given, "{end}");
            assert_eq!(record[end]["rcvbuf"]["verdict"], verdict, "{end}");
            assert_eq!(record[end]["nodelay"]["given"], nodelay, "{end}");
        }
        record["completion_ns"].as_u64().expect("a completion") / 1_000_000
    };
    assert!(completion(1024, false) > 1000, "a stall");
    assert!(completion(1024, true) > 1000, "a stall");
    assert!(completion(65536, true) < 10, "a few milliseconds");
    assert!((195..=230).contains(&completion(65536, false)), "the delayed acknowledgement");

    let explained = workshop.run(&["explain", "results/latest", "--json"]).expect(0);
    let explained: Value = serde_json::from_str(&explained.out).expect("JSON");
    let findings = |rcvbuf: u64, nodelay: bool| -> Vec<(String, String)> {
        let cells = explained["cells"].as_array().expect("cells");
        let cell = cells.iter().find(|cell| cell["axes"]["rcvbuf"] == rcvbuf && cell["axes"]["nodelay"] == nodelay);
        let findings = cell.expect("a cell")["findings"].as_array().expect("findings").clone();
        let text = |finding: &Value, name: &str| finding[name].as_str().expect("a text").to_owned();
        findings.iter().map(|finding| (text(finding, "name"), text(finding, "sentence"))).collect()
    };
    for nodelay in [false, true] {
        let stall = findings(1024, nodelay);
        assert_eq!(stall[0].0, "sctp-retransmission-timeout", "{stall:?}");
        assert!(stall[0].1.contains("net.sctp.rto_min") && stall[0].1.contains('%'), "{stall:?}");
        assert!(stall.iter().any(|(name, text)| name == "raised-to-the-minimum" && text.contains("2304")), "{stall:?}");
        assert!(stall.iter().all(|(name, _)| name != "delayed-sack-with-nagle"), "{stall:?}");
    }
    let held_back = findings(65536, false);
    assert_eq!(held_back.len(), 1, "{held_back:?}");
    assert_eq!(held_back[0].0, "delayed-sack-with-nagle");
    let said = &held_back[0].1;
    assert!(said.contains("(200 ms, net.sctp.sack_timeout)") && said.contains(" ms of the 20"), "{said}");
    assert_eq!(findings(65536, true), [], "nothing to say of the fast cell");
}

/// Runs the three cells with a fault in the second.
fn with_fault(fault: &str) -> (common::Ran, Vec<Value>) {
    let image = kernel();
    let workshop = Workshop::new(&FAULTY.replace("\"kernel.image\" = []\n", "").replace("auto", &image));
    let mut command = workshop.command(&["run", "sweep.toml"]);
    let ran = common::Ran::from(command.env("SWEEP_TEST_FAULT", fault).output().expect("the program starts"));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    (ran, workshop.records("latest"))
}

/// The second cell has failed for that reason, and the others are measured all the same.
#[track_caller]
fn only_the_second_failed(records: &[Value], reason: &str) {
    let outcomes: Vec<_> = records.iter().map(|record| record["outcome"].as_str().expect("an outcome")).collect();
    assert_eq!(outcomes, ["measured", "failed", "measured"], "{records:?}");
    let told = records[1]["reason"].as_str().expect("a reason");
    assert!(told.contains(reason), "{told}");
}

#[test]
fn a_panic_costs_one_cell_and_shows_the_console() {
    let (_, records) = with_fault("panic@1");
    only_the_second_failed(&records, "the guest's kernel panicked");
    assert!(records[1]["reason"].as_str().expect("a reason").contains("sysrq"), "the console's last lines");
}

#[test]
fn a_hang_costs_one_cell() {
    only_the_second_failed(&with_fault("hang@1").1, "the guest hangs");
}

#[test]
fn a_crash_of_the_agent_costs_one_cell() {
    only_the_second_failed(&with_fault("crash@1").1, "a fault was asked for");
}

#[test]
fn a_machine_that_goes_down_costs_one_cell() {
    only_the_second_failed(&with_fault("exit@1").1, "went down before its work was done");
}

#[test]
fn a_garbled_link_costs_one_cell() {
    only_the_second_failed(&with_fault("garble@1").1, "is no message");
}

#[test]
fn a_kernel_that_cannot_be_had_is_skipped_and_the_rest_runs() {
    let image = kernel();
    let sweep = FAULTY
        .replace("image = \"auto\"\n", "")
        .replace("\"real\"", "\"virtual\"")
        .replace("[]", &format!("[\"{image}\", \"/nowhere/vmlinuz\"]"));
    let workshop = Workshop::new(&sweep);
    let ran = workshop.run(&["run", "sweep.toml"]).expect(0);
    for record in workshop.records("latest") {
        let absent = record["axes"]["kernel.image"] == "/nowhere/vmlinuz";
        assert_eq!(record["outcome"], if absent { "skipped" } else { "measured" }, "{}", ran.err);
        assert_eq!(record["reason"].as_str().is_some_and(|reason| reason.contains("/nowhere/vmlinuz")), absent);
    }
}

#[test]
fn a_file_that_is_no_kernel_is_a_reason_not_a_crash() {
    let workshop = Workshop::new(&FAULTY.replace("\"kernel.image\" = []\n", "").replace("auto", "./no-kernel"));
    std::fs::write(workshop.path().join("no-kernel"), "not a kernel").expect("written");
    workshop.run(&["run", "sweep.toml"]).expect(3);
    for record in workshop.records("latest") {
        assert_ne!(record["outcome"], "measured");
        assert!(record["reason"].as_str().is_some_and(|reason| reason.contains("no-kernel")), "{record}");
    }
}

/// C03: buffers around the guest's limit: that of the host may be anything, and that of kernels differs (212992 before 7.x).
#[test]
fn requests_beyond_the_limit_are_clamped_and_said_so() {
    let workshop = Workshop::new(
        r#"
name = "clamp"
[run]
repeat = 1
[kernel]
clock = "virtual"
[axes]
"socket.client.rcvbuf" = ["default"]
"#,
    );
    workshop.run(&["run", "sweep.toml"]).expect(0);
    let manifest = std::fs::read(workshop.path().join("results/latest/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let limit: u64 = manifest["machines"][0]["sysctls"]["net.core.rmem_max"]
        .as_str()
        .and_then(|limit| limit.parse().ok())
        .expect("the guest's limit");
    let axis = format!("socket.client.rcvbuf={limit},{}", limit + limit / 2);
    workshop.run(&["run", "sweep.toml", "--set", &axis]).expect(0);
    for record in workshop.records("latest") {
        let client = &record["client"]["rcvbuf"];
        assert_eq!(client["initial"], 2 * limit, "more than was asked, and clamped all the same");
        let clamped = client["asked"] != limit;
        assert_eq!(client["verdict"], if clamped { "clamped by rmem_max" } else { "doubled" });
        assert_eq!(record["client"]["sndbuf"]["verdict"], "default");
        assert_eq!(record["server"]["rcvbuf"]["verdict"], "default");
    }
}
