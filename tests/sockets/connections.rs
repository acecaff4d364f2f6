//! Several connections at once.

use sweep::measurement::{Measurement, Outcome};
use sweep::settings::Value;

use crate::common::cells::{measure, word};
use crate::measured;

/// Each connection's bytes, and whether they add up to those of all.
fn shares(measured: &Measurement, count: usize) -> Vec<u64> {
    assert_eq!(measured.connections.len(), count, "{measured:?}");
    let shares: Vec<u64> =
        measured.connections.iter().map(|connection| connection.delivered_bytes.expect("bytes")).collect();
    assert_eq!(measured.delivered_bytes, Some(shares.iter().sum()));
    shares
}

#[test]
fn streams_at_once_share_and_their_figures_add_up() {
    for (count, direction) in [(2, "upload"), (8, "download")] {
        let measured = measured(&[
            ("workload.kind", word("stream")),
            ("workload.direction", word(direction)),
            ("workload.duration", word("300ms")),
            ("workload.connections", Value::Int(count)),
        ]);
        let shares = shares(&measured, usize::try_from(count).expect("small"));
        assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
        let sum: u64 = measured.connections.iter().map(|connection| connection.goodput_bps.expect("a goodput")).sum();
        let all = measured.goodput_bps.expect("a goodput");
        assert!((sum / 4..=sum + 8).contains(&all), "{measured:?}");
        assert_eq!(measured.completion_ns, None);
    }
    let shaped = measured(&[
        ("workload.kind", word("stream")),
        ("workload.duration", word("300ms")),
        ("link.rate", word("100Mbit/s")),
        ("workload.connections", Value::Int(16)),
    ]);
    assert!(shaped.goodput_bps.expect("a goodput") < 105_000_000, "no more than the link carries: {shaped:?}");
    let bounded = measured(&[
        ("workload.kind", word("stream")),
        ("workload.bytes", word("256KiB")),
        ("workload.connections", Value::Int(4)),
    ]);
    assert_eq!(shares(&bounded, 4), [256 << 10; 4]);
    let own = bounded.connections.iter().map(|connection| connection.completion_ns.expect("a completion")).max();
    assert!(bounded.completion_ns >= own, "{bounded:?}");
}

#[test]
fn echoes_at_once_each_have_a_completion_and_all_latencies_are_one_distribution() {
    for (protocol, pattern) in [("tcp", "burst"), ("tcp", "write-read"), ("mptcp", "burst"), ("udp", "burst")] {
        for (count, bursts) in [(2, 1), (8, 3)] {
            let measured = measured(&[
                ("workload.protocol", word(protocol)),
                ("workload.pattern", word(pattern)),
                ("workload.bursts", Value::Int(bursts)),
                ("workload.connections", Value::Int(count)),
            ]);
            assert_eq!(
                shares(&measured, usize::try_from(count).expect("small")),
                vec![bursts * 32 * 64; measured.connections.len()]
            );
            assert_eq!(measured.chunk_latency_ns.as_ref().expect("latencies").count, count * bursts * 32);
            let own =
                measured.connections.iter().map(|connection| connection.completion_ns.expect("a completion")).max();
            if bursts == 1 {
                assert!(measured.completion_ns >= own, "{measured:?}");
                let completion = u128::from(measured.completion_ns.expect("a completion"));
                let goodput = u128::from(count * 32 * 64 * 8) * 1_000_000_000 / completion;
                assert!(goodput.abs_diff(measured.goodput_bps.expect("a goodput").into()) <= 1, "{measured:?}");
            } else {
                assert_eq!(measured.completion_ns, own);
            }
            if protocol == "udp" {
                assert_eq!((measured.lost_chunks, measured.duplicated_chunks), (Some(0), Some(0)));
            }
        }
    }
}

#[test]
fn one_connection_is_recorded_as_ever() {
    let alone = measured(&[("workload.connections", Value::Int(1))]);
    assert!(alone.connections.is_empty());
    assert!(serde_json::to_value(&alone).expect("json").get("connections").is_none());
}

#[test]
fn what_one_of_several_connections_is_refused_is_told_once_and_ends_all() {
    let begun = std::time::Instant::now();
    let connections = ("workload.connections", Value::Int(8));
    let refused = measure(&[("socket.client.tcp.maxseg", Value::Int(1)), connections.clone()], 20_000);
    assert_eq!(refused.outcome, Outcome::Invalid, "{refused:?}");
    assert!(refused.reason.expect("a reason").contains("TCP_MAXSEG = 1 on the client"));
    assert!(begun.elapsed().as_secs() < 10, "nobody waits for the deadline");

    let forever = [("workload.kind", word("stream")), ("workload.duration", word("60s"))];
    let late = measure(&[&forever[..], &[connections]].concat(), 500);
    assert_eq!(late.outcome, Outcome::TimedOut, "{late:?}");
    assert!(late.connections.iter().all(|connection| connection.goodput_bps.is_none()));
    assert!(shares(&late, 8).iter().sum::<u64>() > 0);
}

#[test]
fn losses_of_several_connections_are_all_counted() {
    let lossy = measure(
        &[
            ("workload.protocol", word("udp")),
            ("workload.quiet", word("200ms")),
            ("workload.connections", Value::Int(2)),
            ("rcvbuf", Value::Int(0)),
            ("chunk_count", Value::Int(1000)),
            ("chunk_size", Value::Int(1400)),
        ],
        20_000,
    );
    assert_eq!(lossy.outcome, Outcome::Incomplete, "{lossy:?}");
    let lost = lossy.lost_chunks.expect("a number");
    assert_eq!(shares(&lossy, 2).iter().sum::<u64>(), (2000 - lost) * 1400);
    assert!(lossy.reason.expect("a reason").starts_with(&format!("{lost} of 2000 chunks were lost")));
}
