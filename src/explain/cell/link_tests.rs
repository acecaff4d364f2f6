//! Rules on what is sampled, and told of queues and devices: each with a repeat that must trigger it, and one alike.

use super::evidence_tests::{evidence, latency};
use super::tests::{echo, sentence, silent, stream};
use crate::measurement::{
    Association, Beside, End, Interface, LinkFacts, Outcome, QueueFacts, Samples, Silences, SysctlFacts, TcpFacts,
};
use crate::record::Record;

/// The server's only queue, of that kind and set to that.
fn link(kind: &str, drops: u64, given: &[(&str, &str)]) -> LinkFacts {
    let given = given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let queue =
        QueueFacts { kind: kind.to_owned(), packets: 990, bytes: 1_200_000, drops, given, ..QueueFacts::default() };
    let server = Interface { mtu: Some(1500), gso_max_segs: Some(65535), queues: vec![queue], ..Interface::default() };
    LinkFacts { server, ..LinkFacts::default() }
}

#[test]
fn a_netem_that_does_not_hold_what_is_on_its_way_is_told_from_a_full_queue() {
    let mut record = stream(&TcpFacts::default());
    let given = [("rate", "100Mbit/s"), ("delay", "20ms"), ("loss", "0%")];
    let with = |drops, limit| link("netem", drops, &[&given[..], &[("limit", limit)]].concat());
    record.measurement.link = Some(with(10, "100"));
    assert_eq!(
        sentence(&record, "netem-limit-too-small"),
        "the server's netem dropped 10 of 1000 packets (1.0 %) though none were to be lost: it holds 100, those on their way among them, which at \
         100 Mbit/s for 20.0 ms are 165 of 1514 bytes"
    );
    silent(&record, "link-queue-drops");
    record.measurement.link = Some(with(10, "1000"));
    silent(&record, "netem-limit-too-small");
    sentence(&record, "link-queue-drops");
    record.measurement.link = Some(with(0, "100"));
    silent(&record, "netem-limit-too-small");
    record.measurement.link = Some(link("netem", 10, &[("delay", "20ms"), ("limit", "100")]));
    assert!(sentence(&record, "netem-limit-too-small").ends_with("for 20.0 ms each, and more came in that time"));
    record.measurement.link = Some(link("tbf", 10, &[("rate", "100Mbit/s"), ("limit_bytes", "1000")]));
    silent(&record, "netem-limit-too-small");
}

#[test]
fn a_queue_stands_where_the_round_trip_has_grown_and_the_queue_has_a_rate() {
    let name = "standing-queue";
    let facts = |rtt_ns| TcpFacts { rtt_ns: Some(rtt_ns), min_rtt_ns: Some(10_000_000), ..TcpFacts::default() };
    let mut record = stream(&facts(300_000_000));
    record.measurement.link = Some(link("netem", 0, &[("rate", "5Mbit/s"), ("delay", "5ms"), ("limit", "100")]));
    assert_eq!(
        sentence(&record, name),
        "packets waited for 290 ms in the server's netem, which at 5.00 Mbit/s holds up to 242 ms: the round trip was 300 ms as a rule and 10.0 ms \
         at its least"
    );
    if let Some(evidence) = &mut record.measurement.server.evidence {
        evidence.tcp = Some(TcpFacts { sent_bytes: Some(9), ..facts(25_000_000) });
    }
    silent(&record, name);
    let transfer = End { evidence: stream(&facts(300_000_000)).measurement.server.evidence, ..End::default() };
    let mut beside = echo(1, false, &[]);
    beside.measurement.link.clone_from(&record.measurement.link);
    silent(&beside, name);
    beside.measurement.beside = Some(Box::new(Beside { server: transfer, ..Beside::default() }));
    sentence(&beside, name);
    beside.measurement.link = Some(link("netem", 0, &[("delay", "5ms"), ("limit", "100")]));
    silent(&beside, name);
}

