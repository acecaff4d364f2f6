//! Rules about what was lost on the way and what had to be sent again.

use super::finding::{Rule, Severity};
use super::view::{count, share};

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
    about: "TcpExtTCPBacklogDrop, TcpExtTCPRcvQDrop, TcpExtTCPOFODrop or TcpExtRcvPruned moved: TCP dropped segments that had arrived, \
        for want of room in the socket.",
    advice: "a larger receive buffer at the end that receives",
    source: "tcp_add_backlog (net/ipv4/tcp_ipv4.c), tcp_prune_queue and tcp_data_queue (net/ipv4/tcp_input.c)",
    look: |view| {
        let names = ["TcpExtTCPBacklogDrop", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop", "TcpExtRcvPruned"];
        let moved: Vec<String> = names
            .into_iter()
            .filter_map(|name| Some((name, view.counter(name).filter(|&moved| moved > 0)?)))
            .map(|(name, moved)| format!("{name} {moved}"))
            .collect();
        (!moved.is_empty()).then(|| {
            format!("segments that had arrived were dropped for want of room in the socket ({})", moved.join(", "))
        })
    },
};

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

/// Shares of packets that a queue was told to lose.
const LOSSES: [&str; 5] = ["loss", "loss_p", "loss_r", "loss_bad", "loss_good"];

pub(super) const QUEUE_DROPS: Rule = Rule {
    name: "link-queue-drops",
    severity: Severity::Note,
    about: "A queue of the link dropped packets, by its own counter, and was not told to lose any: it was full, or (codel and its like) kept \
        short on purpose.",
    advice: "a longer queue (`limit`), if loss is worse than waiting; a smaller send buffer or another congestion control, if waiting is",
    source: "TCA_STATS2, gnet_stats_queue; qdisc_drop, include/net/sch_generic.h",
    look: |view| {
        let link = view.measurement().link.as_ref()?;
        let told: Vec<String> = [("client", &link.client), ("server", &link.server)]
            .into_iter()
            .flat_map(|(name, device)| device.queues.iter().map(move |queue| (name, queue)))
            .filter(|(_, queue)| queue.drops > 0 && !LOSSES.iter().any(|loss| queue.given.contains_key(*loss)))
            .map(|(name, queue)| {
                let all = queue.drops + queue.packets;
                format!(
                    "the {name}'s {} dropped {} of {all} packets ({})",
                    queue.kind,
                    queue.drops,
                    share(queue.drops, all)
                )
            })
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
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
