//! A repeat as the rules look at it.

use std::collections::BTreeMap;

use crate::measurement::{Association, End, Evidence, Interface, Measurement, QueueFacts, Reading, Silences, TcpFacts};
use crate::record::Record;
use crate::units::{BitRate, Percent, Span};

/// Fewest looks at a buffer from which its use is judged.
pub(super) const ENOUGH_LOOKS: usize = 16;

/// One repeat and the sysctls of the machine that ran it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) record: &'a Record,
    sysctls: &'a BTreeMap<String, String>,
}

impl<'a> View<'a> {
    pub(super) const fn new(record: &'a Record, sysctls: &'a BTreeMap<String, String>) -> Self {
        Self { record, sysctls }
    }

    pub(super) const fn measurement(&self) -> &'a Measurement {
        &self.record.measurement
    }

    /// Both ends, with their names.
    pub(super) const fn ends(&self) -> [(&'static str, &'a End); 2] {
        [("client", &self.measurement().client), ("server", &self.measurement().server)]
    }

    fn evidence(&self) -> impl Iterator<Item = &'a Evidence> {
        self.ends().into_iter().filter_map(|(_, end)| end.evidence.as_ref())
    }

    /// By how much a counter moved, both ends together. `None` where no counters were read.
    pub(super) fn counter(&self, name: &str) -> Option<u64> {
        self.evidence().filter_map(|evidence| evidence.counter(name)).reduce(|one, other| one + other)
    }

    /// By how much a counter moved at the end where it moved most: at least, and at most. The two differ where both ends share a
    /// namespace: one of them moved it by half or more.
    pub(super) fn at_one_end(&self, name: &str) -> Option<(u64, u64)> {
        let told: Vec<u64> = self.evidence().filter_map(|evidence| evidence.counter(name)).collect();
        match told[..] {
            [both] => Some((both.div_ceil(2), both)),
            _ => told.into_iter().max().map(|most| (most, most)),
        }
    }

    /// How many connections there were at once.
    pub(super) fn connections(&self) -> u64 {
        self.measurement().connections.len().max(1) as u64
    }

    /// The end that sent a TCP stream, and what it knew: the one that sent more. `None` where there were several connections, of which one
    /// says nothing about all.
    pub(super) fn tcp_sender(&self) -> Option<(&'static str, &'a End, &'a TcpFacts)> {
        if self.connections() > 1 { None } else { self.first_tcp_sender() }
    }

    /// The same, of the first connection where there were several.
    pub(super) fn first_tcp_sender(&self) -> Option<(&'static str, &'a End, &'a TcpFacts)> {
        let facts = |(name, end): (&'static str, &'a End)| Some((name, end, end.evidence.as_ref()?.tcp.as_ref()?));
        self.ends().into_iter().filter_map(facts).max_by_key(|(_, _, tcp)| tcp.sent_bytes)
    }

    /// The other end of a TCP stream.
    pub(super) fn tcp_receiver(&self) -> Option<(&'static str, &'a End)> {
        let (sender, ..) = self.tcp_sender()?;
        self.ends().into_iter().find(|(name, _)| *name != sender)
    }

    /// Whether bytes went one way: echoes have latencies.
    pub(super) const fn is_stream(&self) -> bool {
        self.measurement().chunk_latency_ns.is_none() && self.measurement().goodput_bps.is_some()
    }

    /// How long it took: the completion, or up to its end or its deadline.
    pub(super) fn took(&self) -> Option<Span> {
        self.measurement().completion_ns.or(self.measurement().elapsed_ns).map(Span)
    }

    /// A sysctl: as the repeat had it, else as its machine has it.
    pub(super) fn sysctl(&self, sysctl: &str) -> Option<&'a str> {
        let own = self.measurement().sysctls.get(sysctl).and_then(|facts| facts.given.as_ref());
        own.or_else(|| self.sysctls.get(sysctl)).map(String::as_str)
    }

    /// A sysctl that is one number, in milliseconds.
    pub(super) fn milliseconds(&self, sysctl: &str) -> Option<Span> {
        let number: u64 = self.sysctl(sysctl)?.parse().ok()?;
        Some(Span(number * 1_000_000))
    }

    /// A time that a sysctl decides unless a socket option does, at each end and each once, with the name of what decided it.
    pub(super) fn times(&self, option: &'static str, sysctl: &'static str) -> Vec<(Span, &'static str)> {
        let mut found: Vec<(Span, &'static str)> = Vec::new();
        for (_, end) in self.ends() {
            let own = end.options.get(option).and_then(|reading| match reading.given.as_ref()? {
                Reading::Word(word) => word.parse().ok(),
                Reading::Switch(_) | Reading::Number(_) => None,
            });
            let one = own.map(|time| (time, option)).or_else(|| Some((self.milliseconds(sysctl)?, sysctl)));
            found.extend(one.filter(|one| !found.contains(one)));
        }
        found
    }

    /// Times without an arrival at the end that received. `None` where they were not watched, and of several connections, which do not wait
    /// for each other.
    pub(super) fn silences(&self) -> Option<&'a Silences> {
        if self.connections() > 1 {
            return None;
        }
        self.evidence().find_map(|evidence| evidence.silences.as_ref())
    }

    /// How long a packet and its answer take at least: the smallest round trip that TCP saw, else what both queues delay by as they were read back.
    pub(super) fn path(&self) -> Span {
        let tcp = self.evidence().filter_map(|evidence| evidence.tcp.as_ref()?.min_rtt_ns).min();
        Span(tcp.unwrap_or_else(|| {
            self.devices().iter().flat_map(|(_, device)| &device.queues).filter_map(|queue| span(queue, "delay")).sum()
        }))
    }

    /// Segments that both ends of a TCP connection sent again.
    pub(super) fn sent_again(&self) -> Option<u64> {
        let ends = self.ends().map(|(_, end)| end.evidence.as_ref()?.tcp.as_ref()?.retransmits);
        ends.into_iter().sum()
    }

    /// The devices of both ends, with the names of the ends.
    pub(super) fn devices(&self) -> Vec<(&'static str, &'a Interface)> {
        let link = self.measurement().link.as_ref();
        link.map_or_else(Vec::new, |link| vec![("client", &link.client), ("server", &link.server)])
    }

    /// Both ends' associations, each with the name of its end and the other's association. Of several connections, none.
    pub(super) fn associations(&self) -> Vec<(&'static str, &'a Association, &'a Association)> {
        let [(client, one), (server, other)] = self.ends();
        match (self.connections(), &one.association, &other.association) {
            (1, Some(one), Some(other)) => vec![(client, one, other), (server, other, one)],
            _ => Vec::new(),
        }
    }

    /// The bulk transfers of the repeat: the stream, or the one that ran beside an echo. Client's end first.
    pub(super) fn transfers(&self) -> Vec<[(&'static str, &'a End); 2]> {
        let beside = self.measurement().beside.as_ref();
        let mut found: Vec<_> =
            beside.map(|beside| [("client", &beside.client), ("server", &beside.server)]).into_iter().collect();
        if self.is_stream() && self.connections() == 1 {
            found.push(self.ends());
        }
        found
    }

    /// Whether Nagle's algorithm is on at either end, as the kernel said.
    pub(super) fn nagle(&self) -> bool {
        self.ends().iter().any(|(_, end)| end.nodelay.given == Some(false))
    }
}

