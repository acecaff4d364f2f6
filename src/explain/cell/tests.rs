//! Each rule with a repeat that must trigger it, and one alike that must not.

use std::collections::BTreeMap;

use super::{CellFindings, explain};
use crate::explain::RULES;
use crate::measurement::{
    Buffer, Connection, End, Evidence, Interface, LinkFacts, Measurement, Outcome, QueueFacts, Switch, TcpFacts,
    Verdict,
};
use crate::record::{Record, example};

fn sysctls() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("net.sctp.rto_min".to_owned(), "1000".to_owned()),
        ("net.sctp.sack_timeout".to_owned(), "200".to_owned()),
    ])
}

/// An echo that took so long, at one end with these counters, and with Nagle's algorithm on or off.
pub(super) fn echo(completion_ns: u64, nagle: bool, counters: &[(&str, u64)]) -> Record {
    let mut record = example("c", 0, completion_ns);
    let plain = Buffer {
        asked: Some(65536),
        initial: Some(131_072),
        end: Some(131_072),
        peak: None,
        verdict: Some(Verdict::Doubled),
    };
    let evidence = Evidence {
        counters: Some(counters.iter().map(|&(name, moved)| (name.to_owned(), moved)).collect()),
        ..Evidence::default()
    };
    let end = End {
        rcvbuf: plain.clone(),
        sndbuf: plain,
        nodelay: Switch { asked: Some(!nagle), given: Some(!nagle) },
        evidence: Some(evidence),
        ..End::default()
    };
    record.measurement.client = end.clone();
    record.measurement.server = End { evidence: None, ..end };
    record
}

/// A stream for a second whose sender knew that, and whose receiver's buffer was left to the kernel.
pub(super) fn stream(tcp: &TcpFacts) -> Record {
    let mut record = echo(1, false, &[]);
    let Measurement { completion_ns, chunk_latency_ns, goodput_bps, elapsed_ns, .. } = &mut record.measurement;
    (*completion_ns, *chunk_latency_ns) = (None, None);
    (*goodput_bps, *elapsed_ns) = (Some(1_000_000_000), Some(1_000_000_000));
    let kernel_s = Buffer {
        asked: None,
        initial: Some(131_072),
        end: Some(131_072),
        peak: Some(131_072),
        verdict: Some(Verdict::Default),
    };
    record.measurement.client.rcvbuf = kernel_s.clone();
    record.measurement.server.rcvbuf = kernel_s;
    let sender = TcpFacts { sent_bytes: Some(125_000_000), busy_ns: Some(900_000_000), ..tcp.clone() };
    let receiver = TcpFacts { sent_bytes: Some(0), rcv_wscale: Some(7), ..TcpFacts::default() };
    record.measurement.server.evidence = Some(Evidence { tcp: Some(sender), ..Evidence::default() });
    record.measurement.client.evidence =
        Some(Evidence { tcp: Some(receiver), counters: Some(BTreeMap::new()), ..Evidence::default() });
    record
}

pub(super) fn of(record: &Record) -> CellFindings {
    explain(&[record], &sysctls())
}

#[track_caller]
pub(super) fn sentence(record: &Record, name: &str) -> String {
    let found = of(record);
    let finding = found.findings.iter().find(|finding| finding.name == name);
    finding.unwrap_or_else(|| panic!("{name} does not fire: {found:?}")).sentence.clone()
}

#[track_caller]
pub(super) fn silent(record: &Record, name: &str) {
    assert!(!of(record).has(name), "{name} fires: {:?}", of(record));
}

#[test]
fn sctp_timers_that_double_account_for_the_stall() {
    let name = "sctp-retransmission-timeout";
    let stall = echo(31_250_000_000, true, &[("SctpT3RtxExpireds", 5), ("SctpDelaySackExpireds", 3)]);
    assert_eq!(
        sentence(&stall, name),
        "5 retransmission timers (T3-rtx) ran out: doubling from 1.00 s (net.sctp.rto_min) they make 31.0 s of the 31.2 s (99 %)"
    );
    silent(&stall, "delayed-sack-with-nagle");
    let parts = echo(9_280_000_000, true, &[("SctpT3RtxExpireds", 2)]);
    assert_eq!(
        sentence(&parts, name),
        // Both ends share the counters: one of them moved them by one at least.
        "2 retransmission timers (T3-rtx) ran out, each after at least 1.00 s (net.sctp.rto_min): at least 1.00 s of the 9.28 s (11 %)"
    );
    silent(&echo(1_500_000, false, &[("SctpT3RtxExpireds", 0)]), name);
}

