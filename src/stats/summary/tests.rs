//! Tests of the summaries.

use proptest::prelude::*;

use super::{Counts, select, summarise};
use crate::measurement::{Measurement, Outcome};
use crate::record::{Record, example};
use crate::settings::{Axes, Clock, Value};

fn without_figures(cell: &str, repeat: u32, outcome: Outcome, reason: &str) -> Record {
    Record { measurement: Measurement::without_figures(outcome, reason), ..example(cell, repeat, 1) }
}

#[test]
fn only_measured_repeats_have_figures_and_warm_ups_have_none() {
    let mut warmup = example("a", 0, 9_000_000);
    warmup.warmup = true;
    let mut late = example("a", 2, 7_000_000);
    late.measurement.outcome = Outcome::TimedOut;
    late.measurement.reason = Some("3 of 32 echoes had not arrived after 3m".into());
    let records = [warmup, example("a", 0, 1_000_000), example("a", 1, 2_000_000), late];
    let [summary] = &summarise(&records)[..] else { panic!("one cell") };
    let completion = summary.completion_ns.expect("two figures");
    assert_eq!((completion.count, completion.median, completion.max), (2, 1_500_000, 2_000_000));
    assert_eq!(summary.counts, Counts { measured: 2, timed_out: 1, ..Counts::default() });
    assert_eq!(summary.outcome.to_string(), "1 of 3 timed out");
    assert_eq!(select(&records, summary).len(), 3);
}

#[test]
fn a_cell_that_was_never_measured_has_no_figures_but_its_reasons() {
    let records = [
        without_figures("a", 0, Outcome::Skipped, "no sctp"),
        without_figures("a", 1, Outcome::Failed, "the guest panicked"),
        without_figures("a", 2, Outcome::Skipped, "no sctp"),
    ];
    let [summary] = &summarise(&records)[..] else { panic!("one cell") };
    assert_eq!((summary.completion_ns, summary.completion_spread, summary.goodput_bps), (None, None, None));
    assert_eq!(summary.outcome.to_string(), "1 of 3 failed", "the worst, not the most frequent");
    let reasons: Vec<_> = summary.reasons.iter().map(|reason| (reason.text.as_str(), reason.count)).collect();
    assert_eq!(reasons, [("no sctp", 2), ("the guest panicked", 1)]);
    assert_eq!(summarise(&records[..1])[0].outcome.to_string(), "skipped");
}

#[test]
fn buffers_are_those_of_the_first_repeat_with_the_largest_peak() {
    let (first, mut second) = (example("a", 0, 1_000_000), example("a", 1, 1_000_000));
    second.measurement.client.rcvbuf.peak = Some(9000);
    second.measurement.server.rcvbuf.end = Some(4000);
    let summary = summarise(&[second, first]).remove(0);
    assert_eq!(summary.client.rcvbuf.buffer.peak, Some(9000));
    assert!(!summary.client.rcvbuf.differs, "a peak may differ");
    assert_eq!((summary.server.rcvbuf.buffer.end, summary.server.rcvbuf.differs), (Some(2304), true));
    assert_eq!(summary.server.sndbuf.buffer.peak, None);
}

#[test]
fn kernels_and_clocks_are_kept_apart_but_a_machine_that_never_came_up_is_not() {
    let mut other = example("a", 0, 1_000_000);
    other.kernel.release = Some("6.1.0".into());
    let mut real = example("a", 0, 1_000_000);
    real.clock = Clock::Real;
    let mut never_up = without_figures("a", 1, Outcome::Failed, "the guest did not boot");
    never_up.kernel.release = None;
    let summaries = summarise(&[example("a", 0, 1_000_000), real.clone(), never_up.clone()]);
    let found: Vec<_> = summaries.iter().map(|summary| (summary.clock, summary.counts.total())).collect();
    assert_eq!(found, [(Clock::Real, 1), (Clock::Virtual, 2)]);
    // With two candidates nobody can tell which kernel it would have been.
    let records = [never_up, example("a", 0, 1_000_000), other];
    let summaries = summarise(&records);
    assert_eq!(summaries.len(), 3);
    for summary in &summaries {
        assert_eq!(select(&records, summary).len(), 1, "{:?}", summary.kernel);
    }
}

#[test]
fn cells_are_in_the_order_of_their_values() {
    let at =
        |cell: &str, value: Value| Record { axes: Axes(vec![("rcvbuf".into(), value)]), ..example(cell, 0, 1_000_000) };
    let records = [at("c", Value::kernel_default()), at("b", Value::Int(65536)), at("a", Value::Int(1024))];
    let cells: Vec<_> = summarise(&records).into_iter().map(|summary| summary.cell).collect();
    assert_eq!(cells, ["a", "b", "c"]);
    assert!(summarise(&[]).is_empty());
}

/// Repeats of a few cells with every kind of outcome, each repeat once, and the same in another order.
fn records_twice() -> impl Strategy<Value = (Vec<Record>, Vec<Record>)> {
    prop::collection::vec((0..3_u64, 0..5_u8, 1..1_000_000_u64), 0..30)
        .prop_map(|repeats| {
            let mut number = 0;
            repeats
                .into_iter()
                .map(|(cell, outcome, completion_ns)| {
                    number += 1;
                    let cell_id = format!("cell {cell}");
                    let outcome = Outcome::named(Outcome::NAMES[usize::from(outcome)]).expect("a name");
                    let mut record = if outcome == Outcome::Measured {
                        example(&cell_id, number, completion_ns)
                    } else {
                        without_figures(&cell_id, number, outcome, &completion_ns.to_string()[..1])
                    };
                    record.axes = Axes(vec![("rcvbuf".into(), Value::Int(cell))]);
                    record
                })
                .collect::<Vec<_>>()
        })
        .prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle()))
}

proptest! {
    #[test]
    fn summaries_do_not_depend_on_the_order_of_the_run((records, shuffled) in records_twice()) {
        prop_assert_eq!(summarise(&records), summarise(&shuffled));
    }

    #[test]
    fn every_repeat_counts_once((records, _) in records_twice()) {
        let summaries = summarise(&records);
        let total: u32 = summaries.iter().map(|summary| summary.counts.total()).sum();
        prop_assert_eq!(total as usize, records.len());
        for summary in summaries {
            let unmeasured: u32 = summary.reasons.iter().map(|reason| reason.count).sum();
            prop_assert_eq!(unmeasured + summary.counts.measured, summary.counts.total());
            prop_assert_eq!(summary.completion_ns.map_or(0, |figures| figures.count), u64::from(summary.counts.measured));
        }
    }
}
