//! Cells in a guest in virtual time, where what a setting does can be counted: the link and sysctls, buffers, and socket options that the
//! host's kernel may lack.

#[path = "../common/mod.rs"]
mod common;

mod buffers;
mod link;
mod sockets;

use std::collections::BTreeMap;

use common::Workshop;
use serde_json::Value;

/// The records of a sweep, run anew in a guest in virtual time, by the values of the axes joined with spaces.
fn run(sweep: &str) -> BTreeMap<String, Value> {
    let head = "name = \"cells\"\n[run]\nrepeat = 1\ntimeout = \"180s\"\n[kernel]\nclock = \"virtual\"\n";
    let workshop = Workshop::new(&format!("{head}{sweep}"));
    let ran = workshop.run(&["run", "sweep.toml", "--fresh", "--no-plot", "-j", "2"]);
    // Cells that have no figures are looked at one by one.
    assert!(matches!(ran.code, Some(0 | 3)), "{}\n{}", ran.out, ran.err);
    let records = workshop.records("latest");
    records.into_iter().map(|record| (place(&record), record)).collect()
}

fn place(record: &Value) -> String {
    let axes = record["axes"].as_object().expect("axes");
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    axes.values().map(shown).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no figure"))
}

#[track_caller]
fn measured(record: &Value) -> &Value {
    assert_eq!(record["outcome"], "measured", "{record}");
    record
}
