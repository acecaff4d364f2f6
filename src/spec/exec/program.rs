//! One program: its command, its environment, when it is ready, how it ends.

use std::ops::Range;

use regex::Regex;

use crate::settings::{Kind, Limit, MAX_PAUSE, MAX_PORT, Program, Protocol, Ready, Side, Stop, Value};
use crate::spec::check::Draft;
use crate::spec::error::{Place, SpecError};
use crate::spec::program::{Argument, ProgramTemplate};
use crate::spec::raw::{Entry, Typed};
use crate::units::Span;

use super::PartKey;

/// Most words of a command, and most variables of an environment.
const MAX_WORDS: Limit = Limit { name: "MAX_WORDS", max: 1000 };
/// Largest exit code.
const MAX_CODE: Limit = Limit { name: "MAX_CODE", max: 255 };

/// All keys of [workload.server] and [workload.client].
pub(in crate::spec) const PROGRAM_KEYS: [PartKey; 8] = [
    PartKey {
        name: "command",
        takes: "a list of texts, some of them in lists of their own",
        default: "needed",
        about: "the program and its arguments; there is no shell",
        of_client: true,
    },
    PartKey {
        name: "env",
        takes: "a table of texts",
        default: "",
        about: "variables of its environment, besides PATH, HOME and TMPDIR (both the scratch folder) and LC_ALL",
        of_client: true,
    },
    PartKey {
        name: "success",
        takes: "a list of exit codes",
        default: "`[0]`",
        about: "exit codes that mean success",
        of_client: true,
    },
    PartKey {
        name: "package",
        takes: "a text in quotes",
        default: "",
        about: "package to install where the program is not; it stands in the reason of a skipped cell",
        of_client: true,
    },
    PartKey {
        name: "ready",
        takes: "`\"port\"`, `{ protocol = …, port = … }`, `{ line = \"REGEX\" }` or `{ after = \"200ms\" }`",
        default: "`\"port\"`",
        about: "when it counts as ready: when its namespace has a socket that listens on `workload.port` over `workload.protocol`, or on the port and over the protocol given; when it has printed a matching line; after a time",
        of_client: false,
    },
    PartKey {
        name: "ready_timeout",
        takes: "a span of time",
        default: "`\"10s\"`",
        about: "longest time until it is ready",
        of_client: false,
    },
    PartKey {
        name: "stop",
        takes: "`\"SIGTERM\"`, `\"SIGINT\"`, `\"SIGHUP\"`, `\"SIGQUIT\"`, `\"SIGUSR1\"`, `\"SIGUSR2\"`, `\"SIGKILL\"` or `\"itself\"`",
        default: "`\"SIGTERM\"`",
        about: "how it is ended when the client has: by a signal to its process group, after which no exit code is asked for, or by itself",
        of_client: false,
    },
    PartKey {
        name: "grace",
        takes: "a span of time",
        default: "`\"2s\"`",
        about: "longest time until it has ended; then it is killed",
        of_client: false,
    },
];

const SPAN: Kind = Kind::Span { min: 1_000_000, limit: MAX_PAUSE, or_default: false };

const COMMAND_FIX: &str = "write the program and its arguments as texts in brackets, such as [\"iperf3\", \"-c\", \"{server_addr}\", [\"-w\", \"{rcvbuf}\"]]: there is no shell, and arguments in brackets of their own are left out where a value in them is \"default\"";

impl Draft {
    /// Takes in a program.
    pub(super) fn program(&mut self, side: Side, entries: &[Entry], place: &Place) -> ProgramTemplate {
        let table = format!("[workload.{side}]");
        let mut program = ProgramTemplate { command: Vec::new(), rest: Program::default() };
        let rest = &mut program.rest;
        let mut named = false;
        for entry in entries.iter().filter(|entry| !entry.path.contains('.')) {
            match entry.path.as_str() {
                "command" => {
                    named = true;
                    program.command = self.command(side, entry);
                }
                "env" => self.environment(side, entry, rest),
                "success" => rest.success = self.success(entry).unwrap_or_default(),
                "package" => rest.package = self.part_value(entry, &Kind::Text).map(|value| value.to_string()),
                name if side == Side::Client && PROGRAM_KEYS.iter().any(|key| key.name == name) => {
                    let error = SpecError::new(
                        format!("`{name}` belongs to [workload.server]"),
                        "leave it out: the client ends by itself, and `run.timeout` bounds it",
                    );
                    self.errors.push(error.at(&self.place(&entry.key), "not of a client"));
                }
                "ready" => rest.ready = self.ready(entry).unwrap_or_default(),
                "ready_timeout" => rest.ready_timeout = self.span(entry).unwrap_or(rest.ready_timeout),
                "grace" => rest.grace = self.span(entry).unwrap_or(rest.grace),
                "stop" => {
                    let word = self.part_value(entry, &Kind::Choice(Stop::NAMES));
                    rest.stop = word.as_ref().and_then(Value::text).and_then(Stop::named).unwrap_or_default();
                }
                _ => self.no_such_part(entry, &table, &PROGRAM_KEYS),
            }
        }
        if !named {
            let error = SpecError::new(format!("{table} has no `command`"), COMMAND_FIX);
            self.errors.push(error.at(place, "this program"));
        }
        program
    }

