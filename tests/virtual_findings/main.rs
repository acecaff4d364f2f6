//! Findings in virtual time: of each a cell that must have it and one alike that must not. The cases of the field that name a cause are among
//! them (C12, C16 to C18, C21, C25, C28, C31 to C36), and those that must have none.

#[path = "../common/mod.rs"]
mod common;

mod buffers;
mod link;
mod timers;

use std::collections::BTreeMap;

use common::Workshop;
use serde_json::Value;

/// One cell: its only record, and the sentences of its findings by their names.
struct Cell {
    record: Value,
    findings: BTreeMap<String, String>,
}

/// The cells of a sweep, by the values of the axes joined with spaces.
struct Cells(BTreeMap<String, Cell>);

/// Runs a sweep in a guest in virtual time, once for each cell, and explains it. `code` is how `sweep run` ends.
fn run_within(timeout: &str, code: i32, sweep: &str) -> Cells {
    let head = format!("name = \"why\"\n[run]\nrepeat = 1\ntimeout = \"{timeout}\"\n[kernel]\nclock = \"virtual\"\n");
    let workshop = Workshop::new(&format!("{head}{sweep}"));
    workshop.run(&["run", "sweep.toml", "--fresh", "-j", "2"]).expect(code);
    let explained = workshop.run(&["explain", "results/latest", "--json"]).expect(0);
    let explained: Value = serde_json::from_str(&explained.out).expect("JSON");
    let mut records: BTreeMap<String, Value> =
        workshop.records("latest").into_iter().map(|record| (text(&record["cell"]), record)).collect();
    let cell = |cell: &Value| {
        let findings = cell["findings"].as_array().expect("findings").iter();
        let findings = findings.map(|finding| (text(&finding["name"]), text(&finding["sentence"]))).collect();
        let record = records.remove(&text(&cell["cell"])).expect("a record");
        (place(&record), Cell { record, findings })
    };
    Cells(explained["cells"].as_array().expect("cells").iter().map(cell).collect())
}

fn run(sweep: &str) -> Cells {
    run_within("60s", 0, sweep)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn place(record: &Value) -> String {
    let axes = record["axes"].as_object().expect("axes");
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    axes.values().map(shown).collect::<Vec<_>>().join(" ")
}

impl Cells {
    #[track_caller]
    fn at(&self, place: &str) -> &Cell {
        self.0.get(place).unwrap_or_else(|| panic!("no {place} in {:?}", self.0.keys()))
    }

    /// The sentence of a finding that must be there.
    #[track_caller]
    fn says(&self, place: &str, name: &str) -> &str {
        let Cell { findings, record } = self.at(place);
        findings.get(name).unwrap_or_else(|| panic!("{place} has no {name}: {findings:?}, {record}"))
    }

    /// A finding must not be there.
    #[track_caller]
    fn silent(&self, place: &str, name: &str) {
        let Cell { findings, record } = self.at(place);
        assert!(!findings.contains_key(name), "{place}: {findings:?}, {record}");
    }

    /// No finding must be there.
    #[track_caller]
    fn nothing(&self, place: &str) {
        let Cell { findings, record } = self.at(place);
        assert_eq!(record["outcome"], "measured", "{place}");
        assert!(findings.is_empty(), "{place}: {findings:?}, {record}");
    }

    #[track_caller]
    fn number(&self, place: &str, pointer: &str) -> u64 {
        let value = self.at(place).record.pointer(pointer);
        value.and_then(Value::as_u64).unwrap_or_else(|| panic!("{place}: {pointer} is {value:?}"))
    }
}
