//! The native backend on the kernel that the tests run on.

mod common;

use common::cells::{measure, word};
use sweep::backend::native::Native;
use sweep::measurement::{End, Outcome, Samples, Verdict};
use sweep::settings::Value;

#[test]
fn an_echo_is_measured_on_every_topology_and_family() {
    for topology in ["veth", "loopback"] {
        for family in ["ipv4", "ipv6"] {
            let measured = measure(&[("link.topology", word(topology)), ("link.family", word(family))], 10_000);
            assert_eq!(measured.outcome, Outcome::Measured, "{topology} {family}: {:?}", measured.reason);
            assert_eq!(measured.delivered_bytes, Some(32 * 64));
            let latency = measured.chunk_latency_ns.expect("latencies");
            assert_eq!(latency.count, 32);
            assert!(latency.max <= measured.completion_ns.expect("a completion"));
            assert_eq!(measured.client.rcvbuf.verdict, Some(Verdict::Default));
            assert_eq!(measured.client.rcvbuf.asked, None);
            assert_eq!(measured.client.samples, None, "an echo is not sampled");
        }
    }
}

#[test]
fn a_burst_larger_than_all_buffers_together_does_not_deadlock() {
    let measured = measure(
        &[
            ("rcvbuf", Value::Int(4096)),
            ("sndbuf", Value::Int(4096)),
            ("chunk_count", Value::Int(64)),
            ("chunk_size", word("64KiB")),
            ("nodelay", Value::Bool(true)),
        ],
        60_000,
    );
    assert_eq!(measured.outcome, Outcome::Measured, "{:?}", measured.reason);
    assert_eq!(measured.delivered_bytes, Some(64 * 65536));
}

#[test]
fn a_fixed_size_stays_and_the_default_grows_under_a_stream() {
    for direction in ["upload", "download"] {
        let stream = [("workload.kind", word("stream")), ("workload.direction", word(direction))];
        let grown = measure(&[&stream[..], &[("workload.duration", word("300ms"))]].concat(), 10_000);
        assert_eq!(grown.outcome, Outcome::Measured, "{:?}", grown.reason);
        let (receiver, sender) =
            if direction == "upload" { (&grown.server, &grown.client) } else { (&grown.client, &grown.server) };
        for end in [receiver, sender] {
            let samples = end.samples.as_ref().expect("a stream is sampled");
            assert!((10..=256).contains(&samples.len()), "{} in 300 ms", samples.len());
            assert!(samples.t_ns.windows(2).all(|pair| pair[1] - pair[0] >= 1_000_000), "{:?}", samples.t_ns);
            assert!(samples.t_ns.last().is_some_and(|last| (100_000_000..1_000_000_000).contains(last)));
            let columns =
                [&samples.rcvbuf_bytes, &samples.sndbuf_used_bytes, &samples.snd_wnd_bytes, &samples.cwnd_bytes];
            assert!(columns.iter().all(|column| column.as_ref().is_some_and(|column| column.len() == samples.len())));
        }
        let size = |end: &End, pick: fn(&Samples) -> &Option<Vec<u64>>| {
            end.samples.as_ref().and_then(|samples| pick(samples).clone()).unwrap_or_default()
        };
        let (sizes, used) = (size(receiver, |s| &s.rcvbuf_bytes), size(receiver, |s| &s.rcvbuf_used_bytes));
        let largest = sizes.iter().max();
        assert!(largest > receiver.rcvbuf.initial.as_ref() && largest <= receiver.rcvbuf.peak.as_ref(), "{sizes:?}");
        assert!(used.iter().any(|used| *used > 0), "something lay unread at some instant: {used:?}");
        assert!(size(sender, |s| &s.sndbuf_used_bytes).iter().any(|used| *used > 0), "and unsent or unacknowledged");
        assert!(receiver.rcvbuf.end > receiver.rcvbuf.initial, "{receiver:?}");
        assert!(receiver.rcvbuf.peak >= receiver.rcvbuf.end);
        assert!(grown.goodput_bps.expect("a goodput") > 1_000_000);

        let fixed = [("rcvbuf", word("32KiB")), ("sndbuf", word("32KiB")), ("workload.bytes", word("4MiB"))];
        let fixed = measure(&[&stream[..], &fixed].concat(), 10_000);
        assert_eq!(fixed.outcome, Outcome::Measured, "{:?}", fixed.reason);
        assert_eq!(fixed.delivered_bytes, Some(4 << 20));
        assert!(fixed.completion_ns.is_some(), "a stream bounded by bytes has a completion");
        for end in [&fixed.client, &fixed.server] {
            for buffer in [&end.rcvbuf, &end.sndbuf] {
                assert_eq!(buffer.asked, Some(32768));
                assert_eq!((buffer.initial, buffer.end, buffer.peak), (Some(65536), Some(65536), Some(65536)));
                assert_eq!(buffer.verdict, Some(Verdict::Doubled));
            }
        }
    }
}

#[test]
fn the_smallest_request_is_raised_and_said_so() {
    let measured = measure(&[("rcvbuf", Value::Int(0)), ("sndbuf", Value::Int(0))], 10_000);
    assert_eq!(measured.client.rcvbuf.verdict, Some(Verdict::Raised), "{measured:?}");
    assert_eq!(measured.server.sndbuf.verdict, Some(Verdict::Raised));
}

#[test]
fn a_request_beyond_the_limit_is_clamped_and_said_so() {
    let limit = Native::new("for a test").expect("a native backend").machine().limits.rmem_max.expect("a limit");
    let measured =
        measure(&[("rcvbuf", Value::Int(limit + 4096)), ("socket.client.sndbuf", Value::Int(65536))], 10_000);
    assert_eq!(measured.client.rcvbuf.verdict, Some(Verdict::ClampedRmem));
    assert_eq!(measured.client.rcvbuf.initial, Some(2 * limit), "more than was asked, and clamped all the same");
    assert_eq!(measured.client.sndbuf.verdict, Some(Verdict::Doubled));
    assert_eq!(measured.server.sndbuf.verdict, Some(Verdict::Default), "only the client's was set");
}

#[test]
fn a_repeat_that_takes_too_long_is_a_time_out_with_what_had_arrived() {
    let measured = measure(&[("workload.kind", word("stream")), ("workload.duration", word("30s"))], 300);
    assert_eq!(measured.outcome, Outcome::TimedOut);
    assert!(measured.reason.expect("a reason").contains("timed out after 300 ms"));
    assert_eq!((measured.goodput_bps, measured.completion_ns), (None, None));
}

#[test]
fn sctp_is_measured_or_skipped_with_what_to_do() {
    for style in ["one-to-one", "one-to-many"] {
        let measured = measure(&[("workload.protocol", word("sctp")), ("workload.style", word(style))], 10_000);
        match measured.outcome {
            Outcome::Measured => assert_eq!(measured.delivered_bytes, Some(32 * 64)),
            outcome => {
                assert_eq!(outcome, Outcome::Skipped);
                assert!(measured.reason.expect("a reason").starts_with("no SCTP in this kernel"));
                assert_eq!(measured.completion_ns, None);
            }
        }
    }
}
