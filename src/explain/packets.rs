//! Rules about how messages became packets.

use super::finding::{Rule, Severity};
use super::timers::DELAYED_SACK_WITH_NAGLE;
use super::view::count;

pub(super) const FRAGMENTED: Rule = Rule {
    name: "fragmented",
    severity: Severity::Note,
    about: "IpFragCreates or Ip6FragCreates moved: datagrams were larger than a packet and IP cut them. Or SctpFragUsrMsgs did: SCTP cut messages into \
        chunks. One lost piece of a datagram loses all of it; a chunk is sent again by itself.",
    advice: "a chunk_size that fits a packet, or a larger mtu",
    source: "ip_do_fragment, net/ipv4/ip_output.c; ip6_fragment, net/ipv6/ip6_output.c; sctp_datamsg_from_user, net/sctp/chunk.c",
    look: |view| {
        let pieces = view.counter("IpFragCreates")? + view.counter("Ip6FragCreates")?;
        let whole = view.counter("IpFragOKs")? + view.counter("Ip6FragOKs")?;
        if pieces > 0 {
            let lost = view.counter("IpReasmFails")? + view.counter("Ip6ReasmFails")?;
            let lost = if lost > 0 { format!(", and {lost} were never whole again") } else { String::new() };
            return Some(format!("IP cut {} into {pieces} fragments{lost}", count(whole, "datagram", "datagrams")));
        }
        let cut = view.counter("SctpFragUsrMsgs").filter(|&cut| cut > 0)?;
        Some(format!("SCTP cut {} into chunks that fit a packet", count(cut, "message", "messages")))
    },
};

/// From how many data chunks for each packet on they are said to share packets.
const SHARED: u64 = 2;

pub(super) const BUNDLED: Rule = Rule {
    name: "bundled",
    severity: Severity::Note,
    about: "An end of an SCTP association sent at least twice as many data chunks, each counted once, as packets of any kind \
        (SCTP_GET_ASSOC_STATS): chunks shared packets. Not where Nagle's algorithm was found to hold them back, of which that comes.",
    advice: "nothing: it saves packets; SCTP_NODELAY sends each chunk as soon as it is written",
    source: "RFC 9260, section 6.10; sctp_packet_transmit_chunk, net/sctp/output.c",
    look: |view| {
        if (DELAYED_SACK_WITH_NAGLE.look)(view).is_some() {
            return None;
        }
        let told: Vec<String> = view
            .associations()
            .into_iter()
            .filter_map(|(name, end, _)| {
                let chunks = end.ordered_chunks_out? + end.unordered_chunks_out?;
                let packets = end.packets_out.filter(|&packets| packets > 0 && chunks >= SHARED * packets)?;
                Some(format!("the {name} sent {chunks} data chunks in {packets} packets"))
            })
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    },
};
