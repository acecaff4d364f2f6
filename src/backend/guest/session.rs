//! A conversation with one guest, from its start to its end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::units::Span;

use super::failure::{Console, GuestFailure, Silence, classify};
use super::protocol::{Hello, Word};
use super::qemu::{Launch, Process, Qemu};
use super::qmp::{Qmp, QmpError};

/// How long QEMU may take to start, connect its ports and answer.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How often a wait looks for a message, and at whether the run was interrupted.
const GLANCE: Duration = Duration::from_millis(1);
/// Longest line that is taken for a message.
const LONGEST_LINE: usize = 16 << 20;

/// A running guest.
#[derive(Debug)]
pub(super) struct Session<'a> {
    process: Process,
    qmp: Qmp,
    lines: Lines<File>,
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
        let file = process.records().map_err(|error| GuestFailure::Start(error.to_string()))?;
        let qmp = Qmp::open(input, output, deadline).map_err(|error| {
            // What it complains of comes a moment before its end.
            process.wait_for_end(Duration::from_secs(2));
            let errors = process.errors();
            GuestFailure::Start(if errors.is_empty() { error.to_string() } else { errors })
        })?;
        Ok(Self {
            process,
            qmp,
            lines: Lines { file, read: Vec::new() },
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

    /// Keeps QEMU on one processor, the thread that emulates last. Says whether the host allows it.
    pub(super) fn take_turns(&mut self, processor: usize) -> Result<bool, QmpError> {
        let processors = self.qmp.command("query-cpus-fast", Value::Null, Instant::now() + START_DEADLINE)?;
        let emulator = processors[0]["thread-id"].as_u64().and_then(|thread| u32::try_from(thread).ok());
        Ok(emulator.is_some_and(|emulator| self.process.take_turns(processor, emulator).is_ok()))
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
        let process = &mut self.process;
        let line = self.lines.next(Instant::now() + within, self.interrupted, || process.ended().is_some())?;
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

/// Lines of a file that is being written, with deadlines.
#[derive(Debug)]
struct Lines<R> {
    file: R,
    read: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn next(
        &mut self,
        deadline: Instant,
        interrupted: &AtomicBool,
        mut ended: impl FnMut() -> bool,
    ) -> Result<Vec<u8>, Silence> {
        let mut searched = 0;
        let mut writer_ended = false;
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
            let mut piece = [0; 16384];
            match self.file.read(&mut piece) {
                Ok(0) if writer_ended => return Err(Silence::Closed),
                Ok(0) => {
                    if interrupted.load(Ordering::Relaxed) {
                        return Err(Silence::Interrupted);
                    }
                    // What was written before the end is still to be read.
                    writer_ended = ended();
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() && !writer_ended {
                        return Err(Silence::Deadline);
                    }
                    if !writer_ended {
                        std::thread::sleep(left.min(GLANCE));
                    }
                }
                Ok(len) => self.read.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Silence::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Silence};
    use std::fs::File;
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[test]
    fn lines_come_whole_and_silences_differ() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let mut guest = File::create(&path).expect("a file");
        let mut lines = Lines { file: File::open(&path).expect("a file"), read: Vec::new() };
        let calm = AtomicBool::new(false);
        let soon = || Instant::now() + Duration::from_millis(10);
        let runs = || false;
        guest.write_all(b"one\ntwo\nthr").expect("written");
        assert_eq!(lines.next(soon(), &calm, runs).expect("a line"), b"one");
        assert_eq!(lines.next(soon(), &calm, runs).expect("a line"), b"two");
        assert!(matches!(lines.next(soon(), &calm, runs), Err(Silence::Deadline)));
        guest.write_all(b"ee\n").expect("written");
        assert_eq!(lines.next(soon(), &calm, runs).expect("a line"), b"three");
        assert!(matches!(lines.next(soon(), &AtomicBool::new(true), runs), Err(Silence::Interrupted)));
        // The writer's last words are heard although it has ended.
        let mut last_words = Some(guest);
        let ended = || {
            if let Some(mut guest) = last_words.take() {
                guest.write_all(b"bye\n").expect("written");
            }
            true
        };
        assert_eq!(lines.next(soon(), &calm, ended).expect("a line"), b"bye");
        assert!(matches!(lines.next(soon(), &calm, || true), Err(Silence::Closed)));
    }
}
