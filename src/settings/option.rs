//! What is known of a socket option that is set by its name, and where it does not fit.

use super::{Conflict, OPTIONS, Protocol, SetAt, Settings, Socket, Style, Value};
use crate::units::Span;

/// Which protocols have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// All of them.
    Any,
    /// TCP and MPTCP.
    Tcp,
    /// SCTP.
    Sctp,
}

impl Carries {
    /// Whether that protocol has it.
    pub const fn includes(self, protocol: Protocol) -> bool {
        match self {
            Self::Any => true,
            Self::Tcp => matches!(protocol, Protocol::Tcp | Protocol::Mptcp),
            Self::Sctp => matches!(protocol, Protocol::Sctp),
        }
    }
}

/// A socket option that is set by its name.
#[derive(Debug)]
pub struct SocketOption {
    /// Its path below `socket`, such as `tcp.cork`: its name in records too.
    pub name: &'static str,
    /// Which protocols have it.
    pub carries: Carries,
    /// The unit in which the kernel counts a span of time, in nanoseconds; 0 for what is no span.
    pub unit_ns: u64,
    /// Keys that decide whether it fits: its own three, the protocol and the style.
    pub(super) keys: &'static [&'static str],
}

impl Settings {
    /// Options that do not fit the protocol, or each other.
    pub(super) fn option_conflicts(&self) -> Vec<Conflict> {
        let mut found = Vec::new();
        let work = &self.workload;
        for option in OPTIONS {
            let asked = |socket: &Socket| socket.options.get(option.name).cloned();
            for value in [asked(&self.client), asked(&self.server)].into_iter().flatten() {
                if let Some((message, fix)) = misfit(option, &value, work.protocol, work.style) {
                    found.push(Conflict { keys: option.keys, message, fix });
                    break;
                }
            }
        }
        let both = |socket: &Socket, size: bool, force: &str| size && socket.options.contains_key(force);
        for socket in [&self.client, &self.server] {
            for (clash, keys, name) in [
                (both(socket, socket.rcvbuf.is_some(), "rcvbuf_force"), RCVBUF_KEYS, "rcvbuf"),
                (both(socket, socket.sndbuf.is_some(), "sndbuf_force"), SNDBUF_KEYS, "sndbuf"),
            ] {
                if clash && !found.iter().any(|conflict| conflict.keys == keys) {
                    found.push(Conflict {
                        keys,
                        message: format!("`{name}` and `{name}_force` set the same buffer"),
                        fix: "leave one of them out",
                    });
                }
            }
        }
        if self.server.set_at == SetAt::After && work.protocol == Protocol::Sctp && work.style == Style::OneToMany {
            found.push(Conflict {
                keys: &["socket.server.set_at", "socket.set_at", "workload.style"],
                message: "a one-to-many server accepts no association, so there is no `after`".to_owned(),
                fix: "use `socket.client.set_at`, or style = \"one-to-one\"",
            });
        }
        found
    }
}

const RCVBUF_KEYS: &[&str] = &[
    "socket.rcvbuf_force",
    "socket.client.rcvbuf_force",
    "socket.server.rcvbuf_force",
    "socket.rcvbuf",
    "socket.client.rcvbuf",
    "socket.server.rcvbuf",
];
const SNDBUF_KEYS: &[&str] = &[
    "socket.sndbuf_force",
    "socket.client.sndbuf_force",
    "socket.server.sndbuf_force",
    "socket.sndbuf",
    "socket.client.sndbuf",
    "socket.server.sndbuf",
];

/// Longest name of a congestion control (`TCP_CA_NAME_MAX` with its NUL is 16).
const MAX_CONGESTION_NAME: usize = 15;

/// Why an option does not fit, and what to do.
fn misfit(option: &SocketOption, value: &Value, protocol: Protocol, style: Style) -> Option<(String, &'static str)> {
    let name = option.name;
    if !option.carries.includes(protocol) {
        return Some((
            format!("`{name}` is no option of {protocol}"),
            "leave it out, or set the protocol that has it: `tcp.…` for tcp and mptcp, `sctp.…` for sctp",
        ));
    }
    if name == "sctp.autoclose" && style == Style::OneToOne {
        return Some((
            "`sctp.autoclose` is for one-to-many sockets (RFC 6458, section 8.1.8)".to_owned(),
            "set style = \"one-to-many\", or leave it out",
        ));
    }
    if option.unit_ns > 0
        && let Some(span) = value.text().and_then(|text| text.parse::<Span>().ok())
        && !span.0.is_multiple_of(option.unit_ns)
    {
        let unit = Span(option.unit_ns).exact();
        return Some((
            format!("`{name}` is counted in units of {unit}, and {} is not a multiple", span.exact()),
            "round it",
        ));
    }
    if name == "tcp.congestion" && value.text().is_some_and(|text| text.len() > MAX_CONGESTION_NAME) {
        return Some((format!("`{value}` is too long for a congestion control"), "its name has 15 characters at most"));
    }
    None
}
