//! Socket options beyond the buffers and the no-delay switch: for each of them a key for both ends, one for the client's and one
//! for the server's.

use super::{BUFFER, Key, Limit, SWITCH_OR_DEFAULT};
use crate::settings::{Carries, Kind, SetAt, Settings, Socket, SocketOption, Value};

/// Most of a whole number that is not bounded by anything but its C type.
const MAX_NUMBER: Limit = Limit { name: "MAX_NUMBER", max: 65535 };
/// Largest type-of-service octet.
const MAX_TOS: Limit = Limit { name: "MAX_TOS", max: 255 };
/// Largest priority of a packet: classes of queue disciplines are 32 bits, and the option is a C `int`.
const MAX_PRIORITY: Limit = Limit { name: "MAX_PRIORITY", max: i32::MAX as u64 };
/// Longest time that an option takes: an hour.
const MAX_TIMER: Limit = Limit { name: "MAX_TIMER", max: 3600 * 1_000_000_000 };
/// Modes of `SCTP_FRAGMENT_INTERLEAVE` (RFC 6458, section 8.1.20).
const MAX_INTERLEAVE: Limit = Limit { name: "MAX_INTERLEAVE", max: 2 };

const TIMER: Kind = Kind::Span { min: 0, limit: MAX_TIMER, or_default: true };

const fn number(min: u64, limit: Limit) -> Kind {
    Kind::Count { min, limit, or_default: true }
}

/// Puts an option into the settings of one end; `"default"` takes it out.
fn put(socket: &mut Socket, name: &str, value: &Value) {
    if value.is_default() {
        socket.options.remove(name);
    } else {
        socket.options.insert(name.to_owned(), value.clone());
    }
}

fn asked(socket: &Socket, name: &str) -> Value {
    socket.options.get(name).cloned().unwrap_or_else(Value::kernel_default)
}

/// The table of options, as keys and as what is known of each.
macro_rules! options {
    ($($name:literal, $carries:ident, $unit:literal, $kind:expr, $about:literal;)+) => {
        /// A key for both ends, for the client's and for the server's, of each option.
        pub(super) static OPTION_KEYS: &[Key] = &[$(
            Key {
                path: concat!("socket.", $name),
                short: None,
                kind: $kind,
                about: concat!($about, ", on both ends"),
                set: |settings: &mut Settings, value| {
                    put(&mut settings.client, $name, value);
                    put(&mut settings.server, $name, value);
                },
                get: None,
            },
            Key {
                path: concat!("socket.client.", $name),
                short: None,
                kind: $kind,
                about: concat!($about, ", on the client's end"),
                set: |settings: &mut Settings, value| put(&mut settings.client, $name, value),
                get: Some(|settings: &Settings| asked(&settings.client, $name)),
            },
            Key {
                path: concat!("socket.server.", $name),
                short: None,
                kind: $kind,
                about: concat!($about, ", on the server's end"),
                set: |settings: &mut Settings, value| put(&mut settings.server, $name, value),
                get: Some(|settings: &Settings| asked(&settings.server, $name)),
            },
        )+];

        /// Every socket option that is set by its name.
        pub static OPTIONS: &[SocketOption] = &[$(
            SocketOption {
                name: $name,
                carries: Carries::$carries,
                unit_ns: $unit,
                keys: &[
                    concat!("socket.", $name),
                    concat!("socket.client.", $name),
                    concat!("socket.server.", $name),
                    "workload.protocol",
                    "workload.style",
                ],
            },
        )+];
    };
}

