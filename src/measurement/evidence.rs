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
    /// Bytes of data in a segment that is sent (`tcpi_snd_mss`).
    pub mss_bytes: Option<u64>,
    /// Window scale that the peer asked for (`tcpi_snd_wscale`), and this end did (`tcpi_rcv_wscale`): powers of two.
    pub snd_wscale: Option<u64>,
    /// See `snd_wscale`.
    pub rcv_wscale: Option<u64>,
}
