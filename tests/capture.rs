//! Captures: what is in them by an independent reader, natively and in a guest, and what becomes of those that cannot be kept.

mod common;

use std::path::Path;

use common::{Workshop, root_or_skip};
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapNGOption, PcapNGSlice, traits::PcapNGPacketBlock};
use serde_json::Value;

const TCP: &str = r#"
name = "tcp"
[run]
repeat = 2
capture = true
[workload]
chunk_count = 8
[axes]
"link.topology" = ["veth", "loopback"]
"#;

/// One packet of a file.
#[derive(Debug)]
struct Packet {
    interface: u32,
    time_ns: u64,
    length: u32,
    bytes: Vec<u8>,
    outgoing: Option<bool>,
}

/// A file as another implementation of pcapng reads it.
#[derive(Debug, Default)]
struct File {
    /// Name, description and bytes that are kept of a packet.
    interfaces: Vec<(String, String, u32)>,
    packets: Vec<Packet>,
    /// Of each interface: packets that passed, and those that were left out.
    statistics: Vec<(u64, u64)>,
}

fn number(options: &[PcapNGOption<'_>], code: OptionCode) -> u64 {
    let option = options.iter().find(|option| option.code == code).expect("an option");
    u64::from_le_bytes(option.as_bytes().expect("bytes").try_into().expect("eight bytes"))
}

fn read(path: &Path) -> File {
    let bytes = std::fs::read(path).expect("a file");
    let mut file = File::default();
    for block in PcapNGSlice::from_slice(&bytes).expect("pcapng") {
        match block.expect("a whole block") {
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {}
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                assert_eq!(block.ts_resolution(), Some(1_000_000_000), "nanoseconds");
                assert_eq!(block.linktype, pcap_parser::Linktype::ETHERNET);
                let text = |text: Option<Result<&str, _>>| text.expect("an option").expect("text").to_owned();
                file.interfaces.push((text(block.if_name()), text(block.if_description()), block.snaplen));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                let flags = block.options.iter().find(|option| option.code == OptionCode(2));
                file.packets.push(Packet {
                    interface: block.if_id,
                    time_ns: u64::from(block.ts_high) << 32 | u64::from(block.ts_low),
                    length: block.orig_len(),
                    bytes: block.packet_data().to_vec(),
                    outgoing: flags.map(|flags| flags.as_bytes().expect("bytes")[0] & 3 == 2),
                });
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(block)) => {
                assert_eq!(block.if_id as usize, file.statistics.len());
                let dropped = number(&block.options, OptionCode::IsbOsDrop);
                file.statistics.push((number(&block.options, OptionCode::IsbIfRecv), dropped));
                // The time of the last packet, upper half first.
                let time = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                assert!(file.packets.iter().any(|packet| packet.time_ns == time), "{time}");
            }
            _ => panic!("a block that sweep does not write"),
        }
    }
    assert!(file.packets.is_sorted_by_key(|packet| packet.time_ns));
    file
}

/// Runs a sweep; its records, each with its file.
fn run(workshop: &Workshop, more: &[&str]) -> Vec<(Value, Option<File>)> {
    workshop.run(&[&["run", "sweep.toml", "--no-plot", "--out", "out"], more].concat()).expect(0);
    let out = workshop.path().join("out");
    let records = common::records(&out).into_iter();
    records
        .map(|record| {
            let file = record["capture"]["file"].as_str().map(|file| read(&out.join(file)));
            (record, file)
        })
        .collect()
}

/// The flags of a segment of TCP over IPv4: SYN is 2, ACK is 16.
fn tcp_flags(packet: &Packet) -> Option<u8> {
    (packet.bytes[12..14] == [8, 0] && packet.bytes[23] == 6).then(|| packet.bytes[14 + 20 + 13])
}

