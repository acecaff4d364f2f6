//! What one repeat of a cell yields: plain data, carried from a workload through the backends into a record.
//! Imports `units` only.

mod capture;
mod distribution;
mod evidence;
mod link;
mod option;
mod program;
mod samples;
mod watched;

pub use capture::{Capture, CaptureLimits, CapturedEnd};
pub use distribution::{Distribution, Recorder};
pub use evidence::{Evidence, Silences, TcpFacts};
pub use link::{Interface, LinkFacts, PlacementFacts, QueueFacts, Scheduled, SysctlFacts};
pub use option::{Association, OptionReading, Reading, Zerocopy};
pub use program::{Metric, Number, Output, ProgramFacts};
pub use samples::Samples;
pub use watched::Watched;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::choice;

choice! {
    /// How a repeat ended. Only the first kind has figures; none of the others ever shows as a zero.
    Outcome {
        /// It ran to its end and the figures stand.
        Measured = "measured",
        /// It ran to its end and chunks of a burst were lost on the way; how many is told.
        Incomplete = "incomplete",
        /// Its deadline passed; what had arrived until then is told.
        TimedOut = "timed-out",
        /// The kernel refused the combination.
        Invalid = "invalid",
        /// This machine cannot do it.
        Skipped = "skipped",
        /// Something broke that is neither the combination's fault nor the machine's lack.
        #[default] Failed = "failed",
    }
}

choice! {
    /// What the kernel made of a buffer size, by the rule of `sock_setsockopt` (net/core/sock.c):
    /// `max(2 × min(asked, limit), minimum)`.
    Verdict {
        /// Nothing was asked.
        #[default] Default = "default",
        /// Twice what was asked.
        Doubled = "doubled",
        /// The smallest size this kernel gives, which is more than twice what was asked.
        Raised = "raised to the minimum",
        /// Twice `net.core.rmem_max`.
        ClampedRmem = "clamped by rmem_max",
        /// Twice `net.core.wmem_max`.
        ClampedWmem = "clamped by wmem_max",
        /// Neither of these: an emulated or a changed kernel.
        Unlike = "unlike the rule",
        /// A program's: what it asked for, if anything, is not known.
        Unknown = "not known",
    }
}

/// The figures of one repeat. A figure that was not measured is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, for every outcome but `measured`.
    pub reason: Option<String>,
    /// From before the first send to after the last echo (or, for a stream bounded by bytes, the last arrival).
    pub completion_ns: Option<u64>,
    /// Application bits delivered per second: of an echo one way over its completion, of a stream at its receiver.
    pub goodput_bps: Option<u64>,
    /// Application bytes that arrived: echoes at the client, or a stream at its receiver. Known for time-outs too.
    pub delivered_bytes: Option<u64>,
    /// UDP only: chunks that were sent and of which nothing came: no echo, or for a stream no arrival.
    pub lost_chunks: Option<u64>,
    /// UDP only: arrivals of a chunk that had arrived before.
    pub duplicated_chunks: Option<u64>,
    /// The stream that ran beside an echo, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<Beside>>,
    /// Where the workload ran over several connections at once: what each was, the first one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Exec only: numbers that were taken from what the programs printed, by their name. Those that are a completion or a goodput stand there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// What a reader of the figures has to know, such as that MPTCP fell back to TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Each chunk's own round trip, echo only.
    pub chunk_latency_ns: Option<Distribution>,
    /// From the client's start, when namespaces and link stood, to the end of both ends: what the repeat covers of its
    /// machine's time.
    pub elapsed_ns: Option<u64>,
    /// What it cost to make the namespaces and the link. Not part of any other figure.
    pub setup_ns: Option<u64>,
    /// The client's end.
    pub client: End,
    /// The server's end.
    pub server: End,
    /// The devices of both ends and their queues, read after the repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFacts>,
    /// Where the cell sets any sysctl: those, and all that bear on buffers, read in the server's namespace before the workload.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, SysctlFacts>,
    /// How the two threads were scheduled, where the cell says anything of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementFacts>,
    /// The packets that were captured, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Box<Capture>>,
}

