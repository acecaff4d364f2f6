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

#[cfg(test)]
mod tests {
    use crate::settings::{Settings, Value, find};

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// Messages of the conflicts of settings made of these keys.
    fn conflicts(values: &[(&str, Value)]) -> Vec<String> {
        let mut settings = Settings::default();
        for (path, value) in values {
            let key = find(path).expect("a key");
            key.put(&mut settings, &key.kind.check(value).expect("a fitting value"));
        }
        let set = |path: &str| values.iter().any(|(key, _)| *key == path);
        settings.conflicts(&set).into_iter().map(|conflict| conflict.message).collect()
    }

    #[test]
    fn options_that_do_not_fit_are_told_once() {
        let sctp = ("workload.protocol", text("sctp"));
        let udp = ("workload.protocol", text("udp"));
        for (values, part) in [
            (vec![("socket.sctp.maxseg", Value::Int(500))], "`sctp.maxseg` is no option of tcp"),
            (vec![("socket.client.tcp.cork", Value::Bool(true)), sctp.clone()], "`tcp.cork` is no option of sctp"),
            (vec![("socket.sctp.rto_min", text("1500us")), sctp.clone()], "counted in units of 1ms"),
            (vec![("socket.sctp.autoclose", text("9s")), sctp.clone()], "one-to-many"),
            (vec![("socket.rcvbuf", Value::Int(1)), ("socket.client.rcvbuf_force", Value::Int(2))], "the same buffer"),
            (
                vec![("socket.set_at", text("after")), ("workload.style", text("one-to-many")), sctp],
                "there is no `after`",
            ),
            (vec![("socket.tcp.congestion", text("a-name-that-is-too-long"))], "too long"),
            (vec![("socket.nodelay", Value::Bool(true)), udp.clone()], "udp has no `nodelay`"),
            (vec![("chunk_size", Value::Int(7)), udp.clone()], "8 to 65507 bytes"),
            (vec![("workload.read_size", Value::Int(63)), udp.clone()], "cut off"),
            (vec![("workload.pattern", text("write-write-read")), udp], "one write"),
            (vec![("workload.quiet", text("1s"))], "`quiet` is for udp"),
            (vec![("workload.gap", text("1s"))], "there is one"),
            (vec![("workload.zerocopy", Value::Bool(true))], "for a stream over tcp"),
        ] {
            let found = conflicts(&values);
            assert!(found.len() == 1 && found[0].contains(part), "{values:?}: {found:?}");
        }
        assert_eq!(conflicts(&[("socket.sctp.maxseg", Value::kernel_default())]), Vec::<String>::new());
    }
}
