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