#[test]
fn order_changes_only_where_nothing_is_lost() {
    let name = "reordered";
    let mut record = echo(1, false, &[("TcpExtTCPOFOQueue", 12), ("TcpInSegs", 100), ("TcpRetransSegs", 2)]);
    silent(&record, name);
    record.measurement.link =
        Some(link("netem", 0, &[("delay", "4ms"), ("jitter", "1ms"), ("loss", "0%"), ("reorder", "0%")]));
    assert_eq!(
        sentence(&record, name),
        "12 of 100 segments arrived out of order and were kept aside; 2 were sent again for it; the link lost none and changed their order \
         (the server's netem: each delayed by itself within ± 1.00 ms)"
    );
    record.measurement.link = Some(link("netem", 1, &[("jitter", "1ms")]));
    silent(&record, name);
    record.measurement.link = Some(link("netem", 0, &[("jitter", "1ms"), ("loss", "1%")]));
    silent(&record, name);
    record.measurement.link = Some(link("netem", 0, &[("jitter", "1ms")]));
    evidence(&mut record).counters = Some([("TcpExtTCPOFOQueue".to_owned(), 0)].into());
    silent(&record, name);
}

#[test]
fn gaps_tell_of_sctp_s_order_unless_chunks_found_no_room() {
    let record = |arrived, gaps| {
        let mut record = echo(1, false, &[("SctpInDataChunkDiscards", 26)]);
        record.measurement.link = Some(link("netem", 0, &[("jitter", "1ms")]));
        let end = |chunks_in, chunks_out, gaps| Association {
            ordered_chunks_in: Some(chunks_in),
            ordered_chunks_out: Some(chunks_out),
            unordered_chunks_in: Some(0),
            unordered_chunks_out: Some(0),
            duplicate_chunks_in: Some(13),
            gaps: Some(gaps),
            ..Association::default()
        };
        record.measurement.client.association = Some(Box::new(end(0, 32, gaps)));
        record.measurement.server.association = Some(Box::new(end(arrived, 0, 0)));
        record
    };
    assert!(sentence(&record(32, 9), "reordered").starts_with(
        "data chunks arrived out of order: 9 gaps were reported in what had arrived; 26 were sent again for it; the link lost none"
    ));
    silent(&record(32, 0), "reordered");
    silent(&record(40, 9), "reordered");
    // What the socket's backlog had no room for is a gap too, and nobody changed the order.
    let mut dropped = record(32, 9);
    let counters = evidence(&mut dropped).counters.as_mut().expect("counters");
    counters.insert("SctpInPktDiscards".to_owned(), 3);
    silent(&dropped, "reordered");
}

#[test]
fn segments_are_lost_together_only_from_packets_that_hold_several() {
    let name = "segments-lost-together";
    let mut record = stream(&TcpFacts { retransmits: Some(130), ..TcpFacts::default() });
    record.measurement.link = Some(link("netem", 12, &[("loss", "1%")]));
    assert!(
        sentence(&record, name)
            .starts_with("the server's netem lost 12 packets, and 130 segments were sent again, 11 for each")
    );
    if let Some(link) = &mut record.measurement.link {
        link.server.gso_max_segs = Some(1);
    }
    silent(&record, name);
    record.measurement.link = Some(link("netem", 60, &[("loss", "1%")]));
    silent(&record, name);
    record.measurement.link = Some(link("netem", 12, &[("loss", "0%")]));
    silent(&record, name);
}

fn samples(columns: &[(u64, u64)]) -> Samples {
    Samples {
        t_ns: (0..columns.len() as u64).collect(),
        rcvbuf_bytes: Some(columns.iter().map(|(size, _)| *size).collect()),
        rcvbuf_used_bytes: Some(columns.iter().map(|(_, used)| *used).collect()),
        ..Samples::default()
    }
}

