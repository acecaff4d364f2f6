//! Looks at the sockets of a program from outside, while it runs: what the kernel gave them, at first, at the end and at the most.
//!
//! The thread that oversees the program asks the network namespace that it is in (`sock_diag(7)`) for its sockets again and again. In a
//! namespace made for one pair of programs these are theirs. Looking costs processor time that the programs do not get, and takes the
//! sockets' locks as reading their options does, so it is bounded in rate and in cost, and its cost is told.

mod history;
mod proc;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::measurement::End;
use crate::settings::{Protocol, Settings, Side, Topology};
use crate::sys::clock::thread_time;
use crate::sys::diag::{self, Closed, Diag, Family};
use crate::units::Span;

use super::Watch;
use history::{History, Whose};

/// Shortest time from one look to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(Duration);

impl Pace {
    /// Where other processors do the looking.
    pub const REAL: Self = Self(Duration::from_millis(2));
    /// In a guest, which has one processor, and whose clock may count what looking takes.
    pub const GUEST: Self = Self(Duration::from_millis(10));
}

/// Most processor time that one kind of question may take, as one part in so many of one processor's: a dump of TCP costs a walk through a
/// table of the whole machine's connections (`inet_diag_dump_icsk`), which has 262,144 entries on a machine of 32 GiB and 2048 in a guest.
const SHARE: u32 = 100;
/// The same, and the pace, for protocols that the cell does not name, in case its programs speak them.
const SHARE_OF_OTHERS: u32 = 10;
/// Most connections that are looked at one by one.
const CLOSELY: usize = 16;
/// How long to wait, when all is over, for word of connections that were just closed: a work queue sends it
/// (`sock_diag_broadcast_destroy`). So long in any case, and so long for one that is known to have gone.
const PATIENCE: Duration = Duration::from_millis(2);
const LONG_PATIENCE: Duration = Duration::from_millis(20);

/// Something that is asked of the kernel again and again.
struct Question {
    protocol: diag::Protocol,
    family: Family,
    /// Whether the cell names the protocol.
    named: bool,
    /// Whether /proc is asked in place of the kernel's diagnosis.
    of_proc: bool,
    due: Due,
}

/// When something is to be done again.
struct Due {
    next: Instant,
    period: Duration,
    share: u32,
}

impl Due {
    /// Does it and says when it is to be done again: at the pace, and so late that it costs no more than its share. Returns what it cost.
    fn perform<T>(&mut self, now: Instant, work: impl FnOnce() -> T) -> (T, Duration) {
        let before = thread_time();
        let done = work();
        let cost = Span(thread_time().0.saturating_sub(before.0)).duration();
        self.next = now + self.period.max(cost * self.share);
        (done, cost)
    }
}

/// Watches the sockets of one end.
pub struct Sockets {
    /// `None` where the kernel tells of no sockets at all.
    diag: Option<Diag>,
    /// `None` where nobody may listen.
    closed: Option<Closed>,
    questions: Vec<Question>,
    /// When the known connections are to be looked at one by one.
    closely: Due,
    history: History,
    whose: Whose,
}

impl Sockets {
    /// Begins to watch those of one end, which are in the network namespace that the calling thread is in, before the program is started: no
    /// connection is then closed unheard.
    pub fn watch(settings: &Settings, side: Side, pace: Pace) -> Self {
        let shared = settings.link.topology == Topology::Loopback;
        let whose = Whose { side, shared, server_port: settings.workload.port };
        Self::begin(settings.workload.protocol, whose, pace)
    }

    /// Those of `protocol` are looked at most often.
    fn begin(protocol: Protocol, whose: Whose, Pace(period): Pace) -> Self {
        let begun = Instant::now();
        let mut history = History::new(begun, period, protocol);
        let diag = Diag::open();
        if let Err(error) = &diag {
            history.reason(format!("this kernel does not tell of sockets: {error}"));
        }
        let closed = Closed::listen();
        if let Err(error) = &closed {
            history.reason(format!("what connections were when they were closed is not told: {error}"));
        }
        let questions = [Protocol::Tcp, Protocol::Mptcp, Protocol::Sctp, Protocol::Udp]
            .into_iter()
            .filter(|&asked| diag.is_ok() && (asked == protocol || is_loaded(asked)))
            .flat_map(|asked| [(asked, Family::Ipv4), (asked, Family::Ipv6)])
            .map(|(asked, family)| {
                // The subflows of MPTCP are TCP's.
                let named = asked == protocol || (asked, protocol) == (Protocol::Tcp, Protocol::Mptcp);
                let (period, share) =
                    if named { (period, SHARE) } else { (period * SHARE_OF_OTHERS, SHARE * SHARE_OF_OTHERS) };
                Question {
                    protocol: kernels(asked),
                    family,
                    named,
                    of_proc: false,
                    due: Due { next: begun, period, share },
                }
            })
            .collect();
        let closely = Due { next: begun, period, share: SHARE };
        Self { diag: diag.ok(), closed: closed.ok(), questions, closely, history, whose }
    }

