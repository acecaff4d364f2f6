//! Tests of what is printed, as snapshots.

use insta::assert_snapshot;

use super::table;
use crate::explain::CellFindings;
use crate::measurement::{Buffer, Measurement, Outcome, Verdict};
use crate::record::{Record, example};
use crate::report::{CellReport, RunReport, show_cell};
use crate::settings::{Axes, Value};
use crate::stats::{select, summarise};

/// Three cells: one measured, one that timed out in part, one that the kernel refused.
fn records() -> Vec<Record> {
    let axes = |rcvbuf: Value| {
        Axes(vec![
            ("rcvbuf".into(), rcvbuf),
            ("nodelay".into(), Value::Bool(false)),
            ("chunk_size".into(), Value::Int(64)),
        ])
    };
    let mut records = Vec::new();
    for (repeat, completion_ns) in [(0, 4_670_470_000), (1, 4_690_000_000), (2, 4_670_470_000)] {
        records.push(Record { axes: axes(Value::Int(1024)), ..example("9f2c", repeat, completion_ns) });
        let mut room =
            Record { axes: axes(Value::Int(65536)), ..example("ab01", repeat, 202_346_000 + u64::from(repeat)) };
        let given = Buffer {
            asked: Some(65536),
            initial: Some(131_072),
            end: Some(131_072),
            peak: Some(131_072),
            verdict: Some(Verdict::Doubled),
        };
        room.measurement.client.rcvbuf = given.clone();
        room.measurement.server.rcvbuf = Buffer { peak: Some(262_144), ..given };
        if repeat == 1 {
            let reason = "3 of 32 echoes had not arrived after 3m";
            room.measurement =
                Measurement { delivered_bytes: Some(1856), ..Measurement::without_figures(Outcome::TimedOut, reason) };
        }
        records.push(room);
        records.push(Record {
            axes: axes(Value::kernel_default()),
            measurement: Measurement::without_figures(Outcome::Invalid, "EMSGSIZE: message too long"),
            ..example("cd02", repeat, 1)
        });
    }
    records
}

#[test]
fn a_table_of_a_run() {
    assert_snapshot!(table("sctp_rcvbuf", &summarise(&records()), &[], None));
}

#[test]
fn a_narrow_table_keeps_its_width() {
    let text = table("sctp_rcvbuf", &summarise(&records()), &[], Some(100));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(text.contains("EMSGSIZE"), "{text}");
}

#[test]
fn several_kernels_and_clocks_get_columns() {
    let mut records = records();
    for record in records.iter_mut().filter(|record| record.repeat == 1) {
        record.kernel.release = Some("6.1.0-44-amd64".into());
        record.clock = crate::settings::Clock::Real;
        record.machine = "native".into();
    }
    assert_snapshot!(table("sctp_rcvbuf", &summarise(&records), &[], None));
}

#[test]
fn a_missing_figure_is_never_a_zero() {
    let refused: Vec<_> = records().into_iter().filter(|record| record.cell == "cd02").collect();
    let text = table("s", &summarise(&refused), &[], None);
    let row = text.lines().last().expect("a row");
    assert!(row.contains('–') && !row.contains(" 0 "), "{row}");
    assert!(row.contains("EMSGSIZE"), "{row}");
    assert!(table("s", &[], &[], None).contains("no repeat has been run"));
}

#[test]
fn everything_about_a_cell() {
    let records = records();
    let summary = summarise(&records).into_iter().find(|summary| summary.cell == "ab01").expect("that cell");
    assert_snapshot!(show_cell(&summary, &select(&records, &summary), &CellFindings::default(), None));
}

#[test]
fn the_json_has_the_names_of_records() {
    let records = records();
    let cells = summarise(&records);
    let manifest = crate::record::example_manifest("sctp_rcvbuf");
    let json = serde_json::to_value(RunReport::new(&manifest, &cells, &[])).expect("JSON");
    assert_eq!(json["cells"][0]["completion_ns"]["median"], 4_670_470_000_u64);
    assert_eq!(json["cells"][0]["client"]["rcvbuf"]["final"], 2304);
    assert_eq!(json["cells"][2]["completion_ns"], serde_json::Value::Null);
    assert_eq!(json["cells"][1]["outcome"]["worst"], "timed-out");
    let repeats = select(&records, &cells[0]);
    let json =
        serde_json::to_value(CellReport { summary: &cells[0], findings: &CellFindings::default(), repeats: &repeats })
            .expect("JSON");
    assert_eq!(json["repeats"][1]["repeat"], 1);
}

// C48: the median of two modes is not shown alone.
#[test]
fn two_modes_are_told_below_the_table() {
    // Nagle's algorithm against delayed acknowledgements: nothing, or 40 ms.
    let completion = |repeat: u32| if repeat % 3 == 1 { 40_000_000 } else { 300_000 } + u64::from(repeat);
    let records: Vec<_> = (0..12).map(|repeat| example("a", repeat, completion(repeat))).collect();
    let text = table("modes", &summarise(&records), &[], None);
    assert!(text.contains("two modes: 8 near 300 µs, 4 near 40.0 ms"), "{text}");
    let one: Vec<_> = (0..12).map(|repeat| example("a", repeat, 300_000 + u64::from(repeat * 7 % 12))).collect();
    assert!(!table("one", &summarise(&one), &[], None).contains("note:"));
}
