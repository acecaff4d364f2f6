//! The JSON Schema of a sweep file, made from the table of keys, so that editors complete and check one while it is written.
//!
//! It says what one line may hold. What holds between lines (equally many values in a [[zip]], caps on cells) is for `sweep check`.

use serde_json::{Map, Value as Json, json};

use crate::settings::{Comparison, Figure, KEYS, Key, Kind, Settings, Value};
use crate::units::Bytes;

use super::check::MAX_NAME;
use super::exec;
use super::find::FIND_KEYS;
use super::precision::REPEAT;
use super::range::counts;
use super::run::{MAX_REPEATS, RUN_KEYS, RunOptions};

/// The draft that it follows.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";
/// A span of time: numbers, each with its unit.
const SPAN: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*(ns|nsec|nanos|us|µs|usec|ms|msec|millis|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|M|months?|y|yrs?|years?)\s*)+)$";

/// A rate.
const RATE: &str = r"^\s*[0-9][0-9_]*(\.[0-9_]+)?\s*([GMk]?bit/s)\s*$";

/// A share of a whole.
const PERCENT: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$";

/// Every key of a cell.
fn keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().copied().flatten()
}

/// The JSON Schema of a sweep file.
pub fn schema() -> Json {
    let values = keys()
        .filter(|key| both_ends(key).is_none())
        .map(|key| (key.path, described(&key.kind, key.about, default(key).as_ref())));
    let runs = RUN_KEYS
        .iter()
        .map(|key| (key.path, described(&key.kind, key.about, Some(&(key.get)(&RunOptions::default())))))
        .map(|(path, schema)| (path, if path == REPEAT { repeats(schema) } else { schema }));
    let own = keys().map(|key| (key.path, reference("values", key)));
    let run = RUN_KEYS.iter().map(|key| (key.path, json!({ "$ref": format!("#/$defs/values/{}", key.path) })));
    let mut properties = Map::new();
    properties.insert(
        "name".to_owned(),
        json!({
            "description": "results are filed under it",
            "type": "string",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
            "maxLength": MAX_NAME,
        }),
    );
    properties.insert(
        "description".to_owned(),
        json!({ "description": "what the sweep asks, and what it found", "type": "string", "pattern": r"\S" }),
    );
    for (path, schema) in run.chain(own) {
        insert(&mut properties, path, schema);
    }
    properties.insert("find".to_owned(), find());
    properties.insert(
        "sysctl".to_owned(),
        json!({
            "description": "any sysctl below net, named in quotes with its dots, in the namespaces of both ends",
            "type": "object",
            "properties": { "net": { "type": "object" } },
            "patternProperties": { "^net\\.": { "$ref": "#/$defs/values/sysctl" } },
            "additionalProperties": false,
        }),
    );
    for (path, schema) in exec::schemas() {
        insert(&mut properties, path, schema);
    }
    properties.insert(
        "var".to_owned(),
        json!({
            "description": "values of your own, which stand in commands as {var.NAME} or {NAME}",
            "type": "object",
            "properties": {},
            "patternProperties": { "^[A-Za-z][A-Za-z0-9_-]*$": { "$ref": "#/$defs/values/var" } },
            "additionalProperties": false,
        }),
    );
    for (name, about, mut schema) in lists() {
        schema["description"] = about.into();
        properties.insert(name.to_owned(), schema);
    }
    let sysctl = value(&Kind::Sysctl);
    let free = value(&Kind::Free);
    let several = |one: &Json| json!({ "type": "array", "minItems": 1, "items": one });
    let one_or_several = |one: &Json| json!({ "anyOf": [one, several(one)] });
    // A key for each name is none of the table.
    let collect = |schemas: &dyn Fn(&Key) -> Json, made: &dyn Fn(&Json) -> Json| -> Map<String, Json> {
        let all = keys().filter(|key| both_ends(key).is_none()).map(|key| (key.path.to_owned(), schemas(key)));
        all.chain([("sysctl".to_owned(), made(&sysctl)), ("var".to_owned(), made(&free))]).collect()
    };
    json!({
        "$schema": DRAFT,
        "title": "a sweep file",
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {
            "axes": named("varied"),
            "varied": collect(&varied, &several),
            "exclusions": collect(&|key| {
                let value = reference("values", key);
                json!({ "anyOf": [value, { "type": "array", "minItems": 1, "items": value }] })
            }, &one_or_several),
            "values": values
                .chain(runs)
                .chain([("sysctl", sysctl.clone()), ("var", free.clone())])
                .map(|(path, schema)| (path.to_owned(), schema))
                .collect::<Map<_, _>>(),
        },
    })
}

