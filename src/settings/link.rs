//! What each end of a link sends through: a queue that holds packets back, loses or delays them, and the work that the device
//! takes off the protocol.

use serde::{Deserialize, Serialize};

use super::{Link, Settings, Topology};
use crate::units::{BitRate, Bytes, Percent, Span, choice};

choice! {
    /// A queue discipline by its name.
    Qdisc {
        /// The one that the kernel gives the device: none, for veth and loopback.
        #[default] Default = "default",
        /// First in, first out, limited in packets.
        Pfifo = "pfifo",
        /// First in, first out, limited in bytes.
        Bfifo = "bfifo",
        /// Three bands by priority.
        PfifoFast = "pfifo_fast",
        /// Fair queueing with pacing.
        Fq = "fq",
        /// Fair queueing with controlled delay (RFC 8290).
        FqCodel = "fq_codel",
        /// Controlled delay (RFC 8289).
        Codel = "codel",
        /// Stochastic fairness queueing.
        Sfq = "sfq",
        /// Proportional integral controller enhanced (RFC 8033).
        Pie = "pie",
        /// Fair queueing with PIE.
        FqPie = "fq_pie",
        /// Common applications kept enhanced.
        Cake = "cake",
    }
}

/// What one end sends through. A value of zero or `None` leaves the thing as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkEnd {
    /// How fast packets leave.
    pub rate: Option<BitRate>,
    /// How much may leave at once after a pause; a bucket's size.
    pub burst: Option<Bytes>,
    /// Bytes that each packet takes on the line beside those that the kernel counts.
    pub overhead: u32,
    /// How long a packet is held back, one way.
    pub delay: Span,
    /// How far the delay of a packet may be from `delay`, either way, evenly spread.
    pub jitter: Span,
    /// Share of packets lost, each by itself.
    pub loss: Percent,
    /// Gilbert-Elliott: probability of a packet to turn the link from good to bad.
    pub loss_p: Percent,
    /// Gilbert-Elliott: probability of a packet to turn the link from bad to good.
    pub loss_r: Percent,
    /// Gilbert-Elliott: share of packets lost while the link is bad (`1 - h`).
    pub loss_bad: Percent,
    /// Gilbert-Elliott: share of packets lost while the link is good (`1 - k`).
    pub loss_good: Percent,
    /// Share of packets sent twice.
    pub duplicate: Percent,
    /// Share of packets that are not held back by `delay` and so overtake others.
    pub reorder: Percent,
    /// Share of packets with one bit turned over.
    pub corrupt: Percent,
    /// Most packets that the queue holds.
    pub limit: Option<u32>,
    /// Most bytes that the queue holds.
    pub limit_bytes: Option<Bytes>,
    /// The queue discipline.
    pub qdisc: Qdisc,
    /// Delay that the queue discipline aims at.
    pub target: Option<Span>,
    /// Time within which a worst-case round trip fits.
    pub interval: Option<Span>,
    /// Whether the queue discipline marks packets in place of dropping them (RFC 3168).
    pub ecn: Option<bool>,
    /// Whether the device cuts TCP's large packets (`ETHTOOL_STSO`).
    pub tso: Option<bool>,
    /// Whether large packets are cut just before the device (`ETHTOOL_SGSO`).
    pub gso: Option<bool>,
    /// Most segments in a packet that a protocol hands to the queue (`IFLA_GSO_MAX_SEGS`).
    pub gso_max_segs: Option<u32>,
    /// Whether packets are joined on arrival (`ETHTOOL_SGRO`).
    pub gro: Option<bool>,
    /// Whether the device makes checksums (`ETHTOOL_STXCSUM`).
    pub tx_checksum: Option<bool>,
    /// Whether the device checks checksums (`ETHTOOL_SRXCSUM`).
    pub rx_checksum: Option<bool>,
}

impl Default for LinkEnd {
    fn default() -> Self {
        Self {
            rate: None,
            burst: None,
            overhead: 0,
            delay: Span(0),
            jitter: Span(0),
            loss: Percent::default(),
            loss_p: Percent::default(),
            loss_r: Percent::default(),
            loss_bad: Percent::ALL,
            loss_good: Percent::default(),
            duplicate: Percent::default(),
            reorder: Percent::default(),
            corrupt: Percent::default(),
            limit: None,
            limit_bytes: None,
            qdisc: Qdisc::Default,
            target: None,
            interval: None,
            ecn: None,
            tso: None,
            gso: None,
            gso_max_segs: None,
            gro: None,
            tx_checksum: None,
            rx_checksum: None,
        }
    }
}

