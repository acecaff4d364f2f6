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