    /// Asks for all sockets of a protocol, where that is due.
    fn ask(&mut self, is_due: impl Fn(&Due) -> bool) {
        let Some(diag) = &mut self.diag else { return };
        let mut refused = Vec::new();
        for (index, question) in self.questions.iter_mut().enumerate() {
            // A subflow tells of a connection that nothing has been seen of: it may be gone when its protocol's turn comes.
            let is_missed = question.protocol == diag::Protocol::Mptcp && self.history.lacks_mptcp();
            if is_missed {
                // From now on it is looked at like a protocol that the cell names.
                (question.due.period, question.due.share) = (self.closely.period, self.closely.share);
            } else if !is_due(&question.due) {
                continue;
            }
            let now = Instant::now();
            let (protocol, family) = (question.protocol, question.family);
            let of_proc = question.of_proc;
            let look = || if of_proc { proc::associations() } else { diag.dump(protocol, family) };
            let (found, cost) = question.due.perform(now, look);
            self.history.spent(cost);
            match found {
                Ok(found) => self.history.note_all(protocol, family, found, now),
                Err(error) => refused.push((index, error)),
            }
        }
        for (index, error) in refused.into_iter().rev() {
            self.give_up(index, &error);
        }
    }

    /// Does not ask again what the kernel refused to tell, or asks somewhere else.
    fn give_up(&mut self, index: usize, error: &io::Error) {
        let Some(question) = self.questions.get_mut(index) else { return };
        if question.named {
            self.history.reason(refusal(question.protocol, error));
        }
        // The file has both families.
        if question.protocol == diag::Protocol::Sctp
            && question.family == Family::Ipv4
            && !question.of_proc
            && proc::is_there()
        {
            question.of_proc = true;
            if question.named {
                let source = "sizes and use of SCTP buffers are those of /proc/net/sctp/assocs, which tells no more";
                self.history.reason(source.to_owned());
            }
        } else {
            self.questions.remove(index);
        }
    }

    /// Looks at the TCP connections that are known, which costs less than to find them.
    fn look_closely(&mut self, now: Instant) {
        let Some(diag) = &mut self.diag else { return };
        let known = self.history.open_connections(CLOSELY);
        let (found, cost) = self.closely.perform(now, || {
            let again = |seen| diag.again(seen).ok().flatten();
            known.iter().filter_map(again).collect::<Vec<_>>()
        });
        for seen in found {
            self.history.note(seen, now);
        }
        self.history.spent(cost);
        self.listen();
    }

    /// Takes in what connections were when they were closed.
    fn listen(&mut self) {
        let Some(closed) = &mut self.closed else { return };
        match closed.take() {
            Ok(closed) => closed.into_iter().for_each(|seen| self.history.note_closed(seen)),
            Err(error) => {
                self.history.reason(format!("what some connections were when they were closed was lost: {error}"));
            }
        }
    }
}

impl Watch for Sockets {
    fn look(&mut self) -> Duration {
        let now = Instant::now();
        self.ask(|due| due.next <= now);
        if self.closely.next <= now {
            self.look_closely(now);
        }
        let next = self.questions.iter().map(|question| question.due.next).fold(self.closely.next, Instant::min);
        next.saturating_duration_since(Instant::now())
    }

    fn tell(&mut self, origin: Instant, end: &mut End) {
        let cost = self.history.cost();
        self.ask(|_| true);
        let until = Instant::now() + LONG_PATIENCE;
        while self.closed.is_some() {
            thread::sleep(PATIENCE);
            self.listen();
            if !self.history.is_waiting() || Instant::now() >= until {
                break;
            }
        }
        self.history.tell(self.whose, origin, cost, end);
    }
}

/// Whether a kernel that is asked for a protocol has it already. To ask for SCTP loads it, where it is a module.
fn is_loaded(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Tcp | Protocol::Udp => true,
        Protocol::Mptcp => Path::new("/proc/sys/net/mptcp").exists(),
        Protocol::Sctp => Path::new("/proc/thread-self/net/sctp").exists(),
    }
}

const fn kernels(protocol: Protocol) -> diag::Protocol {
    match protocol {
        Protocol::Tcp => diag::Protocol::Tcp,
        Protocol::Mptcp => diag::Protocol::Mptcp,
        Protocol::Sctp => diag::Protocol::Sctp,
        Protocol::Udp => diag::Protocol::Udp,
    }
}

const fn ours(protocol: diag::Protocol) -> Protocol {
    match protocol {
        diag::Protocol::Tcp => Protocol::Tcp,
        diag::Protocol::Mptcp => Protocol::Mptcp,
        diag::Protocol::Sctp => Protocol::Sctp,
        diag::Protocol::Udp => Protocol::Udp,
    }
}

/// Why the kernel does not tell of a protocol's sockets.
fn refusal(protocol: diag::Protocol, error: &io::Error) -> String {
    let (name, module) = match protocol {
        diag::Protocol::Tcp => ("TCP", "tcp_diag"),
        diag::Protocol::Mptcp => ("MPTCP", "mptcp_diag"),
        diag::Protocol::Sctp => ("SCTP", "sctp_diag"),
        diag::Protocol::Udp => ("UDP", "udp_diag"),
    };
    match error.raw_os_error() {
        // No handler of the protocol's, or none of sock_diag at all.
        Some(libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP) => {
            format!("this kernel does not tell of {name} sockets: it has no module {module}")
        }
        _ => format!("this kernel does not tell of {name} sockets: {error}"),
    }
}
