//! The part of the JSON Schema that says what programs and metrics are.

use serde_json::{Map, Value as Json, json};

use crate::settings::{Protocol, Side, Stands, Stop};
use crate::units::Better;

use super::{METRIC_KEYS, PROGRAM_KEYS, PartKey};

/// The schema of each part, with its path.
pub(in crate::spec) fn schemas() -> [(&'static str, Json); 4] {
    let program = |side: Side| {
        let keys = PROGRAM_KEYS.iter().filter(|key| key.of_client || side == Side::Server);
        json!({
            "description": format!("exec only: the program at the {side}'s end"),
            "type": "object",
            "properties": properties(keys),
            "required": ["command"],
            "additionalProperties": false,
        })
    };
    let metric = json!({
        "type": "object",
        "properties": properties(METRIC_KEYS.iter()),
        "required": ["name"],
        "oneOf": [{ "required": ["regex"] }, { "required": ["json"] }],
        "additionalProperties": false,
    });
    [
        ("workload.server", program(Side::Server)),
        ("workload.client", program(Side::Client)),
        (
            "workload.metric",
            json!({
                "description": "exec only: numbers that are taken from what the programs print",
                "type": "array",
                "items": metric,
            }),
        ),
        (
            "workload.files",
            json!({
                "description": "exec only: files and folders that the programs need in a guest, besides their executables; absolute, or below the folder of this file",
                "type": "array",
                "items": { "type": "string" },
            }),
        ),
    ]
}

fn properties<'a>(keys: impl Iterator<Item = &'a PartKey>) -> Map<String, Json> {
    keys.map(|key| {
        let mut schema = json!({ "description": key.about });
        if let (Json::Object(schema), Json::Object(value)) = (&mut schema, value(key.name)) {
            schema.extend(value);
        }
        (key.name.to_owned(), schema)
    })
    .collect()
}

/// What a key of that name takes.
fn value(name: &str) -> Json {
    let text = json!({ "type": "string" });
    match name {
        "command" => json!({
            "type": "array",
            "minItems": 1,
            "items": { "anyOf": [text, { "type": "array", "items": text }] },
        }),
        "env" => json!({
            "type": "object",
            "properties": {},
            "patternProperties": { "^[^=]+$": text },
            "additionalProperties": false,
        }),
        "success" => json!({
            "type": "array",
            "minItems": 1,
            "items": { "type": "integer", "minimum": 0, "maximum": 255 },
        }),
        "ready" => json!({ "anyOf": [
            { "const": "port" },
            {
                "type": "object",
                "properties": {
                    "line": text,
                    "after": text,
                    "protocol": { "enum": Protocol::NAMES },
                    "port": { "type": "integer", "minimum": 1, "maximum": 65535 },
                },
                "additionalProperties": false,
            },
        ]}),
        "stop" => json!({ "enum": Stop::NAMES }),
        "from" => json!({ "enum": Side::NAMES }),
        "better" => json!({ "enum": Better::NAMES }),
        "is" => json!({ "enum": Stands::NAMES }),
        _ => text,
    }
}
