//! What decides a cell: its settings, and the table of keys that set them. Plain data; imports `units` only.
//!
//! Everything that can be set has one [`Key`] in [`KEYS`]: its path in a sweep file, its kind of value, its default and how
//! it reaches [`Settings`]. Sections of a sweep file, axes, `--set` and the id of a cell all go through that table.

mod axes;
mod exec;
mod keys;
mod kind;
mod link;
mod option;
mod presets;
mod shape;
mod sysctl;
pub mod template;
mod value;
mod vars;

pub use axes::Axes;
pub use exec::{Exec, MetricSpec, Program, Ready, Side, Source, Stands, Stop};
pub(crate) use keys::narrow;
pub use keys::{
    KEYS, Key, MAX_BUFFER, MAX_BURSTS, MAX_CHUNK_SIZE, MAX_CHUNKS, MAX_CONNECTIONS, MAX_DELAY, MAX_DURATION, MAX_MTU,
    MAX_OVERHEAD, MAX_PAUSE, MAX_PORT, MAX_PROCESSOR, MAX_QUEUE, MAX_RATE, MAX_SEGMENTS, MAX_STREAM_BYTES, OPTIONS,
    canonical, find, names,
};
pub(crate) use kind::nearest;
pub use kind::{Kind, Limit, Rejection};
pub use link::{LinkEnd, NETEM_LIMIT, Qdisc, Queue};
pub use option::{Carries, SocketOption};
pub use presets::{PRESETS, Preset};
pub use sysctl::Sysctls;
pub use value::Value;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, choice};

choice! {
    /// Which clock a cell is measured by.
    Clock {
        /// Virtual in an emulated guest, real elsewhere.
        #[default] Auto = "auto",
        /// The machine's own clock.
        Real = "real",
        /// A guest's clock that counts instructions: one nanosecond each, idle time skipped.
        Virtual = "virtual",
    }
}

choice! {
    /// What lies between the two ends.
    Topology {
        /// Two network namespaces joined by a veth pair.
        #[default] Veth = "veth",
        /// One network namespace and its loopback interface.
        Loopback = "loopback",
    }
}

choice! {
    /// The version of the Internet protocol.
    Family {
        /// IPv4.
        #[default] Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

choice! {
    /// What the two ends do.
    Work {
        /// A burst of chunks, each sent back.
        #[default] Echo = "echo",
        /// Bytes one way, for a time or up to a number of bytes.
        Stream = "stream",
        /// Two programs of the user's.
        Exec = "exec",
    }
}

choice! {
    /// The transport protocol.
    Protocol {
        /// TCP (RFC 9293).
        #[default] Tcp = "tcp",
        /// SCTP (RFC 9260).
        Sctp = "sctp",
        /// UDP (RFC 768): each chunk is a datagram with a number.
        Udp = "udp",
        /// MPTCP (RFC 8684).
        Mptcp = "mptcp",
    }
}

choice! {
    /// How the client of an echo sends its chunks.
    Pattern {
        /// As fast as the socket takes them; echoes are read meanwhile.
        #[default] Burst = "burst",
        /// One chunk in one write, and the next when its echo has been read.
        WriteRead = "write-read",
        /// One chunk in two writes of half its size, and the next when its echo has been read.
        WriteWriteRead = "write-write-read",
    }
}

choice! {
    /// Whether a stream runs beside an echo, on a connection of its own, and which way.
    Beside {
        /// Nothing does.
        #[default] None = "none",
        /// A stream from the client to the server.
        Upload = "upload",
        /// A stream from the server to the client.
        Download = "download",
    }
}

choice! {
    /// When buffers are set.
    SetAt {
        /// Before `connect` or `listen`.
        #[default] Before = "before",
        /// After `connect` or `accept`, when the handshake has settled TCP's window scale (RFC 7323, section 2.2).
        After = "after",
    }
}

choice! {
    /// How an SCTP socket relates to associations (RFC 6458, section 2.1).
    Style {
        /// One association a socket (`SOCK_STREAM`).
        #[default] OneToOne = "one-to-one",
        /// Many associations a socket (`SOCK_SEQPACKET`).
        OneToMany = "one-to-many",
    }
}

choice! {
    /// Which way a stream flows.
    Direction {
        /// From the client to the server.
        #[default] Upload = "upload",
        /// From the server to the client.
        Download = "download",
    }
}

choice! {
    /// How a thread is scheduled (`sched(7)`).
    Policy {
        /// As the program itself is.
        #[default] Default = "default",
        /// `SCHED_OTHER`: time shared.
        Other = "other",
        /// `SCHED_BATCH`: time shared, and taken for one that computes.
        Batch = "batch",
        /// `SCHED_FIFO`: runs until it waits.
        Fifo = "fifo",
        /// `SCHED_RR`: the same with turns.
        Rr = "rr",
    }
}

/// Everything that decides a cell. The timeout, the number of repeats and their order do not: they belong to the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Where it runs.
    pub kernel: Kernel,
    /// What lies between the two ends.
    pub link: Link,
    /// What the two ends do.
    pub workload: Workload,
    /// Socket options of the client's end.
    pub client: Socket,
    /// Socket options of the server's end.
    pub server: Socket,
    /// Sysctls of both ends' namespaces.
    #[serde(default)]
    pub sysctls: Sysctls,
    /// Which processor runs what.
    #[serde(default)]
    pub placement: Placement,
    /// Exec only: values of the user's own, by their name (`window` for `var.window`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, Value>,
    /// The two programs of [`Work::Exec`]; `None` for all other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Box<Exec>>,
}

/// Which processor runs what, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The processor that the client's thread is kept on, or `None` where the scheduler decides.
    pub client_cpu: Option<u32>,
    /// The same for the server's.
    pub server_cpu: Option<u32>,
    /// How both are scheduled.
    pub policy: Policy,
}