#[test]
fn both_ends_of_a_link_are_captured_and_loopback_once() {
    if !root_or_skip("captures") {
        return;
    }
    let workshop = Workshop::new(TCP);
    let runs = run(&workshop, &[]);
    assert_eq!(runs.len(), 4);
    for (record, file) in &runs {
        assert_eq!(record["outcome"], "measured");
        let file = file.as_ref().expect("a file");
        let remark = "its packets were captured, which costs a little time";
        assert_eq!(record["remarks"], serde_json::json!([remark]));
        let of = |end: u32| file.packets.iter().filter(move |packet| packet.interface == end);
        let told = |end: &str| record["capture"][end]["packets"].as_u64();
        let names: Vec<&str> = file.interfaces.iter().map(|(name, ..)| name.as_str()).collect();
        if record["axes"]["link.topology"] == "veth" {
            assert_eq!(names, ["client-sweep0", "server-sweep0"]);
            assert_eq!(file.interfaces[1].1, "the server's end of the link");
            for (end, name) in [(0, "client"), (1, "server")] {
                assert_eq!(Some(of(end).count() as u64), told(name));
                // The handshake, from both sides: who opens sends the first.
                let opened = of(end).find(|packet| tcp_flags(packet) == Some(2)).expect("a SYN");
                assert_eq!(opened.outgoing, Some(name == "client"));
                assert!(
                    of(end).any(|packet| tcp_flags(packet) == Some(18) && packet.outgoing == Some(name == "server"))
                );
                // Every chunk of 64 bytes goes there and comes back.
                let carried = |out: bool| {
                    let segments = of(end).filter(|packet| packet.outgoing == Some(out) && tcp_flags(packet).is_some());
                    let header = |packet: &Packet| 34 + u32::from(packet.bytes[46] >> 4) * 4;
                    segments.map(|packet| packet.length - header(packet)).sum::<u32>()
                };
                assert_eq!((carried(true), carried(false)), (8 * 64, 8 * 64), "{name}");
            }
        } else {
            assert_eq!(names, ["lo"]);
            assert_eq!(told("server"), None);
            assert_eq!(Some(file.packets.len() as u64), told("client"));
            assert_eq!(of(0).filter(|packet| tcp_flags(packet) == Some(2)).count(), 1, "each packet once");
        }
        assert!(file.interfaces.iter().all(|(_, _, snap)| *snap == 128));
        assert!(file.packets.iter().all(|packet| packet.bytes.len() == packet.length.min(128) as usize));
        assert_eq!(file.statistics.iter().map(|(all, _)| *all).sum::<u64>(), file.packets.len() as u64);
    }
    // Each cell and repeat has a file of its own, and `show` names them.
    let cell = runs[0].0["cell"].as_str().expect("an id");
    let shown = workshop.run(&["show", "out", cell]).expect(0).out;
    for repeat in 0..2 {
        assert!(shown.contains(&format!("repeat {repeat}: capture/{cell}-{repeat}.pcapng: client")), "{shown}");
    }
    assert_eq!(std::fs::read_dir(workshop.path().join("out/capture")).expect("a folder").count(), 4);
}

#[test]
fn a_bound_that_is_reached_is_told_in_the_record_and_in_the_file() {
    if !root_or_skip("captures") {
        return;
    }
    let workshop = Workshop::new(&TCP.replace("capture = true", "capture_packets = 5\ncapture_snap = 64"));
    let runs = run(&workshop, &["--capture", "--filter", "link.topology=veth", "--repeat", "1"]);
    let (record, file) = &runs[0];
    let file = file.as_ref().expect("a file");
    assert_eq!(file.packets.len(), 10, "of each end the first five");
    assert!(file.packets.iter().all(|packet| packet.bytes.len() <= 64));
    for (end, name) in [(0, "client"), (1, "server")] {
        let told = &record["capture"][name];
        let (all, dropped) = file.statistics[end];
        assert!(dropped > 5 && all == dropped + 5, "{all} {dropped}");
        assert_eq!((told["packets"].as_u64(), told["dropped"].as_u64()), (Some(5), Some(dropped)));
        let remark = format!("of the {name}'s packets only the first 5 are kept (run.capture_packets)");
        assert!(record["remarks"][0].as_str().expect("a remark").contains(&remark), "{record}");
    }
    let table = workshop.run(&["show", "out"]).expect(0).out;
    assert!(table.contains("only the first 5"), "{table}");
}

