//! A sweep as it was understood: its cells, its form in a manifest, and how it differs from another.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::settings::{Axes, Key, Settings, Value, find};

use super::run::{RUN_KEYS, RunOptions};

/// A checked sweep. It stands in the manifest of a run as it was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Results are filed under it.
    pub name: String,
    /// What it asks and what it found, for people.
    #[serde(default)]
    pub description: String,
    /// How often, in which order, for how long at most.
    pub run: RunOptions,
    /// What is the same in all cells: the path of each key that was set, and its value.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub fixed: Vec<(String, Value)>,
    /// What varies, in the order of the file: the last axis varies fastest.
    pub axes: Vec<Axis>,
}

/// A key and the values that it takes one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The name in records, tables and pictures: the short one where there is one.
    pub name: String,
    /// The path of the key.
    #[serde(deserialize_with = "known")]
    pub path: String,
    /// Its values, in the order of the file.
    pub values: Vec<Value>,
}

/// Fixed keys are a map in a manifest, in their order.
fn as_map<S: Serializer>(fixed: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    Axes(fixed.to_vec()).serialize(serializer)
}

/// Reads fixed keys. One that this version does not know is an error: it would change the cells.
fn from_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Value)>, D::Error> {
    let Axes(fixed) = Axes::deserialize(deserializer)?;
    match fixed.iter().find(|(path, _)| find(path).is_none()) {
        Some((path, _)) => Err(unknown_key(path)),
        None => Ok(fixed),
    }
}

/// Reads the path of a key that this version knows.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = String::deserialize(deserializer)?;
    if find(&path).is_some() { Ok(path) } else { Err(unknown_key(&path)) }
}

fn unknown_key<E: de::Error>(path: &str) -> E {
    E::custom(format_args!("this version of sweep has no key `{path}`"))
}

impl Axis {
    /// The values as tables show them: sizes with units, switches as `on` and `off`.
    pub fn shown(&self) -> Vec<String> {
        self.values.iter().map(|value| show(&self.path, value)).collect()
    }
}

/// A value as tables show it.
fn show(path: &str, value: &Value) -> String {
    find(path).map_or_else(|| value.to_string(), |key| key.kind.show(value))
}

/// What sets one key of a cell.
#[derive(Clone, Copy, Debug)]
enum Setter<'a> {
    Fixed(&'a Value),
    Axis(usize),
}

/// The cells of a sweep, in the order of its axes.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    sweep: &'a Sweep,
    setters: Vec<(&'static Key, Setter<'a>)>,
}

impl Sweep {
    /// How many cells the axes span, as far as 64 bits can count. One without axes.
    pub fn cell_count(&self) -> u64 {
        self.axes.iter().fold(1, |cells: u64, axis| cells.saturating_mul(axis.values.len() as u64))
    }

    /// How many repeats there are of all cells, warm-ups included.
    pub fn run_count(&self) -> u64 {
        self.cell_count().saturating_mul(u64::from(self.run.repeat) + u64::from(self.run.warmup))
    }

