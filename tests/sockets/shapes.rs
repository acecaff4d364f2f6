//! Shapes of a workload: patterns of requests, gaps, a stream beside, readers that rest, sends in place.

use sweep::measurement::{Outcome, Reading};
use sweep::settings::Value;

use crate::common::cells::{measure, word};
use crate::{measured, option};

/// The median round trip of small requests in two writes, over veth.
fn write_write_read(values: &[(&str, Value)]) -> u64 {
    let shape = [("workload.pattern", word("write-write-read")), ("chunk_count", Value::Int(24))];
    measured(&[&shape[..], values].concat()).chunk_latency_ns.expect("latencies").p50 / 1_000_000
}

/// C17 to C19: Nagle's algorithm and the delayed acknowledgement (laurus#732, tower-grpc#149, Rusnel#30), one write as the control
/// (foundationdb#2008, icinga2#8648), and `TCP_QUICKACK`, which only helps before each read (lavinmq#679, opencbdc-tx#254).
#[test]
fn write_write_read_waits_for_a_delayed_acknowledgement_unless_it_is_asked_for_at_once() {
    let quickack = "socket.server.tcp.quickack";
    assert!(write_write_read(&[]) >= 35, "Nagle's algorithm waits for the delayed acknowledgement");
    assert!(write_write_read(&[(quickack, word("once"))]) >= 35, "the kernel falls back by itself");
    assert!(write_write_read(&[(quickack, word("each-read"))]) < 20);
    assert!(write_write_read(&[("socket.client.nodelay", Value::Bool(true))]) < 20);
    assert!(write_write_read(&[("workload.pattern", word("write-read"))]) < 20, "one write is not held back");
    let mptcp = ("workload.protocol", word("mptcp"));
    if measure(std::slice::from_ref(&mptcp), 20_000).outcome == Outcome::Measured {
        assert!(write_write_read(std::slice::from_ref(&mptcp)) >= 35, "MPTCP waits like TCP");
        assert!(write_write_read(&[mptcp, ("socket.client.nodelay", Value::Bool(true))]) < 20);
    }
}

#[test]
fn a_cork_holds_small_chunks_back() {
    let corked = measured(&[
        ("socket.client.tcp.cork", Value::Bool(true)),
        ("workload.pattern", word("write-read")),
        ("chunk_count", Value::Int(2)),
    ]);
    let latency = corked.chunk_latency_ns.expect("latencies");
    assert!(latency.min >= 150_000_000, "200 ms each: {latency:?}");
}

#[test]
fn gaps_are_kept_and_not_counted() {
    for (pattern, bursts, count) in [("burst", 4, 2), ("write-read", 1, 4)] {
        for protocol in ["tcp", "udp"] {
            let measured = measured(&[
                ("workload.protocol", word(protocol)),
                ("workload.pattern", word(pattern)),
                ("workload.bursts", Value::Int(bursts)),
                ("chunk_count", Value::Int(count)),
                ("workload.gap", word("60ms")),
            ]);
            assert!(measured.elapsed_ns.expect("a time") >= 180_000_000, "three gaps: {protocol} {pattern}");
            assert!(measured.completion_ns.expect("a completion") < 60_000_000, "{protocol} {pattern}");
        }
    }
}

/// The stream fills the link; the echo is measured beside it, and both end.
#[test]
fn a_stream_runs_beside_an_echo() {
    for beside in ["upload", "download"] {
        let measured = measured(&[
            ("workload.beside", word(beside)),
            ("workload.beside_lead", word("100ms")),
            ("workload.pattern", word("write-read")),
            ("socket.tcp.congestion", word("reno")),
        ]);
        assert_eq!(measured.delivered_bytes, Some(32 * 64));
        assert!(measured.elapsed_ns.expect("a time") >= 100_000_000);
        let stream = measured.beside.expect("the stream");
        assert!(stream.goodput_bps.expect("a goodput") > 1_000_000, "{beside}: {stream:?}");
        assert!(stream.delivered_bytes.expect("bytes") > 1_000_000);
        assert_eq!(option(&stream.server, "tcp.congestion").2, Some(Reading::Word("reno".to_owned())));
        assert!(measured.completion_ns.expect("a completion") < 5_000_000_000);
    }
    let alone = measure(&[], 10_000);
    assert_eq!(alone.beside, None);
}

#[test]
fn a_reader_that_rests_slows_the_stream_down() {
    let slow = measured(&[
        ("workload.kind", word("stream")),
        ("workload.bytes", word("1MiB")),
        ("workload.read_pause", word("10ms")),
    ]);
    assert!(slow.completion_ns.expect("a completion") >= 140_000_000, "16 reads of 64 KiB: {slow:?}");
    // C43: how much the application offers to each read is its own choice (otp#9355): reads of 16 KiB are four times as many rests.
    let often = measured(&[
        ("workload.kind", word("stream")),
        ("workload.bytes", word("1MiB")),
        ("workload.read_size", word("16KiB")),
        ("workload.read_pause", word("10ms")),
    ]);
    assert!(often.completion_ns.expect("a completion") >= 600_000_000, "64 reads of 16 KiB: {often:?}");
}

/// C43: the size of a send is what was asked and never taken from `SO_SNDBUF` (PerfKitBenchmarker#2075): sends in place are counted.
#[test]
fn a_chunk_is_as_large_as_asked_whatever_the_send_buffer() {
    for sndbuf in ["default", "32KiB", "256KiB"] {
        let stream = measured(&[
            ("workload.kind", word("stream")),
            ("workload.bytes", word("1MiB")),
            ("workload.zerocopy", Value::Bool(true)),
            ("chunk_size", word("4KiB")),
            ("sndbuf", word(sndbuf)),
        ]);
        let sends = stream.client.zerocopy.expect("the sender's counts").sends;
        // One that the full buffer takes in part is made up for by another.
        assert!((256..400).contains(&sends), "{sends} sends of 4 KiB with a send buffer of {sndbuf}");
    }
}

#[test]
fn sends_in_place_are_counted_and_veth_copies_them_after_all() {
    let stream = [("workload.kind", word("stream")), ("workload.bytes", word("4MiB"))];
    let measured = measured(&[&stream[..], &[("workload.zerocopy", Value::Bool(true))]].concat());
    assert_eq!(measured.delivered_bytes, Some(4 << 20));
    let counts = measured.client.zerocopy.expect("the sender's counts");
    assert!(counts.sends >= 256 && counts.completed == counts.sends, "{counts:?}");
    assert!(counts.copied > 0, "{counts:?}");
    assert_eq!(measured.server.zerocopy, None);
}
