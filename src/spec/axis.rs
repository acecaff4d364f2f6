//! What the keys of [axes] mean, one by one.

use std::collections::HashMap;

use crate::settings::{Key, Rejection, Value, find};

use super::check::Draft;
use super::error::{Place, SpecError};
use super::raw::{Entry, Typed};
use super::run::find_run;
use super::unknown::{self, TOP, split};
use super::value::scalar;

/// A key with the values that it takes one after the other.
#[derive(Debug)]
pub(super) struct AxisDraft {
    pub(super) key: &'static Key,
    pub(super) values: Vec<(Value, Place)>,
    /// Where each value stands in `values`.
    pub(super) seen: HashMap<Value, usize>,
    pub(super) place: Place,
}

impl AxisDraft {
    pub(super) fn new(key: &'static Key, place: Place) -> Self {
        Self { key, values: Vec::new(), seen: HashMap::new(), place }
    }
}

impl Draft {
    /// Takes in a key of [axes].
    pub(super) fn axis(&mut self, entry: &Entry) {
        let name = entry.path.trim_start_matches("axes.");
        let key_place = self.place(&entry.key);
        let Some(key) = find(name) else {
            let error = if let Some(error) = cannot_vary(name) {
                error.at(&key_place, "cannot be an axis")
            } else {
                let suggestion = unknown::axis(name);
                self.broken.extend(suggestion.path);
                SpecError::new(format!("unknown axis `{name}`"), suggestion.fix).at(&key_place, "unknown axis")
            };
            self.errors.push(error);
            return;
        };
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
        let Typed::List(list) = &entry.typed else {
            let error = SpecError::new(
                format!("the axis `{name}` is not a list"),
                if matches!(entry.typed, Typed::Table) {
                    format!("write its values in brackets: {}", as_axis(key))
                } else {
                    format!(
                        "put it in brackets, or set the one value under [{}]: {} = …",
                        split(key.path).0,
                        split(key.path).1
                    )
                },
            );
            self.broken.push(key.path);
            self.errors.push(error.at(&self.place(&entry.span), "not a list"));
            return;
        };
        let mut axis = AxisDraft::new(key, key_place);
        for (typed, span) in list {
            let place = self.place(span);
            self.element(&mut axis, name, scalar(&key.kind, typed), place);
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
                if let Some(&first) = axis.seen.get(&value) {
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
    let (table, last) = split(path);
    let fix = if table.is_empty() {
        format!("set `{last}` once, at the top of the file")
    } else {
        format!("set `{last}` once, under [{table}]")
    };
    Some(SpecError::new(format!("`{name}` cannot vary: it belongs to the whole sweep"), fix))
}