#[test]
fn a_delayed_sack_is_blamed_only_with_nagle_without_timeouts_and_for_a_completion_that_is_long_enough() {
    let name = "delayed-sack-with-nagle";
    let moved = [("SctpDelaySackExpireds", 1)];
    let found = sentence(&echo(204_000_000, true, &moved), name);
    assert!(found.contains("200 ms of the 204 ms (98 %)"), "{found}");
    silent(&echo(204_000_000, false, &moved), name);
    silent(&echo(1_500_000, true, &moved), name);
    silent(&echo(204_000_000, true, &[]), name);
}

#[test]
fn a_delayed_ack_likewise_and_one_write_is_left_alone() {
    let name = "delayed-ack-with-nagle";
    let moved = [("TcpExtDelayedACKs", 1)];
    assert!(
        sentence(&echo(44_000_000, true, &moved), name).contains("at least) 1 time, 40.0 ms of the 44.0 ms (91 %)")
    );
    silent(&echo(44_000_000, false, &moved), name);
    silent(&echo(100_000, true, &moved), name);
    silent(&echo(44_000_000, true, &[("TcpExtDelayedACKs", 1), ("TcpExtTCPTimeouts", 1)]), name);
}

#[test]
fn losses_are_told_with_their_counts() {
    let timeout = sentence(&echo(250_000_000, false, &[("TcpExtTCPTimeouts", 1)]), "tcp-retransmission-timeout");
    assert!(timeout.contains("at least 200 ms of the 250 ms (80 %)"), "{timeout}");
    let drops = sentence(&echo(1, false, &[("UdpRcvbufErrors", 7)]), "udp-receive-drops");
    assert!(drops.starts_with("7 datagrams"), "{drops}");
    silent(&echo(1, false, &[("UdpInDatagrams", 7)]), "udp-receive-drops");
    let pruned = sentence(&echo(1, false, &[("TcpExtRcvPruned", 2)]), "receive-queue-drops");
    assert!(pruned.ends_with("2 times pruning made no room (TcpExtRcvPruned)"), "{pruned}");
    let backlog = sentence(&echo(1, false, &[("TcpExtTCPBacklogDrop", 1)]), "receive-queue-drops");
    assert!(backlog.ends_with("1 time the backlog was full (TcpExtTCPBacklogDrop)"), "{backlog}");
    silent(&echo(1, false, &[]), "receive-queue-drops");
    let all = [("SctpInPktDiscards", 5), ("SctpOutOfBlues", 1), ("SctpChecksumErrors", 1)];
    let packets = sentence(&echo(1, false, &all), "receive-queue-drops");
    assert!(packets.starts_with("3 packets had arrived and found the socket's backlog full"), "{packets}");
    silent(&echo(1, false, &[("SctpInPktDiscards", 2), ("SctpOutOfBlues", 2)]), "receive-queue-drops");
    assert!(
        sentence(&echo(1, false, &[("TcpRetransSegs", 3), ("TcpOutSegs", 1000)]), "retransmissions")
            .contains("3 of 1000")
    );
    silent(&echo(1, false, &[("TcpRetransSegs", 3), ("TcpOutSegs", 10_000)]), "retransmissions");
}

#[test]
fn what_limits_a_stream_is_what_the_sender_waited_for() {
    let waits =
        |rwnd, sndbuf| TcpFacts { rwnd_limited_ns: Some(rwnd), sndbuf_limited_ns: Some(sndbuf), ..TcpFacts::default() };
    let mut receiver = stream(&waits(450_000_000, 0));
    assert!(sentence(&receiver, "receiver-limited").contains("450 ms of the 900 ms that it had data to send (50 %)"));
    silent(&receiver, "send-buffer-limited");
    receiver.measurement.client.rcvbuf.asked = Some(32768);
    receiver.measurement.client.rcvbuf.initial = Some(65536);
    (receiver.measurement.client.rcvbuf.end, receiver.measurement.client.rcvbuf.peak) = (Some(65536), Some(65536));
    assert!(sentence(&receiver, "receiver-limited").contains("of the client, whose buffer is 64 KiB,"));
    assert_eq!(
        sentence(&receiver, "autotuning-off"),
        "the client's receive buffer stayed at the 64 KiB that it was given when 32 KiB were asked, and the sender waited for it"
    );
    receiver.measurement.client.rcvbuf.peak = Some(131_072);
    silent(&receiver, "autotuning-off");
    assert!(sentence(&stream(&waits(0, 800_000_000)), "send-buffer-limited").contains("(89 %)"));
    silent(&stream(&waits(100_000_000, 100_000_000)), "receiver-limited");

    let lossy = TcpFacts { retransmits: Some(9), ssthresh_bytes: Some(14480), cwnd_bytes: Some(28960), ..waits(0, 0) };
    assert!(sentence(&stream(&lossy), "congestion-limited").starts_with("9 segments were sent again"));
    silent(&stream(&TcpFacts { rwnd_limited_ns: Some(450_000_000), ..lossy.clone() }), "congestion-limited");
    silent(&stream(&TcpFacts { cwnd_bytes: Some(480_736), ..lossy.clone() }), "congestion-limited");
    let mut busy = stream(&lossy);
    (busy.measurement.server.cpu_user_ns, busy.measurement.server.cpu_system_ns) =
        (Some(10_000_000), Some(940_000_000));
    assert!(sentence(&busy, "cpu-bound").contains("the server's thread used a processor for 950 ms of 1.00 s (95 %)"));
    silent(&busy, "congestion-limited");
    silent(&stream(&waits(0, 0)), "cpu-bound");
}

