//! [[exclude]] and [[include]]: cells that are left out of the grid, and cells that are added to it, by value.

use std::collections::HashSet;

use crate::settings::{Kind, Limit, Value};

use super::axis::{AxisDraft, as_axis, listed};
use super::check::Draft;
use super::error::{Place, SpecError};
use super::raw::{Entry, Typed};
use super::unknown::list;
use super::value::scalar;

/// Most `[[exclude]]` tables of a sweep: each cell is held against each of them.
pub const MAX_EXCLUDES: Limit = Limit { name: "MAX_EXCLUDES", max: 1000 };

/// Cells that are left out: those that have one of the values on each axis that is named.
#[derive(Debug)]
pub(super) struct Exclude {
    /// The axes by their index, and the values.
    pub(super) named: Vec<(usize, Vec<Value>)>,
}

/// A cell that is added.
#[derive(Debug)]
pub(super) struct Include {
    /// The axes that it names by their index, and the values.
    pub(super) named: Vec<(usize, Value)>,
    /// Its value on every axis, once all axes are known.
    pub(super) values: Vec<Value>,
    pub(super) place: Place,
}

impl Draft {
    /// Takes in an [[exclude]].
    pub(super) fn exclude(&mut self, entries: &[Entry], place: &Place) {
        if self.excludes.len() as u64 == MAX_EXCLUDES.max {
            let error = SpecError::new(
                format!("more [[exclude]] tables than {} ({})", MAX_EXCLUDES.name, MAX_EXCLUDES.max),
                "name several values in one: rcvbuf = [1024, 2048] leaves out both; or split the sweep",
            );
            self.errors.push(error.at(place, "this is one too many"));
        }
        let before = self.errors.len();
        let mut named: Vec<(usize, Vec<(Value, Place)>)> = Vec::new();
        let mut whole = true;
        for entry in entries {
            let Some(index) = self.named_axis(entry, "exclude") else {
                whole = false;
                continue;
            };
            let (name, kind) = (entry.path.as_str(), self.axes[index].key.kind);
            let one = [(entry.typed.clone(), entry.span.clone())];
            let elements = if let Typed::List(elements) = &entry.typed { elements.as_slice() } else { &one };
            if elements.is_empty() {
                let error =
                    SpecError::new(format!("`{name}` has no values"), "write one value, or several in brackets");
                self.errors.push(error.at(&self.place(&entry.span), "empty"));
            }
            let mut values = Vec::new();
            for (typed, span) in elements {
                let place = self.place(span);
                if let Some(value) = self.case_value(name, &kind, typed, &place) {
                    self.on_axis(index, &value, &place);
                    values.push((value, place));
                }
            }
            named.push((index, values));
        }
        if entries.is_empty() {
            let error = SpecError::new(
                "this [[exclude]] names no values, and would leave out every cell",
                "name values of the axes: cells that have all of them are left out",
            );
            self.errors.push(error.at(place, "empty"));
        }
        if self.errors.len() == before && whole {
            self.meets(&named, place);
        }
        let named =
            named.into_iter().map(|(axis, values)| (axis, values.into_iter().map(|(value, _)| value).collect()));
        self.excludes.push(Exclude { named: named.collect() });
    }

    /// Takes in an [[include]].
    pub(super) fn include(&mut self, entries: &[Entry], place: Place) {
        let mut named: Vec<(usize, Value)> = Vec::new();
        let mut whole = true;
        for entry in entries {
            let Some(index) = self.named_axis(entry, "include") else {
                whole = false;
                continue;
            };
            let (name, kind) = (entry.path.as_str(), self.axes[index].key.kind);
            let value_place = self.place(&entry.span);
            if matches!(entry.typed, Typed::List(_)) {
                let error = SpecError::new(
                    format!("`{name}`: a list, and an [[include]] is one cell"),
                    "write one value here, and an [[include]] for each other value",
                );
                self.errors.push(error.at(&value_place, "more than one value"));
                whole = false;
            } else if let Some(value) = self.case_value(name, &kind, &entry.typed, &value_place) {
                named.push((index, value));
            } else {
                whole = false;
            }
        }
        if entries.is_empty() {
            let error = SpecError::new(
                "this [[include]] names no values",
                "name values of the axes: the cell that has them is added",
            );
            self.errors.push(error.at(&place, "empty"));
        } else if whole && self.rows_are_whole(&named, &place) {
            self.includes.push(Include { named, values: Vec::new(), place });
        }
    }

    /// Gives each [[include]] its value on every axis: where it names none, the first one of the axis.
    pub(super) fn complete_includes(&mut self) {
        for include in &mut self.includes {
            let values = self.axes.iter().enumerate().map(|(index, axis)| {
                let named = include.named.iter().find(|(named, _)| *named == index).map(|(_, value)| value);
                named.or_else(|| axis.values.first().map(|(value, _)| value)).cloned()
            });
            // An axis without values has an error of its own.
            include.values = values.collect::<Option<_>>().unwrap_or_default();
        }
    }

