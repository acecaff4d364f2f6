//! Rules about the queues of the link: what they dropped, delayed, put out of order, or lost at once.

use super::finding::{Rule, Severity};
use super::losses::{backlog_full, thrown_away};
use super::view::{View, count, has_share, median, number, rate, share, span};
use crate::measurement::{Association, End, Interface, QueueFacts};
use crate::units::{BitRate, Span};

/// Bytes of an Ethernet header, which a queue counts.
const ETHERNET: u64 = 14;

/// Whether a queue was told to lose packets.
fn loses(queue: &QueueFacts) -> bool {
    let bad = has_share(queue, "loss_p") && (has_share(queue, "loss_bad") || !queue.given.contains_key("loss_bad"));
    has_share(queue, "loss") || has_share(queue, "loss_good") || bad
}

/// Every queue with the name of its end and its device.
fn queues<'a>(view: &View<'a>) -> Vec<(&'static str, &'a Interface, &'a QueueFacts)> {
    let devices = view.devices().into_iter();
    devices.flat_map(|(name, device)| device.queues.iter().map(move |queue| (name, device, queue))).collect()
}

/// Those that dropped packets and were told to lose none.
fn full<'a>(view: &View<'a>) -> Vec<(&'static str, &'a Interface, &'a QueueFacts)> {
    queues(view).into_iter().filter(|(_, _, queue)| queue.drops > 0 && !loses(queue)).collect()
}

fn dropped(name: &str, queue: &QueueFacts) -> String {
    let all = queue.drops + queue.packets;
    format!("the {name}'s {} dropped {} of {all} packets ({})", queue.kind, queue.drops, share(queue.drops, all))
}

/// For a netem whose limit is not half as much again as what its delay keeps on their way: its limit, and what that is.
fn too_small(device: &Interface, queue: &QueueFacts) -> Option<(u64, String)> {
    let limit = number(queue, "limit").filter(|_| queue.kind == "netem")?;
    let delay = Span(span(queue, "delay")? + span(queue, "jitter").unwrap_or(0));
    if delay.0 == 0 {
        return None;
    }
    let Some(rate) = rate(queue) else {
        return Some((limit, format!("those on their way among them, for {delay} each, and more came in that time")));
    };
    let frame = u64::from(device.mtu?) + ETHERNET;
    let on_their_way = rate.bytes_in(delay) / frame;
    (2 * limit < 3 * on_their_way).then(|| {
        (
            limit,
            format!("those on their way among them, which at {rate} for {delay} are {on_their_way} of {frame} bytes"),
        )
    })
}

pub(super) const NETEM_LIMIT: Rule = Rule {
    name: "netem-limit-too-small",
    severity: Severity::Limit,
    about: "A netem dropped packets by its own counter, was told to lose none, and its limit is less than one and a half times what its rate times its \
        delay keep on their way, all as read back: its limit counts those too. Without a rate, whatever it dropped was more than its limit in one delay.",
    advice: "a larger `limit`: half as much again as rate times delay over the packet's size, at least",
    source: "netem_enqueue, net/sched/sch_netem.c; TCA_STATS2",
    look: |view| {
        let told: Vec<String> = full(view)
            .into_iter()
            .filter_map(|(name, device, queue)| {
                let (limit, why) = too_small(device, queue)?;
                Some(format!("{} though none were to be lost: it holds {limit}, {why}", dropped(name, queue)))
            })
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    },
};

pub(super) const QUEUE_DROPS: Rule = Rule {
    name: "link-queue-drops",
    severity: Severity::Note,
    about: "A queue of the link dropped packets, by its own counter, and was not told to lose any: it was full, or (codel and its like) kept \
        short on purpose. Not told of a netem whose limit is too small for its delay (netem-limit-too-small).",
    advice: "a longer queue (`limit`), if loss is worse than waiting; a smaller send buffer or another congestion control, if waiting is",
    source: "TCA_STATS2, gnet_stats_queue; qdisc_drop, include/net/sch_generic.h",
    look: |view| {
        let told: Vec<String> = full(view)
            .into_iter()
            .filter(|(_, device, queue)| too_small(device, queue).is_none())
            .map(|(name, _, queue)| dropped(name, queue))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    },
};

