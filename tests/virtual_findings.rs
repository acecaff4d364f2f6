//! Findings in virtual time: of each a cell that must have it and one alike that must not. The cases of the field that name a cause are among
//! them (C12, C16 to C18, C21, C25, C28, C31 to C36), and those that must have none.

mod common;

use std::collections::BTreeMap;

use common::Workshop;
use serde_json::Value;

/// One cell: its only record, and the sentences of its findings by their names.
struct Cell {
    record: Value,
    findings: BTreeMap<String, String>,
}

/// The cells of a sweep, by the values of the axes joined with spaces.
struct Cells(BTreeMap<String, Cell>);

/// Runs a sweep in a guest in virtual time, once for each cell, and explains it. `code` is how `sweep run` ends.
fn run_within(timeout: &str, code: i32, sweep: &str) -> Cells {
    let head = format!("name = \"why\"\n[run]\nrepeat = 1\ntimeout = \"{timeout}\"\n[kernel]\nclock = \"virtual\"\n");
    let workshop = Workshop::new(&format!("{head}{sweep}"));
    workshop.run(&["run", "sweep.toml", "--fresh", "-j", "2"]).expect(code);
    let explained = workshop.run(&["explain", "results/latest", "--json"]).expect(0);
    let explained: Value = serde_json::from_str(&explained.out).expect("JSON");
    let mut records: BTreeMap<String, Value> =
        workshop.records("latest").into_iter().map(|record| (text(&record["cell"]), record)).collect();
    let cell = |cell: &Value| {
        let findings = cell["findings"].as_array().expect("findings").iter();
        let findings = findings.map(|finding| (text(&finding["name"]), text(&finding["sentence"]))).collect();
        let record = records.remove(&text(&cell["cell"])).expect("a record");
        (place(&record), Cell { record, findings })
    };
    Cells(explained["cells"].as_array().expect("cells").iter().map(cell).collect())
}

