//! A sweep as it was understood, and its form in a manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::settings::{Axes, Value, find};

use super::program::ExecTemplate;
use super::run::RunOptions;

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
    /// Axes that move together, by their paths: such axes have equally many values, and a cell has the same position on each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zip: Vec<Vec<String>>,
    /// What is left out of the grid: combinations that have one of the values on each axis named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Vec<Axis>>,
    /// What is added to the grid: cells by their value on every axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Axes>,
    /// What the presets that it names stood for: the keys that each sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub presets: BTreeMap<String, Axes>,
    /// The two programs of cells that run any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Box<ExecTemplate>>,
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

impl Sweep {
    /// The axis of that name or path.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name || axis.path == name)
    }

    /// The paths of the axes that the axis of that path moves with, its own among them.
    pub fn zip_of(&self, path: &str) -> Option<&[String]> {
        self.zip.iter().find(|zip| zip.iter().any(|other| other == path)).map(Vec::as_slice)
    }
}
