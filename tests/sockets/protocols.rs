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
