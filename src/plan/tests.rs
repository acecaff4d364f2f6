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

/// A sweep of a zip, two axes, exclusions and additions, and how many cells it has to have.
#[derive(Clone, Debug)]
struct Cases {
    rows: usize,
    nodelay: usize,
    counts: usize,
    /// For each exclusion: values on the zip, on `nodelay` and on the range, if it names any.
    excludes: Vec<[Option<usize>; 3]>,
    includes: usize,
}

impl Cases {
    fn text(&self, zip_first: bool) -> String {
        let list = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
        // The same size comes up in two rows at the sender: only rows have to differ.
        let zip = format!(
            "[[zip]]\nrcvbuf = [{}]\nsndbuf = [{}]\n",
            list(self.rows, &|row| (1000 + row).to_string()),
            list(self.rows, &|row| (2000 + row / 2).to_string())
        );
        let axes = format!(
            "[axes]\nnodelay = [{}]\nchunk_count = {{ from = 1, to = {}, step = 3 }}\n",
            list(self.nodelay, &|index| SWITCHES[index].to_owned()),
            1 + (self.counts - 1) * 3 + 2
        );
        let mut tables = if zip_first { vec![zip, axes] } else { vec![axes, zip] };
        for [row, nodelay, count] in &self.excludes {
            let row = row.map(|row| format!("rcvbuf = {}\n", 1000 + row));
            let nodelay = nodelay.map(|index| format!("nodelay = {}\n", SWITCHES[index]));
            let count = count.map(|index| format!("chunk_count = {}\n", 1 + 3 * index));
            tables.push("[[exclude]]\n".to_owned());
            tables.extend([row, nodelay, count].into_iter().flatten());
        }
        for include in 0..self.includes {
            tables.push(format!("[[include]]\nrcvbuf = {}\nsndbuf = 1\n", 5000 + include));
        }
        tables.concat()
    }

    /// Counted the plain way.
    fn cells(&self) -> usize {
        let mut cells = self.includes;
        for row in 0..self.rows {
            for nodelay in 0..self.nodelay {
                for count in 0..self.counts {
                    let out = self.excludes.iter().any(|exclude| {
                        let named = exclude.iter().zip([row, nodelay, count]);
                        named.into_iter().all(|(named, index)| named.is_none_or(|named| named == index))
                    });
                    cells += usize::from(!out);
                }
            }
        }
        cells
    }
}

fn cases() -> impl Strategy<Value = Cases> {
    (1usize..6, 1usize..=3, 1usize..6, 0usize..4)
        .prop_flat_map(|(rows, nodelay, counts, includes)| {
            let one = |length: usize| prop::option::of(0..length);
            let exclude = (one(rows), one(nodelay), one(counts))
                .prop_map(|(row, nodelay, count)| [row, nodelay, count])
                .prop_filter("it names something", |exclude| exclude.iter().any(Option::is_some));
            prop::collection::vec(exclude, 0..5).prop_map(move |excludes| Cases {
                rows,
                nodelay,
                counts,
                excludes,
                includes,
            })
        })
        .prop_filter("a cell is left", |cases| cases.cells() > 0)
}

proptest! {
    #[test]
    fn cells_are_counted_exactly_and_none_comes_twice(cases in cases()) {
        let text = cases.text(true);
        let sweep = Sweep::parse("t.toml", &format!("name = \"t\"\n{text}"), &Overrides::default()).expect("a sweep");
        let plan = Plan::new(&sweep);
        prop_assert_eq!(plan.cells.len(), cases.cells(), "{}", &text);
        prop_assert_eq!(sweep.cell_count(), cases.cells() as u64);
        prop_assert_eq!(sweep.grid_count(), (cases.rows * cases.nodelay * cases.counts) as u64);
        prop_assert_eq!(ids(&plan).len(), cases.cells(), "no cell comes twice");
        let places: HashSet<String> = plan.cells.iter().map(|cell| cell.axes.to_string()).collect();
        prop_assert_eq!(places.len(), cases.cells());
        for cell in &plan.cells {
            // Zipped axes moved together: row n is 1000 + n and 2000 + n / 2.
            let of = |name: &str| cell.axes.get(name).and_then(crate::settings::Value::int).expect("a number");
            let (rcvbuf, sndbuf) = (of("rcvbuf"), of("sndbuf"));
            prop_assert!(sndbuf == 1 && rcvbuf >= 5000 || sndbuf == 2000 + (rcvbuf - 1000) / 2);
        }
        let manifest = serde_json::to_string(&sweep).expect("serialises");
        let stored: Sweep = serde_json::from_str(&manifest).expect("parses");
        prop_assert_eq!(Plan::new(&stored), plan, "the manifest holds all that is needed");
    }

    #[test]
    fn ids_do_not_depend_on_how_a_cell_was_written(cases in cases()) {
        let (one, other) = (plan(&cases.text(true)), plan(&cases.text(false)));
        prop_assert_eq!(ids(&one), ids(&other));
        // Each cell by itself, with every value fixed.
        for cell in one.cells.iter().take(3) {
            let fixed: Vec<String> = cell.axes.0.iter().map(|(name, value)| {
                let path = crate::settings::find(name).expect("a key").path;
                let value = if value.is_default() { "\"default\"".to_owned() } else { value.to_string() };
                format!("{path} = {value}\n")
            }).collect();
            prop_assert_eq!(plan(&fixed.concat()).cells[0].id, cell.id);
        }
    }
}

