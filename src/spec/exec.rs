//! [workload.server], [workload.client], `workload.files` and [[workload.metric]]: the two programs of exec, piece by piece.

mod metric;
mod obey;
mod program;
mod schema;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, absolute};

use crate::settings::template::{AT_RUN, Piece, pieces};
use crate::settings::{Key, Kind, MetricSpec, Rejection, Side, Value, find, nearest};

use super::check::Draft;
use super::error::{Place, SpecError};
use super::program::{ExecTemplate, Meaning, ProgramTemplate, meaning};
use super::raw::{Entry, Typed};
use super::unknown::list;
use super::value::scalar;

pub(super) use metric::METRIC_KEYS;
pub(super) use program::PROGRAM_KEYS;
pub(super) use schema::schemas;

/// The parts of a sweep file that are not keys of the table.
const PARTS: [&str; 4] = ["workload.server", "workload.client", "workload.metric", "workload.files"];

/// Whether a path is read here, with all that it holds.
pub(super) fn is_part(path: &str) -> bool {
    PARTS.contains(&path)
}

/// A key of a program or of a metric, for documentation.
#[derive(Debug)]
pub(super) struct PartKey {
    /// Its name in its table.
    pub(super) name: &'static str,
    /// What it takes, as a sentence goes on after `takes`.
    pub(super) takes: &'static str,
    /// What it is when it is not given.
    pub(super) default: &'static str,
    /// What it says.
    pub(super) about: &'static str,
    /// Whether the client has it too.
    pub(super) of_client: bool,
}

/// The two programs in the making.
#[derive(Debug, Default)]
pub(super) struct ExecDraft {
    /// The folder of the file.
    dir: String,
    /// What was understood of each program, and its place.
    programs: BTreeMap<Side, (ProgramTemplate, Place)>,
    files: Vec<String>,
    metrics: Vec<(MetricSpec, Place)>,
    /// Each placeholder of a command or of an environment.
    names: Vec<Name>,
    /// Place of the first of these parts.
    first: Option<Place>,
    /// Whether something of them is wrong, so that nothing is concluded from what is not there.
    wrong: bool,
}

/// A placeholder that stands for the value of a key.
#[derive(Debug)]
struct Name {
    key: &'static Key,
    /// As it is typed.
    typed: String,
    side: Side,
    place: Place,
    /// Whether it may be left out, with what it stands in.
    optional: bool,
}

impl ExecDraft {
    /// Nothing yet, for a file of that name.
    pub(super) fn of_file(name: &str) -> Self {
        let folder = absolute(Path::new(name)).ok().and_then(|path| path.parent().map(Path::to_path_buf));
        Self { dir: folder.map(|folder| folder.display().to_string()).unwrap_or_default(), ..Self::default() }
    }

    /// What was understood, if there is anything.
    pub(super) fn template(&self) -> Option<ExecTemplate> {
        self.first.as_ref()?;
        let program = |side| self.programs.get(&side).map(|(program, _)| program.clone()).unwrap_or_default();
        Some(ExecTemplate {
            server: program(Side::Server),
            client: program(Side::Client),
            files: self.files.clone(),
            dir: self.dir.clone(),
            metrics: self.metrics.iter().map(|(metric, _)| metric.clone()).collect(),
        })
    }
}

impl Draft {
    /// Takes in one of [`PARTS`].
    pub(super) fn exec_part(&mut self, entry: &Entry) {
        let place = self.place(&entry.key);
        self.exec.first.get_or_insert_with(|| place.clone());
        let before = self.errors.len();
        match entry.path.as_str() {
            "workload.files" => self.exec_files(entry),
            "workload.metric" => {
                let mut metrics = Vec::new();
                for (table, place) in self.tables("workload.metric", entry) {
                    if let Some(metric) = self.metric(&table, &place) {
                        metrics.push((metric, place));
                    }
                }
                self.exec.metrics = metrics;
                self.metrics_together();
            }
            path => {
                let side = if path == "workload.server" { Side::Server } else { Side::Client };
                if let Typed::Table(entries) = &entry.typed {
                    let program = self.program(side, entries, &place);
                    self.exec.programs.insert(side, (program, place));
                } else {
                    let error = SpecError::new(
                        format!("`{path}` is a table, and this is none"),
                        format!("write its keys under [{path}]"),
                    );
                    self.errors.push(error.at(&self.place(&entry.span), "not a table"));
                }
            }
        }
        self.exec.wrong |= self.errors.len() > before;
    }

    /// Takes in `workload.files`.
    fn exec_files(&mut self, entry: &Entry) {
        let fix = "write the paths of files and folders in brackets, such as [\"programs/echo.escript\"]; those that are not absolute are below the folder of this file";
        let Some(files) = self.texts(entry, "files", fix) else { return };
        self.exec.files = files.into_iter().map(|(text, _)| text).collect();
    }