#[test]
fn a_reader_that_does_not_read_is_told_from_a_window_that_is_small() {
    let mut record = stream(&TcpFacts { rwnd_limited_ns: Some(450_000_000), ..TcpFacts::default() });
    evidence(&mut record).counters = Some([("TcpExtTCPToZeroWindowAdv".to_owned(), 3)].into());
    record.measurement.client.samples = Some(samples(&[(100, 90), (100, 60), (100, 10)]));
    let said = sentence(&record, "application-limited");
    assert!(said.contains("closed 3 times, at 2 of 3 looks") && said.ends_with("450 ms of 900 ms (50 %)"), "{said}");
    silent(&record, "receiver-limited");
    silent(&record, "beyond-the-size");
    record.measurement.client.samples = Some(samples(&[(100, 30), (100, 10), (100, 110)]));
    silent(&record, "application-limited");
    sentence(&record, "receiver-limited");
    assert_eq!(sentence(&record, "beyond-the-size"), "up to 110 B lay in the client's receive buffer of 100 B");
}

#[test]
fn a_writer_that_does_not_write_leaves_the_connection_idle() {
    let mut record = stream(&TcpFacts { min_rtt_ns: Some(1_000_000), ..TcpFacts::default() });
    silent(&record, "application-limited");
    let watched = |record: &mut Record, watched_ns| {
        evidence(record).silences = Some(Silences { watched_ns, ..Silences::default() });
    };
    // It had something to send for 900 ms.
    watched(&mut record, 1_300_000_000);
    let said = sentence(&record, "application-limited");
    assert!(
        said.starts_with("the server's program did not write as fast") && said.contains("399 ms of 1.30 s (31 %)"),
        "{said}"
    );
    watched(&mut record, 1_000_000_000);
    silent(&record, "application-limited");
}

#[test]
fn a_size_beyond_use_is_told_where_nobody_waited_for_it() {
    let name = "larger-than-used";
    let tcp = TcpFacts { rwnd_limited_ns: Some(0), sndbuf_limited_ns: Some(0), ..TcpFacts::default() };
    let record = |tcp: &TcpFacts, window, held, looks| {
        let mut record = stream(tcp);
        record.measurement.client.rcvbuf.asked = Some(1 << 20);
        record.measurement.server.samples = Some(Samples {
            t_ns: (0..looks).collect(),
            snd_wnd_bytes: Some((0..looks).map(|_| window).collect()),
            sndbuf_used_bytes: Some((0..looks).map(|_| held).collect()),
            ..Samples::default()
        });
        record
    };
    let said = sentence(&record(&tcp, 1_000_000, 65536, 20), name);
    assert_eq!(
        said,
        "the client's receive buffer (1 MiB asked) offered a window of up to 1000000 B, and at 20 looks the server never held more than 64 KiB, sent \
         or waiting, the kernel's own overhead included"
    );
    silent(&record(&tcp, 200_000, 65536, 20), name);
    silent(&record(&tcp, 1_000_000, 65536, 9), name);
    silent(&record(&TcpFacts { rwnd_limited_ns: Some(90_000_000), ..tcp }, 1_000_000, 65536, 20), name);
}

#[test]
fn what_waits_in_the_own_send_buffer_is_what_neither_path_nor_queue_can_hold() {
    let name = "waits-in-the-send-buffer";
    let record = |p50, limit: &str, held| {
        let mut record = echo(600_000_000, false, &[]);
        record.measurement.goodput_bps = Some(4_500_000);
        record.measurement.chunk_latency_ns = Some(latency(300, 11_000_000, p50));
        evidence(&mut record).sndbuf_used_peak_bytes = Some(held);
        evidence(&mut record).tcp = Some(TcpFacts { min_rtt_ns: Some(10_000_000), ..TcpFacts::default() });
        let server = link("netem", 0, &[("rate", "5Mbit/s"), ("limit", limit)]).server;
        record.measurement.link = Some(LinkFacts { client: server.clone(), server });
        record
    };
    let said = sentence(&record(300_000_000, "20", 600_000), name);
    assert!(
        said.starts_with("the median chunk took 300 ms, of which path and queue of the link make 58.4 ms at most"),
        "{said}"
    );
    silent(&record(300_000_000, "1000", 600_000), name);
    silent(&record(300_000_000, "20", 60_000), name);
    silent(&record(80_000_000, "20", 600_000), name);
}

