//! A program that runs: what it prints is read while it is waited for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measurement::ProgramFacts;
use crate::settings::template::fill_all;
use crate::settings::{Exec, Side};
use crate::sys::child::{Ended, Nest, Program, Signal, wait_readable};
use crate::sys::clock;
use crate::units::Span;

use super::locate::{Absent, locate, search_path};
use super::output::Capture;
use super::{Addresses, Control, Failure, last_lines, since};

/// A program that runs, or has run.
#[derive(Debug)]
pub(super) struct Running {
    side: Side,
    command: Vec<String>,
    program: Program,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// How it ended, and when that was seen.
    ended: Option<(Ended, Span)>,
    /// Whether its process group was sent a signal.
    stopped: bool,
}

impl Running {
    /// Starts the program of one end.
    pub(super) fn start(
        exec: &Exec,
        side: Side,
        addresses: Addresses,
        control: &Control<'_>,
        nest: &Nest,
    ) -> Result<Self, Failure> {
        let spec = exec.program(side);
        let scratch = control.scratch()?;
        let value = |name: &str| match name {
            "server_addr" => Some(addresses.server.to_string()),
            "client_addr" => Some(addresses.client.to_string()),
            "scratch" => Some(scratch.clone()),
            "dir" => Some(exec.dir.clone()),
            _ => None,
        };
        let fill = |template: &String| {
            fill_all(template, value).map_err(|error| Failure::Program(format!("the {side}'s command: {error}")))
        };
        let mut words = spec.command.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
        let first = words.first().ok_or_else(|| Failure::Program(format!("the {side} has no command")))?;
        let path = locate(spec, first, &exec.dir).map_err(|absent| match absent {
            Absent::NotInstalled { .. } => Failure::Absent(absent.to_string()),
            Absent::Unusable { .. } => Failure::Program(format!("the {side}: {absent}")),
        })?;
        words[0] = path.display().to_string();
        let mut command = Command::new(&path);
        command
            .args(&words[1..])
            .current_dir(&scratch)
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", &scratch)
            .env("TMPDIR", &scratch)
            .env("LC_ALL", "C.UTF-8");
        for (name, template) in &spec.env {
            command.env(name, fill(template)?);
        }
        let program = Program::start(&mut command, nest).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOEXEC) => Failure::Program(format!(
                "the {side}: `{}` is neither a program of this machine nor a script with a `#!` line",
                words[0]
            )),
            Some(libc::ENOENT) => Failure::Program(format!(
                "the {side}: the interpreter or the loader that `{}` names is missing",
                words[0]
            )),
            _ => Failure::Call { doing: format!("starting the {side}, `{}`,", words[0]), error },
        })?;
        let (stdout, stderr) = (Capture::default(), Capture::default());
        Ok(Self { side, command: words, program, stdout, stderr, ended: None, stopped: false })
    }

    /// When it was about to be executed, by [`clock::monotonic`].
    pub(super) const fn begun(&self) -> Span {
        self.program.begun
    }

    /// How long ago that was.
    pub(super) fn age(&self) -> Span {
        since(self.program.begun)
    }

    /// How it ended and when that was seen, if it has.
    pub(super) const fn ended(&self) -> Option<(Ended, Span)> {
        self.ended
    }

    /// Sleeps until there is something to read, the program ends, the bell rings, or patience does, and takes what is there.
    pub(super) fn step(&mut self, bell: Option<BorrowedFd<'_>>, patience: Duration) -> Result<(), Failure> {
        let wait = |error| Failure::Call { doing: "waiting for a program".to_owned(), error };
        let [out, err, end, _] = wait_readable(
            [
                (!self.stdout.is_over()).then(|| self.program.stdout.as_fd()),
                (!self.stderr.is_over()).then(|| self.program.stderr.as_fd()),
                self.ended.is_none().then(|| self.program.ended()),
                bell,
            ],
            patience,
        )
        .map_err(wait)?;
        if end {
            let now = clock::monotonic();
            self.ended = self.program.reap().map_err(wait)?.map(|ended| (ended, now));
        }
        self.read(out, err).map_err(wait)
    }

    fn read(&mut self, out: bool, err: bool) -> io::Result<()> {
        if out {
            self.stdout.read(&mut self.program.stdout)?;
        }
        if err {
            self.stderr.read(&mut self.program.stderr)?;
        }
        Ok(())
    }

    /// Waits for its end for so long at most. Whether it has ended.
    pub(super) fn until_ended(
        &mut self,
        patience: Duration,
        check: impl Fn() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let begun = Instant::now();
        while self.ended.is_none() {
            check()?;
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.step(None, left.min(super::super::SLICE))?;
        }
        Ok(true)
    }

    /// Asks it to end. Whether it did within so long.
    pub(super) fn stop(&mut self, signal: Signal, grace: Duration) -> bool {
        if self.ended.is_none() {
            self.program.signal(signal);
            self.stopped = true;
        }
        // Of an error the program is killed next.
        self.until_ended(grace, || Ok(())).unwrap_or(false)
    }

    /// Ends it if it has not, and returns how it ended, if that can be told.
    pub(super) fn kill(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.program.signal(Signal::KILL);
            self.stopped = true;
            while self.ended.is_none() {
                if self.step(None, super::super::SLICE).is_err() {
                    break;
                }
            }
        }
        self.ended.map(|(ended, _)| ended)
    }

    /// Its process group, if that was sent a signal.
    pub(super) fn stopped_group(&self) -> Option<u32> {
        self.stopped.then(|| self.program.id())
    }

    /// Takes what is left in the pipes.
    pub(super) fn drain(&mut self) {
        self.stdout.drain(&mut self.program.stdout);
        self.stderr.drain(&mut self.program.stderr);
    }

    /// What is told of it.
    pub(super) fn facts(&self) -> ProgramFacts {
        ProgramFacts {
            command: self.command.clone(),
            exit_code: self.ended.and_then(|(ended, _)| ended.code),
            signal: self.ended.and_then(|(ended, _)| ended.signal),
            stdout: self.stdout.output(),
            stderr: self.stderr.output(),
            ..ProgramFacts::default()
        }
    }

    /// A failure of this program, with its last lines.
    pub(super) fn failed(&mut self, what: &str) -> Failure {
        self.drain();
        Failure::Program(self.with_last_lines(&format!("the {} {what}", self.side)))
    }

    /// A text, and the program's last lines after it.
    pub(super) fn with_last_lines(&self, text: &str) -> String {
        format!("{text}; {}", last_lines(&self.facts()))
    }
}
