//! Buffers over time: what one end's socket held at instants of a stream, in columns.

use serde::{Deserialize, Serialize};

/// Samples of one end, one column for each thing that is looked at. All columns have as many entries as `t_ns`; one that
/// this kernel or this protocol does not tell is `None` as a whole, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// When, in nanoseconds since the instant before the first send. It is the same instant for both ends.
    pub t_ns: Vec<u64>,
    /// Size of the receive buffer (`sk_rcvbuf`, as `SO_RCVBUF` says it), in bytes of the kernel's memory.
    pub rcvbuf_bytes: Option<Vec<u64>>,
    /// What is in it (`sk_rmem_alloc`), in bytes of the same memory: data and the kernel's own overhead.
    pub rcvbuf_used_bytes: Option<Vec<u64>>,
    /// Size of the send buffer (`sk_sndbuf`, as `SO_SNDBUF` says it), in bytes of the kernel's memory.
    pub sndbuf_bytes: Option<Vec<u64>>,
    /// What is in it, sent and not yet acknowledged or not yet sent (`sk_wmem_queued`), in bytes of the same memory.
    pub sndbuf_used_bytes: Option<Vec<u64>>,
    /// The window that this end offers to its peer, in bytes of data (`tcpi_rcv_wnd`, TCP since Linux 6.2).
    pub rcv_wnd_bytes: Option<Vec<u64>>,
    /// The window that the peer offers, as this end last heard, in bytes of data (`tcpi_snd_wnd`, TCP since Linux 5.4).
    pub snd_wnd_bytes: Option<Vec<u64>>,
    /// The congestion window: `tcpi_snd_cwnd` segments of `tcpi_snd_mss` bytes each (TCP).
    pub cwnd_bytes: Option<Vec<u64>>,
    /// The smoothed round trip (`tcpi_rtt`, which counts microseconds; TCP), in nanoseconds.
    pub rtt_ns: Option<Vec<u64>>,
}

impl Samples {
    /// How many instants there are.
    pub const fn len(&self) -> usize {
        self.t_ns.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.t_ns.is_empty()
    }

    /// The points of a column: instants and what was there, as far as both are told.
    pub fn points<'a>(&'a self, column: Option<&'a Vec<u64>>) -> impl Iterator<Item = (u64, u64)> + 'a {
        self.t_ns.iter().copied().zip(column.into_iter().flatten().copied())
    }
}
