//! The JSON Schema of the sweep file and its documentation: made from the table of keys, committed, and true.
//!
//! To make the files under `docs/` anew: `SWEEP_RENEW=1 cargo nextest run --locked -E 'test(is_what_the_code_says)'`.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value as Json, json};
use sweep::settings::{KEYS, Value};
use sweep::spec::{Overrides, RUN_KEYS, Sweep, reference, schema};

/// The line of `docs/sweep-file.md` below which all is made from the table of keys.
const MADE: &str = "<!-- Made by `sweep schema --markdown` from here on: change src/settings/keys.rs, src/settings/presets.rs or src/spec/reference.rs. -->\n";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares a committed file with what the code says, or writes it.
fn holds(name: &str, text: &str) {
    if std::env::var_os("SWEEP_RENEW").is_some() {
        std::fs::write(path(name), text).expect("written");
        return;
    }
    let committed = std::fs::read_to_string(path(name)).unwrap_or_default();
    let line = committed.lines().zip(text.lines()).position(|(was, is)| was != is);
    let line = line.unwrap_or_else(|| committed.lines().count().min(text.lines().count()));
    assert!(
        committed == text,
        "{name} is stale, first in line {}:\n  has   {}\n  wants {}\nrenew it: SWEEP_RENEW=1 cargo nextest run --locked -E 'test(is_what_the_code_says)'",
        line + 1,
        committed.lines().nth(line).unwrap_or("nothing"),
        text.lines().nth(line).unwrap_or("nothing"),
    );
}

#[test]
fn the_schema_is_what_the_code_says() {
    let text = serde_json::to_string_pretty(&schema()).expect("serialises") + "\n";
    holds("docs/sweep.schema.json", &text);
    let ran = common::Workshop::new("").run(&["schema"]).expect(0);
    assert_eq!(ran.out, text);
}

#[test]
fn the_documentation_is_what_the_code_says() {
    let committed = std::fs::read_to_string(path("docs/sweep-file.md")).expect("a file");
    let (written, _) = committed.split_once(MADE).expect("the line below which all is made");
    holds("docs/sweep-file.md", &format!("{written}{MADE}\n{}", reference()));
    let ran = common::Workshop::new("").run(&["schema", "--markdown"]).expect(0);
    assert_eq!(ran.out, reference());
    for key in KEYS.iter().copied().flatten() {
        let name = key.path.rsplit_once('.').map_or(key.path, |(_, name)| name);
        assert!(ran.out.contains(&format!("| `{name}`")), "{}", key.path);
    }
}

