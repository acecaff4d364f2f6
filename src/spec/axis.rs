//! What the keys of [axes] and [[zip]] mean, one by one, and that the axes of a [[zip]] fit together.

use std::collections::{HashMap, HashSet};

use crate::settings::{Key, Rejection, Value, find};

use super::check::Draft;
use super::error::{Place, SpecError};
use super::range::{counts, is_range};
use super::raw::{Entry, Typed};
use super::run::find_run;
use super::unknown::{self, TOP, split, within};
use super::value::scalar;

/// Most values of an axis that a message lists.
pub(super) const MAX_LISTED: usize = 24;

/// A key with the values that it takes one after the other.
#[derive(Debug)]
pub(super) struct AxisDraft {
    pub(super) key: &'static Key,
    pub(super) values: Vec<(Value, Place)>,
    /// Where each value stands in `values`.
    pub(super) seen: HashMap<Value, usize>,
    pub(super) place: Place,
    /// Which [[zip]] it is a column of. There a value may come up again, in another row.
    pub(super) zip: Option<usize>,
}

/// A [[zip]]: its axes know that they belong to it.
#[derive(Debug)]
pub(super) struct ZipDraft {
    pub(super) place: Place,
    /// How many keys it names.
    pub(super) keys: usize,
    /// Whether its axes do not fit together. That is said once.
    pub(super) wrong: bool,
}

impl AxisDraft {
    pub(super) fn new(key: &'static Key, place: Place, zip: Option<usize>) -> Self {
        Self { key, values: Vec::new(), seen: HashMap::new(), place, zip }
    }
}

impl Draft {
    /// Takes in a key of [axes], or of the [[zip]] of that number.
    pub(super) fn axis(&mut self, entry: &Entry, zip: Option<usize>) {
        let name = entry.path.as_str();
        let key_place = self.place(&entry.key);
        let Some(key) = self.axis_key(name, &key_place) else { return };
        if let Some(earlier) = self.axes.iter().find(|earlier| std::ptr::eq(earlier.key, key)) {
            let error = SpecError::new(
                format!("`{name}` is an axis twice: `{}` and `{}` are the same key", key.name(), key.path),
                "put all its values on one axis",
            )
            .at(&key_place, "again here")
            .at(&earlier.place, "first here");
            self.errors.push(error);
            return;
        }
        let whole = [(entry.typed.clone(), entry.span.clone())];
        let list = match &entry.typed {
            Typed::List(list) => list.as_slice(),
            Typed::Table(parts) if is_range(parts) => &whole,
            _ => {
                let range =
                    if counts(&key.kind) { ", or as a range: { from = …, to = …, factor = 2 }" } else { "" };
                let error = SpecError::new(
                    format!("the axis `{name}` is not a list"),
                    if entry.typed.is_table() {
                        format!("write its values in brackets: {}{range}", as_axis(key))
                    } else {
                        format!(
                            "put it in brackets, or set the one value {}: {} = …",
                            within(key.path),
                            split(key.path).1
                        )
                    },
                );
                self.broken.push(key.path);
                self.errors.push(error.at(&self.place(&entry.span), "not a list"));
                return;
            }
        };
        let mut axis = AxisDraft::new(key, key_place, zip);
        for (typed, span) in list {
            let place = self.place(span);
            match typed {
                Typed::Table(parts) if is_range(parts) => match self.range(name, &key.kind, parts, span) {
                    Some(values) => {
                        for value in values {
                            self.element(&mut axis, name, Ok(value), place.clone());
                        }
                    }
                    None => self.broken.push(key.path),
                },
                typed => self.element(&mut axis, name, scalar(&key.kind, typed), place),
            }
        }
        if list.is_empty() {
            let error = SpecError::new(
                format!("the axis `{name}` has no values"),
                format!("write at least one value, or leave the axis out; {}", key.kind.expected()),
            );
            self.errors.push(error.at(&self.place(&entry.span), "empty"));
            self.broken.push(key.path);
        }
        self.axes.push(axis);
    }