#[test]
fn other_protocols_fill_a_link_by_the_queue_s_own_count() {
    let mut record = stream(&TcpFacts::default());
    record.measurement.server.evidence = None;
    evidence(&mut record).silences = Some(Silences { watched_ns: 1_000_000_000, ..Silences::default() });
    evidence(&mut record).tcp = None;
    record.measurement.link = Some(link("netem", 0, &[("rate", "10Mbit/s")]));
    assert_eq!(sentence(&record, "link-limited"), "the server's netem passed on 9.60 Mbit/s of 10.0 Mbit/s (96 %)");
    record.measurement.link = Some(link("netem", 0, &[("rate", "20Mbit/s")]));
    silent(&record, "link-limited");
}

#[test]
fn fragments_and_full_backlogs_are_counted() {
    let cut = echo(1, false, &[("IpFragCreates", 3), ("IpFragOKs", 1)]);
    assert_eq!(sentence(&cut, "fragmented"), "IP cut 1 datagram into 3 fragments");
    assert!(sentence(&echo(1, false, &[("SctpFragUsrMsgs", 2)]), "fragmented").starts_with("SCTP cut 2 messages"));
    silent(&echo(1, false, &[("IpFragOKs", 1)]), "fragmented");

    let mut record = echo(1, false, &[("DevRxDrops", 5)]);
    silent(&record, "processor-backlog-drops");
    evidence(&mut record).softnet_drops = Some(3);
    assert!(sentence(&record, "processor-backlog-drops").starts_with("3 packets had arrived"));
    evidence(&mut record).counters = Some([("DevRxDrops".to_owned(), 0)].into());
    silent(&record, "processor-backlog-drops");
}

/// A stream whose server, which sends, looked at its buffer of 64 KiB 20 times: it held that much, the congestion window and the peer's
/// were so large, and the round trip was 250 ms or that.
fn looks(held: u64, cwnd: u64, window: u64, rtt_ns: u64, goodput_bps: u64) -> Record {
    let tcp = TcpFacts {
        sndbuf_limited_ns: Some(0),
        rwnd_limited_ns: Some(0),
        min_rtt_ns: Some(250_000_000),
        mss_bytes: Some(1448),
        ..TcpFacts::default()
    };
    let mut record = stream(&tcp);
    let column = |value: u64| Some(vec![value; 20]);
    record.measurement.server.samples = Some(Samples {
        t_ns: (0..20).collect(),
        sndbuf_bytes: column(65536),
        sndbuf_used_bytes: column(held),
        cwnd_bytes: column(cwnd),
        snd_wnd_bytes: column(window),
        rtt_ns: column(rtt_ns),
        ..Samples::default()
    });
    record.measurement.goodput_bps = Some(goodput_bps);
    record
}

