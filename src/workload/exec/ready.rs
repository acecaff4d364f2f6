//! When a server counts as ready.

use std::fs;
use std::time::Duration;

use regex::Regex;

use crate::settings::{Program, Protocol, Ready, Settings};
use crate::sys::child::Nest;

use super::running::Running;
use super::{Control, Failure, how, is_success};

/// Time between the first two looks at the sockets of the namespace; it doubles up to the other.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// `TCP_LISTEN` (`include/net/tcp_states.h`), as /proc shows it.
const LISTEN: &str = "0A";

/// Waits until a server is ready.
pub(super) fn wait(
    running: &mut Running,
    program: &Program,
    settings: &Settings,
    nest: &Nest,
    control: &Control<'_>,
) -> Result<(), Failure> {
    let mut look = Look::new(&program.ready, settings)?;
    let mut pause = FIRST_LOOK;
    while !look.is_ready(running) {
        control.check(|| running.with_last_lines(&format!("the server was not ready: {}", look.missing())))?;
        if running.age() >= program.ready_timeout {
            let missing = look.missing();
            return Err(running.failed(&format!("was not ready after {}: {missing}", program.ready_timeout)));
        }
        // One that has gone to the background is not gone.
        if let Some((ended, _)) = running.ended()
            && (!is_success(&ended, &program.success) || nest.others(None).is_empty())
        {
            // It may have said what is waited for just before.
            running.drain();
            return if look.is_ready(running) && is_success(&ended, &program.success) {
                Ok(())
            } else {
                Err(running.failed(&format!("{} before it was ready", how(&ended))))
            };
        }
        let patience = look.patience(running).unwrap_or(pause).min(control.patience());
        running.step(None, patience)?;
        pause = (2 * pause).min(LAST_LOOK);
    }
    Ok(())
}

/// What is looked for.
enum Look {
    Port { protocol: Protocol, port: u16 },
    Line { pattern: Regex, seen: [usize; 2] },
    After(Duration),
}

impl Look {
    fn new(ready: &Ready, settings: &Settings) -> Result<Self, Failure> {
        Ok(match ready {
            Ready::Port { protocol, port } => Self::Port {
                protocol: protocol.unwrap_or(settings.workload.protocol),
                port: port.unwrap_or(settings.workload.port),
            },
            Ready::Line(pattern) => {
                let pattern = Regex::new(pattern).map_err(|error| Failure::Program(error.to_string()))?;
                Self::Line { pattern, seen: [0; 2] }
            }
            Ready::After(span) => Self::After(span.duration()),
        })
    }

    fn is_ready(&mut self, running: &Running) -> bool {
        match self {
            Self::Port { protocol, port } => is_bound(*protocol, *port),
            Self::Line { pattern, seen } => {
                [&running.stdout, &running.stderr].into_iter().zip(seen).any(|(capture, seen)| {
                    let (lines, next) = capture.lines_from(*seen);
                    *seen = next;
                    lines.iter().any(|line| pattern.is_match(line))
                })
            }
            Self::After(span) => running.age().duration() >= *span,
        }
    }

    /// How long it takes until the next look, where that does not depend on how often it has been looked.
    fn patience(&self, running: &Running) -> Option<Duration> {
        match self {
            Self::Port { .. } => None,
            // What is printed wakes it.
            Self::Line { .. } => Some(Duration::from_secs(1)),
            Self::After(span) => Some(span.saturating_sub(running.age().duration()).max(Duration::from_micros(100))),
        }
    }

    /// What is not there.
    fn missing(&self) -> String {
        match self {
            Self::Port { protocol: Protocol::Udp, port } => format!("its namespace has no udp socket on port {port}"),
            Self::Port { protocol, port } => {
                format!("nothing listens on {protocol} port {port} in its namespace")
            }
            Self::Line { pattern, .. } => format!("it printed no line that matches `{pattern}`"),
            Self::After(span) => format!("{span:?} had not passed"),
        }
    }
}

/// Whether a socket of the calling thread's network namespace takes what comes to that port.
fn is_bound(protocol: Protocol, port: u16) -> bool {
    let table = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    match protocol {
        Protocol::Tcp | Protocol::Mptcp => {
            ["tcp", "tcp6"].iter().any(|file| has_local_port(&table(file), port, Some(LISTEN)))
        }
        Protocol::Udp => ["udp", "udp6"].iter().any(|file| has_local_port(&table(file), port, None)),
        Protocol::Sctp => has_endpoint(&table("sctp/eps"), port),
    }
}

/// Whether a table as `tcp_seq_show` writes it has a socket with that local port, in that state.
fn has_local_port(table: &str, port: u16, state: Option<&str>) -> bool {
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, _, in_state, ..] = fields.as_slice() else { return false };
        let local = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        local == Some(port) && state.is_none_or(|state| state == *in_state)
    })
}

/// Whether the table of SCTP's endpoints (`sctp_eps_seq_show`) has one that listens on that port. A one-to-many socket is closed in name
/// whether it listens or not, and so is named by its port alone.
fn has_endpoint(table: &str, port: u16) -> bool {
    let mut lines = table.lines();
    let Some(column) = lines.next().and_then(|header| header.split_ascii_whitespace().position(|name| name == "LPORT"))
    else {
        return false;
    };
    lines.any(|line| line.split_ascii_whitespace().nth(column).is_some_and(|field| field.parse() == Ok(port)))
}

#[cfg(test)]
mod tests {
    use super::{has_endpoint, has_local_port};

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B59 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:1B5A 0100007F:1B59 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
";

    #[test]
    fn a_listener_is_told_from_a_connection() {
        assert!(has_local_port(TCP, 7001, Some("0A")));
        assert!(!has_local_port(TCP, 7002, Some("0A")), "a connection");
        assert!(has_local_port(TCP, 7002, None));
        assert!(!has_local_port("", 7001, None));
    }

    #[test]
    fn endpoints_are_known_by_their_port() {
        let eps = " ENDPT     SOCK   STY SST HBKT LPORT   UID INODE LADDRS\n       0        0 2   10  29   7001      0 1234 10.0.0.1 \n";
        assert!(has_endpoint(eps, 7001));
        assert!(!has_endpoint(eps, 29));
        assert!(!has_endpoint("", 7001));
    }
}
