//! Socket options by their names in the settings: how each is set, and how it is read back.

use std::os::fd::BorrowedFd;
use std::{fs, io};

use crate::measurement::{Association, End, OptionReading, Reading};
use crate::settings::{Protocol, Socket, Value};
use crate::sys::option::{
    IP_TOS, IPV6_TCLASS, SO_BUSY_POLL, SO_PRIORITY, SO_RCVLOWAT, TCP_CORK, TCP_MAXSEG, TCP_NOTSENT_LOWAT, TCP_QUICKACK,
    TCP_USER_TIMEOUT, TCP_WINDOW_CLAMP, congestion, fell_back, set_congestion,
};
use crate::sys::sctp::{self, Events, FUTURE, Rto, Sack, Streams, ValueOption};
use crate::sys::socket::{IntOption, SO_RCVBUF, SO_SNDBUF, get_int, set_int};
use crate::units::Span;

use super::Failure;

/// Which socket: its descriptor, and what decides how an option of it is called.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) socket: BorrowedFd<'a>,
    pub(super) ipv6: bool,
    /// `client` or `server`, for messages.
    pub(super) side: &'a str,
}

/// What a number of the kernel's means in the settings.
#[derive(Clone, Copy)]
enum Form {
    Number,
    Switch,
    /// A span of time in units of so many nanoseconds.
    Span(u64),
}

/// What an option is called.
#[derive(Clone, Copy)]
enum Call {
    Int(IntOption),
    Value(ValueOption),
    /// Another call for IPv6.
    Tos,
    Rto(fn(&mut Rto) -> &mut u32),
    Sack(fn(&mut Sack) -> &mut u32),
    Streams(fn(&mut Streams) -> &mut u16),
    Unordered,
    Lifetime,
    Heartbeat,
    /// Set with the buffers, and read here.
    Forced(IntOption),
    Quickack,
    Congestion,
    Events,
}

const MS: u64 = 1_000_000;

/// Every option, in the order in which they are set: `IP_TOS` sets the priority too (`rt_tos2priority`), and the flags of
/// `SCTP_DEFAULT_SNDINFO` take those of `SCTP_DEFAULT_PRINFO` with them.
const TABLE: &[(&str, Form, Call)] = &[
    ("rcvbuf_force", Form::Number, Call::Forced(SO_RCVBUF)),
    ("sndbuf_force", Form::Number, Call::Forced(SO_SNDBUF)),
    ("rcvlowat", Form::Number, Call::Int(SO_RCVLOWAT)),
    ("busy_poll", Form::Span(1000), Call::Int(SO_BUSY_POLL)),
    ("tos", Form::Number, Call::Tos),
    ("priority", Form::Number, Call::Int(SO_PRIORITY)),
    ("tcp.cork", Form::Switch, Call::Int(TCP_CORK)),
    ("tcp.quickack", Form::Switch, Call::Quickack),
    ("tcp.notsent_lowat", Form::Number, Call::Int(TCP_NOTSENT_LOWAT)),
    ("tcp.user_timeout", Form::Span(MS), Call::Int(TCP_USER_TIMEOUT)),
    ("tcp.congestion", Form::Number, Call::Congestion),
    ("tcp.window_clamp", Form::Number, Call::Int(TCP_WINDOW_CLAMP)),
    ("tcp.maxseg", Form::Number, Call::Int(TCP_MAXSEG)),
    ("sctp.rto_initial", Form::Span(MS), Call::Rto(|rto| &mut rto.initial)),
    ("sctp.rto_min", Form::Span(MS), Call::Rto(|rto| &mut rto.min)),
    ("sctp.rto_max", Form::Span(MS), Call::Rto(|rto| &mut rto.max)),
    ("sctp.sack_delay", Form::Span(MS), Call::Sack(|sack| &mut sack.delay)),
    ("sctp.sack_frequency", Form::Number, Call::Sack(|sack| &mut sack.frequency)),
    ("sctp.streams_out", Form::Number, Call::Streams(|streams| &mut streams.out)),
    ("sctp.streams_in", Form::Number, Call::Streams(|streams| &mut streams.within)),
    ("sctp.max_burst", Form::Number, Call::Value(sctp::MAX_BURST)),
    ("sctp.maxseg", Form::Number, Call::Value(sctp::MAXSEG)),
    ("sctp.fragment_interleave", Form::Number, Call::Int(sctp::FRAGMENT_INTERLEAVE)),
    ("sctp.autoclose", Form::Span(1000 * MS), Call::Int(sctp::AUTOCLOSE)),
    ("sctp.heartbeat", Form::Span(MS), Call::Heartbeat),
    ("sctp.unordered", Form::Switch, Call::Unordered),
    ("sctp.lifetime", Form::Span(MS), Call::Lifetime),
    ("sctp.events", Form::Number, Call::Events),
];