/// By how much at least the round trip must have grown for a queue to be said to stand.
const STANDS: u64 = 20_000_000;

/// The median round trip that a sender saw while it ran, or the one at its end where no samples were taken; and the smallest one.
pub(super) fn round_trips(sender: &End) -> Option<(Span, Span)> {
    let tcp = sender.evidence.as_ref()?.tcp.as_ref()?;
    let usual = sender.samples.as_ref().and_then(|samples| median(samples.rtt_ns.as_ref()?));
    Some((Span(usual.or(tcp.rtt_ns)?), Span(tcp.min_rtt_ns?)))
}

/// What a queue can hold at its rate, if it is bounded.
pub(super) fn holds(device: &Interface, queue: &QueueFacts, rate: BitRate) -> Option<Span> {
    let frame = u64::from(device.mtu?) + ETHERNET;
    let bytes = number(queue, "limit_bytes").or_else(|| number(queue, "limit").map(|packets| packets * frame))?;
    let nanoseconds = u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1));
    u64::try_from(nanoseconds).ok().map(Span)
}

pub(super) const STANDING_QUEUE: Rule = Rule {
    name: "standing-queue",
    severity: Severity::Stall,
    about: "The usual round trip of a TCP stream, or of the one beside an echo, was at least twice its smallest one and 20 ms and four packets' time \
        longer, and the sender's queue has a rate: packets waited before it, and so does whatever else goes that way.",
    advice: "a shorter queue (`limit`), one that is kept short (fq_codel), or a congestion control that leaves it empty (bbr)",
    source: "tcpi_rtt and tcpi_min_rtt; RFC 8289, section 1 (bufferbloat); the queue's limit, RTM_GETQDISC",
    look: |view| {
        view.transfers().into_iter().find_map(|ends| {
            let sent = |end: &End| end.evidence.as_ref().and_then(|evidence| evidence.tcp.as_ref()?.sent_bytes);
            let (name, sender) = ends.into_iter().max_by_key(|(_, end)| sent(end))?;
            let (usual, least) = round_trips(sender)?;
            let (_, device) = view.devices().into_iter().find(|(end, _)| *end == name)?;
            let (queue, rate) = device.queues.iter().find_map(|queue| Some((queue, rate(queue)?)))?;
            let waited = Span(usual.0.checked_sub(least.0)?);
            let packet = (u64::from(device.mtu?) + ETHERNET) * 8_000_000_000 / rate.0.max(1);
            if waited.0 < least.0 || waited.0 < STANDS + 4 * packet {
                return None;
            }
            let most = holds(device, queue, rate).map_or_else(String::new, |most| format!(", which at {rate} holds up to {most}"));
            Some(format!(
                "packets waited for {waited} in the {name}'s {}{most}: the round trip was {usual} as a rule and {least} at its least",
                queue.kind
            ))
        })
    },
};

/// What an SCTP receiver tells of order: gaps that it reported, where it threw nothing away.
fn changed_order(view: &View<'_>, associations: &[(&'static str, &Association, &Association)]) -> Option<String> {
    // What was sent again for nothing is discarded as a duplicate.
    let twice: u64 = associations.iter().filter_map(|(_, end, _)| end.duplicate_chunks_in).sum();
    if view.counter("SctpInDataChunkDiscards")? > twice || backlog_full(view)? > 0 {
        return None;
    }
    let mut gaps = 0;
    for &(_, end, other) in associations {
        if thrown_away(end, other)?.1 > 0 {
            return None;
        }
        gaps += end.gaps?;
    }
    let twice =
        if twice > 0 { format!("; {} again for it", count(twice, "was sent", "were sent")) } else { String::new() };
    (gaps > 0).then(|| {
        let gaps = count(gaps, "gap was", "gaps were");
        format!("data chunks arrived out of order: {gaps} reported in what had arrived{twice}")
    })
}

