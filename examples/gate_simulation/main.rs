//! How often `sweep gate` cries wolf, and how often it misses: thousands of gates over 40 cells on made-up figures, and on figures that
//! were recorded natively (`native_noise.json`, see `record.sh` beside it). Every run of it prints the same figures.
//!
//!     just gate-simulation [GATES]
//!
//! And how well a median is known where a cell is repeated until it is known well enough (`precision.rs`).
//!
//! It ends with exit code 1 if gates over cells that did not change alarm in more than 1 %, for those kinds of noise of which
//! docs/gate.md says that they do not.

mod precision;

use std::collections::BTreeMap;
use std::process::ExitCode;

use rand::rngs::ChaCha8Rng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use sweep::gate::{BASELINE_FORMAT, Baseline, BaselineCell, Environment, Judgement, Metric, Overall, Rules, Verdict};
use sweep::measurement::Outcome;
use sweep::settings::{Axes, Clock, Value};

const CELLS: usize = 40;
/// Repeats of the baseline and of the run. Five are the default of a run.
const COUNTS: [(usize, usize); 6] = [(20, 5), (40, 5), (8, 8), (20, 10), (20, 20), (40, 40)];
/// Gates of each row unless the command line says otherwise.
const GATES: u64 = 1000;
/// A real change, in the cell that has one.
const SLOWER: f64 = 1.10;

/// A kind of noise: the factor of one repeat. `progress` goes from 0 to 1 over a run, `run` is a standard normal number of the run's own.
struct Noise {
    name: &'static str,
    /// Whether docs/gate.md says that it raises no alarm.
    promised: bool,
    factor: fn(&mut ChaCha8Rng, progress: f64, run: f64) -> f64,
}

fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    rng.random_range(0.0..1.0)
}

/// A standard normal number (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

const NOISE: [Noise; 9] = [
    Noise { name: "normal, 1 %", promised: true, factor: |rng, _, _| 1.0 + 0.01 * normal(rng) },
    Noise { name: "normal, 2 %", promised: true, factor: |rng, _, _| 1.0 + 0.02 * normal(rng) },
    Noise { name: "normal, 5 %", promised: true, factor: |rng, _, _| 1.0 + 0.05 * normal(rng) },
    Noise {
        name: "heavy tail: 2 %, and one repeat in ten up to 5 times as long",
        promised: true,
        factor: |rng, _, _| {
            let tail = if uniform(rng) < 0.1 { 1.0 + 4.0 * uniform(rng).powi(2) } else { 1.0 };
            (1.0 + 0.02 * normal(rng)) * tail
        },
    },
    Noise { name: "log-normal, σ = 0.3", promised: true, factor: |rng, _, _| (0.3 * normal(rng)).exp() },
    Noise {
        name: "two modes: 2 %, and three repeats in ten 1.5 times as long",
        promised: true,
        factor: |rng, _, _| (1.0 + 0.02 * normal(rng)) * if uniform(rng) < 0.3 { 1.5 } else { 1.0 },
    },
    Noise {
        name: "drift: 2 %, and every run 4 % slower at its end than at its start",
        promised: true,
        factor: |rng, progress, _| (1.0 + 0.02 * normal(rng)) * (1.0 + 0.04 * progress),
    },
    Noise {
        name: "each run as a whole faster or slower: 2 %, σ of runs 2 %",
        promised: false,
        factor: |rng, _, run| (1.0 + 0.02 * normal(rng)) * (1.0 + 0.02 * run),
    },
    Noise {
        name: "each run as a whole faster or slower: 2 %, σ of runs 5 %",
        promised: false,
        factor: |rng, _, run| (1.0 + 0.02 * normal(rng)) * (1.0 + 0.05 * run).max(0.5),
    },
];

