//! Socket options, protocols and shapes of a workload: each takes effect on the kernel that the tests run on, or says why not. What
//! that kernel lacks is tried in a guest in virtual time.

mod common;

use common::Workshop;
use common::cells::{measure, word};
use serde_json::Value as Json;
use sweep::backend::native::Native;
use sweep::measurement::{End, Measurement, Outcome, Reading, Verdict};
use sweep::settings::Value;

#[track_caller]
fn measured(values: &[(&str, Value)]) -> Measurement {
    let measured = measure(values, 30_000);
    assert_eq!(measured.outcome, Outcome::Measured, "{values:?}: {:?}", measured.reason);
    measured
}

/// What an option was asked, given, and is at the end.
fn option(end: &End, name: &str) -> (Reading, Option<Reading>, Option<Reading>) {
    let reading = end.options.get(name).unwrap_or_else(|| panic!("{name} was not recorded: {end:?}")).clone();
    (reading.asked, reading.given, reading.end)
}

#[test]
fn options_of_tcp_are_set_and_read_back_on_both_ends() {
    let numbers = [
        ("rcvlowat", 1),
        ("tos", 32),
        ("priority", 5),
        ("tcp.notsent_lowat", 16384),
        ("tcp.window_clamp", 65536),
        ("tcp.maxseg", 536),
    ];
    let words = [("busy_poll", "50us"), ("tcp.user_timeout", "5s"), ("tcp.congestion", "reno")];
    let mut values: Vec<(String, Value)> =
        numbers.iter().map(|(name, number)| (format!("socket.{name}"), Value::Int(*number))).collect();
    values.extend(words.iter().map(|(name, text)| (format!("socket.{name}"), word(text))));
    values.push(("socket.tcp.cork".to_owned(), Value::Bool(false)));
    let values: Vec<(&str, Value)> = values.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    let measured = measured(&values);
    for end in [&measured.client, &measured.server] {
        for (name, number) in numbers {
            let number = Reading::Number(number.try_into().expect("small"));
            let (asked, given, last) = option(end, name);
            assert_eq!(asked, number, "{name}");
            // Of a connection `TCP_MAXSEG` tells what is in use: less the time stamps.
            if name == "tcp.maxseg" {
                assert_eq!(last, Some(Reading::Number(524)));
            } else if name == "tcp.window_clamp" {
                // A whole number of segments.
                assert_eq!(given, Some(number));
                assert!(matches!(last, Some(Reading::Number(64000..=65536))), "{last:?}");
            } else {
                assert_eq!((given, last), (Some(number.clone()), Some(number)), "{name}");
            }
        }
        for (name, text) in words {
            let text = Reading::Word(text.to_owned());
            assert_eq!(option(end, name), (text.clone(), Some(text.clone()), Some(text)), "{name}");
        }
        let off = Reading::Switch(false);
        assert_eq!(option(end, "tcp.cork"), (off.clone(), Some(off.clone()), Some(off)));
    }
}

#[test]
fn an_option_of_one_end_is_not_the_others_and_ipv6_has_a_traffic_class() {
    let measured = measured(&[("link.family", word("ipv6")), ("socket.client.tos", Value::Int(64))]);
    let class = Some(Reading::Number(64));
    assert_eq!(option(&measured.client, "tos"), (Reading::Number(64), class.clone(), class));
    assert!(measured.server.options.is_empty());
}

#[test]
fn what_the_kernel_refuses_or_lacks_says_what_and_where() {
    let refused = measure(&[("socket.client.tcp.maxseg", Value::Int(1))], 5000);
    assert_eq!(refused.outcome, Outcome::Invalid);
    let reason = refused.reason.expect("a reason");
    assert!(reason.contains("TCP_MAXSEG = 1 on the client"), "{reason}");

    let absent = measure(&[("socket.server.tcp.congestion", word("no-such"))], 5000);
    assert_eq!(absent.outcome, Outcome::Skipped);
    let reason = absent.reason.expect("a reason");
    assert!(reason.contains("no-such on the server") && reason.contains("reno"), "{reason}");
}

