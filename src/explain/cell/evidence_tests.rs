//! Rules on what is watched and told of associations and their timers: each with a repeat that must trigger it, and one alike.

use super::tests::{echo, sentence, silent};
use crate::measurement::{
    Association, Distribution, Evidence, OptionReading, Reading, Silences, SysctlFacts, TcpFacts,
};
use crate::record::Record;

/// An echo whose client waited in silence for these times, the longest first, in milliseconds.
fn silences(nagle: bool, counters: &[(&str, u64)], longest: &[u64]) -> Record {
    let longest_ns: Vec<u64> = longest.iter().map(|ms| ms * 1_000_000).collect();
    let sum_ns: u64 = longest_ns.iter().sum();
    let watched_ns = sum_ns + 1_000_000;
    let mut record = echo(watched_ns, nagle, counters);
    // The quickest chunk did not wait.
    record.measurement.chunk_latency_ns = Some(latency(32, 500_000, 1_000_000));
    let count = longest_ns.len() as u64;
    evidence(&mut record).silences = Some(Silences { count, sum_ns, longest_ns, watched_ns, ..Silences::default() });
    record
}

fn silent_for(longest_ns: &[u64]) -> Silences {
    Silences { count: longest_ns.len() as u64, longest_ns: longest_ns.to_vec(), ..Silences::default() }
}

pub(super) fn evidence(record: &mut Record) -> &mut Evidence {
    record.measurement.client.evidence.get_or_insert_default()
}

#[test]
fn timers_account_for_the_silences_that_are_long_enough_and_for_no_more_than_there_were() {
    let name = "sctp-retransmission-timeout";
    let record = silences(true, &[("SctpT3RtxExpireds", 2), ("SctpDelaySackExpireds", 2)], &[2016, 816, 204, 204]);
    assert_eq!(
        sentence(&record, name),
        "2 retransmission timers (T3-rtx) ran out, each after 1.00 s or more (net.sctp.rto_min): 2 times nothing arrived meanwhile, \
         2.83 s of the 3.24 s (87 %)"
    );
    let sacks = sentence(&record, "delayed-sack-with-nagle");
    assert!(sacks.ends_with("2 times nothing arrived meanwhile, 408 ms of the 3.24 s (13 %)"), "{sacks}");
    let fewer = silences(true, &[("SctpT3RtxExpireds", 1)], &[2016, 2015]);
    assert!(sentence(&fewer, name).contains("1 time nothing arrived meanwhile, 2.02 s of"));
    let none = silences(true, &[("SctpT3RtxExpireds", 1)], &[200]);
    assert!(sentence(&none, name).contains("and no arrival waited for that"));
    let tcp = silences(false, &[("TcpExtTCPTimeouts", 1)], &[204]);
    assert!(sentence(&tcp, "tcp-retransmission-timeout").contains("204 ms of the 205 ms (100 %)"));
    silent(&silences(true, &[], &[2016]), name);
}

#[test]
fn an_own_sysctl_or_option_decides_how_long_a_timer_is() {
    let mut record = silences(true, &[("SctpDelaySackExpireds", 1)], &[101]);
    silent(&record, "delayed-sack-with-nagle");
    let given = Some("100".to_owned());
    record.measurement.sysctls.insert("net.sctp.sack_timeout".to_owned(), SysctlFacts { asked: None, given });
    assert!(sentence(&record, "delayed-sack-with-nagle").contains("(100 ms, net.sctp.sack_timeout)"));
    let mut record = silences(true, &[("SctpDelaySackExpireds", 1)], &[51]);
    let given = Some(Reading::Word("50ms".to_owned()));
    let option = OptionReading { asked: Reading::Word("50ms".to_owned()), given, end: None };
    record.measurement.server.options.insert("sctp.sack_delay".to_owned(), option);
    assert!(sentence(&record, "delayed-sack-with-nagle").contains("(50.0 ms, sctp.sack_delay)"));
}

#[test]
fn a_long_path_is_no_delayed_acknowledgement() {
    let name = "delayed-ack-with-nagle";
    let record = |min_rtt_ns| {
        let mut record = silences(true, &[("TcpExtDelayedACKs", 2)], &[104, 100]);
        evidence(&mut record).tcp = Some(TcpFacts { min_rtt_ns: Some(min_rtt_ns), ..TcpFacts::default() });
        record.measurement.chunk_latency_ns = Some(latency(24, 200_000, 100_000_000));
        record
    };
    assert!(sentence(&record(150_000), name).contains("2 times nothing arrived meanwhile, 204 ms of"));
    silent(&record(100_000_000), name);
    let mut all_alike = record(150_000);
    all_alike.measurement.chunk_latency_ns = Some(latency(24, 100_000_000, 100_000_000));
    silent(&all_alike, name);
}

