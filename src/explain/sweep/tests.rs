//! What separates the cells of a sweep.

use std::collections::BTreeMap;

use super::{ClearFrom, explain_sweep};
use crate::measurement::{Evidence, Switch};
use crate::record::{Record, example};
use crate::settings::{Axes, Value};
use crate::stats::summarise;

/// A grid of receive buffer and no-delay: below 8 KiB the timers run out.
fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for (number, rcvbuf) in [1024u64, 4096, 8192, 65536].into_iter().enumerate() {
        for nodelay in [false, true] {
            let stalls = rcvbuf < 8192;
            let completion = if stalls { 4_000_000_000 } else { 1_500_000 };
            let mut record = example(&format!("c{number}{nodelay}"), 0, completion);
            record.axes = Axes(vec![("rcvbuf".into(), Value::Int(rcvbuf)), ("nodelay".into(), Value::Bool(nodelay))]);
            let expired = u64::from(stalls) * 2;
            record.measurement.client.nodelay = Switch { asked: Some(nodelay), given: Some(nodelay) };
            record.measurement.client.evidence = Some(Evidence {
                counters: Some(BTreeMap::from([("SctpT3RtxExpireds".to_owned(), expired)])),
                ..Evidence::default()
            });
            records.push(record);
        }
    }
    records
}

#[test]
fn what_slow_cells_have_in_common_is_named_and_so_is_the_knee() {
    let records = records();
    let cells = summarise(&records);
    let sysctls = BTreeMap::new();
    let explained = explain_sweep(&cells, &records, |_| &sysctls);
    let group = explained.groups.iter().find(|group| group.name == "sctp-retransmission-timeout").expect("a group");
    assert_eq!((group.cells, group.of, group.rule.as_deref()), (4, 8, Some("rcvbuf ≤ 4 KiB")));
    assert_eq!(group.clear_from, [ClearFrom { axis: "rcvbuf".to_owned(), value: Value::Int(8192) }]);
    let knees: Vec<String> =
        explained.knees.iter().map(|knee| format!("{} {} {}", knee.axis, knee.value, knee.others)).collect();
    assert_eq!(knees, ["rcvbuf 8192 nodelay=off", "rcvbuf 8192 nodelay=on"]);
}

#[test]
fn two_axes_may_be_needed_and_what_no_two_separate_is_not_named() {
    let mut records = records();
    for record in &mut records {
        let both = record.axes.get("nodelay") == Some(&Value::Bool(false));
        if let Some(Evidence { counters: Some(counters), .. }) = &mut record.measurement.client.evidence
            && !both
        {
            counters.clear();
        }
    }
    let sysctls = BTreeMap::new();
    let rule = |records: &[Record]| {
        let explained = explain_sweep(&summarise(records), records, |_| &sysctls);
        explained.groups.into_iter().find(|group| group.name == "sctp-retransmission-timeout").expect("a group").rule
    };
    assert_eq!(rule(&records).as_deref(), Some("rcvbuf ≤ 4 KiB and nodelay off"));
    let stalled = |expired| {
        let counters = Some(BTreeMap::from([("SctpT3RtxExpireds".to_owned(), expired)]));
        Some(Evidence { counters, ..Evidence::default() })
    };
    let at = |record: &&mut Record| record.axes.get("rcvbuf") == Some(&Value::Int(1024));
    for record in records.iter_mut().filter(at) {
        record.measurement.client.evidence = stalled(1);
    }
    assert_eq!(rule(&records).as_deref(), Some("rcvbuf 1 KiB, or rcvbuf 4 KiB and nodelay off"));
    let last = records.last_mut().expect("a record");
    last.measurement.client.evidence =
        Some(Evidence { counters: Some(BTreeMap::from([("SctpT3RtxExpireds".to_owned(), 1)])), ..Evidence::default() });
    assert_eq!(rule(&records), None);
}

/// Pairs of buffers, each with no-delay off and on: up to 8 KiB of the first the timers run out.
fn pairs(sizes: &[(Value, Value)]) -> Vec<Record> {
    let mut records = Vec::new();
    for (rcvbuf, sndbuf) in sizes {
        for nodelay in [false, true] {
            let completion = if rcvbuf.int().is_some_and(|size| size < 8192) { 4_000_000_000 } else { 1_500_000 };
            let mut record = example(&format!("{rcvbuf}{sndbuf}{nodelay}"), 0, completion);
            record.axes = Axes(vec![
                ("rcvbuf".into(), rcvbuf.clone()),
                ("nodelay".into(), Value::Bool(nodelay)),
                ("sndbuf".into(), sndbuf.clone()),
            ]);
            records.push(record);
        }
    }
    records
}

#[track_caller]
fn knees(sizes: &[(Value, Value)], expected: &[&str]) {
    let records = pairs(sizes);
    let sysctls = BTreeMap::new();
    let explained = explain_sweep(&summarise(&records), &records, |_| &sysctls);
    let said = explained.knees.iter();
    let said = said.map(|knee| format!("{} {} ({}) {}", knee.axis, knee.value, knee.together, knee.others));
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

fn sizes(of: &[(u64, u64)]) -> Vec<(Value, Value)> {
    of.iter().map(|&(rcvbuf, sndbuf)| (Value::Int(rcvbuf), Value::Int(sndbuf))).collect()
}

#[test]
fn axes_that_move_together_bend_as_one() {
    let both = sizes(&[(1024, 2048), (4096, 8192), (8192, 16384), (65536, 131_072)]);
    let together = ["rcvbuf 8192 (sndbuf=16 KiB) nodelay=off", "rcvbuf 8192 (sndbuf=16 KiB) nodelay=on"];
    knees(&both, &together);
    // What is left to the kernel is so on both.
    let kernel_s = (Value::kernel_default(), Value::kernel_default());
    knees(&[&both[..], &[kernel_s]].concat(), &together);
    // An axis that goes along but does not tell them apart.
    knees(&sizes(&[(1024, 2048), (4096, 2048), (8192, 16384), (65536, 16384)]), &together);
}

#[test]
fn axes_that_move_against_each_other_or_by_themselves_do_not_bend_as_one() {
    // The one shrinks where the other grows: more of what?
    knees(&sizes(&[(1024, 131_072), (4096, 16384), (8192, 8192), (65536, 2048)]), &[]);
    // One size of the first stands beside two of the other.
    knees(&sizes(&[(1024, 2048), (4096, 8192), (65536, 2048), (65536, 131_072)]), &[]);
    // Left to the kernel on one of them only.
    let mut half = sizes(&[(1024, 2048), (4096, 8192), (8192, 16384)]);
    half.push((Value::kernel_default(), Value::Int(131_072)));
    knees(&half, &[]);
}
