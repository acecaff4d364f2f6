//! What can go wrong with a guest, told apart by what was heard and what stands on its console.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::units::Span;

/// How many of the console's last lines a message shows.
const TAIL: usize = 8;

/// Why a guest did not do its work.
#[derive(Debug, thiserror::Error)]
pub(super) enum GuestFailure {
    /// QEMU did not even start.
    #[error("QEMU does not start: {0}")]
    Start(String),
    /// The agent was never heard.
    #[error("the guest did not boot within {within}{console}")]
    Boot {
        /// The deadline.
        within: Span,
        /// The console's last lines.
        console: Tail,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked: {message}{console}")]
    Panic {
        /// The kernel's own line.
        message: String,
        /// The console's last lines.
        console: Tail,
    },
    /// The agent in the guest broke.
    #[error("the agent in the guest broke: {message}{console}")]
    Agent {
        /// Its own message.
        message: String,
        /// The console's last lines.
        console: Tail,
    },
    /// The guest fell silent.
    #[error("the guest hangs: nothing was heard of it for {after}{console}")]
    Hang {
        /// How long it was waited.
        after: Span,
        /// The console's last lines.
        console: Tail,
    },
    /// In virtual time: the guest neither came to rest nor to an end.
    #[error(
        "the guest never came to rest: stopped after {guest} of its own time (1 ns an instruction) and {host} of the host's{console}"
    )]
    Livelock {
        /// Guest time, which is at least the number of instructions in nanoseconds.
        guest: Span,
        /// Host time.
        host: Span,
        /// The console's last lines.
        console: Tail,
    },
    /// The serial port brought something that is no message.
    #[error("the link to the guest is broken: {message}{console}")]
    Link {
        /// What came.
        message: String,
        /// The console's last lines.
        console: Tail,
    },
    /// The machine went down, or QEMU itself ended.
    #[error("the guest went down before its work was done ({how}){console}")]
    Down {
        /// How QEMU ended, and its own error messages.
        how: String,
        /// The console's last lines.
        console: Tail,
    },
    /// The machine could not be saved or resumed.
    #[error("the machine could not be {what}: {message}{console}")]
    State {
        /// Saved or resumed.
        what: &'static str,
        /// What QEMU said.
        message: String,
        /// The console's last lines.
        console: Tail,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// The last lines of a console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail(Vec<String>);

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; its console is empty");
        }
        f.write_str("; its console ends:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// The log of a guest's console.
#[derive(Clone, Debug)]
pub(super) struct Console {
    pub(super) path: PathBuf,
}

impl Console {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn lines(&self) -> Vec<String> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .lines()
            .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>().trim_end().to_owned())
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// The last lines.
    pub(super) fn tail(&self) -> Tail {
        let lines = self.lines();
        Tail(lines[lines.len().saturating_sub(TAIL)..].to_vec())
    }

    /// What the kernel said when it panicked, if it did. The end of PID 1 is not the kernel's fault: see [`Self::init_died`].
    pub(super) fn panic(&self) -> Option<String> {
        let lines = self.lines();
        let at = lines.iter().position(|line| line.contains("Kernel panic - not syncing"))?;
        // What led to it stands before it: `BUG:`, `sysrq: Trigger a crash`.
        let (_, message) = lines[at].split_once("not syncing")?;
        Some(message.trim_start_matches([':', ' ']).to_owned())
    }

    /// Whether the kernel went down because PID 1, our agent, ended.
    pub(super) fn init_died(&self) -> bool {
        self.panic().is_some_and(|message| message.contains("Attempted to kill init"))
    }
}

/// What was heard instead of the next message.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nothing, until the deadline.
    Deadline,
    /// The end of the link.
    Closed,
    /// Something that is no message.
    Garbled(String),
    /// The user interrupted the run.
    Interrupted,
}

/// Tells which failure a silence was. `booted` says whether the agent had been heard, `waited` how long it was waited.
pub(super) fn classify(
    silence: Silence,
    booted: bool,
    waited: Span,
    ended: Option<ExitStatus>,
    errors: &str,
    console: &Console,
) -> GuestFailure {
    let tail = console.tail();
    match silence {
        Silence::Interrupted => GuestFailure::Interrupted,
        Silence::Garbled(message) => GuestFailure::Link { message, console: tail },
        Silence::Deadline | Silence::Closed => {
            if console.init_died() {
                let message = "it ended, and the kernel with it".to_owned();
                return GuestFailure::Agent { message, console: tail };
            }
            if let Some(message) = console.panic() {
                return GuestFailure::Panic { message, console: tail };
            }
            match (silence, ended) {
                (Silence::Deadline, _) if booted => GuestFailure::Hang { after: waited, console: tail },
                (Silence::Deadline, _) => GuestFailure::Boot { within: waited, console: tail },
                (_, Some(status)) if !errors.is_empty() => {
                    GuestFailure::Down { how: format!("QEMU: {status}, {errors}"), console: tail }
                }
                (_, Some(status)) => GuestFailure::Down { how: format!("QEMU: {status}"), console: tail },
                (_, None) => GuestFailure::Link { message: "QEMU closed it and runs on".to_owned(), console: tail },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Console, GuestFailure, Silence, classify};
    use crate::units::Span;
    use std::fs;

    fn console(text: &str) -> (tempfile::TempDir, Console) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("console");
        fs::write(&path, text).expect("written");
        (folder, Console { path })
    }

    #[test]
    fn failures_are_told_apart_by_the_console() {
        let ask = |silence, booted, text: &str| {
            let (_folder, console) = console(text);
            classify(silence, booted, Span(1_000_000_000), None, "", &console)
        };
        let panic = "[ 1.0] sysrq: Trigger a crash\r\n[ 1.0] Kernel panic - not syncing: sysrq triggered crash\r\n";
        let message = ask(Silence::Closed, true, panic).to_string();
        assert!(message.starts_with("the guest's kernel panicked: sysrq triggered crash"), "{message}");
        assert!(message.contains("Trigger a crash"), "the last lines are shown: {message}");

        let init = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000b";
        assert!(matches!(ask(Silence::Closed, true, init), GuestFailure::Agent { .. }));
        assert!(matches!(ask(Silence::Deadline, true, "quiet"), GuestFailure::Hang { .. }));
        assert!(matches!(ask(Silence::Deadline, false, "quiet"), GuestFailure::Boot { .. }));
        assert!(matches!(ask(Silence::Closed, true, ""), GuestFailure::Link { .. }));
        assert!(ask(Silence::Deadline, false, "").to_string().contains("its console is empty"));
    }
}