    /// The key of an axis, or why there is none.
    pub(super) fn axis_key(&mut self, name: &str, place: &Place) -> Option<&'static Key> {
        let key = find(name);
        if key.is_none() {
            let error = if let Some(error) = cannot_vary(name) {
                error.at(place, "cannot be an axis")
            } else {
                let suggestion = unknown::axis(name);
                self.broken.extend(suggestion.path);
                SpecError::new(format!("unknown axis `{name}`"), suggestion.fix).at(place, "unknown axis")
            };
            self.errors.push(error);
        }
        key
    }

    /// Checks that the axes of each [[zip]] fit together.
    pub(super) fn check_zips(&mut self) {
        for zip in 0..self.zips.len() {
            let columns: Vec<&AxisDraft> = self.axes.iter().filter(|axis| axis.zip == Some(zip)).collect();
            // What is wrong with a column by itself has been said.
            let ZipDraft { keys, wrong, .. } = self.zips[zip];
            if wrong || keys != columns.len() || columns.iter().any(|axis| self.broken.contains(&axis.key.path)) {
                continue;
            }
            let error = match columns.as_slice() {
                [] => SpecError::new(
                    "this [[zip]] names no keys",
                    "write at least two axes that move together, with equally many values each",
                )
                .at(&self.zips[zip].place, "empty"),
                [only] => SpecError::new(
                    format!("`{}` is zipped with nothing", only.key.name()),
                    format!("add the axis that moves with it, or write it under [axes]: {}", as_axis(only.key)),
                )
                .at(&only.place, "alone in its [[zip]]"),
                [first, rest @ ..] => {
                    if rest.iter().all(|axis| axis.values.len() == first.values.len()) {
                        let Some(error) = same_rows(&columns) else { continue };
                        error
                    } else {
                        let error = SpecError::new(
                            "the axes of a [[zip]] need equally many values: they move together",
                            "write one value of each axis for each row, or put the axes under [axes] to have every combination",
                        );
                        columns.iter().fold(error, |error, axis| {
                            error.at(&axis.place, unknown::count(axis.values.len(), "value"))
                        })
                    }
                }
            };
            let paths: Vec<_> = columns.iter().map(|axis| axis.key.path).collect();
            self.broken.extend(paths);
            self.errors.push(error);
            self.zips[zip].wrong = true;
        }
    }

    /// Adds one value to an axis, unless it is wrong or there already.
    pub(super) fn element(
        &mut self,
        axis: &mut AxisDraft,
        name: &str,
        checked: Result<Value, Rejection>,
        place: Place,
    ) {
        match checked {
            Ok(value) => {
                if let Some(&first) = axis.seen.get(&value).filter(|_| axis.zip.is_none()) {
                    let shown = axis.key.kind.show(&value);
                    let error = SpecError::new(
                        format!("the axis `{name}` has the value {shown} twice"),
                        "leave one of them out: each cell is measured `run.repeat` times anyway",
                    )
                    .at(&place, format!("this is {shown} again"))
                    .at(&axis.values[first].1, "first here");
                    self.errors.push(error);
                } else {
                    axis.seen.insert(value.clone(), axis.values.len());
                    axis.values.push((value, place));
                }
            }
            Err(rejection) => {
                self.broken.push(axis.key.path);
                let error = SpecError::new(format!("`{name}`: {}", rejection.message), rejection.fix);
                self.errors.push(error.at(&place, "not taken here"));
            }
        }
    }
}

/// The error of two rows of a [[zip]] that are the same.
fn same_rows(columns: &[&AxisDraft]) -> Option<SpecError> {
    let rows = columns.first()?.values.len();
    let mut seen: HashMap<Vec<&Value>, usize> = HashMap::new();
    let (first, again) = (0..rows).find_map(|row| {
        let values = columns.iter().map(|axis| &axis.values[row].0).collect();
        seen.insert(values, row).map(|first| (first, row))
    })?;
    let shown: Vec<_> = columns
        .iter()
        .map(|axis| format!("{} {}", axis.key.name(), axis.key.kind.show(&axis.values[again].0)))
        .collect();
    let error = SpecError::new(
        format!("a [[zip]] has the row {} twice", shown.join(", ")),
        "leave one of them out: each cell is measured `run.repeat` times anyway",
    );
    Some(columns.iter().fold(error, |error, axis| {
        let error = error.at(&axis.values[again].1, format!("row {} again", again + 1));
        // A range has one place for all its values.
        if axis.values[again].1.span == axis.values[first].1.span {
            error
        } else {
            error.at(&axis.values[first].1, format!("row {}", first + 1))
        }
    }))
}

/// Values of a key for a message, each once, as tables show them; not more than fit one.
pub(super) fn listed<'a>(key: &Key, values: impl Iterator<Item = &'a Value>) -> String {
    let mut seen: HashSet<&Value> = HashSet::new();
    let distinct: Vec<String> =
        values.filter(|value| seen.insert(value)).take(MAX_LISTED + 1).map(|value| key.kind.show(value)).collect();
    let more = if distinct.len() > MAX_LISTED { " and more" } else { "" };
    unknown::list(distinct.iter().take(MAX_LISTED).map(String::as_str)) + more
}

/// How an axis over the key is written.
pub(super) fn as_axis(key: &Key) -> String {
    let name = key.name();
    if name.contains('.') { format!("\"{name}\" = […]") } else { format!("{name} = […]") }
}

/// The error of an axis over something that exists and belongs to the sweep as a whole.
pub(super) fn cannot_vary(name: &str) -> Option<SpecError> {
    let path = if TOP.contains(&name) {
        name
    } else {
        find_run(name).or_else(|| find_run(&format!("run.{name}"))).map(|key| key.path)?
    };
    let fix = format!("set `{}` once, {}", split(path).1, within(path));
    Some(SpecError::new(format!("`{name}` cannot vary: it belongs to the whole sweep"), fix))
}
