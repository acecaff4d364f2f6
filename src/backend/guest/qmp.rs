//! The few words of QEMU's machine protocol that are needed, over QEMU's standard input and output: one JSON object a
//! line, each command answered in turn, events in between.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A connection to a QEMU that was started with [`super::qemu::Qemu`].
#[derive(Debug)]
pub(super) struct Qmp {
    input: ChildStdin,
    lines: Receiver<Value>,
}

/// Why the machine protocol did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum QmpError {
    /// QEMU has closed the connection, so it has ended.
    #[error("QEMU has ended")]
    Ended,
    /// It did not answer in time.
    #[error("QEMU did not {0} in time")]
    Deadline(String),
    /// It refused a command.
    #[error("QEMU refuses `{command}`: {message}")]
    Refused {
        /// The command.
        command: String,
        /// What QEMU said.
        message: String,
    },
}

impl Qmp {
    /// Takes up the conversation, up to the point where commands are accepted.
    pub(super) fn open(input: ChildStdin, output: ChildStdout, deadline: Instant) -> Result<Self, QmpError> {
        let (sender, lines) = channel();
        // Ends by itself when QEMU ends and its output closes.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(value) = serde_json::from_str(&line)
                    && sender.send(value).is_err()
                {
                    break;
                }
            }
        });
        let mut qmp = Self { input, lines };
        qmp.command("qmp_capabilities", Value::Null, deadline)?;
        Ok(qmp)
    }

    fn next(&self, deadline: Instant, what: &str) -> Result<Value, QmpError> {
        let patience = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.lines.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => QmpError::Deadline(what.to_owned()),
            RecvTimeoutError::Disconnected => QmpError::Ended,
        })
    }

    /// Gives a command and waits for its answer.
    pub(super) fn command(&mut self, name: &str, arguments: Value, deadline: Instant) -> Result<Value, QmpError> {
        let mut command = json!({ "execute": name });
        if !arguments.is_null() {
            command["arguments"] = arguments;
        }
        writeln!(self.input, "{command}").map_err(|_| QmpError::Ended)?;
        loop {
            let mut answer = self.next(deadline, &format!("answer `{name}`"))?;
            // Events say nothing that is not asked for later.
            if let Some(message) = answer["error"]["desc"].as_str() {
                return Err(QmpError::Refused { command: name.to_owned(), message: message.to_owned() });
            } else if answer.get("return").is_some() {
                return Ok(answer["return"].take());
            }
        }
    }

    /// Waits for an event. Nothing is asked meanwhile: QEMU's main loop is left alone.
    pub(super) fn wait_for(&mut self, event: &str, deadline: Instant) -> Result<(), QmpError> {
        while self.next(deadline, &format!("report {event}"))?["event"] != event {}
        Ok(())
    }

    /// Asks until the answer satisfies, every few milliseconds.
    pub(super) fn poll(
        &mut self,
        command: &str,
        deadline: Instant,
        satisfied: impl Fn(&Value) -> Result<bool, QmpError>,
    ) -> Result<(), QmpError> {
        loop {
            if satisfied(&self.command(command, Value::Null, deadline)?)? {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}
