//! What a file means, key by key. What holds between keys is for `grid` to say.

use std::ops::Range;

use crate::settings::{Key, Kind, Value, find};

use super::axis::{AxisDraft, ZipDraft, as_axis};
use super::cases::{Exclude, Include};
use super::error::{Place, Source, SpecError};
use super::exec::{self, ExecDraft};
use super::raw::{Entry, Typed};
use super::run::{RunKey, find_run};
use super::unknown::{self, LISTS, TOP, split};
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
    pub(super) zips: Vec<ZipDraft>,
    pub(super) excludes: Vec<Exclude>,
    pub(super) includes: Vec<Include>,
    /// The two programs.
    pub(super) exec: ExecDraft,
    /// Paths of keys that were given something they do not take: nothing is concluded from them.
    pub(super) broken: Vec<&'static str>,
    pub(super) errors: Vec<SpecError>,
}

impl Draft {
    pub(super) fn new(source: Source) -> Self {
        let exec = ExecDraft::of_file(source.name());
        Self {
            source,
            name: None,
            description: String::new(),
            run: Vec::new(),
            fixed: Vec::new(),
            axes: Vec::new(),
            zips: Vec::new(),
            excludes: Vec::new(),
            includes: Vec::new(),
            exec,
            broken: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Takes in the entries of a file.
    pub(super) fn read(&mut self, entries: Vec<Entry>) {
        let mut axes: Vec<(Entry, Option<usize>)> = Vec::new();
        let mut cases: Vec<(Vec<Entry>, Place, bool)> = Vec::new();
        // The table whose entries, which follow it, are not for here.
        let mut within: Option<String> = None;
        let mut named = false;
        for entry in entries {
            if within.as_ref().is_some_and(|table| is_within(&entry.path, table)) {
                continue;
            }
            if exec::is_part(&entry.path) {
                within = Some(entry.path.clone());
                self.exec_part(&entry);
                continue;
            }
            if entry.typed.is_table() && !is_known_table(&entry.path, &entry.typed) || entry.path == "axes" {
                within = Some(entry.path.clone());
            }
            if entry.path == "axes" {
                match &entry.typed {
                    Typed::Table(columns) => axes.extend(keys(columns).into_iter().map(|entry| (entry, None))),
                    _ => self.not_a_table(&entry),
                }
            } else if LISTS.contains(&entry.path.as_str()) {
                for (table, place) in self.tables(entry.path.as_str(), &entry) {
                    let columns = keys(&table);
                    if entry.path == "zip" {
                        let zip = self.zips.len();
                        self.zips.push(ZipDraft { place, keys: columns.len(), wrong: false });
                        axes.extend(columns.into_iter().map(|entry| (entry, Some(zip))));
                    } else {
                        cases.push((columns, place, entry.path == "exclude"));
                    }
                }
            } else if is_table(&entry.path) || is_known_table(&entry.path, &entry.typed) {
                if !entry.typed.is_table() {
                    self.not_a_table(&entry);
                }
            } else {
                named |= entry.path == "name";
                self.key(&entry);
            }
        }
        // The parser's tables are sorted by name, and the axes count in the order of the file.
        axes.sort_by_key(|(entry, _)| entry.key.start);
        for (entry, zip) in &axes {
            self.axis(entry, *zip);
        }
        self.check_zips();
        for (entries, place, exclude) in cases {
            if exclude {
                self.exclude(&entries, &place);
            } else {
                self.include(&entries, place);
            }
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

    /// The tables of a list of tables such as [[zip]], each with what it holds and its place.
    pub(super) fn tables(&mut self, name: &str, entry: &Entry) -> Vec<(Vec<Entry>, Place)> {
        let elements = match &entry.typed {
            Typed::List(elements) => elements.as_slice(),
            _ => &[(entry.typed.clone(), entry.span.clone())],
        };
        let mut tables = Vec::new();
        for (typed, span) in elements {
            match typed {
                Typed::Table(table) if matches!(entry.typed, Typed::List(_)) => {
                    // From the first key to the last value: where a header stands is not worth pointing at.
                    let start = table.iter().map(|entry| entry.key.start).min().unwrap_or(span.start);
                    let end = table.iter().map(|entry| entry.span.end).max().unwrap_or(span.end);
                    tables.push((table.clone(), self.place(&(start..end))));
                }
                Typed::Table(_) => {
                    let error = SpecError::new(
                        format!("`{name}` is a list of tables, and this is one table"),
                        format!("write [[{name}]], in double brackets: it may stand more than once"),
                    );
                    self.errors.push(error.at(&self.place(&entry.key), "in single brackets"));
                }
                _ => {
                    let error = SpecError::new(
                        format!("`{name}` is a list of tables, and this is none"),
                        format!("write its keys under [[{name}]]"),
                    );
                    self.errors.push(error.at(&self.place(span), "not a table"));
                }
            }
        }
        tables
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
            let (what, suggestion) = if entry.typed.is_table() {
                (format!("there is no table [{}]", entry.path), unknown::table(&entry.path))
            } else if table.is_empty() {
                (format!("unknown key `{}`", entry.path), unknown::key(&entry.path))
            } else {
                (format!("unknown key `{}` in [{table}]", split(&entry.path).1), unknown::key(&entry.path))
            };
            self.broken.extend(suggestion.path);
            let label = if entry.typed.is_table() { "unknown table" } else { "unknown key" };
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

/// The keys among the entries of a table whose keys are dotted paths: tables that only hold others are left out, and so is what a
/// table that stands for a value holds.
fn keys(entries: &[Entry]) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for entry in entries {
        let inside = found.last().is_some_and(|last| last.typed.is_table() && is_within(&entry.path, &last.path));
        let holds_others = is_known_table(&entry.path, &entry.typed);
        if !inside && !holds_others {
            found.push(entry.clone());
        }
    }
    found
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
    typed.is_table() && (is_table(path) || is_within(path, "sysctl"))
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