/// Which queue an end needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The kernel's own: nothing is set up.
    Default,
    /// `netem`, which delays, loses, doubles, reorders and corrupts, and limits the rate itself if one is asked.
    Netem,
    /// `tbf`, which limits the rate and does nothing else, with a queue discipline of that name within.
    Tbf(Qdisc),
    /// A queue discipline by itself.
    Plain(Qdisc),
}

/// Packets that netem holds unless told otherwise (what `tc` gives it).
pub const NETEM_LIMIT: u32 = 1000;
/// Bytes of an Ethernet header, which queues count.
const ETHERNET: u64 = 14;
/// Shortest time of sending at the rate that a bucket holds, in nanoseconds: shorter, and a timer that is late costs rate.
const BURST_NS: u64 = 1_000_000;
/// Time of sending at the rate that a queue before a bucket holds.
const QUEUE: Span = Span(50_000_000);
/// Fewest full packets that such a queue holds.
const FEWEST: u64 = 20;

impl LinkEnd {
    /// Which queue it needs.
    pub fn queue(&self) -> Queue {
        if self.delay.0 > 0 || self.jitter.0 > 0 || self.changes_packets() {
            Queue::Netem
        } else if self.rate.is_some() {
            Queue::Tbf(self.qdisc)
        } else if self.qdisc == Qdisc::Default {
            Queue::Default
        } else {
            Queue::Plain(self.qdisc)
        }
    }

    /// Whether packets are lost, doubled, reordered or corrupted.
    fn changes_packets(&self) -> bool {
        self.loses() || [self.duplicate, self.reorder, self.corrupt].iter().any(|share| *share != Percent::default())
    }

    fn loses(&self) -> bool {
        [self.loss, self.loss_p].iter().any(|share| *share != Percent::default())
    }

    /// Size of a bucket in bytes: as asked, else what leaves in a millisecond, and at least two full packets.
    pub fn burst_bytes(&self, mtu: u32) -> u64 {
        let usual = self.rate.map_or(0, |rate| rate.bytes_in(Span(BURST_NS)));
        self.burst.map_or_else(|| usual.max(2 * frame(mtu)), |burst| burst.0)
    }

    /// Size of the queue before a bucket in bytes: as asked, else what leaves in 50 ms, at least 20 full packets, and a bucket.
    pub fn queue_bytes(&self, mtu: u32) -> u64 {
        let usual = self.rate.map_or(0, |rate| rate.bytes_in(QUEUE)).max(FEWEST * frame(mtu));
        self.limit_bytes.map_or_else(|| usual.saturating_add(self.burst_bytes(mtu)), |limit| limit.0)
    }

    /// Packets that netem must hold so that it does not drop what is merely on its way: rate × delay, and half as much again.
    fn netem_needs(&self, mtu: u32) -> Option<u64> {
        let on_the_way = self.rate?.bytes_in(Span(self.delay.0.saturating_add(self.jitter.0)));
        let packets = u128::from(on_the_way) * 3 / 2 / u128::from(frame(mtu));
        u64::try_from(packets).ok().map(|packets| packets.saturating_add(1))
    }
}

/// Bytes that a queue counts for a full packet.
fn frame(mtu: u32) -> u64 {
    u64::from(mtu) + ETHERNET
}

/// The paths of a key for each end alone.
macro_rules! paths_of_ends {
    ($($key:literal),+) => {
        &["link.topology", $(concat!("link.client.", $key), concat!("link.server.", $key)),+]
    };
}

impl Link {
    /// The MTU of the device: as asked, else what the kernel gives.
    pub fn mtu_bytes(&self) -> u32 {
        self.mtu.unwrap_or(match self.topology {
            Topology::Veth => 1500,
            Topology::Loopback => 65536,
        })
    }