#[test]
fn a_forced_buffer_is_not_bounded() {
    let forced = measure(&[("socket.rcvbuf_force", word("16MiB")), ("socket.sndbuf_force", word("16MiB"))], 10_000);
    if forced.outcome == Outcome::Skipped {
        let reason = forced.reason.expect("a reason");
        assert!(reason.contains("SO_RCVBUFFORCE") && !common::root_or_skip("forced buffers"), "{reason}");
        return;
    }
    assert_eq!(forced.outcome, Outcome::Measured, "{:?}", forced.reason);
    let limit = Native::new("for a test").expect("a native backend").machine().limits.rmem_max.expect("a limit");
    assert!(limit < 16 << 20, "the test needs a lower limit than it asks for: {limit}");
    for end in [&forced.client, &forced.server] {
        for buffer in [&end.rcvbuf, &end.sndbuf] {
            assert_eq!((buffer.asked, buffer.initial, buffer.end), (Some(16 << 20), Some(32 << 20), Some(32 << 20)));
            assert_eq!(buffer.verdict, Some(Verdict::Doubled));
        }
        assert_eq!(option(end, "rcvbuf_force").1, Some(Reading::Number(32 << 20)));
    }
}

/// The window scale is settled at the handshake: a small buffer that is set before makes it small.
#[test]
fn when_a_buffer_is_set_decides_the_window_scale() {
    let scale = |at: &str| {
        let measured = measured(&[("rcvbuf", word("16KiB")), ("socket.set_at", word(at))]);
        for end in [&measured.client, &measured.server] {
            assert_eq!((end.rcvbuf.initial, end.rcvbuf.end), (Some(32768), Some(32768)), "{at}");
        }
        [measured.client, measured.server].map(|end| {
            let facts = end.evidence.and_then(|evidence| evidence.tcp).expect("what TCP knows");
            facts.rcv_wscale.expect("a scale")
        })
    };
    assert_eq!(scale("before"), [0, 0]);
    assert!(scale("after").iter().all(|scale| *scale > 0), "the buffer was still the kernel's own at the handshake");
}

/// The median round trip of small requests in two writes, over veth.
fn write_write_read(values: &[(&str, Value)]) -> u64 {
    let shape = [("workload.pattern", word("write-write-read")), ("chunk_count", Value::Int(24))];
    measured(&[&shape[..], values].concat()).chunk_latency_ns.expect("latencies").p50 / 1_000_000
}