/// What lists cells or leaves some out: the key, what it says, its schema.
fn lists() -> [(&'static str, &'static str, Json); 4] {
    [
        ("axes", "what varies: every combination of values is a cell", json!({ "$ref": "#/$defs/axes" })),
        (
            "zip",
            "axes that move together: they have equally many values, and a cell takes the same position of each",
            json!({ "type": "array", "items": { "$ref": "#/$defs/axes", "minProperties": 1 } }),
        ),
        (
            "exclude",
            "cells to leave out: those that have one of the values on each axis that is named",
            json!({ "type": "array", "items": named("exclusions") }),
        ),
        (
            "include",
            "a cell to add: the values that are named, and the first value of every other axis",
            json!({ "type": "array", "items": named("values") }),
        ),
    ]
}

/// The table `[find]`.
fn find() -> Json {
    // The longer comparison first: a pattern takes the first that fits.
    let mut comparisons = Comparison::NAMES.to_vec();
    comparisons.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let figures = Figure::NAMES.join("|").replace('.', r"\.");
    let condition = format!(r"^\s*({figures})\s*({})\s*[0-9].*$", comparisons.join("|"));
    let properties = FIND_KEYS.iter().map(|key| {
        let pattern = if key.path == "find.axis" { r"\S" } else { &condition };
        let name = key.path.trim_start_matches("find.").to_owned();
        (name, json!({ "description": key.about, "type": "string", "pattern": pattern }))
    });
    json!({
        "description": "which value of an axis is searched for, instead of measuring every cell",
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": ["axis"],
        "oneOf": [{ "required": ["smallest_where"] }, { "required": ["largest_where"] }],
        "additionalProperties": false,
    })
}

/// The value that a key has where a sweep does not name it. A key for both ends has that of one end.
pub(super) fn default(key: &Key) -> Option<Value> {
    let end = key.path.replacen('.', ".client.", 1);
    let settings = Settings::default();
    let read = |key: &Key| key.read(&settings);
    read(key)
        .or_else(|| keys().find(|other| other.path == end).and_then(read))
        .or_else(|| key.kind.check(&Value::Text("none".to_owned())).ok())
}

/// A table of keys by their short names, by their paths in quotes, and by their paths with dots.
fn named(group: &str) -> Json {
    let mut properties = Map::new();
    for key in keys() {
        for name in key.short.into_iter().chain([key.path]) {
            properties.insert(name.to_owned(), reference(group, key));
        }
    }
    for key in keys().filter(|key| key.path.contains('.')) {
        insert(&mut properties, key.path, reference(group, key));
    }
    // Any sysctl of the network: in quotes, or with its dots as tables.
    let sysctl = json!({ "$ref": format!("#/$defs/{group}/sysctl") });
    properties.insert("sysctl".to_owned(), json!({ "type": "object" }));
    // And any value of the user's own.
    let var = json!({ "$ref": format!("#/$defs/{group}/var") });
    properties.insert("var".to_owned(), json!({ "type": "object" }));
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { "^sysctl\\.net\\.": sysctl, "^var\\.[A-Za-z][A-Za-z0-9_-]*$": var },
        "additionalProperties": false,
    })
}

/// The schema of a key: that of the key for both ends, where it is for one of them and takes the same.
fn reference(group: &str, key: &Key) -> Json {
    json!({ "$ref": format!("#/$defs/{group}/{}", both_ends(key).unwrap_or(key.path)) })
}

/// The key for both ends that a key for one of them belongs to.
fn both_ends(key: &Key) -> Option<&'static str> {
    let path = key.path.replacen(".client.", ".", 1).replacen(".server.", ".", 1);
    keys().find(|other| path != key.path && other.path == path && other.kind == key.kind).map(|other| other.path)
}

