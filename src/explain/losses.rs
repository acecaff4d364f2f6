//! Rules about what was lost on the way and what had to be sent again.

use super::finding::{Rule, Severity};
use super::view::{View, at_least, count, share};
use crate::measurement::Association;
use crate::units::{Bytes, Span};

pub(super) const UDP_RECEIVE_DROPS: Rule = Rule {
    name: "udp-receive-drops",
    severity: Severity::Stall,
    about: "UdpRcvbufErrors or Udp6RcvbufErrors moved: datagrams arrived and found the receive buffer full.",
    advice: "a larger receive buffer at the end that receives, or a slower sender",
    source: "__udp_enqueue_schedule_skb, net/ipv4/udp.c",
    look: |view| {
        let dropped = view.counter("UdpRcvbufErrors")? + view.counter("Udp6RcvbufErrors")?;
        (dropped > 0)
            .then(|| format!("{} arrived and found the receive buffer full", count(dropped, "datagram", "datagrams")))
    },
};

pub(super) const SOCKET_QUEUE_DROPS: Rule = Rule {
    name: "receive-queue-drops",
    severity: Severity::Stall,
    about: "TcpExtTCPBacklogDrop, TcpExtTCPRcvQDrop, TcpExtTCPOFODrop or TcpExtRcvPruned moved, or SctpInPktDiscards by more than SctpOutOfBlues \
        and SctpChecksumErrors: segments or packets that had arrived were dropped for want of room in the socket. Its backlog is where what \
        arrives waits while the program is in a call; over SCTP it holds as much as the receive buffer, less what lies in that.",
    advice: "a larger receive buffer at the end that receives",
    source: "tcp_add_backlog (net/ipv4/tcp_ipv4.c), tcp_prune_queue and tcp_data_queue (net/ipv4/tcp_input.c); sctp_rcv and sctp_add_backlog, \
        net/sctp/input.c; sk_rcvqueues_full, include/net/sock.h",
    look: |view| {
        let moved: Vec<String> = [
            ("TcpExtTCPBacklogDrop", "the backlog was full"),
            ("TcpExtTCPRcvQDrop", "the receive queue was full"),
            ("TcpExtTCPOFODrop", "the queue of what came out of order was full"),
            ("TcpExtRcvPruned", "pruning made no room"),
        ]
        .into_iter()
        .filter_map(|(name, why)| Some((name, why, view.counter(name).filter(|&moved| moved > 0)?)))
        .map(|(name, why, moved)| format!("{} {why} ({name})", count(moved, "time", "times")))
        .collect();
        if let Some(packets) = backlog_full(view).filter(|&packets| packets > 0) {
            return Some(format!(
                "{} and found the socket's backlog full while its program was in a call (SctpInPktDiscards)",
                count(packets, "packet had arrived", "packets had arrived")
            ));
        }
        (!moved.is_empty()).then(|| {
            format!("segments that had arrived were dropped for want of room in the socket: {}", moved.join(", "))
        })
    },
};

/// SCTP packets that found a socket's backlog full: those that `sctp_rcv` discarded and that were neither damaged nor for no association.
pub(super) fn backlog_full(view: &View<'_>) -> Option<u64> {
    let known = view.counter("SctpOutOfBlues")? + view.counter("SctpChecksumErrors")?;
    Some(view.counter("SctpInPktDiscards")?.saturating_sub(known))
}

pub(super) const PROCESSOR_BACKLOG_DROPS: Rule = Rule {
    name: "processor-backlog-drops",
    severity: Severity::Stall,
    about: "Devices of the repeat's namespaces dropped packets that they had received (DevRxDrops) and a processor's backlog was full meanwhile \
        (softnet_stat, the whole machine's).",
    advice: "a larger net.core.netdev_max_backlog, or less at once",
    source: "enqueue_to_backlog, net/core/dev.c",
    look: |view| {
        let machine = view.measurement().client.evidence.as_ref()?.softnet_drops?;
        let dropped = view.counter("DevRxDrops")?.min(machine);
        (dropped > 0).then(|| {
            format!(
                "{} found the backlog of its processor full (net.core.netdev_max_backlog)",
                count(dropped, "packet had arrived and", "packets had arrived and each")
            )
        })
    },
};

/// Data chunks that arrived at an end, were neither sent twice by mistake nor kept, and so found no room: those that the association counted
/// beyond what the other end has sent for the first time, and those that the kernel says were discarded.
pub(super) fn thrown_away(end: &Association, other: &Association) -> Option<(u64, u64)> {
    let arrived = end.ordered_chunks_in? + end.unordered_chunks_in?;
    let sent = other.ordered_chunks_out? + other.unordered_chunks_out?;
    Some((arrived, arrived.saturating_sub(sent)))
}