    /// The axis that a key of an [[exclude]] or [[include]] names. The error, if there is none.
    fn named_axis(&mut self, entry: &Entry, table: &str) -> Option<usize> {
        let name = entry.path.as_str();
        let place = self.place(&entry.key);
        let key = self.axis_key(name, &place)?;
        let found = self.axes.iter().position(|axis| std::ptr::eq(axis.key, key));
        if self.broken.contains(&key.path) {
            return None;
        }
        if found.is_none() {
            let axes = list(self.axes.iter().map(|axis| axis.key.name()));
            let fix = match (table, axes.as_str()) {
                ("exclude", "") => "the sweep has no axes: leave the [[exclude]] out".to_owned(),
                ("exclude", axes) => format!("the axes are {axes}"),
                _ => format!("write its usual value under [axes], as an axis of one value: {}", as_axis(key)),
            };
            let error = SpecError::new(format!("`{name}` is no axis, and an [[{table}]] names values of axes"), fix);
            self.errors.push(error.at(&place, "not an axis"));
        }
        found
    }

    /// A checked value of an [[exclude]] or [[include]].
    fn case_value(&mut self, name: &str, kind: &Kind, typed: &Typed, place: &Place) -> Option<Value> {
        match scalar(kind, typed) {
            Ok(value) => Some(value),
            Err(rejection) => {
                let error = SpecError::new(format!("`{name}`: {}", rejection.message), rejection.fix);
                self.errors.push(error.at(place, "not taken here"));
                None
            }
        }
    }

    /// Checks that an [[exclude]] names a value that is on the axis.
    fn on_axis(&mut self, index: usize, value: &Value, place: &Place) {
        let axis = &self.axes[index];
        if axis.seen.contains_key(value) {
            return;
        }
        let error = SpecError::new(
            format!(
                "{} is not on the axis `{}`: there is nothing to leave out",
                axis.key.kind.show(value),
                axis.key.name()
            ),
            format!("its values are {}", listed(axis.key, axis.values.iter().map(|(value, _)| value))),
        );
        self.errors.push(error.at(place, "not on the axis").at(&axis.place, "this axis"));
    }

    /// Checks that the values of an [[exclude]] meet in a row, where axes are zipped.
    fn meets(&mut self, named: &[(usize, Vec<(Value, Place)>)], place: &Place) {
        for zip in 0..self.zips.len() {
            let columns: Vec<(&AxisDraft, HashSet<&Value>)> = named
                .iter()
                .map(|(index, values)| (&self.axes[*index], values.iter().map(|(value, _)| value).collect()))
                .filter(|(axis, _): &(&AxisDraft, _)| axis.zip == Some(zip))
                .collect();
            let rows = columns.first().map_or(0, |(axis, _)| axis.values.len());
            let met = (0..rows).any(|row| columns.iter().all(|(axis, values)| values.contains(&axis.values[row].0)));
            if columns.is_empty() || met {
                continue;
            }
            let axes = list(columns.iter().map(|(axis, _)| axis.key.name()));
            let error = SpecError::new(
                format!("no row of the [[zip]] has these values of {axes}: there is nothing to leave out"),
                "name the values of one row, or leave this [[exclude]] out",
            );
            let error = columns.iter().fold(error.at(place, "never together"), |error, (axis, _)| {
                error.at(&axis.place, "an axis of the [[zip]]")
            });
            self.errors.push(error);
            return;
        }
    }

    /// Checks that an [[include]] names all axes of a [[zip]] or none.
    fn rows_are_whole(&mut self, named: &[(usize, Value)], place: &Place) -> bool {
        for zip in 0..self.zips.len() {
            let columns = self.axes.iter().enumerate().filter(|(_, axis)| axis.zip == Some(zip));
            let (there, missing): (Vec<_>, Vec<_>) =
                columns.partition(|(index, _)| named.iter().any(|(named, _)| named == index));
            if there.is_empty() || missing.is_empty() {
                continue;
            }
            let shown = |columns: &[(usize, &AxisDraft)]| list(columns.iter().map(|(_, axis)| axis.key.name()));
            let error = SpecError::new(
                format!("{} moves with {}, and this [[include]] names only one side", shown(&missing), shown(&there)),
                format!("name {} too", shown(&missing)),
            );
            let error = missing
                .iter()
                .fold(error.at(place, "this cell"), |error, (_, axis)| error.at(&axis.place, "in the same [[zip]]"));
            self.errors.push(error);
            return false;
        }
        true
    }

    /// Says so where nothing is left to measure.
    pub(super) fn nothing_left(&mut self) {
        let fix = if self.excludes.is_empty() {
            "keep values that come up in the same row of a [[zip]] or in the same [[include]]"
        } else {
            "leave out less: together, the [[exclude]] tables and any --filter leave out every cell"
        };
        let error = SpecError::new("no cell is left", fix);
        let error = self.at_axes(error);
        self.errors.push(error);
    }
}