/// Where a cell runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `auto`, `host`, `debian:6.12`, an exact package version, or a path.
    pub image: String,
    /// Which clock measures.
    pub clock: Clock,
}

impl Default for Kernel {
    fn default() -> Self {
        Self { image: "auto".to_owned(), clock: Clock::Auto }
    }
}

/// What lies between the two ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Veth or loopback.
    pub topology: Topology,
    /// IPv4 or IPv6.
    pub family: Family,
    /// Largest packet in bytes, or `None` for the kernel's own (1500 on veth, 65536 on loopback).
    pub mtu: Option<u32>,
    /// What the client sends through.
    #[serde(default)]
    pub client: LinkEnd,
    /// What the server sends through.
    #[serde(default)]
    pub server: LinkEnd,
}

/// What the two ends do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Echo or stream.
    pub kind: Work,
    /// The transport protocol.
    pub protocol: Protocol,
    /// SCTP only: one-to-one or one-to-many.
    pub style: Style,
    /// Echo only: chunks in the burst.
    pub chunk_count: u32,
    /// Echo only: bursts on the connection, one after the other.
    pub bursts: u32,
    /// Bytes handed to each send call; `None` for the usual size of the kind, see [`Workload::chunk_bytes`].
    pub chunk_size: Option<u32>,
    /// Bytes offered to each receive call.
    pub read_size: u32,
    /// Stream only: which way.
    pub direction: Direction,
    /// Stream only: how long the sender sends. `None` where `bytes` bounds it instead.
    pub duration: Option<Span>,
    /// Stream only: how much the sender sends.
    pub bytes: Option<Bytes>,
    /// Stream only: time from the first arrival that is left out of the goodput.
    pub omit: Span,
    /// Echo only: how the client sends its chunks.
    pub pattern: Pattern,
    /// Echo only: time between two bursts, or between two requests of the patterns that wait for each echo.
    pub gap: Span,
    /// How many connections do the whole of it at once, each on a pair of ports and threads of its own.
    #[serde(default = "one")]
    pub connections: u32,
    /// Echo only: the stream that runs beside it.
    pub beside: Beside,
    /// Echo only: how long that stream runs before the echo begins.
    pub beside_lead: Span,
    /// Stream only: time that the receiver rests after each receive call.
    pub read_pause: Span,
    /// UDP only: time without an arrival after which what is missing counts as lost.
    pub quiet: Span,
    /// Stream over TCP only: send with `MSG_ZEROCOPY`.
    pub zerocopy: bool,
    /// Exec only: the port that the server listens on.
    #[serde(default = "default_port")]
    pub port: u16,
}

/// The port of the server of exec where none is given.
const fn default_port() -> u16 {
    7001
}

/// The number of connections where none is given.
const fn one() -> u32 {
    1
}

impl Workload {
    /// How long a stream sends when the file names neither `duration` nor `bytes`.
    pub const DEFAULT_DURATION: Span = Span(1_000_000_000);
    /// How long nothing may arrive over UDP before the missing chunks count as lost.
    pub const DEFAULT_QUIET: Span = Span(1_000_000_000);
    /// How long a stream beside an echo runs before the echo begins.
    pub const DEFAULT_LEAD: Span = Span(500_000_000);
    /// Bytes that the number of a chunk takes in a datagram.
    pub const NUMBER_BYTES: u32 = 8;

    /// Bytes handed to each send call: 64 for an echo and 16 KiB for a stream unless the file says otherwise.
    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_size.unwrap_or(match self.kind {
            Work::Echo | Work::Exec => 64,
            Work::Stream => 16 << 10,
        })
    }

    /// Bytes in one burst of an echo, one way.
    pub fn burst_bytes(&self) -> u64 {
        u64::from(self.chunk_count) * u64::from(self.chunk_bytes())
    }

    /// Bytes in one burst of an echo, one way, over all connections.
    pub fn burst_bytes_of_all(&self) -> u64 {
        self.burst_bytes() * u64::from(self.connections)
    }

    /// How long a stream sends; `None` where it is bounded by [`Workload::bytes`].
    pub fn stream_duration(&self) -> Option<Span> {
        self.duration.or_else(|| self.bytes.is_none().then_some(Self::DEFAULT_DURATION))
    }
}