    fn command(&mut self, side: Side, entry: &Entry) -> Vec<Argument> {
        let Typed::List(elements) = &entry.typed else {
            let error = SpecError::new("`command` is not a list", COMMAND_FIX);
            self.errors.push(error.at(&self.place(&entry.span), "not a list"));
            return Vec::new();
        };
        let too_many = elements.len() as u64 > MAX_WORDS.max;
        if elements.is_empty() || too_many {
            let message = if too_many {
                format!("a command of more words than {} ({})", MAX_WORDS.name, MAX_WORDS.max)
            } else {
                "this command is empty".to_owned()
            };
            self.errors.push(SpecError::new(message, COMMAND_FIX).at(&self.place(&entry.span), "here"));
        }
        let mut command = Vec::new();
        for (index, (typed, span)) in elements.iter().enumerate() {
            match typed {
                Typed::Value(Value::Text(text)) => {
                    self.template(text, span, side, false);
                    command.push(Argument::One(text.clone()));
                }
                Typed::List(group) if index > 0 => command.push(Argument::Group(self.group(side, group))),
                _ => self.not_a_text(typed, span, COMMAND_FIX),
            }
        }
        command
    }

    /// Arguments that are there together or not at all.
    fn group(&mut self, side: Side, group: &[(Typed, Range<usize>)]) -> Vec<String> {
        let mut texts = Vec::new();
        for (typed, span) in group {
            if let Typed::Value(Value::Text(text)) = typed {
                self.template(text, span, side, true);
                texts.push(text.clone());
            } else {
                self.not_a_text(typed, span, COMMAND_FIX);
            }
        }
        texts
    }

    fn environment(&mut self, side: Side, entry: &Entry, rest: &mut Program) {
        let fix = "write it as { NAME = \"text\" }";
        let Typed::Table(variables) = &entry.typed else {
            let error = SpecError::new("`env` is no table", fix);
            self.errors.push(error.at(&self.place(&entry.span), "not a table"));
            return;
        };
        for variable in variables {
            if let Typed::Value(Value::Text(text)) = &variable.typed {
                self.template(text, &variable.span, side, true);
                if variable.path.contains(['=', '\0']) {
                    let error = SpecError::new("no variable has such a name", fix);
                    self.errors.push(error.at(&self.place(&variable.key), "here"));
                }
                rest.env.insert(variable.path.clone(), text.clone());
            } else {
                self.not_a_text(&variable.typed, &variable.span, fix);
            }
        }
    }

    fn success(&mut self, entry: &Entry) -> Option<Vec<u8>> {
        let fix = "write exit codes from 0 to 255 in brackets, such as [0, 1]";
        let Typed::List(elements) = &entry.typed else {
            let error = SpecError::new("`success` is not a list", fix);
            self.errors.push(error.at(&self.place(&entry.span), "not a list"));
            return None;
        };
        let mut codes = Vec::new();
        for (typed, span) in elements {
            match typed {
                Typed::Value(Value::Int(code)) if *code <= MAX_CODE.max => codes.extend(u8::try_from(*code)),
                _ => self.errors.push(SpecError::new("this is no exit code", fix).at(&self.place(span), "here")),
            }
        }
        if elements.is_empty() {
            let error = SpecError::new("no exit code means success", fix);
            self.errors.push(error.at(&self.place(&entry.span), "empty"));
        }
        Some(codes)
    }

    fn span(&mut self, entry: &Entry) -> Option<Span> {
        self.part_value(entry, &SPAN)?.text()?.parse().ok()
    }

    fn ready(&mut self, entry: &Entry) -> Option<Ready> {
        let fix =
            "write \"port\", { protocol = \"tcp\" }, { port = 5201 }, { line = \"REGEX\" } or { after = \"200ms\" }";
        let wrong = |draft: &mut Self| {
            let error = SpecError::new("`ready` does not say when", fix);
            draft.errors.push(error.at(&draft.place(&entry.span), "not taken here"));
            None
        };
        let parts = match &entry.typed {
            Typed::Value(Value::Text(text)) if text == "port" => return Some(Ready::default()),
            Typed::Table(parts) => parts,
            _ => return wrong(self),
        };
        let names: Vec<&str> = parts.iter().map(|part| part.path.as_str()).collect();
        match names.as_slice() {
            ["line"] => {
                let pattern = self.part_value(&parts[0], &Kind::Text)?.to_string();
                self.regex(&pattern, &parts[0])?;
                Some(Ready::Line(pattern))
            }
            ["after"] => {
                let kind = Kind::Span { min: 0, limit: MAX_PAUSE, or_default: false };
                self.part_value(&parts[0], &kind)?.text()?.parse().ok().map(Ready::After)
            }
            names if !names.is_empty() && names.iter().all(|name| matches!(*name, "protocol" | "port")) => {
                let (mut protocol, mut port) = (None, None);
                for part in parts {
                    if part.path == "protocol" {
                        let word = self.part_value(part, &Kind::Choice(Protocol::NAMES))?;
                        protocol = word.text().and_then(Protocol::named);
                    } else {
                        let number =
                            self.part_value(part, &Kind::Count { min: 1, limit: MAX_PORT, or_default: false })?;
                        port = number.int().and_then(|port| port.try_into().ok());
                    }
                }
                Some(Ready::Port { protocol, port })
            }
            _ => wrong(self),
        }
    }

    /// A regular expression that is one.
    pub(super) fn regex(&mut self, pattern: &str, entry: &Entry) -> Option<Regex> {
        match Regex::new(pattern) {
            Ok(regex) => Some(regex),
            Err(error) => {
                // Its last line says what; those before it draw the place.
                let what =
                    error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let error = SpecError::new(
                    format!("`{}` is no regular expression: {what}", entry.path),
                    "write it in single quotes, so that a backslash is one: 'rate ([0-9.]+) Mbit/s' (docs.rs/regex has the syntax)",
                );
                self.errors.push(error.at(&self.place(&entry.span), "here"));
                None
            }
        }
    }
}
