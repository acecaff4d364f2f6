//! What every plan holds to.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{CellId, Plan, Run};
use crate::settings::Settings;
use crate::spec::{Overrides, Sweep};

fn plan(text: &str) -> Plan {
    Plan::new(&Sweep::parse("t.toml", &format!("name = \"t\"\n{text}"), &Overrides::default()).expect("a sweep"))
}

/// The lines of an axis over the first `count` of its values.
fn axis(name: &str, values: &[&str], count: usize) -> String {
    format!("{name} = [{}]\n", values[..count.min(values.len())].join(", "))
}

const BUFFERS: [&str; 4] = ["1024", "\"4KiB\"", "\"default\"", "65536"];
const SWITCHES: [&str; 3] = ["false", "true", "\"default\""];
const COUNTS: [&str; 3] = ["1", "32", "7"];

/// The text of a sweep, with its axes in the order given by `turn`.
fn text(lengths: [usize; 3], run: &str, turn: usize) -> String {
    let mut axes = [
        axis("rcvbuf", &BUFFERS, lengths[0]),
        axis("nodelay", &SWITCHES, lengths[1]),
        axis("chunk_count", &COUNTS, lengths[2]),
    ];
    axes.rotate_left(turn % 3);
    format!("[run]\n{run}\n[axes]\n{}", axes.concat())
}

fn ids(plan: &Plan) -> HashSet<CellId> {
    plan.cells.iter().map(|cell| cell.id).collect()
}

proptest! {
    #[test]
    fn every_repeat_of_every_cell_once_in_rounds(
        lengths in [1usize..=4, 1usize..=3, 1usize..=3],
        repeat in 1u32..6,
        warmup in 0u32..4,
        seed in any::<u64>(),
        listed in any::<bool>(),
    ) {
        let order = if listed { "listed" } else { "shuffled" };
        let run = format!("repeat = {repeat}\nwarmup = {warmup}\nseed = {seed}\norder = \"{order}\"");
        let plan = plan(&text(lengths, &run, 0));
        let cells = lengths.iter().product::<usize>();
        prop_assert_eq!(plan.cells.len(), cells);
        prop_assert_eq!(ids(&plan).len(), cells, "ids are unique");
        prop_assert_eq!(plan.runs.len(), cells * (repeat + warmup) as usize);
        for (round, runs) in (0..).zip(plan.runs.chunks(cells)) {
            let seen: HashSet<usize> = runs.iter().map(|run| run.cell).collect();
            prop_assert_eq!(seen.len(), cells, "a round holds each cell once");
            let expected = if round < warmup { (round, true) } else { (round - warmup, false) };
            prop_assert!(runs.iter().all(|run| (run.repeat, run.warmup) == expected));
            if listed {
                prop_assert!(runs.is_sorted_by_key(|run| run.cell));
            }
        }
    }

    #[test]
    fn the_seed_decides_the_order(lengths in [1usize..=4, 1usize..=3, 1usize..=3], seed in any::<u64>()) {
        let text = text(lengths, &format!("seed = {seed}"), 0);
        prop_assert_eq!(plan(&text), plan(&text));
    }

    #[test]
    fn ids_do_not_depend_on_the_order_of_axes_or_on_defaults_written_out(
        lengths in [1usize..=4, 1usize..=3, 1usize..=3],
        turn in 0usize..3,
    ) {
        let plain = text(lengths, "", 0);
        let turned = text(lengths, "repeat = 1\ntimeout = \"1s\"", turn);
        let explicit = format!(
            "{turned}[workload]\nkind = \"echo\"\nprotocol = \"tcp\"\nchunk_size = 64\nread_size = \"64KiB\"\n[link]\ntopology = \"veth\"\nmtu = \"default\"\n[kernel]\nimage = \"auto\"\n[socket]\nsndbuf = \"default\"\n"
        );
        prop_assert_eq!(ids(&plan(&plain)), ids(&plan(&explicit)));
    }
}

#[test]
fn the_default_length_of_a_stream_written_out_is_the_same_cell() {
    let stream = "[workload]\nkind = \"stream\"\n";
    let explicit = format!("{stream}duration = \"1000ms\"\nchunk_size = \"16KiB\"\n");
    assert_eq!(ids(&plan(stream)), ids(&plan(&explicit)));
    assert_ne!(ids(&plan(stream)), ids(&plan(&format!("{stream}bytes = 1024\n"))));
}

#[test]
fn ids_never_change() {
    assert_eq!(CellId::of(&Settings::default()).to_string(), "e3b0c44298fc1c14", "SHA-256 of nothing");
    let plan =
        plan("[workload]\nprotocol = \"sctp\"\nstyle = \"one-to-many\"\n[socket]\nrcvbuf = 1024\nsndbuf = \"64KiB\"\n");
    assert_eq!(plan.cells[0].id.to_string(), "07255995564d123e", "SHA-256 of its six settings, one a line");
}

#[test]
fn orders_never_change() {
    let plan = plan("[run]\nrepeat = 2\n[axes]\nchunk_count = [1, 2, 3, 4, 5, 6]\n");
    let order: Vec<usize> = plan.runs.iter().map(|run| run.cell).collect();
    assert_eq!(order, [3, 4, 5, 2, 0, 1, 4, 5, 3, 1, 0, 2]);
}

#[test]
fn the_last_axis_varies_fastest() {
    let plan = plan("[axes]\nrcvbuf = [1024, 2048]\nnodelay = [false, true]\n");
    let axes: Vec<_> = plan.cells.iter().map(|cell| cell.axes.to_string()).collect();
    assert_eq!(
        axes,
        ["rcvbuf=1 KiB nodelay=off", "rcvbuf=1 KiB nodelay=on", "rcvbuf=2 KiB nodelay=off", "rcvbuf=2 KiB nodelay=on"]
    );
}

#[test]
fn a_sweep_without_axes_has_one_cell() {
    let plan = plan("[run]\nrepeat = 1\n");
    assert_eq!(plan.runs, [Run { cell: 0, repeat: 0, warmup: false }]);
    assert_eq!(plan.cell(plan.cells[0].id), Some(&plan.cells[0]));
}

#[test]
fn the_more_specific_key_wins() {
    let plan = plan("[socket.client]\nrcvbuf = 4096\n[axes]\nrcvbuf = [1024, 2048]\n");
    for (cell, bytes) in plan.cells.iter().zip([1024, 2048]) {
        assert_eq!(cell.settings.client.rcvbuf.map(|bytes| bytes.0), Some(4096));
        assert_eq!(cell.settings.server.rcvbuf.map(|bytes| bytes.0), Some(bytes));
    }
}
