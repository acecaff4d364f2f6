//! What a repeat ran through and under: devices, queues, sysctls, processors, as the kernel said they were.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Switch;

/// The devices of both ends. On loopback they are one and the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkFacts {
    /// What the client sends through.
    pub client: Interface,
    /// What the server sends through.
    pub server: Interface,
}

/// One end's device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Largest packet in bytes.
    pub mtu: Option<u32>,
    /// TCP segmentation offload.
    pub tso: Switch,
    /// Generic segmentation offload.
    pub gso: Switch,
    /// Most segments in a packet that a protocol hands to the queue.
    pub gso_max_segs: Option<u32>,
    /// Generic receive offload.
    pub gro: Switch,
    /// Checksums made by the device.
    pub tx_checksum: Switch,
    /// Checksums checked by the device.
    pub rx_checksum: Switch,
    /// The queue disciplines, the outermost first. Empty where there is none (`noqueue`).
    pub queues: Vec<QueueFacts>,
}

/// One queue discipline, and what it has counted since it was set up, just before the repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFacts {
    /// Its name, such as `netem`.
    pub kind: String,
    /// What the kernel says it is set to, by the names and in the form of a sweep file's `[link]`.
    pub given: BTreeMap<String, String>,
    /// Bytes that went through it. Of an offloaded packet each segment counts with its own headers.
    pub bytes: u64,
    /// Packets that went through it: segments, where an offloaded packet holds several.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that it had to hold back or to drop.
    pub overlimits: u64,
    /// Packets put back.
    pub requeues: u64,
    /// Bytes still in it when it was read, at the end.
    pub backlog_bytes: u64,
    /// Packets still in it when it was read, at the end.
    pub backlog_packets: u64,
}

/// One sysctl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SysctlFacts {
    /// What it was set to, or `None` where it was only read.
    pub asked: Option<String>,
    /// What it read, its parts with one space between, or `None` where the kernel has none of that name.
    pub given: Option<String>,
}

/// How both ends' threads were scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacementFacts {
    /// The client's.
    pub client: Scheduled,
    /// The server's.
    pub server: Scheduled,
}

/// How a thread was scheduled, read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduled {
    /// Processors that it might run on.
    pub processors: Vec<u32>,
    /// The policy, by its name in a sweep file.
    pub policy: Option<String>,
}
