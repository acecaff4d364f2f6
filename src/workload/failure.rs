//! Why a repeat did not end as it should, and which outcome that is.

use std::io;

use crate::measurement::Outcome;
use crate::settings::Protocol;
use crate::units::Span;

/// Why an end of a cell gave up.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The deadline passed.
    #[error("timed out after {after}: {progress}")]
    TimedOut {
        /// How long it was waited.
        after: Span,
        /// What had arrived until then.
        progress: String,
    },
    /// Chunks of a burst were lost.
    #[error("{lost} of {sent} chunks were lost{}: nothing more came for {quiet} (workload.quiet)", and_late(*.late))]
    Incomplete {
        /// How many.
        lost: u64,
        /// How many more came when they had been given up.
        late: u64,
        /// Of how many that were sent.
        sent: u64,
        /// How long it was waited after the last arrival.
        quiet: Span,
    },
    /// The transport itself gave the peer up (`ETIMEDOUT`, `EHOSTUNREACH`): retransmissions ran out.
    #[error("the connection died while {doing} ({error}): {progress}")]
    Died {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        error: io::Error,
        /// What had arrived until then.
        progress: String,
    },
    /// The kernel has no such protocol.
    #[error(
        "no {} in this kernel ({error}): use kernel.image = \"auto\", or name a kernel such as \"debian:6.12\", to run this in a guest",
        .protocol.name().to_uppercase()
    )]
    NoProtocol {
        /// The protocol.
        protocol: Protocol,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel is older than the protocol.
    #[error("this kernel is older than MPTCP, which came with Linux 5.6 ({error}): name a newer one with kernel.image")]
    OldKernel {
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel has the protocol and it is turned off.
    #[error("MPTCP is turned off here ({error}): net.mptcp.enabled is 0")]
    TurnedOff {
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel has no such option.
    #[error("this kernel has no {option} ({error})")]
    NoOption {
        /// The option.
        option: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The machine cannot do what the cell needs, for another reason.
    #[error("{doing} is not possible here: {error}")]
    Impossible {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// A message that the kernel refuses however long one waits (`EMSGSIZE`).
    #[error(
        "the kernel refuses a message of {size} bytes ({error}): the send buffer holds {sndbuf} bytes, so use a chunk_size of {sndbuf} or less, or a larger sndbuf"
    )]
    MessageTooLarge {
        /// Size of the message in bytes.
        size: usize,
        /// Size of the send buffer in bytes.
        sndbuf: u64,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel refuses a value.
    #[error("the kernel refuses {what} ({error})")]
    Refused {
        /// What it refuses.
        what: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// A call failed that should not.
    #[error("{doing} failed: {error}")]
    Call {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The peer behaved unlike the protocol between the two ends.
    #[error("{0}")]
    Protocol(String),
    /// The peer closed the connection, which it does not before both ends are done: something became of it.
    #[error("{0}")]
    PeerLeft(String),
    /// A program of the user's did not do what it was to do.
    #[error("{0}")]
    Program(String),
    /// A program of the user's is not there.
    #[error("{0}")]
    Absent(String),
    /// The other end gave up first, or the run was interrupted.
    #[error("called off: the other end gave up first")]
    CalledOff,
}

/// Chunks that came too late, in a message.
fn and_late(late: u64) -> String {
    if late == 0 { String::new() } else { format!(" and {late} came after they had been given up") }
}

impl Failure {
    /// Which outcome this is.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Incomplete { .. } => Outcome::Incomplete,
            Self::TimedOut { .. } | Self::Died { .. } => Outcome::TimedOut,
            Self::NoProtocol { .. }
            | Self::OldKernel { .. }
            | Self::TurnedOff { .. }
            | Self::NoOption { .. }
            | Self::Impossible { .. }
            | Self::Absent(_) => Outcome::Skipped,
            Self::MessageTooLarge { .. } | Self::Refused { .. } => Outcome::Invalid,
            Self::Call { .. } | Self::Protocol(_) | Self::PeerLeft(_) | Self::Program(_) | Self::CalledOff => {
                Outcome::Failed
            }
        }
    }

    /// Whether it says no more than that something became of the other end.
    fn is_consequence(&self) -> bool {
        match self {
            Self::CalledOff | Self::PeerLeft(_) => true,
            Self::Call { error, .. } => {
                matches!(error.raw_os_error(), Some(libc::ECONNRESET | libc::ECONNABORTED | libc::EPIPE))
            }
            _ => false,
        }
    }

    /// What is told of the failures of two ends or connections, of which `first` was noted before `second`: the first one, unless it is a
    /// consequence and the second is none. Of two programs that failed either may be why the other did, so both are told.
    pub(super) fn cause(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(Self::Program(first)), Some(Self::Program(second))) => {
                Some(Self::Program(format!("{first}; and {second}")))
            }
            (Some(first), Some(second)) if first.is_consequence() && !second.is_consequence() => Some(second),
            (first, second) => first.or(second),
        }
    }

    /// What an error of `socket(2)` means. 93 is what a stream socket of an absent protocol gives, 94 a seqpacket one. MPTCP
    /// gives 92 where `net.mptcp.enabled` is 0 (`mptcp_init_sock`), and 22 where its number is beyond what the kernel knows.
    pub(super) fn opening(protocol: Protocol, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT | libc::EAFNOSUPPORT) => {
                Self::NoProtocol { protocol, error }
            }
            Some(libc::ENOPROTOOPT) if protocol == Protocol::Mptcp => Self::TurnedOff { error },
            Some(libc::EINVAL) if protocol == Protocol::Mptcp => Self::OldKernel { error },
            _ => Self::Call { doing: format!("opening a {protocol} socket"), error },
        }
    }

    /// What an error of `setsockopt(2)` means.
    pub(super) fn setting(option: &str, value: &str, side: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP) => Self::NoOption { option: option.to_owned(), error },
            Some(libc::EPERM | libc::EACCES) => {
                Self::Impossible { doing: format!("setting {option} to {value} on the {side}"), error }
            }
            _ => Self::Refused { what: format!("{option} = {value} on the {side}"), error },
        }
    }

    /// What an error of a send or a receive means.
    pub(super) fn moving(doing: &str, error: io::Error, progress: impl FnOnce() -> String) -> Self {
        match error.raw_os_error() {
            Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                Self::Died { doing: doing.to_owned(), error, progress: progress() }
            }
            _ => Self::Call { doing: format!("{doing} ({})", progress()), error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;
    use crate::measurement::Outcome;
    use crate::settings::Protocol;
    use std::io;

    /// C40: a kernel without SCTP says 93 for a stream socket and 94 for a seqpacket one (lksctp-tools#36, talos#8871).
    #[test]
    fn both_ways_of_lacking_a_protocol_are_one_reason() {
        for code in [93, 94] {
            let failure = Failure::opening(Protocol::Sctp, io::Error::from_raw_os_error(code));
            assert_eq!(failure.outcome(), Outcome::Skipped);
            let text = failure.to_string();
            assert!(text.starts_with("no SCTP in this kernel") && text.contains("kernel.image"), "{text}");
        }
    }

    /// C39.
    #[test]
    fn mptcp_that_is_off_absent_or_too_new_are_three_reasons() {
        let reasons = [92, 93, 22].map(|code| {
            let failure = Failure::opening(Protocol::Mptcp, io::Error::from_raw_os_error(code));
            assert_eq!(failure.outcome(), Outcome::Skipped);
            failure.to_string()
        });
        for (reason, part) in reasons.iter().zip(["net.mptcp.enabled", "no MPTCP in this kernel", "older than MPTCP"]) {
            assert!(reason.contains(part), "{reason}");
        }
    }

    /// What one end makes of the other's failure may be noted before that failure.
    #[test]
    fn a_consequence_that_was_noted_first_is_not_told_in_place_of_its_cause() {
        let call = |code| {
            let error = io::Error::from_raw_os_error(code);
            Failure::moving("receiving", error, || "3 of 32 chunks".into())
        };
        let told = |first, second| Failure::cause(first, second).expect("a failure").to_string();
        let dead = || Some(call(libc::ETIMEDOUT));
        let consequences = [
            Failure::CalledOff,
            Failure::PeerLeft("the client closed the connection early".into()),
            call(libc::ECONNRESET),
            call(libc::EPIPE),
        ];
        for consequence in consequences {
            assert!(told(Some(consequence), dead()).starts_with("the connection died"));
        }
        assert!(told(dead(), Some(call(libc::ECONNRESET))).starts_with("the connection died"));
        assert!(
            told(Some(call(libc::EIO)), dead()).starts_with("receiving (3 of 32 chunks) failed"),
            "else the first is"
        );
        assert!(told(None, dead()).starts_with("the connection died"));
        assert!(told(Some(Failure::CalledOff), Some(call(libc::EPIPE))).starts_with("called off"));
        let program = |text: &str| Some(Failure::Program(text.into()));
        assert_eq!(
            told(program("the client broke"), program("the server did")),
            "the client broke; and the server did"
        );
    }

    #[test]
    fn a_dead_association_is_a_time_out_with_what_had_arrived() {
        let error = io::Error::from_raw_os_error(libc::ETIMEDOUT);
        let failure = Failure::moving("receiving", error, || "3 of 32 chunks".into());
        assert_eq!(failure.outcome(), Outcome::TimedOut);
        assert!(failure.to_string().contains("3 of 32 chunks"));
    }
}
