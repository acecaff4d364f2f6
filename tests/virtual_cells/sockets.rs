//! Socket options and protocols that the host's kernel may lack.

use serde_json::Value as Json;

use crate::common::Workshop;
use crate::{measured, number, run};

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

/// C26: a message above the send buffer is refused however long one waits, and the reason names the size that passes. The cells beside it go
/// on, and TCP takes any size (iperf#1186, sctp#31).
#[test]
fn a_message_above_the_send_buffer_is_invalid_and_one_of_its_size_passes() {
    let records = run(
        "[link]\ntopology = \"loopback\"\n[workload]\nchunk_count = 2\n[socket]\nsndbuf = \"64KiB\"\nnodelay = true\n[axes]\n\"workload.protocol\" = [\"sctp\", \"tcp\"]\nchunk_size = [131072, 131073]\n",
    );
    for place in ["sctp 131072", "tcp 131072", "tcp 131073"] {
        measured(&records[place]);
    }
    let refused = &records["sctp 131073"];
    assert_eq!(refused["outcome"], "invalid", "{refused}");
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("a message of 131073 bytes") && reason.contains("a chunk_size of 131072 or less"),
        "{reason}"
    );
    assert!(reason.contains("os error 90"), "{reason}");
}

/// C21: a request in two messages waits for the peer's delayed acknowledgement while Nagle's algorithm is on (go-diameter#225, otp#4775,
/// otp#9652: 190 ms, and 0.16 ms with `SCTP_NODELAY`).
#[test]
fn an_sctp_request_in_two_messages_waits_while_nagles_algorithm_is_on() {
    let records = run(
        "[link]\ntopology = \"loopback\"\n[workload]\nprotocol = \"sctp\"\npattern = \"write-write-read\"\nchunk_count = 8\n[axes]\nnodelay = [false, true]\n",
    );
    let latency = |place: &str| number(&measured(&records[place])["chunk_latency_ns"]["p50"]) / 1000;
    assert!((150_000..=250_000).contains(&latency("false")), "{} us", latency("false"));
    assert!(latency("true") < 1000, "{} us", latency("true"));
}

/// C01: what a preset stands for is what the kernel is asked: here the runtime whose report this program began with (erlang/otp#9722).
#[test]
fn a_preset_asks_for_what_it_stands_for() {
    let records = run("[axes]\npreset = [\"erlang-otp-27\", \"erlang-otp-28\"]\nnodelay = [true]\n");
    let (old, new) = (&records["erlang-otp-27 true"], &records["erlang-otp-28 true"]);
    for end in ["client", "server"] {
        let (receive, send) = (&measured(old)[end]["rcvbuf"], &old[end]["sndbuf"]);
        assert_eq!((&receive["asked"], &receive["verdict"]), (&1024.into(), &"raised to the minimum".into()));
        assert_eq!((&send["asked"], &send["initial"]), (&65536.into(), &131_072.into()));
        assert_eq!(old[end]["options"]["sctp.events"]["given"], "all");
        assert_eq!(measured(new)[end]["rcvbuf"]["asked"], Json::Null);
    }
    assert!(ms(old) > 1000 && ms(new) < 100, "{} and {}", ms(old), ms(new));
}