#[test]
fn a_full_link_is_the_limit_whatever_the_sender_waited_for() {
    let waits = TcpFacts { rwnd_limited_ns: Some(800_000_000), mss_bytes: Some(1448), ..TcpFacts::default() };
    let mut record = stream(&waits);
    let given = [("rate".to_owned(), "1Gbit/s".to_owned())].into();
    let queue = QueueFacts { kind: "tbf".to_owned(), given, ..QueueFacts::default() };
    let server = Interface { mtu: Some(1500), queues: vec![queue], ..Interface::default() };
    record.measurement.link = Some(LinkFacts { server, ..LinkFacts::default() });
    record.measurement.goodput_bps = Some(941_500_000);
    assert_eq!(
        sentence(&record, "link-limited"),
        "942 Mbit/s of the 956 Mbit/s that a link of 1.00 Gbit/s leaves for data (98 %)"
    );
    silent(&record, "receiver-limited");
    record.measurement.goodput_bps = Some(500_000_000);
    silent(&record, "link-limited");
    sentence(&record, "receiver-limited");
}

#[test]
fn drops_of_a_queue_are_told_unless_it_was_told_to_lose() {
    let name = "link-queue-drops";
    let mut record = stream(&TcpFacts::default());
    let with = |drops, given: &[(&str, &str)]| {
        let given = given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let queue = QueueFacts { kind: "netem".to_owned(), packets: 90, drops, given, ..QueueFacts::default() };
        let server = Interface { queues: vec![queue], ..Interface::default() };
        Some(LinkFacts { server, ..LinkFacts::default() })
    };
    record.measurement.link = with(10, &[("limit", "1000")]);
    assert_eq!(sentence(&record, name), "the server's netem dropped 10 of 100 packets (10 %)");
    record.measurement.link = with(10, &[("limit", "1000"), ("loss", "0%"), ("loss_p", "1%"), ("loss_bad", "0%")]);
    sentence(&record, name);
    for loss in ["loss", "loss_p", "loss_good"] {
        record.measurement.link = with(10, &[(loss, "1%")]);
        silent(&record, name);
    }
    record.measurement.link = with(0, &[]);
    silent(&record, name);
}

#[test]
fn a_fall_back_of_mptcp_is_told() {
    let mut record = stream(&TcpFacts::default());
    record.measurement.client.fell_back = Some(false);
    silent(&record, "mptcp-fell-back");
    record.measurement.client.fell_back = Some(true);
    assert_eq!(sentence(&record, "mptcp-fell-back"), "MPTCP fell back to TCP, as the client tells");
}

#[test]
fn a_stream_of_small_chunks_may_wait_for_delayed_acknowledgements_too() {
    let name = "delayed-sack-with-nagle";
    let mut record = stream(&TcpFacts::default());
    let counters = |expired| Some([("SctpDelaySackExpireds".to_owned(), expired)].into());
    record.measurement.server.nodelay = Switch { asked: None, given: Some(false) };
    record.measurement.client.evidence = Some(Evidence { counters: counters(4), ..Evidence::default() });
    record.measurement.server.evidence = None;
    assert!(sentence(&record, name).contains("4 times, 800 ms of the 1.00 s (80 %)"), "{:?}", of(&record));
    record.measurement.client.evidence = Some(Evidence { counters: counters(1), ..Evidence::default() });
    silent(&record, name);
}