/// The value of `tcp.quickack` that has it set before each receive call.
pub(super) fn quickack_before_each_read(asked: &Socket) -> bool {
    asked.options.get("tcp.quickack").and_then(Value::text) == Some("each-read")
}

/// Sets every option that was asked for and reads it back.
pub(super) fn apply(target: Target<'_>, asked: &Socket, end: &mut End) -> Result<(), Failure> {
    let of = |name: &str| asked.options.get(name);
    // Structures with several options are set in one call: a smallest timeout above the largest is refused in between.
    let mut rto = (Rto::default(), Vec::new());
    let mut sack = (Sack::default(), Vec::new());
    let mut streams = (Streams::default(), Vec::new());
    for &(name, form, call) in TABLE {
        let Some(value) = of(name) else { continue };
        let number = raw(form, value);
        let told = || format!("{name} = {value}");
        match call {
            Call::Rto(part) => {
                *part(&mut rto.0) = clamp(number);
                rto.1.push(told());
            }
            Call::Sack(part) => {
                *part(&mut sack.0) = clamp(number);
                sack.1.push(told());
            }
            Call::Streams(part) => {
                *part(&mut streams.0) = u16::try_from(number).unwrap_or(u16::MAX);
                streams.1.push(told());
            }
            _ => set(target, call, number, value)?,
        }
    }
    let many = |told: &[String], option: &str, error: io::Error| {
        Failure::setting(option, &told.join(" and "), target.side, error)
    };
    if !rto.1.is_empty() {
        sctp::set_rto(target.socket, rto.0).map_err(|error| many(&rto.1, "SCTP_RTOINFO", error))?;
    }
    if !sack.1.is_empty() {
        sctp::set_sack(target.socket, sack.0).map_err(|error| many(&sack.1, "SCTP_DELAYED_SACK", error))?;
    }
    if !streams.1.is_empty() {
        sctp::set_streams(target.socket, streams.0).map_err(|error| many(&streams.1, "SCTP_INITMSG", error))?;
    }
    for &(name, form, call) in TABLE {
        if let Some(value) = of(name) {
            let given = read(target.socket, target.ipv6, form, call, FUTURE).ok();
            end.options.insert(name.to_owned(), OptionReading { asked: reading_of(value), given, end: None });
        }
    }
    Ok(())
}

/// Reads the options of a connection at its end, and what its protocol knows of it.
pub(super) fn finish(socket: BorrowedFd<'_>, ipv6: bool, protocol: Protocol, end: &mut End) {
    let association = if protocol == Protocol::Sctp { sctp::association(socket).unwrap_or(FUTURE) } else { FUTURE };
    for &(name, form, call) in TABLE {
        if let Some(option) = end.options.get_mut(name) {
            option.end = read(socket, ipv6, form, call, association).ok();
        }
    }
    match protocol {
        Protocol::Sctp => end.association = tell(socket, association).map(Box::new),
        Protocol::Mptcp => end.fell_back = fell_back(socket).ok(),
        Protocol::Tcp | Protocol::Udp => {}
    }
}