    /// The axis of that name or path.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name || axis.path == name)
    }

    /// The cells, to be made one by one.
    pub(crate) fn cells(&self) -> Cells<'_> {
        let fixed = self.fixed.iter().map(|(path, value)| (path, Setter::Fixed(value)));
        let axes = self.axes.iter().enumerate().map(|(index, axis)| (&axis.path, Setter::Axis(index)));
        let mut setters: Vec<_> =
            fixed.chain(axes).filter_map(|(path, setter)| find(path).map(|key| (key, setter))).collect();
        // The more specific key wins, whichever of the two is the axis.
        setters.sort_by_key(|(key, _)| key.specificity());
        Cells { sweep: self, setters }
    }

    /// What changed from this sweep to `now`, in words. Empty if nothing did that matters to a measurement: the description does
    /// not.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut changed = |name: &str, was: &str, is: &str| {
            if was != is {
                found.push(format!("{name}: was {was}, is {is}"));
            }
        };
        changed("name", &self.name, &now.name);
        for key in RUN_KEYS {
            changed(key.path, &(key.get)(&self.run).to_string(), &(key.get)(&now.run).to_string());
        }
        for (path, was) in &self.fixed {
            match now.fixed.iter().find(|(other, _)| other == path) {
                Some((_, is)) => changed(path, &was.to_string(), &is.to_string()),
                None if now.axis(path).is_some() => found_axis(path, &mut changed),
                None => changed(path, &was.to_string(), "not set"),
            }
        }
        for (path, is) in &now.fixed {
            if !self.fixed.iter().any(|(other, _)| other == path) {
                let was = if self.axis(path).is_some() { "an axis" } else { "not set" };
                changed(path, was, &is.to_string());
            }
        }
        for axis in &self.axes {
            match now.axis(&axis.path) {
                Some(other) => found.extend(axis.differences(other)),
                None => found.push(format!("axis {}: removed", axis.name)),
            }
        }
        found.extend(
            now.axes
                .iter()
                .filter(|axis| self.axis(&axis.path).is_none())
                .map(|axis| format!("axis {}: added, with {}", axis.name, list(&axis.values))),
        );
        let order = |sweep: &Self, other: &Self| -> Vec<String> {
            let common = sweep.axes.iter().filter(|axis| other.axis(&axis.path).is_some());
            common.map(|axis| axis.name.clone()).collect()
        };
        let (was, is) = (order(self, now), order(now, self));
        if was != is {
            found.push(format!("order of the axes: was {}, is {}", was.join(", "), is.join(", ")));
        }
        found
    }
}

/// Says that a fixed key has become an axis. Its values are told with the axis.
fn found_axis(path: &str, changed: &mut impl FnMut(&str, &str, &str)) {
    changed(path, "fixed", "an axis");
}

/// Values, joined.
fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Axis {
    /// What changed from this axis to `now`, in words.
    fn differences(&self, now: &Self) -> Vec<String> {
        let only = |one: &Self, other: &Self| -> Vec<Value> {
            one.values.iter().filter(|value| !other.values.contains(value)).cloned().collect()
        };
        let (removed, added) = (only(self, now), only(now, self));
        let mut found = Vec::new();
        if !removed.is_empty() {
            found.push(format!("axis {}: {} removed", self.name, list(&removed)));
        }
        if !added.is_empty() {
            found.push(format!("axis {}: {} added", self.name, list(&added)));
        }
        if found.is_empty() && self.values != now.values {
            found.push(format!("axis {}: was {}, is {}", self.name, list(&self.values), list(&now.values)));
        }
        found
    }
}

impl Cells<'_> {
    /// The position on each axis of the cell of that index: the last axis varies fastest.
    pub(crate) fn positions(&self, mut index: usize) -> Vec<usize> {
        let mut positions = vec![0; self.sweep.axes.len()];
        for (position, axis) in positions.iter_mut().zip(&self.sweep.axes).rev() {
            let length = axis.values.len().max(1);
            *position = index % length;
            index /= length;
        }
        positions
    }

    /// The values on the axes at `positions`.
    pub(crate) fn axes(&self, positions: &[usize]) -> Axes {
        let values = self.sweep.axes.iter().zip(positions);
        Axes(values.map(|(axis, &position)| (axis.name.clone(), axis.values[position].clone())).collect())
    }

    /// The settings of the cell at `positions`.
    pub(crate) fn settings(&self, positions: &[usize]) -> Settings {
        let mut settings = Settings::default();
        for (key, setter) in &self.setters {
            let value = match *setter {
                Setter::Fixed(value) => value,
                Setter::Axis(axis) => &self.sweep.axes[axis].values[positions[axis]],
            };
            key.put(&mut settings, value);
        }
        settings
    }
}