    /// Both ends with their names.
    fn ends(&self) -> [(&'static str, &LinkEnd); 2] {
        [("client", &self.client), ("server", &self.server)]
    }

    /// What cannot go together on either end.
    pub(super) fn conflicts(&self, add: &mut dyn FnMut(&'static [&'static str], String, &'static str)) {
        if self.topology == Topology::Loopback && self.client != self.server {
            add(
                paths_of_ends!(
                    "rate",
                    "burst",
                    "overhead",
                    "delay",
                    "jitter",
                    "loss",
                    "loss_p",
                    "loss_r",
                    "loss_bad",
                    "loss_good",
                    "duplicate",
                    "reorder",
                    "corrupt",
                    "limit",
                    "limit_bytes",
                    "qdisc",
                    "target",
                    "interval",
                    "ecn",
                    "tso",
                    "gso",
                    "gso_max_segs",
                    "gro",
                    "tx_checksum",
                    "rx_checksum"
                ),
                "loopback has one queue for both directions, and the two ends are to differ".to_owned(),
                "use topology = \"veth\", or set both ends alike with keys of [link]",
            );
        }
        for (index, (_, end)) in self.ends().into_iter().enumerate() {
            // What both ends have is told once.
            if index == 0 || self.client != self.server {
                end.conflicts(self.mtu_bytes(), add);
            }
        }
    }
}

/// The paths of a key for both ends and for each, the one to blame first, and those of a second one.
macro_rules! paths {
    ($($key:literal),+) => {
        &[$(concat!("link.", $key), concat!("link.client.", $key), concat!("link.server.", $key)),+]
    };
}

/// Qdiscs with an own limit in packets, and those with a delay to aim at.
const COUNTS_PACKETS: [Qdisc; 7] =
    [Qdisc::Pfifo, Qdisc::Fq, Qdisc::FqCodel, Qdisc::Codel, Qdisc::Sfq, Qdisc::Pie, Qdisc::FqPie];
const AIMS: [Qdisc; 4] = [Qdisc::FqCodel, Qdisc::Codel, Qdisc::Pie, Qdisc::FqPie];
const HAS_INTERVAL: [Qdisc; 2] = [Qdisc::FqCodel, Qdisc::Codel];

impl LinkEnd {
    fn conflicts(&self, mtu: u32, add: &mut dyn FnMut(&'static [&'static str], String, &'static str)) {
        let none = Percent::default();
        if self.jitter > self.delay {
            add(
                paths!("jitter", "delay"),
                format!("a jitter of {} around a delay of {} would go below zero", self.jitter, self.delay),
                "make `jitter` at most `delay`",
            );
        }
        if self.reorder != none && self.delay.0 == 0 {
            add(
                paths!("reorder", "delay"),
                "without a `delay` no packet overtakes another".to_owned(),
                "set `delay`: the share given by `reorder` is sent without it",
            );
        }
        if self.loss != none && self.loss_p != none {
            add(
                paths!("loss", "loss_p"),
                "packets are lost each by itself (`loss`) or in bursts (`loss_p`), not both".to_owned(),
                "leave one of them out; `loss_good` is the loss between bursts",
            );
        }
        if self.loss_p != none && self.loss_r == none {
            add(
                paths!("loss_p", "loss_r"),
                "with `loss_p` and without `loss_r` the link never gets good again".to_owned(),
                "set `loss_r`: its inverse is the mean length of a burst in packets",
            );
        }
        let elliott = self.loss_r != none || self.loss_good != none || self.loss_bad != Percent::ALL;
        if self.loss_p == none && elliott {
            add(
                paths!("loss_r", "loss_bad", "loss_good", "loss_p"),
                "bursts of loss need `loss_p`".to_owned(),
                "set `loss_p`: the probability that a packet begins a burst; or use `loss` alone",
            );
        }
        if self.overhead > 0 && self.rate.is_none() {
            add(
                paths!("overhead", "rate"),
                "`overhead` counts against a `rate`, and there is none".to_owned(),
                "set `rate`, or leave `overhead` out",
            );
        }
        self.queue_conflicts(mtu, add);
    }

