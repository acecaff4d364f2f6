//! What one end was asked for beyond its buffers, what it was given, and what its protocol knows of the connection.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A socket option that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionReading {
    /// As the sweep file has it.
    pub asked: Reading,
    /// Read after it was set. `None` where the kernel does not tell.
    pub given: Option<Reading>,
    /// Read at the end, of the connection itself.
    #[serde(rename = "final", default)]
    pub end: Option<Reading>,
}

/// The value of a socket option, in the unit of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reading {
    /// A switch.
    Switch(bool),
    /// A number.
    Number(i64),
    /// A word, or a span of time in its exact form (`10ms`).
    Word(String),
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(switch) => f.pad(if *switch { "on" } else { "off" }),
            Self::Number(number) => f.pad(&number.to_string()),
            Self::Word(word) => f.pad(word),
        }
    }
}

/// An SCTP association and its primary path at the end, as one end's kernel tells (`SCTP_STATUS`, `SCTP_GET_PEER_ADDR_INFO`,
/// `SCTP_GET_ASSOC_STATS`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Association {
    /// `enum sctp_sstat_state`: 4 is established.
    pub state: Option<i32>,
    /// The peer's receive window.
    pub peer_rwnd_bytes: Option<u64>,
    /// Chunks sent and not acknowledged.
    pub unacked_chunks: Option<u64>,
    /// Chunks received and not read.
    pub pending_chunks: Option<u64>,
    /// Streams of the peer, as agreed.
    pub streams_in: Option<u64>,
    /// Streams to the peer, as agreed.
    pub streams_out: Option<u64>,
    /// Size beyond which a message is cut into chunks.
    pub fragmentation_point_bytes: Option<u64>,
    /// Congestion window of the path.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round trip of the path, which the kernel tells in whole milliseconds.
    pub srtt_ns: Option<u64>,
    /// Retransmission timeout of the path, likewise.
    pub rto_ns: Option<u64>,
    /// Largest retransmission timeout seen, in ticks of the kernel's timer (`CONFIG_HZ`), as it tells it; 0 if none was above the smallest.
    pub max_rto_ticks: Option<u64>,
    /// MTU of the path.
    pub mtu_bytes: Option<u64>,
    /// Acknowledgements received.
    pub sacks_in: Option<u64>,
    /// Acknowledgements sent.
    pub sacks_out: Option<u64>,
    /// Packets received.
    pub packets_in: Option<u64>,
    /// Packets sent.
    pub packets_out: Option<u64>,
    /// Data chunks sent again.
    pub retransmitted_chunks: Option<u64>,
    /// Data chunks received beyond the one expected.
    pub out_of_sequence_chunks: Option<u64>,
    /// Data chunks received twice.
    pub duplicate_chunks_in: Option<u64>,
    /// Gaps that the peer reported.
    pub gaps: Option<u64>,
    /// Unordered data chunks received.
    pub unordered_chunks_in: Option<u64>,
    /// Unordered data chunks sent.
    pub unordered_chunks_out: Option<u64>,
    /// Ordered data chunks received.
    pub ordered_chunks_in: Option<u64>,
    /// Ordered data chunks sent.
    pub ordered_chunks_out: Option<u64>,
    /// Control chunks received.
    pub control_chunks_in: Option<u64>,
    /// Control chunks sent.
    pub control_chunks_out: Option<u64>,
}

/// What became of sends with `MSG_ZEROCOPY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zerocopy {
    /// Send calls that were made.
    pub sends: u64,
    /// Those that the kernel has said it is done with.
    pub completed: u64,
    /// Those of these whose bytes were copied after all, as they are on loopback and veth (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: u64,
}
