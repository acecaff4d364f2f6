//! Timers that ran out, and acknowledgements that were waited for.

use serde_json::Value;

use crate::{run, run_within};

/// The four rows of the report that started this (`gen_sctp` of Erlang/OTP, erlang/otp#9722).
#[test]
fn an_sctp_burst_is_explained_row_by_row() {
    let cells = run(r#"
image = "debian:6.12"
[link]
topology = "loopback"
[workload]
protocol = "sctp"
style = "one-to-many"
[socket]
sndbuf = "64KiB"
[axes]
rcvbuf = [1024, "64KiB"]
nodelay = [false, true]
"#);
    for nodelay in ["false", "true"] {
        let place = format!("1024 {nodelay}");
        assert!(cells.says(&place, "raised-to-the-minimum").contains("1 KiB asked, raised to 2304 bytes"));
        let expired = cells.number(&place, "/client/evidence/counters/SctpT3RtxExpireds");
        let said = cells.says(&place, "sctp-retransmission-timeout");
        assert!(said.starts_with(&format!("{expired} retransmission timers (T3-rtx) ran out")), "{said}");
        // What the silences do not account for is less than a twentieth.
        let completion = cells.number(&place, "/completion_ns");
        let silent = cells.number(&place, "/client/evidence/silences/sum_ns");
        assert!(silent * 20 > completion * 19, "{silent} of {completion}");
        assert!(cells.says(&place, "burst-beyond-the-window").contains("found no room in its receive buffer"));
        cells.says(&place, "zero-window");
    }
    let said = cells.says("65536 false", "delayed-sack-with-nagle");
    assert!(said.contains("(200 ms, net.sctp.sack_timeout): 1 time nothing arrived meanwhile"), "{said}");
    cells.silent("65536 false", "sctp-retransmission-timeout");
    cells.silent("65536 false", "burst-beyond-the-window");
    // That chunks share packets there is what the algorithm does, and no second thing to tell.
    cells.silent("65536 false", "bundled");
    cells.nothing("65536 true");
}

/// C25 (usrsctp#492, pion/sctp#37): a stall that outlasts its timeout is bounded by it, and its raw record shows the timer's steps.
#[test]
fn a_stall_that_outlasts_its_timeout_is_explained_too() {
    let cells = run_within(
        "6s",
        3,
        r#"
[link]
topology = "loopback"
[workload]
protocol = "sctp"
[socket]
sndbuf = "64KiB"
[axes]
rcvbuf = [1024, "64KiB"]
"#,
    );
    assert_eq!(cells.at("1024").record["outcome"], "timed-out");
    assert!(cells.at("1024").record["completion_ns"].is_null());
    let said = cells.says("1024", "sctp-retransmission-timeout");
    assert!(said.contains("nothing arrived meanwhile"), "{said}");
    let longest = cells.number("1024", "/client/evidence/silences/longest_ns/0");
    assert!((950_000_000..4_100_000_000).contains(&longest), "a step of the timer: {longest}");
    assert_eq!(cells.at("65536").record["outcome"], "measured");
    cells.silent("65536", "sctp-retransmission-timeout");
}

/// C12 (iperf#198, iperf#970): what moves no more at a round trip of 300 ms is an outcome with its cause, not a zero.
#[test]
fn a_transfer_that_stands_still_is_an_outcome_with_its_cause() {
    let cells = run_within(
        "12s",
        3,
        r#"
[workload]
kind = "stream"
bytes = "1MiB"
direction = "upload"
[link]
delay = "150ms"
gso_max_segs = 1
[axes]
"link.client.loss" = ["0%", "25%", "30%", "35%"]
"#,
    );
    // Which segments are lost is chance that another build of the program throws anew: the first of a handshake may all be, or never one that
    // was sent again, without which no timer runs out. So several are tried.
    let lossy = ["25%", "30%", "35%"];
    for loss in lossy {
        let stalled = &cells.at(loss).record;
        assert_eq!((&stalled["outcome"], &stalled["goodput_bps"]), (&"timed-out".into(), &Value::Null));
        assert!(stalled["delivered_bytes"].as_u64() < Some(1 << 20), "{}", stalled["delivered_bytes"]);
    }
    let said = |loss: &&str| cells.at(loss).findings.contains_key("tcp-retransmission-timeout");
    assert!(lossy.iter().any(said), "{:?}", lossy.map(|loss| &cells.at(loss).findings));
    assert_eq!(cells.at("0%").record["outcome"], "measured");
    cells.silent("0%", "tcp-retransmission-timeout");
    cells.silent("0%", "retransmissions");
}

/// C17 (laurus#732, tower-grpc#149) and C18 (foundationdb#2008): two writes and a read with Nagle's algorithm wait for a delayed
/// acknowledgement; one write does not, and nothing is to be said of it.
#[test]
fn two_writes_wait_for_a_delayed_acknowledgement_and_one_does_not() {
    let cells = run(r#"
[workload]
chunk_count = 24
[axes]
"workload.protocol" = ["tcp", "mptcp"]
"workload.pattern" = ["write-read", "write-write-read"]
nodelay = [false, true]
"#);
    for protocol in ["tcp", "mptcp"] {
        let waits = format!("{protocol} write-write-read false");
        let said = cells.says(&waits, "delayed-ack-with-nagle");
        assert!(said.contains("(40.0 ms, at least)"), "{said}");
        // The timer of 40 ms runs out at a tick of this kernel's 4 ms.
        assert_eq!(cells.number(&waits, "/client/evidence/tick_ns"), 4_000_000);
        let said = cells.says(&waits, "jiffy-bound");
        assert!(said.contains("is 11 ticks of this kernel's timer (4.00 ms each, 250 a second)"), "{said}");
        for nothing in ["write-read false", "write-read true", "write-write-read true"] {
            cells.nothing(&format!("{protocol} {nothing}"));
        }
    }
}

/// C18 on a long path, where each answer takes longer than any delayed acknowledgement; and C34 (coreemu#145, firezone#13839): there and back
/// takes both delays, and over loopback the one twice.
#[test]
fn a_long_way_is_no_timer() {
    for (topology, delays) in [("veth", "delay = \"30ms\""), ("loopback", "delay = \"30ms\"")] {
        let cells = run(&format!(
            "[link]\ntopology = \"{topology}\"\n{delays}\n[workload]\npattern = \"write-read\"\nchunk_count = 10\n[axes]\n\"workload.protocol\" = [\"tcp\", \"sctp\"]\n"
        ));
        for protocol in ["tcp", "sctp"] {
            let latency = cells.number(protocol, "/chunk_latency_ns/p50");
            assert!((60_000_000..61_000_000 + 3_000_000).contains(&latency), "{topology} {protocol}: {latency}");
            cells.nothing(protocol);
        }
    }
}

/// C21 (go-diameter#225, otp#4775, otp#9652): over SCTP two writes of a request wait for the delayed SACK.
#[test]
fn two_sctp_writes_wait_for_a_delayed_sack() {
    let cells = run(r#"
[workload]
protocol = "sctp"
pattern = "write-write-read"
chunk_count = 6
[axes]
nodelay = [false, true]
"socket.sctp.sack_delay" = ["default", "100ms"]
"#);
    let said = cells.says("false default", "delayed-sack-with-nagle");
    assert!(said.starts_with("Nagle's algorithm is on") && said.contains("(200 ms, net.sctp.sack_timeout)"), "{said}");
    let said = cells.says("false 100ms", "delayed-sack-with-nagle");
    assert!(said.contains("(100 ms, sctp.sack_delay)"), "{said}");
    cells.nothing("true default");
    cells.nothing("true 100ms");
}