    fn queue_conflicts(&self, mtu: u32, add: &mut dyn FnMut(&'static [&'static str], String, &'static str)) {
        let queue = self.queue();
        if let (Some(burst), false) = (self.burst, matches!(queue, Queue::Tbf(_))) {
            add(
                paths!("burst", "rate"),
                format!("a `burst` of {burst} needs a `rate` and nothing that delays or changes packets"),
                "leave `burst` out: netem limits a rate without a bucket",
            );
        }
        if let (Some(burst), Queue::Tbf(_)) = (self.burst, queue)
            && burst.0 < frame(mtu)
        {
            add(
                paths!("burst"),
                format!(
                    "a `burst` of {burst} is smaller than a full packet of {}, which would never leave",
                    Bytes(frame(mtu))
                ),
                "make `burst` larger, or `mtu` smaller",
            );
        }
        if queue == Queue::Netem && self.qdisc != Qdisc::Default {
            add(
                paths!("qdisc", "delay"),
                format!("`{}` and netem, which delays and changes packets, cannot both be an end's queue", self.qdisc),
                "put them on different ends, such as link.client.qdisc and link.server.delay, or leave one out",
            );
        }
        if let Some(limit) = self.limit {
            let counts = match queue {
                Queue::Netem | Queue::Tbf(Qdisc::Default) => true,
                Queue::Default => false,
                Queue::Tbf(qdisc) | Queue::Plain(qdisc) => COUNTS_PACKETS.contains(&qdisc),
            };
            if !counts {
                add(
                    paths!("limit", "qdisc"),
                    format!("there is no queue here that a limit of {limit} packets could hold for"),
                    "set `qdisc`, `rate` or `delay` too; bfifo is limited by `limit_bytes`",
                );
            }
            if self.limit_bytes.is_some() {
                add(
                    paths!("limit", "limit_bytes"),
                    "a queue is limited in packets (`limit`) or in bytes (`limit_bytes`), not in both".to_owned(),
                    "leave one of them out",
                );
            }
        }
        if let Some(bytes) = self.limit_bytes
            && !matches!(queue, Queue::Tbf(Qdisc::Default | Qdisc::Bfifo) | Queue::Plain(Qdisc::Bfifo))
        {
            add(
                paths!("limit_bytes", "qdisc"),
                format!("there is no queue here that a limit of {bytes} could hold for"),
                "a `rate` alone and bfifo are limited in bytes; netem and the other qdiscs in packets, by `limit`",
            );
        }
        let named = match queue {
            Queue::Tbf(qdisc) | Queue::Plain(qdisc) => qdisc,
            // That netem and a qdisc by name do not go together is told above.
            Queue::Default | Queue::Netem => self.qdisc,
        };
        if (self.target.is_some() || self.ecn.is_some()) && !AIMS.contains(&named) {
            add(
                paths!("target", "ecn", "qdisc"),
                "`target` and `ecn` are for fq_codel, codel, pie and fq_pie".to_owned(),
                "leave them out, or set `qdisc` to one of these",
            );
        }
        if self.interval.is_some() && !HAS_INTERVAL.contains(&named) {
            add(
                paths!("interval", "qdisc"),
                "`interval` is for fq_codel and codel".to_owned(),
                "leave it out, or set `qdisc` to one of these",
            );
        }
    }
}

impl Settings {
    /// What works and is likely not what was meant, with what to do.
    pub fn warnings(&self) -> Vec<String> {
        let link = &self.link;
        let mut found = Vec::new();
        for (index, (name, end)) in link.ends().into_iter().enumerate() {
            if index == 1 && link.client == link.server || end.queue() != Queue::Netem {
                continue;
            }
            let place = if link.client == link.server { "link".to_owned() } else { format!("link.{name}") };
            let limit = end.limit.unwrap_or(NETEM_LIMIT);
            if let (Some(rate), Some(needs)) = (end.rate, end.netem_needs(link.mtu_bytes()))
                && u64::from(limit) < needs
            {
                found.push(format!(
                    "{place}.limit = {limit} is too small for {} and {}: packets on their way count too, so netem drops some without any loss asked for; use {needs} or more",
                    rate.exact(),
                    end.delay.exact(),
                ));
            }
            if end.jitter.0 > 0 && end.rate.is_none() {
                found.push(format!(
                    "{place}.jitter = {} reorders packets, since each is sent when its own delay is over; with a `rate` they keep their order",
                    end.jitter.exact()
                ));
            }
            let segments = matches!(self.workload.protocol.name(), "tcp" | "mptcp") && end.gso_max_segs != Some(1);
            if end.loses() && segments {
                found.push(format!(
                    "{place}: a packet that TCP hands to the queue holds up to 64 KiB of segments, lost together, even where TSO and GSO are off; set {place}.gso_max_segs = 1 for loss of single segments"
                ));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