impl Measurement {
    /// A repeat without figures.
    pub fn without_figures(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: Some(reason.into()), ..Self::default() }
    }

    /// Takes the figures back, and says why. What the ends and the link were stays.
    pub fn void(&mut self, outcome: Outcome, reason: impl Into<String>) {
        self.outcome = outcome;
        self.reason = Some(reason.into());
        self.completion_ns = None;
        self.goodput_bps = None;
        self.chunk_latency_ns = None;
        for metric in self.metrics.values_mut() {
            metric.value = None;
        }
        for connection in &mut self.connections {
            connection.completion_ns = None;
            connection.goodput_bps = None;
        }
    }
}

/// The figures of one of several connections that did the same at once, in the units of those of a [`Measurement`].
///
/// The measurement's own figures are of all together. Its completion is from before the first send of the first to after the last arrival
/// of the last; of echoes with several bursts or with gaps it is the largest of all. Its goodput is all bytes over the time from the first
/// begin to the last end of those that these goodputs are made of; of echoes with gaps it is their sum. Chunks that were lost or came twice, CPU
/// times, switches and sends in place are sums, and chunk latencies one distribution. What else an end was given and its samples are those
/// of the first connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// From before its own first send to after its last arrival.
    pub completion_ns: Option<u64>,
    /// Application bits per second that it delivered.
    pub goodput_bps: Option<u64>,
    /// Application bytes that it delivered.
    pub delivered_bytes: Option<u64>,
}

/// A stream that ran beside an echo on a connection of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// Application bits per second that arrived, from the first arrival to the last.
    pub goodput_bps: Option<u64>,
    /// Application bytes that arrived.
    pub delivered_bytes: Option<u64>,
    /// The client's end.
    pub client: End,
    /// The server's end.
    pub server: End,
}

/// What one end of the connection was given and used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The receive buffer.
    pub rcvbuf: Buffer,
    /// The send buffer.
    pub sndbuf: Buffer,
    /// The no-delay switch.
    pub nodelay: Switch,
    /// Other socket options that were asked for, by the path of their key below `socket`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, OptionReading>,
    /// SCTP only: the association at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<Box<Association>>,
    /// MPTCP only: whether this end's connection had fallen back to TCP at the end (`MPTCP_INFO`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fell_back: Option<bool>,
    /// What became of sends in place, where the workload makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<Zerocopy>,
    /// CPU time of this end's thread in user mode, from before the first send to after the last arrival.
    pub cpu_user_ns: Option<u64>,
    /// The same in the kernel.
    pub cpu_system_ns: Option<u64>,
    /// Times the thread gave up the processor by itself.
    pub voluntary_switches: Option<u64>,
    /// Times the processor was taken from it.
    pub involuntary_switches: Option<u64>,
    /// What the kernel counted and knew at this end. Absent with `--no-evidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Exec only: the program at this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramFacts>>,
    /// Its buffers and windows over time. Streams and programs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Of a program: which of its sockets all this is about, and how it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched: Option<Box<Watched>>,
}

/// One buffer of one end, in bytes as `getsockopt` says them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Buffer {
    /// Asked with `setsockopt`, or `None` where no call was made. Of a program it is not known, and `None`.
    pub asked: Option<u64>,
    /// Read after it was set, before the connection. On the server's end: of the socket that listens for TCP, of the
    /// association's own socket for one-to-one SCTP. Of a program: first seen.
    pub initial: Option<u64>,
    /// Read at the end. Of a program: last seen.
    #[serde(rename = "final")]
    pub end: Option<u64>,
    /// Largest size seen between.
    pub peak: Option<u64>,
    /// What the kernel made of the request.
    pub verdict: Option<Verdict>,
}

/// A switch of one end: asked and as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Switch {
    /// Asked with `setsockopt`, or `None` where no call was made.
    pub asked: Option<bool>,
    /// Read back.
    pub given: Option<bool>,
}