pub(super) fn latency(count: u64, min: u64, p50: u64) -> Distribution {
    Distribution { count, min, p50, max: p50, ..example_latency() }
}

fn example_latency() -> Distribution {
    echo(1, false, &[]).measurement.chunk_latency_ns.unwrap_or_else(|| panic!("an echo has latencies"))
}

#[test]
fn a_median_of_whole_ticks_is_told_unless_the_path_takes_as_long() {
    let record = |count, min, p50| {
        let mut record = echo(1, false, &[]);
        evidence(&mut record).tick_ns = Some(4_000_000);
        evidence(&mut record).silences = Some(silent_for(&[p50; 23]));
        record.measurement.chunk_latency_ns = Some(latency(count, min, p50));
        record
    };
    let name = "jiffy-bound";
    assert_eq!(
        sentence(&record(24, 90_000, 43_990_000), name),
        "the median round trip (44.0 ms) is 11 ticks of this kernel's timer (4.00 ms each, 250 a second), and the quickest took 90.0 µs"
    );
    silent(&record(24, 90_000, 43_000_000), name);
    silent(&record(24, 43_900_000, 44_000_000), name);
    silent(&record(4, 90_000, 44_000_000), name);
    silent(&record(24, 90_000, 90_000), name);
    let mut once = record(24, 90_000, 43_990_000);
    evidence(&mut once).silences = Some(silent_for(&[43_990_000]));
    silent(&once, name);
    let short = record(24, 90_000, 4_000_000);
    assert!(sentence(&short, name).starts_with("the median round trip (4.00 ms) is 1 tick of"));
}

#[test]
fn chunks_that_found_no_room_are_those_that_arrived_more_often_than_they_were_sent() {
    let name = "burst-beyond-the-window";
    let record = |arrived, discards, twice| {
        let mut record = echo(1, false, &[("SctpInDataChunkDiscards", discards)]);
        let end = |chunks_in, chunks_out| {
            Some(Box::new(Association {
                ordered_chunks_in: Some(chunks_in),
                ordered_chunks_out: Some(chunks_out),
                unordered_chunks_in: Some(0),
                unordered_chunks_out: Some(0),
                duplicate_chunks_in: Some(twice),
                ..Association::default()
            }))
        };
        (record.measurement.client.association, record.measurement.server.association) =
            (end(32, 32), end(arrived, 32));
        record
    };
    assert_eq!(
        sentence(&record(167, 0, 0), name),
        "of 167 data chunks that arrived at the server 135 found no room in its receive buffer"
    );
    assert!(sentence(&record(32, 3, 1), name).starts_with("1 data chunk was discarded"));
    silent(&record(32, 2, 1), name);
    silent(&record(32, 0, 0), name);
}

#[test]
fn an_echo_that_waits_for_the_window_is_a_burst_beyond_it_and_chunks_share_packets_only_where_told() {
    let mut record = silences(false, &[], &[30]);
    let tcp = |waited| Some(TcpFacts { rwnd_limited_ns: Some(waited), ..TcpFacts::default() });
    evidence(&mut record).tcp = tcp(20_000_000);
    let said = sentence(&record, "burst-beyond-the-window");
    assert!(
        said.ends_with("(a buffer of 128 KiB) let through, and waited for it for 20.0 ms of 31.0 ms (65 %)"),
        "{said}"
    );
    evidence(&mut record).tcp = tcp(2_000_000);
    silent(&record, "burst-beyond-the-window");

    let end = |packets| Association {
        ordered_chunks_out: Some(32),
        unordered_chunks_out: Some(0),
        packets_out: Some(packets),
        ..Association::default()
    };
    record.measurement.server.association = Some(Box::new(end(50)));
    record.measurement.client.association = Some(Box::new(end(9)));
    assert_eq!(sentence(&record, "bundled"), "the client sent 32 data chunks in 9 packets");
    record.measurement.client.association = Some(Box::new(end(17)));
    silent(&record, "bundled");
    let mut held_back = silences(true, &[("SctpDelaySackExpireds", 1)], &[204]);
    held_back.measurement.client.association = Some(Box::new(end(6)));
    sentence(&held_back, "delayed-sack-with-nagle");
    silent(&held_back, "bundled");
}

#[test]
fn a_closed_sctp_window_shows_in_silences() {
    let mut record = silences(false, &[], &[1000]);
    let looks = |record: &mut Record, closed| {
        if let Some(silences) = &mut evidence(record).silences {
            (silences.looks, silences.closed) = (Some(9), Some(closed));
        }
    };
    looks(&mut record, 7);
    assert!(sentence(&record, "zero-window").ends_with("closed (0 bytes) at 7 of 9 looks"));
    looks(&mut record, 0);
    silent(&record, "zero-window");
}