options! {
    "rcvlowat", Any, 0, Kind::Size { min: 1, limit: super::MAX_BUFFER, or_default: true },
        "bytes that must be there before a receive call returns (SO_RCVLOWAT)";
    "busy_poll", Any, 1000, TIMER, "time to poll the device for before sleeping, in whole microseconds (SO_BUSY_POLL)";
    "priority", Any, 0, number(0, MAX_PRIORITY), "priority of packets in queues (SO_PRIORITY)";
    "tos", Any, 0, number(0, MAX_TOS), "type of service or traffic class of packets (IP_TOS, IPV6_TCLASS)";
    "rcvbuf_force", Any, 0, BUFFER,
        "receive buffer that net.core.rmem_max does not bound (SO_RCVBUFFORCE, for root); instead of rcvbuf";
    "sndbuf_force", Any, 0, BUFFER,
        "send buffer that net.core.wmem_max does not bound (SO_SNDBUFFORCE, for root); instead of sndbuf";
    "tcp.cork", Tcp, 0, SWITCH_OR_DEFAULT, "true holds back partial segments for up to 200 ms (TCP_CORK)";
    "tcp.quickack", Tcp, 0, Kind::Choice(&["default", "off", "once", "each-read"]),
        "acknowledge at once: set to 0, to 1 once, or to 1 before each receive call, since the kernel falls back by itself (TCP_QUICKACK)";
    "tcp.notsent_lowat", Tcp, 0, BUFFER, "unsent bytes up to which the socket is writable (TCP_NOTSENT_LOWAT)";
    "tcp.user_timeout", Tcp, 1_000_000, TIMER,
        "time that sent data may stay unacknowledged, in whole milliseconds (TCP_USER_TIMEOUT)";
    "tcp.congestion", Tcp, 0, Kind::Text, "name of the congestion control, or \"default\" (TCP_CONGESTION)";
    "tcp.window_clamp", Tcp, 0, BUFFER, "largest window that is advertised, in bytes (TCP_WINDOW_CLAMP)";
    "tcp.maxseg", Tcp, 0, number(1, MAX_NUMBER), "largest segment in bytes (TCP_MAXSEG)";
    "sctp.sack_delay", Sctp, 1_000_000, TIMER, "time an acknowledgement is delayed for, in whole milliseconds (SCTP_DELAYED_SACK)";
    "sctp.sack_frequency", Sctp, 0, number(1, MAX_NUMBER),
        "packets after which an acknowledgement is not delayed any more; 1 turns the delay off (SCTP_DELAYED_SACK)";
    "sctp.rto_initial", Sctp, 1_000_000, TIMER, "first retransmission timeout, in whole milliseconds (SCTP_RTOINFO)";
    "sctp.rto_min", Sctp, 1_000_000, TIMER, "smallest retransmission timeout, in whole milliseconds (SCTP_RTOINFO)";
    "sctp.rto_max", Sctp, 1_000_000, TIMER, "largest retransmission timeout, in whole milliseconds (SCTP_RTOINFO)";
    "sctp.max_burst", Sctp, 0, number(0, MAX_NUMBER), "packets sent at once at most; 0 for no bound (SCTP_MAX_BURST)";
    "sctp.maxseg", Sctp, 0, number(1, MAX_NUMBER), "bytes of a message in one chunk at most (SCTP_MAXSEG)";
    "sctp.fragment_interleave", Sctp, 0, number(0, MAX_INTERLEAVE),
        "how the pieces of messages may be mixed when received (SCTP_FRAGMENT_INTERLEAVE)";
    "sctp.streams_out", Sctp, 0, number(1, MAX_NUMBER), "streams asked for in the association (SCTP_INITMSG)";
    "sctp.streams_in", Sctp, 0, number(1, MAX_NUMBER), "streams of the peer that are allowed (SCTP_INITMSG)";
    "sctp.unordered", Sctp, 0, SWITCH_OR_DEFAULT, "true sends messages without an order (SCTP_DEFAULT_SNDINFO)";
    "sctp.lifetime", Sctp, 1_000_000, TIMER,
        "time after which a message that is not yet through is given up, in whole milliseconds; an echo then never ends (SCTP_DEFAULT_PRINFO, RFC 3758)";
    "sctp.autoclose", Sctp, 1_000_000_000, TIMER,
        "time without traffic after which an association is closed, in whole seconds, one-to-many only (SCTP_AUTOCLOSE)";
    "sctp.heartbeat", Sctp, 1_000_000, TIMER,
        "time between heartbeats of an idle path, in whole milliseconds; 0s turns them off (SCTP_PEER_ADDR_PARAMS)";
    "sctp.events", Sctp, 0, Kind::Choice(&["default", "none", "data-io", "all"]),
        "notifications subscribed to; all is the first seven of RFC 6458, section 6.2.1, as Erlang has them (SCTP_EVENTS)";
}

/// When buffers are set: a key for both ends, for the client's and for the server's.
pub(super) static SET_AT_KEYS: [Key; 3] = [
    Key {
        path: "socket.set_at",
        short: None,
        kind: Kind::Choice(SetAt::NAMES),
        about: "when buffers are set: before connect or listen, or after connect or accept, when TCP's window scale is settled; on both ends",
        set: |settings, value| {
            settings.client.set_at = set_at(value);
            settings.server.set_at = set_at(value);
        },
        get: None,
    },
    Key {
        path: "socket.client.set_at",
        short: None,
        kind: Kind::Choice(SetAt::NAMES),
        about: "when buffers are set, on the client's end: before or after connect",
        set: |settings, value| settings.client.set_at = set_at(value),
        get: Some(|settings| Value::Text(settings.client.set_at.name().to_owned())),
    },
    Key {
        path: "socket.server.set_at",
        short: None,
        kind: Kind::Choice(SetAt::NAMES),
        about: "when buffers are set, on the server's end: before listen, or after accept",
        set: |settings, value| settings.server.set_at = set_at(value),
        get: Some(|settings| Value::Text(settings.server.set_at.name().to_owned())),
    },
];

fn set_at(value: &Value) -> SetAt {
    value.text().and_then(SetAt::named).unwrap_or_default()
}