fn run(sweep: &str) -> Cells {
    run_within("60s", 0, sweep)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn place(record: &Value) -> String {
    let axes = record["axes"].as_object().expect("axes");
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    axes.values().map(shown).collect::<Vec<_>>().join(" ")
}

impl Cells {
    #[track_caller]
    fn at(&self, place: &str) -> &Cell {
        self.0.get(place).unwrap_or_else(|| panic!("no {place} in {:?}", self.0.keys()))
    }

    /// The sentence of a finding that must be there.
    #[track_caller]
    fn says(&self, place: &str, name: &str) -> &str {
        let Cell { findings, record } = self.at(place);
        findings.get(name).unwrap_or_else(|| panic!("{place} has no {name}: {findings:?}, {record}"))
    }

    /// A finding must not be there.
    #[track_caller]
    fn silent(&self, place: &str, name: &str) {
        let Cell { findings, record } = self.at(place);
        assert!(!findings.contains_key(name), "{place}: {findings:?}, {record}");
    }

    /// No finding must be there.
    #[track_caller]
    fn nothing(&self, place: &str) {
        let Cell { findings, record } = self.at(place);
        assert_eq!(record["outcome"], "measured", "{place}");
        assert!(findings.is_empty(), "{place}: {findings:?}, {record}");
    }

    #[track_caller]
    fn number(&self, place: &str, pointer: &str) -> u64 {
        let value = self.at(place).record.pointer(pointer);
        value.and_then(Value::as_u64).unwrap_or_else(|| panic!("{place}: {pointer} is {value:?}"))
    }
}

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

/// A burst that comes back while the client is still in its call to send waits in the socket's backlog, and what that has no room for is lost:
/// the link is not to blame.
#[test]
fn an_sctp_backlog_that_is_full_is_told_from_a_link_that_changes_the_order() {
    let cells = run(r#"
[workload]
protocol = "sctp"
[socket]
nodelay = true
[axes]
rcvbuf = ["4KiB", "64KiB"]
"#);
    assert!(cells.number("4096", "/client/evidence/counters/SctpInPktDiscards") > 0);
    let said = cells.says("4096", "receive-queue-drops");
    assert!(said.contains("found the socket's backlog full"), "{said}");
    for rcvbuf in ["4096", "65536"] {
        cells.silent(rcvbuf, "reordered");
    }
    cells.silent("65536", "receive-queue-drops");
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

/// C28 (libtorrent#4328, twisted#9078): a message waits behind what its own socket has taken.
#[test]
fn what_waits_in_the_own_send_buffer_is_told_from_what_waits_in_the_link() {
    let cells = run(r#"
[link]
rate = "5Mbit/s"
delay = "5ms"
limit = 20
gso_max_segs = 1
[socket]
nodelay = true
sndbuf = "1MiB"
[workload]
chunk_count = 300
chunk_size = "1KiB"
[axes]
"socket.tcp.notsent_lowat" = ["4KiB", "default"]
"#);
    let said = cells.says("default", "waits-in-the-send-buffer");
    assert!(said.contains("it waited in the client's own send buffer"), "{said}");
    cells.silent("4096", "waits-in-the-send-buffer");
}

/// C31 (iproute2#56, comcast#28, chaosblade#1080): a limit that does not hold what is on its way drops without any loss asked for. C32
/// (sandia-minimega#752): one that holds much more makes a queue that stands.
#[test]
fn a_queue_may_be_too_short_and_too_long() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
[link]
rate = "20Mbit/s"
delay = "20ms"
gso_max_segs = 1
[axes]
"link.client.limit" = [20, 60, 300]
"socket.server.rcvbuf" = ["32KiB", "default"]
"#);
    // 20 Mbit/s for 20 ms are 33 frames of 1514 bytes.
    let said = cells.says("20 default", "netem-limit-too-small");
    assert!(
        said.contains("it holds 20, those on their way among them, which at 20.0 Mbit/s for 20.0 ms are 33"),
        "{said}"
    );
    cells.silent("20 default", "link-queue-drops");
    cells.silent("300 default", "netem-limit-too-small");
    cells.silent("300 32768", "netem-limit-too-small");
    cells.says("60 default", "link-queue-drops");
    cells.silent("60 default", "netem-limit-too-small");
    cells.silent("60 32768", "link-queue-drops");
    // A receive window below what is on its way fills no queue.
    let said = cells.says("300 default", "standing-queue");
    assert!(said.contains("holds up to 182 ms"), "300 frames of 1514 bytes: {said}");
    cells.silent("300 32768", "standing-queue");
    cells.silent("300 32768", "link-queue-drops");
    cells.says("300 32768", "receiver-limited");
    cells.says("300 32768", "autotuning-off");
    cells.silent("300 default", "autotuning-off");
    cells.says("300 default", "link-limited");
}

/// C32 beside an echo: what stands in the queue is what a request waits for.
#[test]
fn a_request_waits_in_the_queue_of_a_transfer() {
    let cells = run(r#"
[link]
rate = "5Mbit/s"
delay = "5ms"
limit = 100
gso_max_segs = 1
[socket]
nodelay = true
[workload]
chunk_count = 1
bursts = 5
gap = "50ms"
[axes]
"workload.beside" = ["none", "upload"]
"#);
    cells.nothing("none");
    cells.says("upload", "standing-queue");
}

/// C33 (srt#735, usrsctp#434): jitter without a rate puts packets out of order.
#[test]
fn jitter_puts_packets_out_of_order_and_none_does_not() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
bytes = "256KiB"
[link]
gso_max_segs = 1
delay = "4ms"
[axes]
"workload.protocol" = ["tcp", "sctp"]
"link.client.jitter" = ["0s", "1ms"]
"#);
    for protocol in ["tcp", "sctp"] {
        let said = cells.says(&format!("{protocol} 1ms"), "reordered");
        assert!(
            said.contains("out of order")
                && said.contains("the client's netem: each delayed by itself within ± 1.00 ms"),
            "{said}"
        );
        cells.silent(&format!("{protocol} 0s"), "reordered");
    }
    assert!(
        cells
            .says("tcp 1ms", "reordered")
            .starts_with(&format!("{} of", cells.number("tcp 1ms", "/server/evidence/counters/TcpExtTCPOFOQueue")))
    );
}

/// C36 (mptcp_net-next#230, flent): a packet that is lost before it is cut takes all its segments along.
#[test]
fn offloads_lose_segments_together() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
bytes = "16MiB"
[link]
delay = "2ms"
rate = "200Mbit/s"
limit = 4000
[link.client]
loss = "1%"
[axes]
"link.gso_max_segs" = [1, "default"]
"#);
    let said = cells.says("default", "segments-lost-together");
    assert!(said.contains("holds up to 65535 segments, lost together"), "{said}");
    cells.silent("1", "segments-lost-together");
    cells.says("1", "retransmissions");
    for place in ["1", "default"] {
        for end in ["client", "server"] {
            for offload in ["tso", "gso", "gro"] {
                let given = cells.at(place).record.pointer(&format!("/link/{end}/{offload}/given"));
                assert!(given.is_some_and(Value::is_boolean), "{end} {offload}: {given:?}");
            }
        }
    }
}

/// C16 (Cloudflare on receive buffers, truenas/linux#317): a reader that pauses, and how much lies in its buffer meanwhile.
#[test]
fn a_reader_that_pauses_is_the_limit_and_its_buffer_may_hold_more_than_its_size() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "600ms"
read_size = "16KiB"
chunk_size = "16KiB"
[socket.server]
rcvbuf = "128KiB"
[sysctl]
"net.ipv4.tcp_shrink_window" = 0
[axes]
"workload.read_pause" = ["0s", "10ms"]
"#);
    let said = cells.says("10ms", "application-limited");
    assert!(said.contains("the server's program did not read as fast as data came"), "{said}");
    cells.silent("10ms", "receiver-limited");
    cells.silent("10ms", "autotuning-off");
    cells.silent("0s", "application-limited");
    cells.says("10ms", "zero-window");
    let most = cells.number("10ms", "/server/evidence/rcvbuf_used_peak_bytes");
    assert!((128 << 10..512 << 10).contains(&most), "of a buffer of 256 KiB: {most}");
}

/// C16 again: small segments take more memory than the window told of, so that more lies in the buffer than its size; where the window may be
/// taken back it does not.
#[test]
fn small_segments_take_more_memory_than_the_size_unless_the_window_may_shrink() {
    let cells = run(r#"
image = "debian:6.12"
[workload]
kind = "stream"
bytes = "1MiB"
chunk_size = 64
read_pause = "500ms"
[socket]
nodelay = true
[socket.server]
rcvbuf = "128KiB"
[axes]
"sysctl.net.ipv4.tcp_shrink_window" = [0, 1]
"#);
    // The timer tick decides whether a look comes before the kernel presses them together.
    let said = cells.says("0", "beyond-the-size");
    assert!(said.contains("server's receive buffer of 256 KiB") || said.contains("(TcpExtPruneCalled)"), "{said}");
    cells.silent("1", "beyond-the-size");
    cells.says("1", "zero-window");
}

/// C12 (iperf#198, iperf#970): buffers beyond what the machine's TCP may have in all.
#[test]
fn buffers_beyond_the_machine_s_memory_are_told() {
    let cells = run_within(
        "12s",
        3,
        r#"
[workload]
kind = "stream"
duration = "6s"
omit = "2s"
[socket]
nodelay = true
[link]
rate = "100Mbit/s"
delay = "150ms"
limit = 20000
gso_max_segs = 1
[[zip]]
"socket.rcvbuf_force" = ["256KiB", "64MiB"]
"socket.sndbuf_force" = ["256KiB", "64MiB"]
"#,
    );
    let (small, large) = ("262144 262144", "67108864 67108864");
    assert_eq!(cells.at(large).record["outcome"], "timed-out");
    let said = cells.says(large, "memory-pressure");
    assert!(said.starts_with("the machine's TCP took more memory than it may (1 time, net.ipv4.tcp_mem of "), "{said}");
    assert!(said.contains("lay in the client's send buffer of 128 MiB"), "{said}");
    assert!(said.contains("the window that the client was offered fell from "), "{said}");
    cells.silent(large, "send-buffer-limited");
    cells.silent(small, "memory-pressure");
    cells.says(small, "send-buffer-limited");
}

/// C11 (xrdp#2905, hpn-ssh#58): a send buffer of 32 KiB bounds a round trip of 250 ms and not one of 0.5 ms. With Nagle's algorithm, and
/// writes that leave a part of a segment, it bounds nothing (docs/tcp-send-buffer.md).
#[test]
fn a_send_buffer_is_the_limit_where_it_holds_all_that_is_on_its_way() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
omit = "2s"
[socket.client]
sndbuf = "32KiB"
[link]
rate = "20Mbit/s"
limit = 2000
[axes]
"link.delay" = ["250us", "125ms"]
nodelay = [false, true]
chunk_size = [14480, "16KiB"]
"#);
    let name = "send-buffer-limited";
    for place in ["125ms false 14480", "125ms true 14480", "125ms true 16384"] {
        let said = cells.says(place, name);
        assert!(said.starts_with("the client's send buffer of 64 KiB was as full"), "{said}");
        cells.says(place, "autotuning-off");
    }
    cells.silent("125ms false 16384", name);
    for place in ["250us false 14480", "250us true 14480", "250us false 16384", "250us true 16384"] {
        cells.silent(place, name);
        cells.says(place, "link-limited");
    }
}

/// The peer's window bounds where it is the smaller one, and the send buffer, though as full, does not.
#[test]
fn a_send_buffer_that_waits_for_a_window_is_not_the_limit() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
omit = "2s"
[socket]
nodelay = true
[socket.client]
sndbuf = "128KiB"
[link]
rate = "20Mbit/s"
delay = "125ms"
limit = 2000
gso_max_segs = 1
[axes]
"socket.server.rcvbuf" = ["32KiB", "default"]
"link.client.loss" = ["0%", "3%"]
"#);
    cells.says("32768 0%", "receiver-limited");
    cells.silent("32768 0%", "send-buffer-limited");
    cells.says("default 0%", "send-buffer-limited");
    cells.silent("default 3%", "send-buffer-limited");
}