/// What keeps `value` from fitting `schema`, where. Knows the words that our schema uses, and no others.
#[expect(clippy::too_many_lines, reason = "one arm for each word of the schema")]
fn refused(root: &Json, schema: &Json, value: &Json, place: &str) -> Option<String> {
    let object = schema.as_object().expect("a schema is an object");
    for (word, rule) in object {
        let wrong = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => None,
            "$ref" => {
                let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).expect("a local reference");
                let inner = root.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
                refused(root, inner, value, place)
            }
            "type" => {
                let fits = match rule.as_str().expect("a type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    other => panic!("type {other}"),
                };
                (!fits).then(|| format!("is not of type {rule}"))
            }
            "enum" => (!rule.as_array().expect("a list").contains(value)).then(|| format!("is not one of {rule}")),
            "const" => (rule != value).then(|| format!("is not {rule}")),
            "minimum" => value
                .as_f64()
                .is_some_and(|number| number < rule.as_f64().expect("a number"))
                .then(|| format!("is below {rule}")),
            "maximum" => value
                .as_f64()
                .is_some_and(|number| number > rule.as_f64().expect("a number"))
                .then(|| format!("is above {rule}")),
            "exclusiveMinimum" => value
                .as_f64()
                .is_some_and(|number| number <= rule.as_f64().expect("a number"))
                .then(|| format!("is not above {rule}")),
            "exclusiveMaximum" => value
                .as_f64()
                .is_some_and(|number| number >= rule.as_f64().expect("a number"))
                .then(|| format!("is not below {rule}")),
            "maxLength" => value
                .as_str()
                .is_some_and(|text| text.chars().count() as u64 > rule.as_u64().expect("a number"))
                .then(|| "is too long".to_owned()),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().expect("a pattern")).expect("a regular expression");
                value.as_str().is_some_and(|text| !pattern.is_match(text)).then(|| format!("does not match {rule}"))
            }
            "minItems" => value
                .as_array()
                .is_some_and(|list| (list.len() as u64) < rule.as_u64().expect("a number"))
                .then(|| "has too few items".to_owned()),
            "minProperties" => value
                .as_object()
                .is_some_and(|map| (map.len() as u64) < rule.as_u64().expect("a number"))
                .then(|| "has too few keys".to_owned()),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .find_map(|(index, item)| refused(root, rule, item, &format!("{place}[{index}]"))),
            "required" => rule
                .as_array()
                .expect("a list")
                .iter()
                .find(|name| value.as_object().is_some_and(|map| !map.contains_key(name.as_str().expect("a name"))))
                .map(|name| format!("lacks {name}")),
            "properties" => rule.as_object().expect("a map").iter().find_map(|(name, inner)| {
                value.get(name).and_then(|value| refused(root, inner, value, &format!("{place}.{name}")))
            }),
            "patternProperties" => patterns(Some(rule)).into_iter().find_map(|(pattern, inner)| {
                let named = value.as_object().into_iter().flatten().filter(|(name, _)| pattern.is_match(name));
                let mut wrong =
                    named.filter_map(|(name, value)| refused(root, &inner, value, &format!("{place}.{name}")));
                wrong.next()
            }),
            "additionalProperties" => {
                assert_eq!(rule, &json!(false));
                let known = object["properties"].as_object().expect("a map");
                let patterns = patterns(object.get("patternProperties"));
                value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .find(|(name, _)| {
                        !known.contains_key(*name) && !patterns.iter().any(|(pattern, _)| pattern.is_match(name))
                    })
                    .map(|(name, _)| format!("has the unknown key {name}"))
            }
            "anyOf" | "oneOf" => {
                let tried: Vec<_> =
                    rule.as_array().expect("a list").iter().map(|inner| refused(root, inner, value, place)).collect();
                let fitting = tried.iter().filter(|tried| tried.is_none()).count();
                let fits = if word == "oneOf" { fitting == 1 } else { fitting > 0 };
                (!fits).then(|| {
                    format!(
                        "fits {fitting} of {}: {}",
                        tried.len(),
                        tried.into_iter().flatten().collect::<Vec<_>>().join("; ")
                    )
                })
            }
            other => panic!("the schema has the word {other}, which this test does not know"),
        };
        if let Some(wrong) = wrong {
            return Some(if wrong.starts_with('.') { wrong } else { format!("{place} {wrong}") });
        }
    }
    None
}

/// The patterns of names that a schema knows, each with what they hold.
fn patterns(rule: Option<&Json>) -> Vec<(Regex, Json)> {
    let map = rule.and_then(Json::as_object).cloned().unwrap_or_default();
    map.into_iter().map(|(name, inner)| (Regex::new(&name).expect("a regular expression"), inner)).collect()
}

/// What keeps the text of a sweep file from fitting the schema.
fn refused_text(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().expect("TOML");
    let schema = schema();
    refused(&schema, &schema, &serde_json::to_value(table).expect("JSON"), "")
}

#[test]
fn every_shipped_sweep_fits_the_schema() {
    let mut count = 0;
    for entry in std::fs::read_dir(path("sweeps")).expect("a folder") {
        let file = entry.expect("an entry").path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&file).expect("a text");
            assert_eq!(refused_text(&text), None, "{}", file.display());
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} sweeps");
}