#[test]
fn write_write_read_waits_for_a_delayed_acknowledgement_unless_it_is_asked_for_at_once() {
    let quickack = "socket.server.tcp.quickack";
    assert!(write_write_read(&[]) >= 35, "Nagle's algorithm waits for the delayed acknowledgement");
    assert!(write_write_read(&[(quickack, word("once"))]) >= 35, "the kernel falls back by itself");
    assert!(write_write_read(&[(quickack, word("each-read"))]) < 20);
    assert!(write_write_read(&[("socket.client.nodelay", Value::Bool(true))]) < 20);
    assert!(write_write_read(&[("workload.pattern", word("write-read"))]) < 20, "one write is not held back");
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

/// The records of a sweep in a guest in virtual time, with these lines in place of dots.
fn in_a_guest(lines: &str) -> Vec<Json> {
    let workshop = Workshop::new(&format!(
        "name = \"sockets\"\n[run]\nrepeat = 1\ntimeout = \"180s\"\n[kernel]\nclock = \"virtual\"\n[link]\ntopology = \"loopback\"\n{lines}"
    ));
    workshop.run(&["run", "sweep.toml", "--fresh", "--no-plot"]);
    workshop.records("latest")
}

fn ms(record: &Json) -> u64 {
    assert_eq!(record["outcome"], "measured", "{record}");
    record["completion_ns"].as_u64().expect("a completion") / 1_000_000
}

#[test]
fn options_of_sctp_are_given_and_a_longer_delay_of_acknowledgements_shows() {
    let asked = [
        ("rto_initial", "2s", "2s"),
        ("rto_min", "700ms", "700ms"),
        ("rto_max", "90s", "1m 30s"),
        ("lifetime", "10s", "10s"),
        ("autoclose", "100s", "1m 40s"),
        ("heartbeat", "5s", "5s"),
        ("events", "all", "all"),
    ];
    let numbers =
        [("max_burst", 8), ("maxseg", 1000), ("fragment_interleave", 1), ("streams_out", 5), ("streams_in", 7)];
    let options: String = asked
        .iter()
        .map(|(name, value, _)| format!("{name} = \"{value}\"\n"))
        .chain(numbers.iter().map(|(name, value)| format!("{name} = {value}\n")))
        .collect();
    let records = in_a_guest(&format!(
        "[workload]\nprotocol = \"sctp\"\nstyle = \"one-to-many\"\n[socket]\nrcvbuf = \"64KiB\"\nnodelay = false\n[socket.sctp]\n{options}[axes]\n\"socket.sctp.sack_delay\" = [\"default\", \"500ms\"]\n"
    ));
    for record in &records {
        let slow = record["axes"]["socket.sctp.sack_delay"] == "500ms";
        assert!(if slow { 495..=540 } else { 195..=230 }.contains(&ms(record)), "{record}");
        for end in ["client", "server"] {
            let options = &record[end]["options"];
            for (name, _, given) in asked {
                let option = &options[format!("sctp.{name}")];
                assert_eq!((&option["given"], &option["final"]), (&Json::from(given), &Json::from(given)), "{name}");
            }
            for (name, number) in numbers {
                let option = &options[format!("sctp.{name}")];
                assert_eq!(option["given"], number, "{end} {name}");
                // Of streams the smaller number is agreed on.
                let agreed = if name == "streams_in" { 5 } else { number };
                assert!(option["final"] == number || option["final"] == agreed, "{end} {name}: {option}");
            }
            let association = &record[end]["association"];
            assert_eq!((&association["state"], &association["streams_in"]), (&Json::from(4), &Json::from(5)));
            assert_eq!(association["fragmentation_point_bytes"], 1000);
            assert_eq!(association["ordered_chunks_out"], 32);
            assert_eq!(association["rto_ns"], 700_000_000);
        }
    }
}

#[test]
fn acknowledgements_without_delay_and_messages_without_order() {
    let records = in_a_guest(
        "[workload]\nprotocol = \"sctp\"\n[socket]\nrcvbuf = \"64KiB\"\nnodelay = false\n[socket.sctp]\nunordered = true\nsack_frequency = 1\n",
    );
    assert!(ms(&records[0]) < 20, "{}", records[0]);
    for end in ["client", "server"] {
        let record = &records[0][end];
        assert_eq!(record["options"]["sctp.unordered"]["final"], true);
        assert_eq!(record["association"]["unordered_chunks_out"], 32, "{record}");
        assert_eq!(record["association"]["ordered_chunks_out"], 0);
    }
}

#[test]
fn a_shorter_retransmission_timeout_shortens_the_stall() {
    let records = in_a_guest(
        "[workload]\nprotocol = \"sctp\"\n[socket]\nrcvbuf = 1024\nsndbuf = \"64KiB\"\nnodelay = true\n[socket.sctp]\nrto_initial = \"200ms\"\n[axes]\n\"socket.sctp.rto_min\" = [\"default\", \"100ms\"]\n",
    );
    let of = |value: &str| {
        ms(records.iter().find(|record| record["axes"]["socket.sctp.rto_min"] == value).expect("a record"))
    };
    assert!(of("default") > 1000 && of("100ms") * 2 < of("default"), "{} and {}", of("default"), of("100ms"));
}

/// In virtual time a loss is the same loss every time.
#[test]
fn udp_and_mptcp_in_virtual_time() {
    let records = in_a_guest(
        "[workload]\nchunk_count = 200\nchunk_size = 1000\n[socket]\nrcvbuf = 4096\n[axes]\n\"workload.protocol\" = [\"udp\", \"mptcp\"]\n",
    );
    for record in &records {
        if record["axes"]["workload.protocol"] == "mptcp" {
            assert_eq!(record["outcome"], "measured", "{record}");
            assert_eq!(record["client"]["fell_back"], false);
        } else {
            assert_eq!(record["outcome"], "incomplete", "{record}");
            assert!((1..200).contains(&record["lost_chunks"].as_u64().expect("a number")), "{record}");
        }
    }
}

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

/// One-to-one and one-to-many SCTP, each connection on sockets of its own, and TCP: the same figures every time.
#[test]
fn several_connections_in_virtual_time_are_the_same_every_time() {
    let run = |lines| {
        let mut records = in_a_guest(lines);
        records.sort_by_key(|record| record["axes"].to_string());
        let figures = ["completion_ns", "goodput_bps", "chunk_latency_ns", "connections"];
        let of = |record: &Json| {
            assert_eq!(record["outcome"], "measured", "{record}");
            assert_eq!(record["connections"].as_array().expect("connections").len(), 4);
            assert!(ms(record) > 0);
            figures.map(|figure| record[figure].clone())
        };
        records.iter().map(of).collect::<Vec<_>>()
    };
    let echoes = "[workload]\nprotocol = \"sctp\"\nconnections = 4\n[socket]\nnodelay = true\n[axes]\n\"workload.style\" = [\"one-to-one\", \"one-to-many\"]\n";
    let stream = "[workload]\nkind = \"stream\"\nbytes = \"256KiB\"\nconnections = 4\n[axes]\n\"workload.direction\" = [\"upload\", \"download\"]\n";
    for lines in [echoes, stream] {
        let once = run(lines);
        assert_eq!(once.len(), 2);
        assert_eq!(once, run(lines));
    }
}