/// A value of the settings as the kernel counts it.
fn raw(form: Form, value: &Value) -> i64 {
    match value {
        Value::Bool(switch) => i64::from(*switch),
        Value::Int(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Value::Text(text) => {
            let unit = if let Form::Span(unit) = form { unit } else { 1 };
            let span = text.parse::<Span>().unwrap_or_default();
            i64::try_from(span.0 / unit).unwrap_or(i64::MAX)
        }
    }
}

fn clamp(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn reading_of(value: &Value) -> Reading {
    match value {
        Value::Bool(switch) => Reading::Switch(*switch),
        Value::Int(number) => Reading::Number(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Text(text) => Reading::Word(text.clone()),
    }
}

/// A number of the kernel's as the settings have it.
fn reading(form: Form, number: i64) -> Reading {
    match form {
        Form::Number => Reading::Number(number),
        Form::Switch => Reading::Switch(number != 0),
        Form::Span(unit) => Reading::Word(Span(u64::try_from(number).unwrap_or_default().saturating_mul(unit)).exact()),
    }
}

const fn tos(ipv6: bool) -> IntOption {
    if ipv6 { IPV6_TCLASS } else { IP_TOS }
}

/// Makes one call.
fn set(target: Target<'_>, call: Call, number: i64, value: &Value) -> Result<(), Failure> {
    let socket = target.socket;
    let int = i32::try_from(number).unwrap_or(i32::MAX);
    let refused = |option: &str, error| Failure::setting(option, &value.to_string(), target.side, error);
    let (option, result) = match call {
        // These are set together, or with the buffers.
        Call::Rto(_) | Call::Sack(_) | Call::Streams(_) | Call::Forced(_) => return Ok(()),
        Call::Int(option) => (option.name, set_int(socket, option, int)),
        Call::Tos => (tos(target.ipv6).name, set_int(socket, tos(target.ipv6), int)),
        Call::Value(option) => (option.name, sctp::set_value(socket, option, clamp(number))),
        Call::Unordered => ("SCTP_DEFAULT_SNDINFO", sctp::set_unordered(socket, number != 0)),
        Call::Lifetime => ("SCTP_DEFAULT_PRINFO", sctp::set_lifetime(socket, clamp(number))),
        Call::Heartbeat => ("SCTP_PEER_ADDR_PARAMS", sctp::set_heartbeat(socket, clamp(number))),
        Call::Events => ("SCTP_EVENTS", sctp::set_events(socket, events(value.text().unwrap_or_default()))),
        Call::Quickack => (TCP_QUICKACK.name, set_int(socket, TCP_QUICKACK, i32::from(value.text() != Some("off")))),
        Call::Congestion => {
            let name = value.text().unwrap_or_default();
            return set_congestion(socket, name).map_err(|error| match error.raw_os_error() {
                Some(libc::ENOENT | libc::EPERM) => no_congestion(name, target.side, error),
                _ => refused("TCP_CONGESTION", error),
            });
        }
    };
    result.map_err(|error| refused(option, error))
}

/// A congestion control that cannot be had here, and which can.
fn no_congestion(name: &str, side: &str, error: io::Error) -> Failure {
    let list = |key: &str| {
        fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{key}_congestion_control"))
            .map_or_else(|_| "unknown".to_owned(), |names| names.trim().to_owned())
    };
    Failure::Impossible {
        doing: format!(
            "setting TCP_CONGESTION to {name} on the {side} (available here: {}; allowed to every user: {})",
            list("available"),
            list("allowed")
        ),
        error,
    }
}

/// The words of `sctp.events`.
fn events(word: &str) -> Events {
    match word {
        "all" => [true; 7],
        "data-io" => [true, false, false, false, false, false, false],
        _ => [false; 7],
    }
}

/// Reads one option.
fn read(
    socket: BorrowedFd<'_>,
    ipv6: bool,
    form: Form,
    call: Call,
    association: sctp::Association,
) -> io::Result<Reading> {
    let number = match call {
        Call::Int(option) | Call::Forced(option) => get_int(socket, option)?.into(),
        Call::Tos => get_int(socket, tos(ipv6))?.into(),
        Call::Quickack => get_int(socket, TCP_QUICKACK)?.into(),
        Call::Value(option) => sctp::value(socket, option, association)?.into(),
        Call::Rto(part) => i64::from(*part(&mut sctp::rto(socket, association)?)),
        Call::Sack(part) => i64::from(*part(&mut sctp::sack(socket, association)?)),
        Call::Streams(part) if association == FUTURE => i64::from(*part(&mut sctp::streams(socket)?)),
        // What was agreed on.
        Call::Streams(part) => {
            let status = sctp::status(socket, association)?;
            i64::from(*part(&mut Streams { out: status.streams_out, within: status.streams_in }))
        }
        Call::Unordered => sctp::unordered(socket, association)?.into(),
        Call::Lifetime => sctp::lifetime(socket, association)?.into(),
        Call::Heartbeat => sctp::heartbeat(socket, association)?.into(),
        Call::Congestion => return congestion(socket).map(Reading::Word),
        Call::Events => {
            let given = sctp::events(socket)?;
            let known = ["none", "data-io", "all"].into_iter().find(|word| events(word) == given);
            return Ok(Reading::Word(known.unwrap_or("others").to_owned()));
        }
    };
    Ok(reading(form, number))
}

/// What the kernel knows of an association; `None` where there is none any more.
fn tell(socket: BorrowedFd<'_>, association: sctp::Association) -> Option<Association> {
    let status = sctp::status(socket, association).ok();
    let counters = sctp::statistics(socket, association).ok();
    if status.is_none() && counters.is_none() {
        return None;
    }
    let ms = |milliseconds: u64| milliseconds.saturating_mul(MS);
    Some(Association {
        state: status.map(|status| status.state),
        peer_rwnd_bytes: status.map(|status| status.rwnd.into()),
        unacked_chunks: status.map(|status| status.unacked.into()),
        pending_chunks: status.map(|status| status.pending.into()),
        streams_in: status.map(|status| status.streams_in.into()),
        streams_out: status.map(|status| status.streams_out.into()),
        fragmentation_point_bytes: status.map(|status| status.fragmentation_point.into()),
        cwnd_bytes: status.map(|status| status.cwnd.into()),
        srtt_ns: status.map(|status| ms(status.srtt.into())),
        rto_ns: status.map(|status| ms(status.rto.into())),
        max_rto_ticks: counters.map(|counters| counters.max_rto),
        mtu_bytes: status.map(|status| status.mtu.into()),
        sacks_in: counters.map(|counters| counters.sacks_in),
        sacks_out: counters.map(|counters| counters.sacks_out),
        packets_in: counters.map(|counters| counters.packets_in),
        packets_out: counters.map(|counters| counters.packets_out),
        retransmitted_chunks: counters.map(|counters| counters.retransmitted),
        out_of_sequence_chunks: counters.map(|counters| counters.out_of_sequence),
        duplicate_chunks_in: counters.map(|counters| counters.duplicates_in),
        gaps: counters.map(|counters| counters.gaps),
        unordered_chunks_in: counters.map(|counters| counters.unordered_in),
        unordered_chunks_out: counters.map(|counters| counters.unordered_out),
        ordered_chunks_in: counters.map(|counters| counters.ordered_in),
        ordered_chunks_out: counters.map(|counters| counters.ordered_out),
        control_chunks_in: counters.map(|counters| counters.control_in),
        control_chunks_out: counters.map(|counters| counters.control_out),
    })
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use crate::settings::OPTIONS;

    #[test]
    fn every_option_of_the_settings_can_be_set() {
        let mut named: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
        let mut callable: Vec<_> = TABLE.iter().map(|(name, ..)| *name).collect();
        named.sort_unstable();
        callable.sort_unstable();
        assert_eq!(named, callable);
    }
}