    /// The texts of a list of texts, each with its place.
    fn texts(&mut self, entry: &Entry, name: &str, fix: &str) -> Option<Vec<(String, Range<usize>)>> {
        let Typed::List(elements) = &entry.typed else {
            let error = SpecError::new(format!("`{name}` is not a list"), fix);
            self.errors.push(error.at(&self.place(&entry.span), "not a list"));
            return None;
        };
        let mut texts = Vec::new();
        for (typed, span) in elements {
            if let Typed::Value(Value::Text(text)) = typed {
                texts.push((text.clone(), span.clone()));
            } else {
                self.not_a_text(typed, span, fix);
            }
        }
        Some(texts)
    }

    /// Says that something is no text.
    fn not_a_text(&mut self, typed: &Typed, span: &Range<usize>, fix: &str) {
        let (message, fix) = match typed {
            Typed::Value(value) => {
                (format!("`{value}` is not in quotes"), format!("write \"{value}\": every word of a command is a text"))
            }
            Typed::Float(number) | Typed::Negative(number) | Typed::TooLarge(number) => (
                format!("`{number}` is not in quotes"),
                format!("write \"{number}\": every word of a command is a text"),
            ),
            _ => ("this is no text".to_owned(), fix.to_owned()),
        };
        self.errors.push(SpecError::new(message, fix).at(&self.place(span), "not a text"));
    }

    /// The value of a key of a table here, if it is right.
    fn part_value(&mut self, entry: &Entry, kind: &Kind) -> Option<Value> {
        match scalar(kind, &entry.typed) {
            Ok(value) => Some(value),
            Err(Rejection { message, fix }) => {
                let error = SpecError::new(format!("`{}`: {message}", entry.path), fix);
                self.errors.push(error.at(&self.place(&entry.span), "not taken here"));
                None
            }
        }
    }

    /// Says that a table has no such key.
    fn no_such_part(&mut self, entry: &Entry, table: &str, known: &[PartKey]) {
        let names: Vec<&str> = known.iter().map(|key| key.name).collect();
        let fix = nearest(&entry.path, &names)
            .map_or_else(|| format!("{table} takes {}", list(names)), |near| format!("did you mean `{near}`?"));
        let error = SpecError::new(format!("unknown key `{}` in {table}", entry.path), fix);
        self.errors.push(error.at(&self.place(&entry.key), "unknown key"));
    }

    /// Notes the placeholders of a template, and says which of them stand for nothing.
    fn template(&mut self, text: &str, span: &Range<usize>, side: Side, optional: bool) {
        if text.contains('\0') {
            let error = SpecError::new("no word of a command has a NUL in it", "leave it out");
            self.errors.push(error.at(&self.place(span), "here"));
        }
        let pieces = match pieces(text) {
            Ok(pieces) => pieces,
            Err(error) => {
                let (message, fix) = (
                    format!("in `{text}`, {error}"),
                    "write placeholders such as {rcvbuf} or {server_addr}, and {{ and }} for braces",
                );
                self.errors.push(SpecError::new(message, fix).at(&self.place(span), "here"));
                return;
            }
        };
        for piece in pieces {
            let Piece::Name(name, range) = piece else { continue };
            let place = self.within_text(text, span, &range);
            match meaning(name, side) {
                Meaning::Key(key) => {
                    self.exec.names.push(Name { key, typed: name.to_owned(), side, place, optional });
                }
                Meaning::AtRun => {}
                Meaning::Unknown => {
                    let error = SpecError::new(format!("`{{{name}}}` stands for nothing"), unknown_name(name));
                    self.errors.push(error.at(&place, "unknown placeholder"));
                }
            }
        }
    }

    /// Where a part of a text stands in the file. The whole text, where it is not written as it is.
    fn within_text(&self, text: &str, span: &Range<usize>, part: &Range<usize>) -> Place {
        let exact = span.start + 1 + part.start..span.start + 1 + part.end;
        let plain = self.source.inner().get(exact.clone()) == text.get(part.clone());
        self.place(if plain { &exact } else { span })
    }
}

/// What to write instead of a placeholder that stands for nothing.
fn unknown_name(name: &str) -> String {
    if name == "server_port" {
        return "did you mean {port}?".to_owned();
    }
    let near = nearest(name, &AT_RUN).or_else(|| crate::settings::names(name).1);
    match near.filter(|near| *near != name) {
        Some(near) => format!("did you mean {{{near}}}?"),
        None => format!(
            "a placeholder is the name of a key, such as {{rcvbuf}}, {{link.delay}} or {{port}}; a value of your own, such as {{var.{}}}, which [var] or an axis sets; or one of {}; {{{{ and }}}} are braces",
            if find(&format!("var.{name}")).is_some() { name } else { "name" },
            AT_RUN.map(|name| format!("{{{name}}}")).join(", ")
        ),
    }
}