#[test]
fn a_capture_that_cannot_be_written_leaves_the_figures() {
    if !root_or_skip("captures") {
        return;
    }
    let workshop = Workshop::new(TCP);
    run(&workshop, &[]);
    let out = workshop.path().join("out");
    let whole = std::fs::read_to_string(out.join("records.jsonl")).expect("records");
    std::fs::write(out.join("records.jsonl"), whole.lines().next().expect("a record").to_owned() + "\n")
        .expect("written");
    std::fs::remove_dir_all(out.join("capture")).expect("removed");
    std::fs::write(out.join("capture"), "in the way").expect("written");
    workshop.run(&["run", "--resume=out", "--no-plot"]).expect(0);
    let records = common::records(&out);
    assert_eq!(records.len(), 4);
    for record in &records[1..] {
        assert_eq!(record["outcome"], "measured");
        assert!(record["completion_ns"].is_u64() && record["capture"]["file"].is_null());
        assert!(record["capture"]["error"].as_str().expect("why").starts_with("its file could not be written"));
        assert!(record["remarks"][0].as_str().expect("a remark").contains("the capture is not whole"));
    }
    // What was captured is not mixed with what was not.
    let plain = TCP.replace("capture = true", "");
    std::fs::write(workshop.path().join("sweep.toml"), plain).expect("written");
    let ran = workshop.run(&["run", "sweep.toml", "--resume=out", "--no-plot"]).expect(2);
    assert!(ran.err.contains("run.capture: was true, is false"), "{}", ran.err);
}

#[test]
fn a_capture_beyond_memory_is_refused_at_its_place() {
    let workshop =
        Workshop::new(&TCP.replace("capture = true", "capture = true\ncapture_packets = 200000\ncapture_snap = 2000"));
    let ran = workshop.run(&["check", "sweep.toml"]).expect(2);
    assert!(
        ran.err.contains("beyond MAX_CAPTURE_BYTES (256 MiB)") && ran.err.contains("capture_snap = 2000"),
        "{}",
        ran.err
    );
}

const SCTP: &str = r#"
name = "sctp"
[run]
repeat = 2
capture = true
[kernel]
clock = "virtual"
[workload]
protocol = "sctp"
style = "one-to-many"
chunk_count = 8
[axes]
nodelay = [true]
"#;

/// The types of the chunks in a packet of SCTP over IPv4 (RFC 9260, section 3.2).
fn chunks(packet: &Packet) -> Vec<u8> {
    let mut types = Vec::new();
    if packet.bytes[12..14] == [8, 0] && packet.bytes[23] == 132 {
        let mut rest = &packet.bytes[14 + 20 + 12..];
        while let [kind, _, high, low, ..] = *rest {
            types.push(kind);
            let length = usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4).max(4);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
    types
}

#[test]
fn a_guest_in_virtual_time_tells_every_chunk_of_sctp_from_both_ends() {
    let workshop = Workshop::new(SCTP);
    let runs = run(&workshop, &[]);
    assert_eq!(runs.len(), 2);
    for (record, file) in &runs {
        assert_eq!((&record["outcome"], &record["clock"]), (&"measured".into(), &"virtual".into()), "{record}");
        assert!(record["reused_from"].is_null(), "a capture is never taken from the store of results");
        let file = file.as_ref().expect("a file");
        for end in 0..2 {
            let sent = |out: bool| -> Vec<u8> {
                let packets = file.packets.iter().filter(|packet| packet.interface == end);
                packets.filter(|packet| packet.outgoing == Some(out)).flat_map(chunks).collect()
            };
            let (from_client, from_server) =
                if end == 0 { (sent(true), sent(false)) } else { (sent(false), sent(true)) };
            let count = |chunks: &[u8], kind| chunks.iter().map(|&chunk| usize::from(chunk == kind)).sum::<usize>();
            // INIT and INIT ACK, COOKIE ECHO and COOKIE ACK; a DATA for each message, there and back, and SACKs.
            assert_eq!(
                (count(&from_client, 1), count(&from_server, 2)),
                (1, 1),
                "{end}: {from_client:?} {from_server:?}"
            );
            assert_eq!((count(&from_client, 10), count(&from_server, 11)), (1, 1));
            assert!(count(&from_client, 0) >= 1 && count(&from_server, 0) >= 1);
            assert!(count(&from_client, 3) + count(&from_server, 3) >= 1);
        }
        assert_eq!(record["capture"]["client"]["dropped"], 0);
    }
    // The same again gives the same, to the nanosecond and the byte: capturing is part of the machine's own time.
    let again = Workshop::new(SCTP);
    run(&again, &[]);
    for (record, _) in &runs {
        let file = record["capture"]["file"].as_str().expect("a file");
        let bytes = |workshop: &Workshop| std::fs::read(workshop.path().join("out").join(file)).expect("a file");
        assert_eq!(bytes(&workshop), bytes(&again));
    }
}