#[test]
fn a_send_buffer_that_holds_all_that_is_on_its_way_is_the_limit_though_the_kernel_counts_no_time() {
    let name = "send-buffer-limited";
    let bound = looks(60_672, 121_632, 205_696, 257_000_000, 1_733_251);
    assert_eq!(
        sentence(&bound, name),
        "the server's send buffer of 64 KiB was as full as a waiting writer leaves it at 20 of 20 looks, and what it held was on its way (55680 B in \
         each round trip of 257 ms), while the congestion window (121632 B) and the peer's (205696 B) had room for more"
    );
    // A buffer of which a third is free and more keeps nobody waiting.
    silent(&looks(40_000, 121_632, 205_696, 257_000_000, 1_200_000), name);
    // With Nagle's algorithm it may hold many times its size, and bounds nothing.
    silent(&looks(442_320, 747_168, 3_638_912, 257_000_000, 10_916_245), name);
    // The congestion window or the peer's is as small as what is on its way.
    silent(&looks(60_672, 57_920, 205_696, 257_000_000, 1_733_251), name);
    silent(&looks(60_672, 121_632, 60_000, 257_000_000, 1_733_251), name);
    // What is in it waits for something else than to be acknowledged.
    silent(&looks(60_672, 121_632, 205_696, 257_000_000, 600_000), name);
    // A queue stands: the link is what it waits for.
    silent(&looks(60_672, 121_632, 205_696, 400_000_000, 1_113_000), name);
    let mut slow = bound.clone();
    slow.measurement.link = Some(link("netem", 0, &[("rate", "2Mbit/s")]));
    silent(&slow, name);
    slow.measurement.link = Some(link("netem", 0, &[("rate", "20Mbit/s")]));
    sentence(&slow, name);
    let mut few = bound;
    if let Some(samples) = &mut few.measurement.server.samples {
        samples.t_ns.truncate(15);
    }
    silent(&few, name);
}

#[test]
fn memory_that_is_short_is_told_with_what_took_it() {
    let name = "memory-pressure";
    let mut record = stream(&TcpFacts::default());
    record.measurement.outcome = Outcome::TimedOut;
    record.measurement.goodput_bps = None;
    silent(&record, name);
    evidence(&mut record).counters = Some([("TcpExtTCPMemoryPressures".to_owned(), 1)].into());
    assert_eq!(sentence(&record, name), "the machine's TCP took more memory than it may (1 time, net.ipv4.tcp_mem)");
    let given = Some("10323\t13766\t20646".to_owned());
    record.measurement.sysctls.insert("net.ipv4.tcp_mem".to_owned(), SysctlFacts { asked: None, given });
    let server = &mut record.measurement.server;
    server.sndbuf.end = Some(128 << 20);
    if let Some(evidence) = &mut server.evidence {
        evidence.sndbuf_used_peak_bytes = Some(81 << 20);
    }
    server.samples = Some(Samples { snd_wnd_bytes: Some(vec![65535, 64 << 20, 6144]), ..Samples::default() });
    assert_eq!(
        sentence(&record, name),
        "the machine's TCP took more memory than it may (1 time, net.ipv4.tcp_mem of 10323 13766 20646 pages); up to 81 MiB lay in the server's send \
         buffer of 128 MiB; the window that the server was offered fell from 64 MiB to 6 KiB"
    );
    evidence(&mut record).counters = Some([("TcpExtTCPMemoryPressures".to_owned(), 0)].into());
    silent(&record, name);
}

#[test]
fn segments_are_pressed_together_where_they_went_beyond_the_size_or_where_memory_is_short() {
    let name = "beyond-the-size";
    let mut record = stream(&TcpFacts::default());
    let counters = |pressures| {
        let moved = [("TcpExtPruneCalled", 2), ("TcpExtTCPMemoryPressures", pressures)];
        Some(moved.into_iter().map(|(name, moved)| (name.to_owned(), moved)).collect())
    };
    evidence(&mut record).counters = counters(0);
    record.measurement.client.samples = Some(samples(&[(262_144, 206_912), (262_144, 303_232)]));
    let pressed = "2 times what lay in a receive buffer took more than its size, and its segments were pressed together (TcpExtPruneCalled)";
    assert_eq!(
        sentence(&record, name),
        format!("up to 303232 B lay in the client's receive buffer of 256 KiB; {pressed}")
    );
    // When somebody looked they were pressed together already.
    record.measurement.client.samples = Some(samples(&[(262_144, 206_912), (262_144, 262_144)]));
    assert_eq!(sentence(&record, name), pressed);
    evidence(&mut record).counters = counters(1);
    silent(&record, name);
}