/// Figures as a baseline or a run of so many cells has them.
fn side(clock: Clock, cells: Vec<Vec<u64>>) -> Baseline {
    let cells = cells.into_iter().enumerate().map(|(index, figures)| BaselineCell {
        cell: format!("{index:016x}"),
        axes: Axes(vec![("chunk_count".to_owned(), Value::Int(index as u64 + 1))]),
        outcome: Outcome::Measured,
        reason: None,
        image: "host".to_owned(),
        kernel: Some("6.18".to_owned()),
        clock,
        machine: if clock == Clock::Virtual { "guest:tcg" } else { "native" }.to_owned(),
        figures: BTreeMap::from([(Metric::Completion.field().to_owned(), figures.into_iter().map(Some).collect())]),
        metrics: BTreeMap::new(),
    });
    Baseline {
        format: BASELINE_FORMAT,
        sweep: "simulation".to_owned(),
        started: jiff::Timestamp::UNIX_EPOCH,
        accepted: Vec::new(),
        environment: Environment::default(),
        fixed: BTreeMap::new(),
        metrics: Vec::new(),
        cells: cells.collect(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds of moderate size")]
fn rounded(figure: f64) -> u64 {
    figure.round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and counts of moderate size")]
fn number(figure: u64) -> f64 {
    figure as f64
}

/// How a gate ended.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four things that are counted")]
struct Ended {
    /// It suspected a cell that did not change, before that was run again.
    suspected: bool,
    /// It called such a cell regressed.
    alarmed: bool,
    /// It withheld its verdict.
    withheld: bool,
    /// It found the cell that did change.
    found: bool,
    /// Repeats that cells were run again for, all together.
    again: usize,
}

/// One gate: a baseline, a run, and a run again of what looks worse. `changed` is the cell that is slower on purpose.
fn gate(before: &Baseline, after: &Baseline, changed: Option<usize>, again: impl FnOnce(usize) -> Baseline) -> Ended {
    let mut judged = Judgement::new(before, after, &Rules::default()).expect("both sides have completions");
    let wrong = |judged: &Judgement| {
        judged.cells.iter().enumerate().any(|(cell, of)| of.verdict == Verdict::Regressed && Some(cell) != changed)
    };
    let suspected = wrong(&judged);
    let mut cost = 0;
    if !judged.suspects().is_empty() {
        cost = judged.suspects().len() * judged.repeats_to_confirm();
        let again = again(judged.repeats_to_confirm());
        judged.confirm(before, &again);
    }
    Ended {
        suspected,
        alarmed: wrong(&judged),
        withheld: judged.overall() == Overall::NotJudged,
        found: changed.is_some_and(|cell| judged.cells[cell].verdict == Verdict::Regressed),
        again: cost,
    }
}

/// So many repeats of 40 cells with that noise, `slow` of them slower on purpose.
fn made_up(
    rng: &mut ChaCha8Rng,
    noise: &Noise,
    centres: &[f64],
    repeats: usize,
    run: f64,
    slow: Option<usize>,
) -> Baseline {
    let mut cells = vec![Vec::with_capacity(repeats); centres.len()];
    for repeat in 0..repeats {
        let progress = number(repeat as u64) / number(repeats.max(2) as u64 - 1);
        for (cell, centre) in centres.iter().enumerate() {
            let change = if Some(cell) == slow { SLOWER } else { 1.0 };
            cells[cell].push(rounded((centre * change * (noise.factor)(rng, progress, run)).max(1.0)));
        }
    }
    side(Clock::Real, cells)
}

fn on_made_up(noise: &Noise, seed: u64, counts: (usize, usize), real_change: bool) -> Ended {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // From 200 µs to 50 ms.
    let centres: Vec<f64> = (0..CELLS).map(|_| 200_000.0 * 250.0_f64.powf(uniform(&mut rng))).collect();
    let changed = real_change.then(|| rng.random_range(0..CELLS));
    let (first, second) = (normal(&mut rng), normal(&mut rng));
    let before = made_up(&mut rng, noise, &centres, counts.0, first, None);
    let after = made_up(&mut rng, noise, &centres, counts.1, second, changed);
    // The cells are run again right after the run, on a machine that is still as fast as it was.
    gate(&before, &after, changed, |repeats| made_up(&mut rng, noise, &centres, repeats, second, changed))
}

/// Recorded figures: for each run, for each of 40 cells, its repeats in their order.
type Recorded = Vec<Vec<Vec<u64>>>;

/// So many repeats of each cell of a recorded run, chosen anew for each cell from those that are left, in their order.
fn chosen(rng: &mut ChaCha8Rng, left: &mut [Vec<u64>], repeats: usize, slow: Option<usize>) -> Baseline {
    let cells = left.iter_mut().enumerate().map(|(cell, left)| {
        let mut places = (0..left.len()).sample(rng, repeats.min(left.len()));
        places.sort_unstable();
        let change = if Some(cell) == slow { SLOWER } else { 1.0 };
        let figures = places.iter().map(|&place| rounded(number(left[place]) * change)).collect();
        for &place in places.iter().rev() {
            left.remove(place);
        }
        figures
    });
    side(Clock::Real, cells.collect())
}

/// Both sides from one recorded run, or each from a run of its own.
fn on_recorded(recorded: &Recorded, seed: u64, counts: (usize, usize), real_change: bool, apart: bool) -> Ended {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let changed = real_change.then(|| rng.random_range(0..CELLS));
    let first = rng.random_range(0..recorded.len());
    let mut one = recorded[first].clone();
    let before = chosen(&mut rng, &mut one, counts.0, None);
    let mut other =
        if apart { recorded[(first + rng.random_range(1..recorded.len())) % recorded.len()].clone() } else { one };
    let after = chosen(&mut rng, &mut other, counts.1, changed);
    gate(&before, &after, changed, |repeats| chosen(&mut rng, &mut other, repeats, changed))
}

/// One repeat of 40 cells in virtual time, which is the same in every run.
fn on_virtual_time(seed: u64, change: Option<f64>) -> Ended {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let figures: Vec<u64> = (0..CELLS).map(|_| rounded(100_000.0 * 1e6_f64.powf(uniform(&mut rng)))).collect();
    let changed = change.map(|_| rng.random_range(0..CELLS));
    let mut after = figures.clone();
    if let Some((cell, change)) = changed.zip(change) {
        after[cell] = rounded(number(figures[cell]) * change);
    }
    let sides =
        [figures, after].map(|figures| side(Clock::Virtual, figures.into_iter().map(|figure| vec![figure]).collect()));
    let rules = Rules { max_regression: 0.0005, ..Rules::default() };
    let judged = Judgement::new(&sides[0], &sides[1], &rules).expect("both sides have completions");
    let regressed = |cell: usize| judged.cells[cell].verdict == Verdict::Regressed;
    Ended {
        suspected: false,
        alarmed: (0..CELLS).any(|cell| regressed(cell) && Some(cell) != changed),
        withheld: judged.overall() == Overall::NotJudged,
        found: changed.is_some_and(regressed),
        again: 0,
    }
}

/// Shares of gates, in percent.
struct Row {
    name: String,
    counts: String,
    suspected: f64,
    alarmed: f64,
    withheld: f64,
    found: f64,
    /// Repeats that a gate over unchanged cells runs again, in the mean.
    again: f64,
}

fn row(name: &str, counts: &str, gates: u64, one: impl Fn(u64, bool) -> Ended + Sync) -> Row {
    let all = |real_change: bool| -> Vec<Ended> {
        let first = if real_change { gates } else { 0 };
        (0..gates).into_par_iter().map(|seed| one(first + seed, real_change)).collect()
    };
    let share = |ended: &[Ended], of: fn(&Ended) -> bool| {
        100.0 * number(ended.iter().filter(|ended| of(ended)).count() as u64) / number(gates)
    };
    let (same, changed) = (all(false), all(true));
    let row = Row {
        name: name.to_owned(),
        counts: counts.to_owned(),
        suspected: share(&same, |ended| ended.suspected),
        alarmed: share(&same, |ended| ended.alarmed),
        withheld: share(&same, |ended| ended.withheld),
        found: share(&changed, |ended| ended.found),
        again: number(same.iter().map(|ended| ended.again as u64).sum()) / number(gates),
    };
    println!(
        "| {} | {} | {:.2} | {:.0} | {:.2} | {:.2} | {:.1} |",
        row.name, row.counts, row.suspected, row.again, row.alarmed, row.withheld, row.found
    );
    row
}

fn main() -> ExitCode {
    let gates = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(GATES);
    let recorded: Recorded = serde_json::from_str(include_str!("native_noise.json")).expect("the recorded noise");
    println!("{gates} gates a figure, {CELLS} cells each; shares in percent\n");
    println!(
        "| noise of a repeat | repeats, baseline / run | significant though unchanged | repeats run again | alarms though unchanged | withheld though unchanged | finds 10 % in one cell |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let mut broken = Vec::new();
    let mut keep = |row: &Row, promised: bool| {
        if promised && row.alarmed > 1.0 {
            broken.push(format!("{}, {}", row.name, row.counts));
        }
    };
    for noise in &NOISE {
        for counts in COUNTS {
            let names = format!("{} / {}", counts.0, counts.1);
            keep(
                &row(noise.name, &names, gates, |seed, change| on_made_up(noise, seed, counts, change)),
                noise.promised,
            );
        }
    }
    for (name, apart) in [("recorded natively, one run", false), ("recorded natively, two runs", true)] {
        for counts in COUNTS {
            let names = format!("{} / {}", counts.0, counts.1);
            keep(&row(name, &names, gates, |seed, change| on_recorded(&recorded, seed, counts, change, apart)), !apart);
        }
    }
    let virtual_time =
        row("virtual time, a change of 0.1 % against a threshold of 0.05 %", "1 / 1", gates, |seed, change| {
            on_virtual_time(seed, change.then_some(1.001))
        });
    keep(&virtual_time, true);
    if virtual_time.found < 100.0 || virtual_time.alarmed > 0.0 {
        broken.push("virtual time".to_owned());
    }
    precision::table(10 * gates);
    for broken in &broken {
        eprintln!("not as docs/gate.md says: {broken}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