pub(super) const BURST_BEYOND_THE_WINDOW: Rule = Rule {
    name: "burst-beyond-the-window",
    severity: Severity::Stall,
    about: "More was sent at once than the receive buffer had room for. Over SCTP: more data chunks arrived than the other end has sent for the first \
        time (SCTP_GET_ASSOC_STATS), so that some were thrown away and sent again, or SctpInDataChunkDiscards moved beyond duplicates. Over TCP: the \
        sender of an echo waited for the peer's window for at least 10 % of the time (tcpi_rwnd_limited).",
    advice: "a larger receive buffer at the end that receives, or smaller bursts",
    source: "RFC 9260, section 6.2; sctp_eat_data and sctp_ulpevent_make_rcvmsg, net/sctp; tcp_snd_wnd_test, net/ipv4/tcp_output.c",
    look: |view| {
        let ends = view.associations();
        if ends.is_empty() { tcp_burst(view) } else { sctp_burst(view, &ends) }
    },
};

fn sctp_burst(view: &View<'_>, ends: &[(&'static str, &Association, &Association)]) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for &(name, end, other) in ends {
        let (arrived, dropped) = thrown_away(end, other)?;
        if dropped > 0 {
            told.push(format!(
                "of {arrived} data chunks that arrived at the {name} {dropped} found no room in its receive buffer"
            ));
        }
    }
    let duplicates: u64 = ends.iter().filter_map(|(_, end, _)| end.duplicate_chunks_in).sum();
    let discarded = view.counter("SctpInDataChunkDiscards")?.saturating_sub(duplicates);
    if discarded > 0 {
        let dropped = count(discarded, "data chunk was", "data chunks were");
        told.push(format!("{dropped} discarded for want of a receive window (SctpInDataChunkDiscards)"));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

fn tcp_burst(view: &View<'_>) -> Option<String> {
    view.measurement().chunk_latency_ns.as_ref()?;
    let watched = view.silences()?.watched_ns;
    let ends = view.ends();
    let waited = |index: usize| {
        let (name, end) = ends[index];
        let waited = end.evidence.as_ref()?.tcp.as_ref()?.rwnd_limited_ns?;
        let (other, receiver) = ends[1 - index];
        at_least(waited, 10, watched).then(|| {
            let size = receiver.rcvbuf.end.map_or_else(String::new, |size| format!(" (a buffer of {})", Bytes(size)));
            format!(
                "the {name} had more to send than the {other}'s window{size} let through, and waited for it for {} of {} ({})",
                Span(waited),
                Span(watched),
                share(waited, watched)
            )
        })
    };
    let told: Vec<String> = (0..2).filter_map(waited).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

pub(super) const RETRANSMISSIONS: Rule = Rule {
    name: "retransmissions",
    severity: Severity::Note,
    about: "TcpRetransSegs moved by at least 0.1 % of the segments sent, or SctpFastRetransmits moved: data was sent again.",
    advice: "find what was lost: queue drops at the link, reordering by jitter, or loss that was asked for",
    source: "RFC 5681 and RFC 8985; tcp_retransmit_skb, net/ipv4/tcp_output.c",
    look: |view| {
        let again = view.counter("TcpRetransSegs")?;
        let sent = view.counter("TcpOutSegs")?;
        if again > 0 && again * 1000 >= sent {
            return Some(format!("{} of {sent} TCP segments were sent again ({})", again, share(again, sent)));
        }
        let fast = view.counter("SctpFastRetransmits").filter(|&fast| fast > 0)?;
        Some(format!("{} sent again by fast retransmit", count(fast, "SCTP chunk was", "SCTP chunks were")))
    },
};

pub(super) const FELL_BACK: Rule = Rule {
    name: "mptcp-fell-back",
    severity: Severity::Note,
    about: "An end whose connection was to be MPTCP's tells that it is one of TCP.",
    advice: "look for a middlebox, a listener or a sysctl (net.mptcp.enabled) that takes MPTCP's option away",
    source: "RFC 8684, section 3.7; MPTCP_INFO, MPTCP_INFO_FLAG_FALLBACK",
    look: |view| {
        let ends = view.ends().into_iter().filter(|(_, end)| end.fell_back == Some(true));
        let names: Vec<&str> = ends.map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| format!("MPTCP fell back to TCP, as the {} tells", names.join(" and the ")))
    },
};
