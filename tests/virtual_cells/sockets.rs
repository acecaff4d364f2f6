//! Socket options and protocols that the host's kernel may lack.

use serde_json::Value as Json;

use crate::common::Workshop;

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