/// A span that a queue was set to, as read back.
pub(super) fn span(queue: &QueueFacts, name: &str) -> Option<u64> {
    queue.given.get(name)?.parse::<Span>().ok().map(|span| span.0)
}

/// The rate that a queue was set to, as read back.
pub(super) fn rate(queue: &QueueFacts) -> Option<BitRate> {
    queue.given.get("rate")?.parse().ok()
}

/// A number that a queue was set to, as read back.
pub(super) fn number(queue: &QueueFacts, name: &str) -> Option<u64> {
    queue.given.get(name)?.parse().ok()
}

/// Whether a queue was set to do that to a share of the packets, as read back.
pub(super) fn has_share(queue: &QueueFacts, name: &str) -> bool {
    queue.given.get(name).is_some_and(|share| share.parse() != Ok(Percent::default()))
}

/// A part of a whole in per cent, as a person reads it.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let tenths = u128::from(part) * 1000 / u128::from(whole);
    if tenths == 0 && part > 0 {
        return "less than 0.1 %".to_owned();
    }
    if tenths >= 100 || tenths == 0 {
        format!("{} %", (tenths + 5) / 10)
    } else {
        format!("{}.{} %", tenths / 10, tenths % 10)
    }
}

/// Whether a part is at least so many per cent of a whole.
pub(super) fn at_least(part: u64, per_cent: u64, whole: u64) -> bool {
    whole > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(per_cent)
}

/// The one in the middle of a column of samples, the larger of two.
pub(super) fn median(column: &[u64]) -> Option<u64> {
    let mut column = column.to_vec();
    column.sort_unstable();
    column.get(column.len() / 2).copied()
}

/// `1 timer`, `5 timers`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
