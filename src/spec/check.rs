//! What a file means, key by key. What holds between keys is for `grid` to say.

use std::ops::Range;

use crate::settings::{Key, Kind, Value, find};

use super::axis::{AxisDraft, as_axis};
use super::error::{Place, Source, SpecError};
use super::raw::{Entry, Typed};
use super::run::{RunKey, find_run};
use super::unknown::{self, TOP, split};
use super::value::scalar;

/// Longest name of a sweep: it becomes part of a folder's name.
pub const MAX_NAME: usize = 64;

/// A key with its value and the place of both.
#[derive(Debug)]
pub(super) struct Setting<K: 'static> {
    pub(super) key: &'static K,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// A sweep in the making: what could be understood, and what could not.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) source: Source,
    pub(super) name: Option<String>,
    pub(super) description: String,
    pub(super) run: Vec<Setting<RunKey>>,
    pub(super) fixed: Vec<Setting<Key>>,
    pub(super) axes: Vec<AxisDraft>,
    /// Paths of keys that were given something they do not take: nothing is concluded from them.
    pub(super) broken: Vec<&'static str>,
    pub(super) errors: Vec<SpecError>,
}

impl Draft {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            name: None,
            description: String::new(),
            run: Vec::new(),
            fixed: Vec::new(),
            axes: Vec::new(),
            broken: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Takes in the entries of a file.
    pub(super) fn read(&mut self, mut entries: Vec<Entry>) {
        // The parser's tables are sorted by name, and the axes count in the order of the file.
        let mut axes = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        let mut named = false;
        for entry in entries.drain(..) {
            if refused.iter().any(|table| is_within(&entry.path, table)) {
                continue;
            }
            if let Some(name) = entry.path.strip_prefix("axes.") {
                if is_known_table(name, &entry.typed) {
                    continue;
                }
                if entry.typed == Typed::Table {
                    refused.push(entry.path.clone());
                }
                axes.push(entry);
                continue;
            }
            if entry.path == "axes" || is_table(&entry.path) || is_known_table(&entry.path, &entry.typed) {
                if entry.typed != Typed::Table {
                    self.not_a_table(&entry);
                }
                continue;
            }
            if entry.typed == Typed::Table {
                refused.push(entry.path.clone());
            }
            named |= entry.path == "name";
            self.key(&entry);
        }
        axes.sort_by_key(|entry| entry.key.start);
        for entry in &axes {
            self.axis(entry);
        }
        if !named {
            let first_line = self.source.inner().lines().next().map_or(0, str::len);
            let place = self.place(&(0..first_line));
            self.errors.push(
                SpecError::new("the sweep has no `name`", "write name = \"…\" at the top: results are filed under it")
                    .at(&place, "before the first table"),
            );
        }
    }

    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        Place { source: self.source.clone(), span: span.clone() }
    }

    fn not_a_table(&mut self, entry: &Entry) {
        let error = match entry.typed {
            Typed::List(_) => SpecError::new(
                format!("`{}` is one table, and this is a list", entry.path),
                format!("write its keys under [{}], once and in single brackets", entry.path),
            ),
            _ => SpecError::new(
                format!("`{}` is a table, and this is one value", entry.path),
                format!("write its keys under [{}]", entry.path),
            ),
        };
        self.errors.push(error.at(&self.place(&entry.span), "not a table"));
    }

    /// Takes in a key outside of [axes].
    fn key(&mut self, entry: &Entry) {
        if TOP.contains(&entry.path.as_str()) {
            self.top(entry);
        } else if let Some(key) = find_run(&entry.path) {
            if let Some(value) = self.value(key.path, &key.kind, entry) {
                self.run.push(Setting { key, value, place: self.place(&entry.span) });
            }
        } else if let Some(key) = find(&entry.path).filter(|key| key.path == entry.path) {
            if let Some(earlier) = self.fixed.iter().find(|earlier| std::ptr::eq(earlier.key, key)) {
                let error = SpecError::new(format!("`{}` is set twice", key.path), "leave one of the two out")
                    .at(&self.place(&entry.span), "again here")
                    .at(&earlier.place, "first here");
                self.errors.push(error);
            } else if let Some(value) = self.value(key.path, &key.kind, entry) {
                self.fixed.push(Setting { key, value, place: self.place(&entry.span) });
            }
        } else {
            let table = split(&entry.path).0;
            let (what, suggestion) = if entry.typed == Typed::Table {
                (format!("there is no table [{}]", entry.path), unknown::table(&entry.path))
            } else if table.is_empty() {
                (format!("unknown key `{}`", entry.path), unknown::key(&entry.path))
            } else {
                (format!("unknown key `{}` in [{table}]", split(&entry.path).1), unknown::key(&entry.path))
            };
            self.broken.extend(suggestion.path);
            let label = if entry.typed == Typed::Table { "unknown table" } else { "unknown key" };
            self.errors.push(SpecError::new(what, suggestion.fix).at(&self.place(&entry.key), label));
        }
    }

    /// Takes in `name` or `description`.
    fn top(&mut self, entry: &Entry) {
        let Some(value) = self.value("", &Kind::Text, entry) else { return };
        let text = value.to_string();
        if entry.path == "description" {
            self.description = text;
        } else if let Some(wrong) = wrong_with_name(&text) {
            let error = SpecError::new(
                format!("`{text}` cannot name a sweep: {wrong}"),
                format!(
                    "use letters, digits, `_`, `-` and `.`, at most {MAX_NAME}, starting with a letter or a digit: the name becomes part of a folder's name"
                ),
            );
            self.errors.push(error.at(&self.place(&entry.span), wrong));
        } else {
            self.name = Some(text);
        }
    }

    /// Checks the value of a key that takes one.
    fn value(&mut self, path: &'static str, kind: &Kind, entry: &Entry) -> Option<Value> {
        match scalar(kind, &entry.typed) {
            Ok(value) => Some(value),
            Err(rejection) => {
                self.broken.push(path);
                let list = matches!(entry.typed, Typed::List(_));
                let fix = match find(path).filter(|key| list && key.path == path) {
                    Some(key) => format!("to vary it, write it under [axes]: {}", as_axis(key)),
                    None => rejection.fix,
                };
                let error = SpecError::new(format!("`{}`: {}", entry.path, rejection.message), fix);
                self.errors.push(error.at(&self.place(&entry.span), "not taken here"));
                None
            }
        }
    }
}

/// Whether `path` is `table` or lies in it.
fn is_within(path: &str, table: &str) -> bool {
    path.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a table of that path exists.
fn is_table(path: &str) -> bool {
    unknown::tables().contains(&path)
}

/// Whether this is a table that exists. The names of sysctls have dots, so that below [sysctl] any table is one.
fn is_known_table(path: &str, typed: &Typed) -> bool {
    *typed == Typed::Table && (is_table(path) || is_within(path, "sysctl"))
}

/// What keeps a text from being the name of a sweep.
fn wrong_with_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() > MAX_NAME {
        Some("it is too long")
    } else if !name.chars().all(fits) {
        Some("it has characters that do not fit")
    } else if name.starts_with(|c: char| !c.is_ascii_alphanumeric()) {
        Some("it does not start with a letter or a digit")
    } else {
        None
    }
}
