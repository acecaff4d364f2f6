//! The packets of a repeat, as both ends of its link see them, as a pcapng file
//! (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>).

use std::borrow::Cow;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::measurement::{Capture, CaptureLimits, CapturedEnd};
use crate::settings::{Link, Topology};
use crate::sys::capture::{Packet, Passed, Tap};

use super::link;

/// `if_tsresol` of a time in nanoseconds: ten to the power of minus nine.
const NANOSECONDS: u8 = 9;

/// One end that is being captured, or why it is not.
pub(super) struct Listening(Option<Result<Tap, String>>);

/// What was captured at one end, or why nothing was.
pub(super) type Heard = Option<Result<Passed, String>>;

impl Listening {
    /// Begins to capture at the device of an end, in the calling thread's namespace, if that is asked for.
    pub(super) fn begin(settings: &Link, limits: Option<CaptureLimits>) -> Self {
        Self(limits.map(|CaptureLimits { packets, snap_bytes }| {
            let (_, index) = link::device(settings);
            let both_ways = settings.topology == Topology::Veth;
            Tap::open(index, packets, snap_bytes, both_ways)
                .map_err(|error| format!("no packet socket could be opened: {error}"))
        }))
    }

    /// What has passed until now.
    pub(super) fn end(self) -> Heard {
        self.0.map(|tap| tap?.take().map_err(|error| format!("the packets could not be counted: {error}")))
    }
}

/// Puts what both ends heard into one file, in the order of time. `None` where nothing was to be captured.
pub(super) fn conclude(
    settings: &Link,
    limits: Option<CaptureLimits>,
    client: Heard,
    server: Heard,
) -> Option<Capture> {
    let limits = limits?;
    let mut capture = Capture::default();
    let mut errors = Vec::new();
    let mut ends = Vec::new();
    for (name, heard) in [("client", client), ("server", server)] {
        match heard {
            Some(Ok(passed)) => ends.push((name, passed)),
            Some(Err(error)) => errors.push(format!("{name}: {error}")),
            None => {}
        }
    }
    for (name, passed) in &ends {
        let cut = passed.packets.iter().filter(|packet| packet.length as usize > packet.bytes.len()).count();
        let end = CapturedEnd { packets: passed.packets.len() as u64, dropped: passed.dropped, cut: cut as u64 };
        *if *name == "client" { &mut capture.client } else { &mut capture.server } = Some(end);
    }
    if !ends.is_empty() {
        match write(settings, limits, &ends) {
            Ok(pcapng) => capture.pcapng = pcapng,
            Err(error) => errors.push(format!("the file could not be made: {error}")),
        }
    }
    capture.error = (!errors.is_empty()).then(|| errors.join("; "));
    Some(capture)
}

/// The file: a section, a description of each device, the packets, and how many there were.
fn write(settings: &Link, limits: CaptureLimits, ends: &[(&str, Passed)]) -> Result<Vec<u8>, PcapError> {
    let section = SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(concat!(
            "sweep ",
            env!("CARGO_PKG_VERSION")
        )))],
        ..SectionHeaderBlock::default()
    };
    let mut writer = PcapNgWriter::with_section_header(Vec::new(), section)?;
    let (device, _) = link::device(settings);
    for (name, _) in ends {
        let about = match settings.topology {
            Topology::Veth => format!("the {name}'s end of the link"),
            Topology::Loopback => "both ends: the loopback device of their namespace".to_owned(),
        };
        // Names differ, although each device has the same one in its own namespace, so that readers can tell the ends apart.
        let name = match settings.topology {
            Topology::Veth => format!("{name}-{device}"),
            Topology::Loopback => device.to_owned(),
        };
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: limits.snap_bytes,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Owned(about)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_block(&block.into_block())?;
    }
    let mut packets: Vec<(u32, &Packet)> = Vec::new();
    for (id, (_, passed)) in (0..).zip(ends) {
        packets.extend(passed.packets.iter().map(|packet| (id, packet)));
    }
    packets.sort_by_key(|(_, packet)| packet.time_ns);
    let both_ways = settings.topology == Topology::Veth;
    for (interface_id, packet) in packets {
        // Bits 0 and 1 of the flags: 1 came in, 2 went out.
        let direction = if packet.outgoing { 2 } else { 1 };
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(packet.time_ns),
            original_len: packet.length,
            data: Cow::Borrowed(&packet.bytes),
            options: if both_ways { vec![EnhancedPacketOption::Flags(direction)] } else { Vec::new() },
        };
        writer.write_block(&block.into_block())?;
    }
    for (interface_id, (_, passed)) in (0..).zip(ends) {
        let last = passed.packets.last().map_or(0, |packet| packet.time_ns);
        let kept = passed.packets.len() as u64;
        let block = InterfaceStatisticsBlock {
            interface_id,
            // The upper half of the time stands first whatever the order of bytes, and the crate writes 64 bits as they are.
            timestamp: last.rotate_left(32),
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(kept + passed.dropped),
                InterfaceStatisticsOption::IsbOsDrop(passed.dropped),
            ],
        };
        writer.write_block(&block.into_block())?;
    }
    Ok(writer.into_inner())
}