#[test]
fn a_preset_is_the_same_cell_as_its_settings_written_out() {
    let preset = plan("preset = \"erlang-otp-27\"\n[axes]\nnodelay = [true]\n");
    let written = plan(
        "[workload]\nprotocol = \"sctp\"\nstyle = \"one-to-many\"\n[socket]\nrcvbuf = 1024\nsndbuf = \"64KiB\"\nnodelay = true\n[socket.sctp]\nevents = \"all\"\n",
    );
    assert_eq!(preset.cells[0].id, written.cells[0].id);
}

#[test]
fn what_is_set_or_varied_wins_over_a_preset_key_by_key() {
    let of = |text: &str| {
        let cells = plan(text).cells;
        cells
            .iter()
            .map(|cell| [cell.settings.client.rcvbuf, cell.settings.client.sndbuf].map(|size| size.map(|size| size.0)))
            .collect::<Vec<_>>()
    };
    let set = of("preset = \"erlang-otp-27\"\n[socket]\nrcvbuf = 4096\n");
    assert_eq!(set, [[Some(4096), Some(65536)]], "the preset still sets the other");
    let varied = of("preset = \"erlang-otp-27\"\n[axes]\nrcvbuf = [4096, \"default\"]\n");
    assert_eq!(varied, [[Some(4096), Some(65536)], [None, Some(65536)]]);
    let axis = of("[socket.client]\nsndbuf = 8192\n[axes]\npreset = [\"erlang-otp-27\", \"erlang-otp-28\"]\n");
    assert_eq!(axis, [[Some(1024), Some(8192)], [None, Some(8192)]]);
}

#[test]
fn one_end_is_an_axis_beside_the_other() {
    let plan = plan("[axes]\n\"socket.server.rcvbuf\" = [1024, 2048]\nsocket.client.rcvbuf = [\"default\", 1024]\n");
    let ends = plan
        .cells
        .iter()
        .map(|cell| [&cell.settings.server, &cell.settings.client].map(|end| end.rcvbuf.map(|size| size.0)));
    let expected = [[Some(1024), None], [Some(1024), Some(1024)], [Some(2048), None], [Some(2048), Some(1024)]];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[test]
fn an_added_cell_takes_the_first_value_where_it_names_none() {
    let plan = plan(
        "[axes]\nnodelay = [true, false]\nrcvbuf = [1024, 2048]\n[[include]]\nrcvbuf = \"1MiB\"\n[[exclude]]\nnodelay = false\nrcvbuf = [1024, 2048]\n",
    );
    let axes: Vec<_> = plan.cells.iter().map(|cell| cell.axes.to_string()).collect();
    assert_eq!(axes, ["nodelay=on rcvbuf=1 KiB", "nodelay=on rcvbuf=2 KiB", "nodelay=on rcvbuf=1 MiB"]);
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

// C43
#[test]
fn what_is_sent_and_read_at_once_is_no_matter_of_buffers() {
    let plan = plan("[axes]\nsndbuf = [1024, \"4MiB\", \"default\"]\n\"workload.read_size\" = [64, 4096]\n");
    let sizes: HashSet<_> = plan.cells.iter().map(|cell| cell.settings.workload.chunk_bytes()).collect();
    assert_eq!(sizes.len(), 1, "a chunk is as large as it was asked to be, whatever the send buffer: {sizes:?}");
    let reads: HashSet<_> = plan.cells.iter().map(|cell| cell.settings.workload.read_size).collect();
    assert_eq!((reads.len(), ids(&plan).len()), (2, 6), "what is read at once is a parameter of its own");
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
