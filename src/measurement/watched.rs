//! How a program's sockets were seen from outside.

use serde::{Deserialize, Serialize};

/// Which socket of a program an end tells of, and how it was looked at (`sock_diag(7)`). What could not be seen is absent, and the
/// reasons say why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Its protocol, by its name in a sweep file.
    pub protocol: Option<String>,
    /// Its own port.
    pub local_port: Option<u16>,
    /// The port of its peer. `None` of a UDP socket that is not connected.
    pub peer_port: Option<u16>,
    /// Connections of that protocol that were seen at this end, of UDP sockets, the one that is told of among them: it is the one
    /// that carried the most.
    pub connections: u64,
    /// Sockets of that protocol that waited for connections.
    pub listeners: u64,
    /// TCP only: its congestion control.
    pub congestion: Option<String>,
    /// Bytes of data that it sent. TCP since Linux 4.19, MPTCP since 6.5.
    pub sent_bytes: Option<u64>,
    /// Bytes of data that it received; of TCP the peer's end counts as one more. TCP since Linux 4.1, MPTCP since 6.5.
    pub received_bytes: Option<u64>,
    /// Most bytes seen in its backlog: received while the program was in a call of its own on the socket (`SK_MEMINFO_BACKLOG`).
    pub backlog_peak_bytes: Option<u64>,
    /// Whether the kernel told of the connection when it was closed for good, so that `evidence.tcp` is of its very end. Otherwise
    /// that is of the last look.
    pub told_when_closed: bool,
    /// How often it was looked at.
    pub looks: u64,
    /// Shortest time from one look to the next, in nanoseconds.
    pub period_ns: u64,
    /// Processor time that all looking took at this end, in nanoseconds, while the programs ran.
    pub cost_ns: u64,
    /// Why something is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}
