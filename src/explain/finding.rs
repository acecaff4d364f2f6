//! What a finding is, and the table of all rules.

use serde::Serialize;

use super::view::View;
use super::{buffers, limits, losses, packets, queues, timers};

/// How much a finding says about the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It is why the cell waits: a timer or a loss accounts for time.
    Stall,
    /// It is what bounds the cell's throughput.
    Limit,
    /// It is worth knowing, and by itself neither.
    Note,
}

/// A rule: the name of its findings, what they mean, and the function that looks at a repeat.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Stable name.
    pub name: &'static str,
    /// How much its findings say.
    pub severity: Severity,
    /// What it means and the evidence it fires on, for docs/findings.md.
    pub about: &'static str,
    /// What to try.
    pub advice: &'static str,
    /// Where the behaviour comes from: a kernel function, an RFC.
    pub source: &'static str,
    /// The sentence for a repeat, with its figures, if the evidence is there.
    pub(super) look: fn(&View<'_>) -> Option<String>,
}

/// A finding in one repeat, or in most repeats of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name of its rule.
    pub name: &'static str,
    /// How much it says.
    pub severity: Severity,
    /// One sentence with the figures behind it.
    pub sentence: String,
    /// What to try.
    pub advice: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All rules, the ones that explain most first.
pub const RULES: &[Rule] = &[
    timers::SCTP_RETRANSMISSION_TIMEOUT,
    timers::TCP_RETRANSMISSION_TIMEOUT,
    timers::DELAYED_SACK_WITH_NAGLE,
    timers::DELAYED_ACK_WITH_NAGLE,
    losses::BURST_BEYOND_THE_WINDOW,
    losses::UDP_RECEIVE_DROPS,
    losses::SOCKET_QUEUE_DROPS,
    buffers::MEMORY_PRESSURE,
    losses::PROCESSOR_BACKLOG_DROPS,
    buffers::WAITS_IN_THE_SEND_BUFFER,
    queues::NETEM_LIMIT,
    limits::LINK_LIMITED,
    limits::CPU_BOUND,
    limits::APPLICATION_LIMITED,
    limits::RECEIVER_LIMITED,
    limits::SEND_BUFFER_LIMITED,
    limits::CONGESTION_LIMITED,
    limits::WINDOW_SCALE_TOO_SMALL,
    queues::STANDING_QUEUE,
    queues::QUEUE_DROPS,
    queues::REORDERED,
    queues::LOST_TOGETHER,
    losses::RETRANSMISSIONS,
    losses::FELL_BACK,
    limits::ZERO_WINDOW,
    packets::FRAGMENTED,
    packets::BUNDLED,
    timers::JIFFY_BOUND,
    buffers::RAISED_TO_THE_MINIMUM,
    buffers::CLAMPED,
    buffers::AUTOTUNED,
    buffers::AUTOTUNING_OFF,
    buffers::LARGER_THAN_USED,
    buffers::BEYOND_THE_SIZE,
];

/// The name of a rule as people write it: `delayed-sack-with-nagle` is `delayed SACK with Nagle`.
pub fn spoken(name: &str) -> String {
    let words = name.split('-').map(|word| match word {
        "tcp" | "udp" | "sctp" | "mptcp" | "ack" | "sack" | "cpu" => word.to_ascii_uppercase(),
        "nagle" => "Nagle".to_owned(),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Rule {
    /// Looks at one repeat.
    pub(super) fn find(&self, view: &View<'_>) -> Option<Finding> {
        let sentence = (self.look)(view)?;
        let Self { name, severity, advice, source, .. } = *self;
        Some(Finding { name, severity, sentence, advice, source })
    }
}

#[cfg(test)]
mod tests {
    use super::{RULES, spoken};

    #[test]
    fn names_are_spoken_as_people_write_them() {
        assert_eq!(spoken("delayed-sack-with-nagle"), "delayed SACK with Nagle");
        assert_eq!(spoken("raised-to-the-minimum"), "raised to the minimum");
        for rule in RULES {
            let words = spoken(rule.name);
            assert!(!words.contains('-') && !words.starts_with("tcp") && !words.contains("sctp"), "{words}");
        }
    }
}