impl Workload {
    /// The stream that runs beside this echo, until the echo is over.
    pub fn stream_beside(&self) -> Option<Self> {
        let direction = match self.beside {
            Beside::None => return None,
            Beside::Upload => Direction::Upload,
            Beside::Download => Direction::Download,
        };
        Some(Self {
            kind: Work::Stream,
            protocol: self.protocol,
            style: self.style,
            direction,
            read_size: self.read_size,
            duration: Some(Span(MAX_DURATION.max)),
            ..Self::default()
        })
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            kind: Work::Echo,
            protocol: Protocol::Tcp,
            style: Style::OneToOne,
            chunk_count: 32,
            bursts: 1,
            chunk_size: None,
            read_size: 65536,
            direction: Direction::Upload,
            duration: None,
            bytes: None,
            omit: Span(0),
            pattern: Pattern::Burst,
            gap: Span(0),
            connections: one(),
            beside: Beside::None,
            beside_lead: Self::DEFAULT_LEAD,
            read_pause: Span(0),
            quiet: Self::DEFAULT_QUIET,
            zerocopy: false,
            port: default_port(),
        }
    }
}

/// Socket options of one end. What is `None` or missing is `"default"`: the option is not set and the kernel decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// `SO_RCVBUF`.
    pub rcvbuf: Option<Bytes>,
    /// `SO_SNDBUF`.
    pub sndbuf: Option<Bytes>,
    /// `TCP_NODELAY` or `SCTP_NODELAY`.
    pub nodelay: Option<bool>,
    /// When the two buffers are set.
    pub set_at: SetAt,
    /// Other options by their names in [`OPTIONS`], with values as their keys check them.
    pub options: BTreeMap<String, Value>,
}

/// Two or more settings that cannot go together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// Paths of the keys that clash, the one to blame first.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: &'static str,
}

impl Settings {
    /// Every combination of settings in this cell that no kernel could make sense of.
    ///
    /// `set` tells whether the file, an axis or the command line names a key of that path.
    pub fn conflicts(&self, set: &dyn Fn(&str) -> bool) -> Vec<Conflict> {
        let mut found = Vec::new();
        let mut add = |keys, message: String, fix| found.push(Conflict { keys, message, fix });
        let work = &self.workload;
        if work.protocol != Protocol::Sctp && set("workload.style") {
            add(
                &["workload.style", "workload.protocol"],
                format!("`style` is for sctp, and the protocol is {}", work.protocol),
                "leave `style` out, or set protocol = \"sctp\"",
            );
        }
        if work.kind == Work::Stream && set("workload.chunk_count") {
            add(
                &["workload.chunk_count", "workload.kind"],
                "a stream has no `chunk_count`".to_owned(),
                "bound a stream with `workload.duration` or `workload.bytes`",
            );
        }
        if work.kind == Work::Stream && set("workload.bursts") {
            add(
                &["workload.bursts", "workload.kind"],
                "a stream has no `bursts`".to_owned(),
                "bound a stream with `workload.duration` or `workload.bytes`",
            );
        }
        if work.kind == Work::Echo {
            for key in ["workload.duration", "workload.bytes", "workload.omit", "workload.direction"] {
                if set(key) {
                    add(
                        match key {
                            "workload.duration" => &["workload.duration", "workload.kind"],
                            "workload.bytes" => &["workload.bytes", "workload.kind"],
                            "workload.omit" => &["workload.omit", "workload.kind"],
                            _ => &["workload.direction", "workload.kind"],
                        },
                        format!("an echo has no `{}`", key.trim_start_matches("workload.")),
                        "set kind = \"stream\", or shape the echo with `chunk_count` and `chunk_size`",
                    );
                }
            }
        }
        shape::add_conflicts(self, set, &mut add);
        if work.duration.is_some() && work.bytes.is_some() {
            add(
                &["workload.bytes", "workload.duration"],
                "a stream is bounded by `duration` or by `bytes`, not by both".to_owned(),
                "leave one of them out",
            );
        }
        if let Some(duration) = work.stream_duration()
            && work.kind == Work::Stream
            && work.omit >= duration
        {
            add(
                &["workload.omit", "workload.duration"],
                format!("leaving out the first {} of a stream of {} leaves nothing to measure", work.omit, duration),
                "make `omit` shorter than `duration`",
            );
        }
        self.link.conflicts(&mut add);
        if let Some(mtu) = self.link.mtu
            && self.link.family == Family::Ipv6
            && mtu < 1280
        {
            add(
                &["link.mtu", "link.family"],
                format!("IPv6 needs an MTU of at least 1280 (RFC 8200, section 5), and {mtu} is asked"),
                "raise `mtu` to 1280 or more, or use family = \"ipv4\"",
            );
        }
        found.extend(self.option_conflicts());
        found
    }
}