#[test]
fn a_window_scale_is_too_small_only_where_it_is_waited_for() {
    let name = "window-scale-too-small";
    let mut record = stream(&TcpFacts { rwnd_limited_ns: Some(450_000_000), ..TcpFacts::default() });
    record.measurement.client.rcvbuf.end = Some(64 << 20);
    assert!(sentence(&record, name).contains("window scale of 7"));
    record.measurement.client.rcvbuf.end = Some(8 << 20);
    silent(&record, name);
}

#[test]
fn a_closed_window_is_told() {
    assert!(sentence(&echo(1, false, &[("TcpExtTCPToZeroWindowAdv", 2)]), "zero-window").contains("2 times"));
    silent(&echo(1, false, &[("TcpExtTCPWantZeroWindowAdv", 2)]), "zero-window");
}

#[test]
fn buffers_are_told_as_the_kernel_gave_them() {
    let mut record = echo(1_500_000, false, &[]);
    silent(&record, "raised-to-the-minimum");
    let raised = Buffer { asked: Some(1024), initial: Some(2304), verdict: Some(Verdict::Raised), ..Buffer::default() };
    record.measurement.client.rcvbuf = raised.clone();
    assert!(
        sentence(&record, "raised-to-the-minimum")
            .starts_with("the client's receive buffer: 1 KiB asked, raised to 2304 bytes")
    );
    record.measurement.server.rcvbuf = raised;
    assert!(sentence(&record, "raised-to-the-minimum").starts_with("both receive buffers: 1 KiB asked"));
    let clamped = Buffer {
        asked: Some(1 << 20),
        initial: Some(253_952),
        verdict: Some(Verdict::ClampedWmem),
        ..Buffer::default()
    };
    record.measurement.server.sndbuf = clamped;
    let found = sentence(&record, "clamped-by-a-sysctl");
    assert_eq!(found, "the server's send buffer: 1 MiB asked, clamped by net.core.wmem_max to 253952 bytes");
}

#[test]
fn growth_is_worth_a_word_only_beyond_what_is_on_its_way() {
    // 1 Gbit/s times 1 ms are 125 kB.
    let facts = TcpFacts { min_rtt_ns: Some(1_000_000), ..TcpFacts::default() };
    let mut record = stream(&facts);
    silent(&record, "autotuned");
    record.measurement.client.rcvbuf.peak = Some(6 << 20);
    assert_eq!(
        sentence(&record, "autotuned"),
        "left to the kernel, the client's receive buffer grew from 128 KiB to 6 MiB (50 times); goodput times the smallest round trip (1.00 ms) \
         keep 125000 B on their way"
    );
    record.measurement.server.sndbuf =
        Buffer { asked: None, initial: Some(16384), end: Some(4 << 20), ..Buffer::default() };
    assert!(
        sentence(&record, "autotuned").contains("and the server's send buffer grew from 16 KiB to 4 MiB (33 times)")
    );
    record.measurement.server.sndbuf.asked = Some(2 << 20);
    record.measurement.client.rcvbuf.peak = Some(400_000);
    silent(&record, "autotuned");
    record.measurement.client.rcvbuf =
        Buffer { asked: Some(6 << 20), peak: Some(12 << 20), ..record.measurement.client.rcvbuf };
    silent(&record, "autotuned");
}

#[test]
fn without_evidence_nothing_is_said_of_the_kernel() {
    let mut record = echo(31_250_000_000, true, &[("SctpT3RtxExpireds", 5)]);
    record.measurement.client.evidence = None;
    assert_eq!(of(&record).findings, []);
}

#[test]
fn most_repeats_must_agree() {
    let slow = echo(31_250_000_000, true, &[("SctpT3RtxExpireds", 5)]);
    let fast = echo(1_500_000, false, &[]);
    assert!(explain(&[&slow, &slow, &fast], &sysctls()).has("sctp-retransmission-timeout"));
    assert!(!explain(&[&slow, &fast, &fast], &sysctls()).has("sctp-retransmission-timeout"));
    let mut failed = slow.clone();
    failed.measurement.outcome = Outcome::Failed;
    assert_eq!(explain(&[&failed], &sysctls()).repeats, 0);
}