/// Puts the schema of a dotted path where its tables are.
fn insert(properties: &mut Map<String, Json>, path: &str, schema: Json) {
    let Some((table, rest)) = path.split_once('.') else {
        properties.insert(path.to_owned(), schema);
        return;
    };
    let inner = properties
        .entry(table)
        .or_insert_with(|| json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    if let Some(inner) = inner.get_mut("properties").and_then(Json::as_object_mut) {
        insert(inner, rest, schema);
    }
}

/// A value with what it is for.
fn described(kind: &Kind, about: &str, default: Option<&Value>) -> Json {
    let unit = match kind {
        Kind::Size { .. } => " (bytes)",
        Kind::Span { .. } => " (time with its unit)",
        _ => "",
    };
    let mut schema = json!({ "description": format!("{about}{unit}") });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    if let (Json::Object(schema), Json::Object(value)) = (&mut schema, value(kind)) {
        schema.extend(value);
    }
    schema
}

/// `repeat`: a number, or a table that says when it is enough.
fn repeats(number: Json) -> Json {
    let Json::Object(mut number) = number else { return number };
    let kept = ["description", "default"].map(|name| (name.to_owned(), number.remove(name).unwrap_or_default()));
    let mut schema: Map<String, Json> = kept.into_iter().collect();
    let table = json!({
        "type": "object",
        "properties": {
            "min": { "description": "repeats before the first look", "type": "integer", "minimum": 1, "maximum": MAX_REPEATS.max },
            "max": { "description": "repeats after which a cell is given up as not precise enough", "type": "integer", "minimum": 1, "maximum": MAX_REPEATS.max },
            "precision": {
                "description": "how far the interval of the median may reach from it, as a share of it",
                "type": "string",
                "pattern": PERCENT,
            },
            "confidence": {
                "description": "how often such an interval is to hold the median",
                "default": 0.95,
                "anyOf": [{ "type": "number", "minimum": 0.5, "exclusiveMaximum": 0.9999 }, { "type": "string", "pattern": PERCENT }],
            },
        },
        "required": ["max", "precision"],
        "additionalProperties": false,
    });
    schema.insert("anyOf".to_owned(), json!([number, table]));
    Json::Object(schema)
}

/// What a key of that kind takes.
fn value(kind: &Kind) -> Json {
    let number = |min: u64, max: u64| json!({ "type": "integer", "minimum": min, "maximum": max });
    let mut any = match *kind {
        Kind::Switch { .. } => vec![json!({ "type": "boolean" })],
        Kind::Count { min, limit, .. } => vec![number(min, limit.max)],
        Kind::Size { min, limit, .. } => {
            let units: Vec<_> = Bytes::units().collect();
            let units = units.join("|");
            // A fraction needs a unit: 1.5 alone is not a whole number of bytes.
            let pattern = format!(r"^\s*([0-9][0-9_]*\s*({units})?|[0-9][0-9_]*\.[0-9_]+\s*({units}))\s*$");
            vec![number(min, limit.max), json!({ "type": "string", "pattern": pattern })]
        }
        Kind::Span { .. } => vec![json!({ "type": "string", "pattern": SPAN })],
        Kind::Rate { .. } => vec![json!({ "type": "string", "pattern": RATE })],
        Kind::Percent => vec![json!({ "type": "string", "pattern": PERCENT })],
        Kind::Sysctl => vec![json!({ "type": "integer" }), json!({ "type": "string", "pattern": r"\S" })],
        Kind::Choice(names) => vec![json!({ "enum": names })],
        Kind::Text => vec![json!({ "type": "string", "pattern": r"\S" })],
        Kind::Free => vec![
            json!({ "type": "boolean" }),
            json!({ "type": "number" }),
            json!({ "type": "string", "pattern": r"\S" }),
        ],
    };
    if kind.takes_default() {
        any.push(json!({ "const": Value::DEFAULT }));
    }
    match any.pop() {
        Some(only) if any.is_empty() => only,
        last => json!({ "anyOf": any.into_iter().chain(last).collect::<Vec<_>>() }),
    }
}

/// What an axis over the key takes: a list of values and ranges, or one range.
fn varied(key: &Key) -> Json {
    let one = reference("values", key);
    let about = key.about;
    let Some(distance) = key.kind.distance().filter(|_| counts(&key.kind)) else {
        return json!({ "description": about, "type": "array", "minItems": 1, "items": one });
    };
    let end = match key.kind {
        Kind::Count { min, limit, .. } => value(&Kind::Count { min, limit, or_default: false }),
        Kind::Size { min, limit, .. } => value(&Kind::Size { min, limit, or_default: false }),
        kind => value(&kind),
    };
    let range = json!({
        "description": "from one end to the other, by a step that is added or a factor that multiplies",
        "type": "object",
        "properties": {
            "from": end,
            "to": end,
            "step": value(&distance),
            "factor": { "type": "number", "exclusiveMinimum": 1 },
        },
        "required": ["from", "to"],
        "oneOf": [{ "required": ["step"] }, { "required": ["factor"] }],
        "additionalProperties": false,
    });
    json!({
        "description": about,
        "anyOf": [{ "type": "array", "minItems": 1, "items": { "anyOf": [one, range] } }, range],
    })
}