/// The report on autotuning, in short: megabytes or not, the link is full; and sizes beyond `rmem_max` are clamped.
#[test]
fn autotuning_grows_beyond_what_a_full_link_needs_and_fixed_sizes_are_clamped() {
    let cells = run(r#"
[link]
rate = "984395kbit/s"
[workload]
kind = "stream"
direction = "download"
duration = "300ms"
omit = "100ms"
chunk_size = "16KiB"
[sysctl]
"net.ipv4.tcp_rmem" = "16384 87380 4194304"
"net.ipv4.tcp_wmem" = "16384 16384 4194304"
"net.core.rmem_max" = 131071
"net.core.wmem_max" = 126976
[axes]
"socket.client.rcvbuf" = ["64KiB", "512KiB", "default"]
"#);
    for place in ["65536", "524288", "default"] {
        let said = cells.says(place, "link-limited");
        assert!(said.contains("all that a link of 984 Mbit/s leaves for data (941 Mbit/s)"), "{said}");
    }
    let grown = cells.says("default", "autotuned");
    assert!(
        grown.contains("the client's receive buffer grew from 87380 B") && grown.ends_with("and the link was full"),
        "{grown}"
    );
    let clamped = cells.says("524288", "clamped-by-a-sysctl");
    assert!(clamped.contains("512 KiB asked, clamped by net.core.rmem_max to 262142 bytes"), "{clamped}");
    for place in ["65536", "524288"] {
        assert!(!cells.at(place).findings.get("autotuned").is_some_and(|said| said.contains("receive buffer")));
    }
    cells.silent("65536", "clamped-by-a-sysctl");
    cells.silent("default", "clamped-by-a-sysctl");
}

#[test]
fn a_burst_beyond_a_tcp_window_and_a_size_beyond_use_are_told() {
    let cells = run(r#"
[link]
delay = "2ms"
[socket]
nodelay = true
[workload]
chunk_count = 64
chunk_size = "4KiB"
[axes]
"socket.server.rcvbuf" = ["8KiB", "1MiB"]
"#);
    let said = cells.says("8192", "burst-beyond-the-window");
    assert!(
        said.starts_with("the client had more to send than the server's window (a buffer of 16 KiB) let through"),
        "{said}"
    );
    cells.silent("1048576", "burst-beyond-the-window");

    let cells = run(r#"
[link]
rate = "50Mbit/s"
delay = "2ms"
limit = 1000
gso_max_segs = 1
[workload]
kind = "stream"
direction = "upload"
duration = "500ms"
[socket.client]
sndbuf = "32KiB"
[axes]
"socket.server.rcvbuf" = ["64KiB", "2MiB"]
"#);
    let said = cells.says("2097152", "larger-than-used");
    assert!(said.starts_with("the server's receive buffer (2 MiB asked) offered a window of up to"), "{said}");
    cells.silent("65536", "larger-than-used");
}

#[test]
fn datagrams_are_cut_and_dropped_and_small_ones_into_a_large_buffer_are_not() {
    // Losses are figures, and no failure of the run.
    let cells = run(r#"
[workload]
protocol = "udp"
chunk_count = 128
quiet = "200ms"
[axes]
chunk_size = [1000, 4000]
rcvbuf = ["4KiB", "2MiB"]
"#);
    let cut = cells.says("4000 2097152", "fragmented");
    assert!(cut.starts_with("IP cut 256 datagrams into 768 fragments"), "{cut}");
    let dropped = cells.says("1000 4096", "udp-receive-drops");
    // At both ends, for echoes are dropped too.
    let at = |end| cells.at("1000 4096").record.pointer(&format!("/{end}/evidence/counters/UdpRcvbufErrors"));
    let counted: u64 = ["client", "server"].into_iter().filter_map(|end| at(end)?.as_u64()).sum();
    assert!(dropped.starts_with(&format!("{counted} datagrams")), "{dropped}");
    cells.nothing("1000 2097152");
}
