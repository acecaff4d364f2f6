//! Evidence: what the kernel counted and knew at one end while a repeat ran. What a finding is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The evidence of one end. What this kernel or this protocol does not tell is absent, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Counters of the end's network namespace that moved between the start of the workload and the end of both ends, by how
    /// much. Named as `nstat` names them: the section, then the kernel's own name (`TcpExtTCPTimeouts`, `SctpT3RtxExpireds`).
    /// On loopback both ends are in one namespace, and the counters stand at the client's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<BTreeMap<String, u64>>,
    /// The TCP connection at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFacts>,
    /// Packets that the socket dropped (`sk_drops`, `SK_MEMINFO_DROPS`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_drops: Option<u64>,
    /// Most that was seen in its receive buffer, in bytes of the kernel's memory (`sk_rmem_alloc`): one look each millisecond at most, and none while
    /// the end sleeps in a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf_used_peak_bytes: Option<u64>,
    /// The same of its send buffer (`sk_wmem_queued`; over UDP `sk_wmem_alloc`): sent and not acknowledged, or waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_used_peak_bytes: Option<u64>,
    /// Times in which this end waited and nothing arrived: the client's of an echo, the receiver's of a stream. Not over UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silences: Option<Silences>,
    /// The kernel's timer tick, `1 / CONFIG_HZ`, as the resolution of `CLOCK_MONOTONIC_COARSE` tells it. At the client's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// Packets that the machine dropped meanwhile because a processor's backlog was full (`/proc/net/softnet_stat`), whosever they were: this
    /// one is counted for no namespace alone. At the client's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softnet_drops: Option<u64>,
    /// What reading all this cost, outside of what is measured, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ns: Option<u64>,
}

impl Evidence {
    /// By how much a counter moved: 0 if it did not, `None` where no counters were read.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.as_ref().map(|counters| counters.get(name).copied().unwrap_or(0))
    }
}

/// Times of at least 10 ms in which an end waited for something and nothing arrived. What waits for a timer shows here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silences {
    /// How many there were.
    pub count: u64,
    /// How long they were together, in nanoseconds.
    pub sum_ns: u64,
    /// The longest of them, at most 64, the longest first.
    pub longest_ns: Vec<u64>,
    /// Of how much time: that in which something was to arrive, gaps and pauses that were asked for left out.
    pub watched_ns: u64,
    /// SCTP echo only: how often, about ten times a second, the client looked at the peer's window in a silence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<u64>,
    /// How often it was closed then: 0 bytes (`sstat_rwnd` of `SCTP_STATUS`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<u64>,
}

impl Silences {
    /// Those within `from..=to` nanoseconds of which at most `most` are: how many, and how long together. `None` where not each of them
    /// was kept. Of more than `most` the longest are taken.
    pub fn within(&self, from: u64, to: u64, most: u64) -> Option<(u64, u64)> {
        let kept = self.longest_ns.len() as u64;
        if kept < self.count && self.longest_ns.last().is_some_and(|shortest| *shortest >= from) {
            return None;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let fitting = self.longest_ns.iter().filter(|length| (from..=to).contains(length)).take(most);
        Some(fitting.fold((0, 0), |(number, sum), length| (number + 1, sum + length)))
    }
}

/// What a TCP connection told of itself when the workload was done (`TCP_INFO`, `tcp_get_info`, net/ipv4/tcp.c).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpFacts {
    /// Time in which there was something to send or unacknowledged (`tcpi_busy_time`), in nanoseconds. Since Linux 4.10, as the two that follow.
    pub busy_ns: Option<u64>,
    /// Of it, time in which the peer's window kept it from sending (`tcpi_rwnd_limited`).
    pub rwnd_limited_ns: Option<u64>,
    /// Of it, time in which its own send buffer did (`tcpi_sndbuf_limited`).
    pub sndbuf_limited_ns: Option<u64>,
    /// Segments sent again (`tcpi_total_retrans`).
    pub retransmits: Option<u64>,
    /// Bytes sent, those sent again among them (`tcpi_bytes_sent`). Since Linux 4.19.
    pub sent_bytes: Option<u64>,
    /// Bytes sent again (`tcpi_bytes_retrans`). Since Linux 4.19.
    pub retransmitted_bytes: Option<u64>,
    /// The smoothed round trip (`tcpi_rtt`), in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// The smallest round trip seen (`tcpi_min_rtt`), in nanoseconds.
    pub min_rtt_ns: Option<u64>,
    /// The congestion window, in bytes (`tcpi_snd_cwnd` segments of `tcpi_snd_mss`).
    pub cwnd_bytes: Option<u64>,
    /// The congestion window at which slow start ended, in bytes; absent while it has not (`tcpi_snd_ssthresh`).
    pub ssthresh_bytes: Option<u64>,
    /// The window that the peer offers, in bytes of data (`tcpi_snd_wnd`). Since Linux 5.4.
    pub snd_wnd_bytes: Option<u64>,
    /// The window that this end offers, in bytes of data (`tcpi_rcv_wnd`). Since Linux 6.2.
    pub rcv_wnd_bytes: Option<u64>,
    /// Bytes of data in a segment that is sent (`tcpi_snd_mss`).
    pub mss_bytes: Option<u64>,
    /// Window scale that the peer asked for (`tcpi_snd_wscale`), and this end did (`tcpi_rcv_wscale`): powers of two.
    pub snd_wscale: Option<u64>,
    /// See `snd_wscale`.
    pub rcv_wscale: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::Silences;

    #[test]
    fn silences_within_bounds_are_told_unless_some_were_not_kept() {
        let silences = Silences { count: 4, longest_ns: vec![900, 210, 200, 20], ..Silences::default() };
        assert_eq!(silences.within(190, 250, 9), Some((2, 410)));
        assert_eq!(silences.within(190, 1000, 1), Some((1, 900)));
        assert_eq!(silences.within(1000, 2000, 9), Some((0, 0)));
        let cut = Silences { count: 5, ..silences };
        assert_eq!(cut.within(10, 250, 9), None, "the fifth may be one of them");
        assert_eq!(cut.within(190, 250, 9), Some((2, 410)), "the fifth is no longer than 20");
    }
}
