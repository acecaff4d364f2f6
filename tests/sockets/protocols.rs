//! UDP, whose losses are counted, and MPTCP.

use sweep::measurement::Outcome;
use sweep::settings::Value;

use crate::common::cells::{measure, word};
use crate::measured;

#[test]
fn udp_is_measured_on_every_family_and_pattern() {
    for family in ["ipv4", "ipv6"] {
        for pattern in ["burst", "write-read"] {
            let measured = measured(&[
                ("workload.protocol", word("udp")),
                ("link.family", word(family)),
                ("workload.pattern", word(pattern)),
                ("workload.bursts", Value::Int(3)),
            ]);
            assert_eq!((measured.lost_chunks, measured.duplicated_chunks), (Some(0), Some(0)));
            assert_eq!(measured.delivered_bytes, Some(3 * 32 * 64));
            assert_eq!(measured.chunk_latency_ns.expect("latencies").count, 96);
            assert_eq!(measured.client.nodelay.given, None);
        }
    }
}

#[test]
fn a_burst_beyond_a_small_buffer_is_incomplete_and_does_not_hang() {
    let lossy = measure(
        &[
            ("workload.protocol", word("udp")),
            ("workload.quiet", word("200ms")),
            ("rcvbuf", Value::Int(0)),
            ("chunk_count", Value::Int(2000)),
            ("chunk_size", Value::Int(1400)),
        ],
        20_000,
    );
    assert_eq!(lossy.outcome, Outcome::Incomplete, "{lossy:?}");
    let lost = lossy.lost_chunks.expect("a number");
    assert!((1..2000).contains(&lost), "{lost}");
    assert_eq!(lossy.delivered_bytes, Some((2000 - lost) * 1400));
    assert!(lossy.reason.expect("a reason").starts_with(&format!("{lost} of 2000 chunks were lost")));
    assert_eq!((lossy.completion_ns, lossy.goodput_bps), (None, None));
}

#[test]
fn a_stream_over_udp_counts_what_is_lost_and_goes_on() {
    for direction in ["upload", "download"] {
        let stream = [
            ("workload.kind", word("stream")),
            ("workload.protocol", word("udp")),
            ("workload.direction", word(direction)),
            ("workload.bytes", Value::Int(5_000_000)),
            ("workload.quiet", word("200ms")),
            ("chunk_size", Value::Int(1000)),
        ];
        let measured = measured(&[&stream[..], &[("rcvbuf", Value::Int(4000))]].concat());
        let lost = measured.lost_chunks.expect("a number");
        assert_eq!(measured.delivered_bytes, Some((5000 - lost) * 1000));
        assert!(lost > 0 && measured.completion_ns.is_none(), "{direction}: {measured:?}");
        assert!(measured.goodput_bps.is_some());
    }
}

/// C39: MPTCP that is turned off (92) is told apart from one that is not built (93) or too old (22), and from a connection that fell back
/// (mptcp_net-next#315, mptcp_net-next#294); the other two are in `src/workload/failure.rs`.
#[test]
fn mptcp_that_is_turned_off_is_skipped_with_the_sysctl() {
    // Often, because which end ends first is up to the scheduler: the client may be gone before the server sees the link.
    for _ in 0..20 {
        let off = measure(&[("workload.protocol", word("mptcp")), ("sysctl.net.mptcp.enabled", word("0"))], 20_000);
        assert_eq!(off.outcome, Outcome::Skipped, "{off:?}");
        let reason = off.reason.expect("a reason");
        let absent = ["no sysctl `net.mptcp.enabled`", "no MPTCP in this kernel", "older than MPTCP"];
        assert!(
            reason.contains("MPTCP is turned off here") && reason.contains("net.mptcp.enabled is 0")
                || absent.iter().any(|text| reason.contains(text)),
            "{reason}"
        );
    }
}

#[test]
fn mptcp_is_measured_and_tells_whether_it_is_mptcp() {
    for (kind, family) in [("echo", "ipv4"), ("stream", "ipv6")] {
        let measured = measure(
            &[
                ("workload.protocol", word("mptcp")),
                ("workload.kind", word(kind)),
                ("link.family", word(family)),
                ("socket.tcp.congestion", word("reno")),
            ],
            20_000,
        );
        if measured.outcome == Outcome::Skipped {
            assert!(measured.reason.expect("a reason").contains("MPTCP"));
            continue;
        }
        assert_eq!(measured.outcome, Outcome::Measured, "{:?}", measured.reason);
        assert_eq!((measured.client.fell_back, measured.server.fell_back), (Some(false), Some(false)));
        assert!(measured.remarks.is_empty());
    }
}