pub(super) const REORDERED: Rule = Rule {
    name: "reordered",
    severity: Severity::Note,
    about: "Segments or chunks arrived out of order (TcpExtTCPOFOQueue; gaps that SCTP reported, sas_gapcnt of SCTP_GET_ASSOC_STATS), while no queue and no device \
        dropped a packet, no socket dropped what had arrived, and none was damaged or told to be lost: the link changed their order.",
    advice: "give the link a `rate`, with which netem keeps the order, or no `jitter`; on a real path net.ipv4.tcp_reordering is how much TCP bears",
    source: "tcp_data_queue_ofo, net/ipv4/tcp_input.c; RFC 8985, section 4; netem_enqueue, net/sched/sch_netem.c",
    look: |view| {
        let lost =
            queues(view).iter().any(|(_, _, queue)| queue.drops > 0 || loses(queue) || has_share(queue, "corrupt"));
        let gone = ["DevRxDrops", "DevTxDrops", "TcpInCsumErrors", "SctpChecksumErrors"];
        let gone = gone.into_iter().chain([
            "TcpExtRcvPruned",
            "TcpExtTCPBacklogDrop",
            "TcpExtTCPOFODrop",
            "TcpExtTCPRcvQDrop",
            "TcpExtTCPZeroWindowDrop",
        ]);
        if view.devices().is_empty() || lost || gone.into_iter().any(|name| view.counter(name) != Some(0)) {
            return None;
        }
        let associations = view.associations();
        let what = if associations.is_empty() {
            let late = view.counter("TcpExtTCPOFOQueue").filter(|&late| late > 0)?;
            let of = view.counter("TcpInSegs")?;
            let again = view.counter("TcpRetransSegs").filter(|&again| again > 0);
            let again = again
                .map_or_else(String::new, |again| format!("; {} again for it", count(again, "was sent", "were sent")));
            format!("{late} of {of} segments arrived out of order and were kept aside{again}")
        } else {
            changed_order(view, &associations)?
        };
        let by: Vec<String> = queues(view)
            .into_iter()
            .filter_map(|(name, _, queue)| {
                let jitter = span(queue, "jitter").filter(|&jitter| jitter > 0);
                let jitter = jitter.map(|jitter| format!("each delayed by itself within ± {}", Span(jitter)));
                let early = has_share(queue, "reorder").then(|| "some sent at once".to_owned());
                Some(format!("the {name}'s {}: {}", queue.kind, jitter.or(early)?))
            })
            .collect();
        let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join("; ")) };
        Some(format!("{what}; the link lost none and changed their order{by}"))
    },
};

/// From how many segments that are sent again for each lost packet on they were lost together.
const TOGETHER: u64 = 3;

pub(super) const LOST_TOGETHER: Rule = Rule {
    name: "segments-lost-together",
    severity: Severity::Note,
    about: "A queue that was told to lose packets dropped some, TCP sent at least three segments again for each of them, and the device takes packets \
        of more than one segment (IFLA_GSO_MAX_SEGS as read back): what a queue loses is such a packet, with all its segments.",
    advice: "gso_max_segs = 1 for the loss of single segments; TSO and GSO off are not enough, since packets are cut below the queue",
    source: "tcp_tso_autosize, net/ipv4/tcp_output.c; netem_enqueue, net/sched/sch_netem.c; validate_xmit_skb, net/core/dev.c",
    look: |view| {
        let (name, _, tcp) = view.tcp_sender()?;
        let again = tcp.retransmits?;
        let (_, device) = view.devices().into_iter().find(|(end, _)| *end == name)?;
        let segments = device.gso_max_segs.filter(|&segments| segments > 1)?;
        let queue = device.queues.iter().find(|queue| queue.drops > 0 && loses(queue))?;
        (again >= TOGETHER * queue.drops).then(|| {
            format!(
                "the {name}'s {} lost {}, and {again} segments were sent again, {} for each: a packet that TCP hands to the queue holds up to \
                 {segments} segments, lost together",
                queue.kind,
                count(queue.drops, "packet", "packets"),
                (again + queue.drops / 2) / queue.drops
            )
        })
    },
};