#[test]
fn every_example_in_the_documentation_is_right() {
    let text = std::fs::read_to_string(path("docs/sweep-file.md")).expect("a file");
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let (block, _) = block.split_once("```").expect("an end");
        let named = if block.contains("name = \"") { block.to_owned() } else { format!("name = \"example\"\n{block}") };
        if let Err(errors) = Sweep::parse("example", &named, &Overrides::default()) {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("{}\n{named}", errors.join("\n"));
        }
        assert_eq!(refused_text(&named), None, "{named}");
        count += 1;
    }
    assert!(count >= 5, "only {count} examples");
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    for (text, wrong) in [
        ("", "lacks \"name\""),
        ("name = \"a/b\"", "does not match"),
        ("name = \"a\"\nnmae = \"b\"", "unknown key nmae"),
        ("name = \"a\"\n[socket]\nrcvbuff = 1", "unknown key rcvbuff"),
        ("name = \"a\"\n[workload]\nkind = \"strem\"", "is not one of"),
        ("name = \"a\"\n[run]\nrepeat = 0", "is below"),
        ("name = \"a\"\n[run]\nrepeat = { min = 5, max = 20, precision = \"2%\", confidence = 1 }", "is not below"),
        ("name = \"a\"\n[axes]\nrcvbuf = []", "too few items"),
        ("name = \"a\"\n[axes]\nrcvbuf = 1", "fits 0 of 2"),
        ("name = \"a\"\n[axes]\nrcvbuf = { from = 1, to = 2 }", "fits 0 of 2"),
        ("name = \"a\"\n[axes]\nrcvbuf = { from = 1, to = 2, step = 1, factor = 2 }", "fits 0 of 2"),
        ("name = \"a\"\n[axes]\nnodelay = { from = 1, to = 2, step = 1 }", "is not of type"),
        ("name = \"a\"\n[[include]]\nrcvbuf = [1]", "fits 0 of"),
        ("name = \"a\"\n[zip]\nrcvbuf = [1]", "is not of type"),
    ] {
        let refused = refused_text(text).unwrap_or_else(|| panic!("{text} fits"));
        assert!(refused.contains(wrong), "{text}: {refused}");
    }
    let right = "name = \"a\"\npreset = \"none\"\n[axes]\n\"socket.client.rcvbuf\" = [1, { from = \"1KiB\", to = 4096, factor = 1.5 }, \"default\"]\nlink.mtu = [1500]\n";
    assert_eq!(refused_text(right), None);
}

#[test]
fn the_schema_takes_what_the_program_takes() {
    let words = [
        "default",
        "64KiB",
        "64 KiB",
        // Of a size with its unit the schema knows the form, and only the program the bounds: no sample is beyond those.
        "1.5KiB",
        "64K",
        "1_000B",
        "1s",
        "10ms",
        "1m 30s",
        "1.5s",
        "180",
        "s",
        "",
        " ",
        "tcp",
        "sctp",
        "veth",
        "one-to-many",
        "erlang-otp-27",
        "none",
        "true",
        "-1",
        "1.5",
        "debian:6.1",
    ];
    let samples: Vec<Value> = [true, false]
        .map(Value::Bool)
        .into_iter()
        .chain([0, 1, 68, 1500, 70_000, 1_000_001, 1 << 40].map(Value::Int))
        .chain(words.map(|word| Value::Text(word.to_owned())))
        .collect();
    let root = schema();
    let own = KEYS.iter().copied().flatten().map(|key| (key.path, key.kind));
    for (path, kind) in own.chain(RUN_KEYS.iter().map(|key| (key.path, key.kind))) {
        // A key for one end has the schema of the key for both.
        let both = path.replacen(".client.", ".", 1).replacen(".server.", ".", 1);
        let values = &root["$defs"]["values"];
        let schema = values.get(path).unwrap_or(&values[both]);
        for sample in &samples {
            let taken = kind.check(sample).is_ok();
            let json = serde_json::to_value(sample).expect("JSON");
            assert_eq!(refused(&root, schema, &json, path).is_none(), taken, "{path} and {sample:?}");
        }
    }
}

/// Each key is named in a test that measures cells on a kernel. What that test then looks at is for whoever reads it: this keeps a new key
/// from being forgotten, and no more.
#[test]
fn every_key_is_named_in_a_test_that_measures() {
    let mut sources = String::new();
    for folder in ["tests", "tests/sockets", "tests/virtual_cells"] {
        for entry in std::fs::read_dir(path(folder)).expect("a folder") {
            let file = entry.expect("an entry").path();
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let measures =
                folder != "tests" || ["native", "virtual", "guest"].iter().any(|start| name.starts_with(start));
            if measures && file.extension().is_some_and(|extension| extension == "rs") {
                sources += &std::fs::read_to_string(&file).expect("a source");
            }
        }
    }
    // Lines of a sweep file stand in texts, where a line ends with the two characters of an escape.
    let sources = sources.replace("\\n", " ");
    let words: BTreeSet<&str> = sources.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let keys = KEYS.iter().copied().flatten().filter_map(|key| key.path.rsplit('.').next());
    let missing: BTreeSet<&str> = keys.filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "no test that measures names {missing:?}");
}
