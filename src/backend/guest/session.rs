//! A conversation with one guest, from its start to its end.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::units::Span;

use super::failure::{Console, GuestFailure, Silence, classify};
use super::protocol::{Hello, Word};
use super::qemu::{Launch, Process, Qemu};
use super::qmp::{Qmp, QmpError};

/// How long QEMU may take to start, connect its ports and answer.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How often a wait looks at whether the run was interrupted.
const GLANCE: Duration = Duration::from_millis(50);
/// Longest line that is taken for a message.
const LONGEST_LINE: usize = 16 << 20;

/// A running guest.
#[derive(Debug)]
pub(super) struct Session<'a> {
    process: Process,
    qmp: Qmp,
    lines: Lines,
    console: Console,
    interrupted: &'a AtomicBool,
    booted: bool,
    begun: Instant,
}

impl<'a> Session<'a> {
    /// Starts a guest.
    pub(super) fn start(qemu: &Qemu, launch: &Launch<'_>, interrupted: &'a AtomicBool) -> Result<Self, GuestFailure> {
        let begun = Instant::now();
        let deadline = begun + START_DEADLINE;
        let (mut process, input, output) =
            Process::start(qemu, launch).map_err(|error| GuestFailure::Start(error.to_string()))?;
        let stream = process.records(deadline).map_err(|error| GuestFailure::Start(error.to_string()))?;
        let qmp = Qmp::open(input, output, deadline).map_err(|error| {
            let errors = process.errors();
            GuestFailure::Start(if errors.is_empty() { error.to_string() } else { errors })
        })?;
        Ok(Self {
            process,
            qmp,
            lines: Lines { stream, read: Vec::new() },
            console: Console::at(launch.console),
            interrupted,
            booted: false,
            begun,
        })
    }

    /// How long ago the guest was started.
    pub(super) fn age(&self) -> Span {
        self.begun.elapsed().into()
    }

    /// QEMU's machine protocol.
    pub(super) fn qmp(&mut self) -> &mut Qmp {
        &mut self.qmp
    }

    /// The guest's console.
    pub(super) fn console(&self) -> &Console {
        &self.console
    }

    /// The next message, or why there is none.
    pub(super) fn next(&mut self, within: Duration) -> Result<Word, GuestFailure> {
        match self.glance(within) {
            Ok(word) => Ok(word),
            Err(silence) => Err(self.fail(silence, within)),
        }
    }

    /// The next message, or the silence as it is, for a caller that goes on waiting.
    pub(super) fn glance(&mut self, within: Duration) -> Result<Word, Silence> {
        let line = self.lines.next(Instant::now() + within, self.interrupted)?;
        serde_json::from_slice(&line).map_err(|_| Silence::Garbled(excerpt(&line)))
    }

    /// What a silence means.
    pub(super) fn fail(&mut self, silence: Silence, waited: Duration) -> GuestFailure {
        // The console's last words and QEMU's end come a moment after the port has closed.
        let patience = if matches!(silence, Silence::Closed) { Duration::from_secs(2) } else { Duration::ZERO };
        let ended = self.process.wait_for_end(patience);
        classify(silence, self.booted, waited.into(), ended, &self.process.errors(), &self.console)
    }

    /// Waits for the agent's first word.
    pub(super) fn hello(&mut self, within: Duration) -> Result<Hello, GuestFailure> {
        match self.next(within)? {
            Word::Hello(hello) => {
                self.booted = true;
                Ok(hello)
            }
            word => Err(self.unexpected(&word)),
        }
    }

    /// A message that does not belong here, or the agent's own report of its end.
    pub(super) fn unexpected(&self, word: &Word) -> GuestFailure {
        let console = self.console.tail();
        match word {
            Word::Crashed { message } => GuestFailure::Agent { message: message.clone(), console },
            word => GuestFailure::Link { message: format!("`{word:?}` does not belong here"), console },
        }
    }

    /// A refusal of QEMU's while it saves or resumes the machine.
    pub(super) fn state(&self, what: &'static str, error: &QmpError) -> GuestFailure {
        let errors = self.process.errors();
        let message = if errors.is_empty() { error.to_string() } else { format!("{error}; {errors}") };
        GuestFailure::State { what, message, console: self.console.tail() }
    }

    /// Marks the agent as heard before this session: it goes on from a saved machine.
    pub(super) fn resumed(&mut self) {
        self.booted = true;
    }

    /// Keeps the console's log of a guest that failed.
    pub(super) fn keep_console(&self, at: &Path) {
        // The failure's own message already shows the last lines; this is the rest of them.
        let _ = std::fs::copy(&self.console.path, at);
    }
}

/// The beginning of something that is no message.
fn excerpt(line: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(line).chars().take(80).collect();
    format!("`{}` is no message", text.escape_debug())
}

/// Lines of a stream, with deadlines.
#[derive(Debug)]
struct Lines {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Lines {
    fn next(&mut self, deadline: Instant, interrupted: &AtomicBool) -> Result<Vec<u8>, Silence> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.read[searched..].iter().position(|&byte| byte == b'\n') {
                let rest = self.read.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                return Ok(line);
            }
            searched = self.read.len();
            if searched > LONGEST_LINE {
                return Err(Silence::Garbled("a line without an end".to_owned()));
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(Silence::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence::Deadline);
            }
            let mut piece = [0; 16384];
            let got = self
                .stream
                .set_read_timeout(Some(left.min(GLANCE).max(Duration::from_millis(1))))
                .and_then(|()| self.stream.read(&mut piece));
            match got {
                Ok(0) => return Err(Silence::Closed),
                Ok(len) => self.read.extend_from_slice(&piece[..len]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return Err(Silence::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Silence};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[test]
    fn lines_come_whole_and_silences_differ() {
        let (mut guest, stream) = UnixStream::pair().expect("a pair");
        let mut lines = Lines { stream, read: Vec::new() };
        let calm = AtomicBool::new(false);
        let soon = || Instant::now() + Duration::from_millis(20);
        guest.write_all(b"one\ntwo\nthr").expect("written");
        assert_eq!(lines.next(soon(), &calm).expect("a line"), b"one");
        assert_eq!(lines.next(soon(), &calm).expect("a line"), b"two");
        assert!(matches!(lines.next(soon(), &calm), Err(Silence::Deadline)));
        guest.write_all(b"ee\n").expect("written");
        assert_eq!(lines.next(soon(), &calm).expect("a line"), b"three");
        assert!(matches!(lines.next(soon(), &AtomicBool::new(true)), Err(Silence::Interrupted)));
        drop(guest);
        assert!(matches!(lines.next(soon(), &calm), Err(Silence::Closed)));
    }
}