/// A run of a cell whose first repeat waited for a delayed acknowledgement (46 ms) and whose others took 0.2 ms was told that no timer ran out.
#[test]
fn few_repeats_that_stand_out_are_told_apart_from_the_cell() {
    let number = |mut record: Record, repeat: u32| {
        record.repeat = repeat;
        record
    };
    let fast: Vec<Record> = (0..5).map(|repeat| number(echo(200_000, true, &[]), repeat)).collect();
    let waits = |completion: u64, repeat: u32| number(echo(completion, true, &[("TcpExtDelayedACKs", 1)]), repeat);
    let with = |slow: &[Record]| {
        let all: Vec<&Record> = slow.iter().chain(&fast).collect();
        explain(&all, &sysctls())
    };
    let found = with(&[waits(46_000_000, 7), waits(210_000_000, 5)]);
    assert_eq!(found.findings, [], "of the cell nothing");
    let [one] = &found.now_and_then[..] else { panic!("{found:?}") };
    assert_eq!((one.finding.name, &one.in_repeats[..]), ("delayed-ack-with-nagle", &[5, 7][..]));
    assert!(one.finding.sentence.contains("210 ms"), "the slowest speaks: {}", one.finding.sentence);
    assert_eq!(one.how_often(found.repeats), "in 2 of 7 repeats");

    // Timers that ran out in a repeat that took no longer, and notes, make none stand out.
    assert_eq!(with(&[number(echo(250_000, true, &[("TcpExtTCPTimeouts", 1)]), 5)]).now_and_then, []);
    assert_eq!(with(&[number(echo(90_000_000, true, &[("TcpExtTCPToZeroWindowAdv", 9)]), 5)]).now_and_then, []);

    // One that did not end as the others did.
    let mut stalled = number(echo(1, true, &[("TcpExtTCPTimeouts", 6)]), 5);
    stalled.measurement.outcome = Outcome::TimedOut;
    (stalled.measurement.completion_ns, stalled.measurement.elapsed_ns) = (None, Some(12_000_000_000));
    let found = with(&[stalled]);
    assert_eq!(
        found.now_and_then.iter().map(|one| one.finding.name).collect::<Vec<_>>(),
        ["tcp-retransmission-timeout"]
    );
}

#[test]
fn streams_that_carried_much_less_than_the_others_stand_out() {
    let carried = |bps: u64, timeouts: u64| {
        let mut record = stream(&TcpFacts::default());
        record.measurement.goodput_bps = Some(bps);
        if let Some(counters) = record.measurement.client.evidence.as_mut().and_then(|one| one.counters.as_mut()) {
            counters.insert("TcpExtTCPTimeouts".to_owned(), timeouts);
        }
        record
    };
    let usual = carried(1_000_000_000, 0);
    for (bps, told) in [(600_000_000, true), (900_000_000, false)] {
        let slow = carried(bps, 2);
        let found = explain(&[&usual, &slow, &usual], &sysctls());
        assert_eq!(
            found.now_and_then.iter().any(|one| one.finding.name == "tcp-retransmission-timeout"),
            told,
            "{bps}"
        );
    }
}

#[test]
fn names_are_unique_and_every_rule_is_documented() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/findings.md")).expect("docs/findings.md");
    for (index, rule) in RULES.iter().enumerate() {
        assert!(RULES[..index].iter().all(|other| other.name != rule.name), "{} twice", rule.name);
        let collapsed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let section = format!("## {}\n", rule.name);
        let at = text.find(&section).unwrap_or_else(|| panic!("docs/findings.md says nothing of {}", rule.name));
        let section = text[at + section.len()..].split("\n## ").next().map(collapsed).unwrap_or_default();
        for part in [rule.about, rule.advice, rule.source] {
            assert!(
                section.contains(&collapsed(part)),
                "docs/findings.md, {}: must say \"{}\"",
                rule.name,
                collapsed(part)
            );
        }
    }
}

#[test]
fn of_several_connections_nothing_is_told_that_holds_for_one() {
    let limited = TcpFacts { rwnd_limited_ns: Some(450_000_000), ..TcpFacts::default() };
    let mut record = stream(&limited);
    (record.measurement.server.cpu_user_ns, record.measurement.server.cpu_system_ns) =
        (Some(10_000_000), Some(940_000_000));
    assert!(of(&record).has("receiver-limited") && of(&record).has("cpu-bound"));
    record.measurement.connections = vec![Connection::default(); 2];
    silent(&record, "receiver-limited");
    // A guest has one processor for all threads.
    assert!(sentence(&record, "cpu-bound").starts_with("both ends used the guest's one processor"));
    record.machine = "native".to_owned();
    silent(&record, "cpu-bound");

    let mut timers = echo(900_000_000, false, &[("TcpExtTCPTimeouts", 3)]);
    assert!(sentence(&timers, "tcp-retransmission-timeout").contains("of the 900 ms"));
    timers.measurement.connections = vec![Connection::default(); 2];
    let told = sentence(&timers, "tcp-retransmission-timeout");
    assert_eq!(told, "3 retransmission timers ran out on 2 connections at once");
}
