//! How often `sweep gate` cries wolf, and how often it misses: thousands of gates over 40 cells on made-up figures, and on figures that
//! were recorded natively (`native_noise.json`, see `record.sh` beside it). Every run of it prints the same figures.
//!
//!     just gate-simulation [GATES [PART OF A NOISE'S NAME [FILE FROM record.sh]]]
//!
//! And how well a median is known where a cell is repeated until it is known well enough (`precision.rs`).
//!
//! It ends with exit code 1 if gates over cells that did not change alarm in more than 1 %, or if a slow-down of 10 % is found in fewer
//! than 95 % for those kinds of noise of which docs/gate.md says that it is.

mod precision;

use std::collections::BTreeMap;
use std::process::ExitCode;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use sweep::gate::{
    BASELINE_FORMAT, Baseline, BaselineCell, Environment, Judgement, Metric, Overall, Round, Rules, TRIES, Verdict,
};
use sweep::measurement::Outcome;
use sweep::settings::{Axes, Clock, Value};

const CELLS: usize = 40;
/// Repeats of the baseline and of the run. Five are the default of a run.
const COUNTS: [(usize, usize); 6] = [(20, 5), (40, 5), (60, 5), (8, 8), (20, 10), (40, 40)];
/// Gates of each row unless the command line says otherwise.
const GATES: u64 = 1000;
/// Those that docs/gate.md advises.
const DEFAULT: (usize, usize) = (60, 5);
/// A real change, in the cell that has one.
const SLOWER: f64 = 1.10;
/// Real changes of several sizes.
const SIZES: [f64; 6] = [1.1, 1.2, 1.3, 1.5, 2.0, 3.0];
/// Where both sides of a recorded gate come from, and whether that is a run each.
const RECORDED: [(&str, bool); 2] = [("recorded natively, one run", false), ("recorded natively, two runs", true)];

/// A kind of noise: the factor of one repeat. `progress` goes from 0 to 1 over a run, `run` is a standard normal number of the run's own.
struct Noise {
    name: &'static str,
    /// Whether docs/gate.md says that a slow-down of 10 % is found.
    finds: bool,
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
    Noise { name: "normal, 1 %", finds: true, factor: |rng, _, _| 1.0 + 0.01 * normal(rng) },
    Noise { name: "normal, 2 %", finds: true, factor: |rng, _, _| 1.0 + 0.02 * normal(rng) },
    Noise { name: "normal, 5 %", finds: true, factor: |rng, _, _| 1.0 + 0.05 * normal(rng) },
    Noise {
        name: "heavy tail: 2 %, and one repeat in ten up to 5 times as long",
        finds: true,
        factor: |rng, _, _| {
            let tail = if uniform(rng) < 0.1 { 1.0 + 4.0 * uniform(rng).powi(2) } else { 1.0 };
            (1.0 + 0.02 * normal(rng)) * tail
        },
    },
    Noise { name: "log-normal, σ = 0.3", finds: false, factor: |rng, _, _| (0.3 * normal(rng)).exp() },
    Noise {
        name: "two modes: 2 %, and three repeats in ten 1.5 times as long",
        finds: true,
        factor: |rng, _, _| (1.0 + 0.02 * normal(rng)) * if uniform(rng) < 0.3 { 1.5 } else { 1.0 },
    },
    Noise {
        name: "drift: 2 %, and every run 4 % slower at its end than at its start",
        finds: true,
        factor: |rng, progress, _| (1.0 + 0.02 * normal(rng)) * (1.0 + 0.04 * progress),
    },
    Noise {
        name: "each run as a whole faster or slower: 2 %, σ of runs 2 %",
        finds: false,
        factor: |rng, _, run| (1.0 + 0.02 * normal(rng)) * (1.0 + 0.02 * run),
    },
    Noise {
        name: "each run as a whole faster or slower: 2 %, σ of runs 5 %",
        finds: false,
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

/// One gate: a baseline, a run, and rounds of running again what may be worse. `changed` is the cell that is slower on purpose.
fn gate(
    before: &Baseline,
    after: &Baseline,
    changed: Option<usize>,
    mut again: impl FnMut(&Round) -> Baseline,
) -> Ended {
    let mut judged = Judgement::new(before, after, &Rules::default()).expect("both sides have completions");
    let wrong = |judged: &Judgement| {
        judged.cells.iter().enumerate().any(|(cell, of)| of.verdict == Verdict::Regressed && Some(cell) != changed)
    };
    let suspected = wrong(&judged);
    let mut cost = 0;
    while let Some(round) = judged.round() {
        cost += round.cells.len() * round.repeats;
        judged.confirm(before, &round, &again(&round));
    }
    Ended {
        suspected,
        alarmed: wrong(&judged),
        withheld: judged.overall() == Overall::NotJudged,
        found: changed.is_some_and(|cell| judged.cells[cell].verdict == Verdict::Regressed),
        again: cost,
    }
}

/// A run, and where the gate judges nothing of it that run again, as the command does; each of so many repeats.
fn tries(repeats: usize, mut one: impl FnMut() -> Ended) -> Ended {
    let mut ended = one();
    for _ in 1..TRIES {
        if !ended.withheld {
            break;
        }
        let again = ended.again + CELLS * repeats;
        ended = one();
        ended.again += again;
    }
    ended
}

/// So many repeats of 40 cells with that noise, `slow` of them slower on purpose.
fn made_up(
    rng: &mut ChaCha8Rng,
    noise: &Noise,
    centres: &[f64],
    repeats: usize,
    run: f64,
    slow: Option<(usize, f64)>,
) -> Baseline {
    let mut cells = vec![Vec::with_capacity(repeats); centres.len()];
    for repeat in 0..repeats {
        let progress = number(repeat as u64) / number(repeats.max(2) as u64 - 1);
        for (cell, centre) in centres.iter().enumerate() {
            let change = slow.filter(|&(slow, _)| slow == cell).map_or(1.0, |(_, change)| change);
            cells[cell].push(rounded((centre * change * (noise.factor)(rng, progress, run)).max(1.0)));
        }
    }
    side(Clock::Real, cells)
}

fn on_made_up(noise: &Noise, seed: u64, counts: (usize, usize), change: Option<f64>) -> Ended {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // From 200 µs to 50 ms.
    let centres: Vec<f64> = (0..CELLS).map(|_| 200_000.0 * 250.0_f64.powf(uniform(&mut rng))).collect();
    let slow = change.map(|change| (rng.random_range(0..CELLS), change));
    let (first, second) = (normal(&mut rng), normal(&mut rng));
    let before = made_up(&mut rng, noise, &centres, counts.0, first, None);
    tries(counts.1, || {
        let after = made_up(&mut rng, noise, &centres, counts.1, second, slow);
        // The cells are run again right after the run, on a machine that is still as fast as it was.
        let again = |round: &Round| made_up(&mut rng, noise, &centres, round.repeats, second, slow);
        gate(&before, &after, slow.map(|(cell, _)| cell), again)
    })
}

/// Recorded figures in tenths of a microsecond: for each run, for each of 40 cells, its repeats in their order.
type Recorded = Vec<Vec<Vec<u64>>>;

/// Repeats of a recorded run, which are taken one after the other, those of all cells together as they were measured.
struct Tape<'a> {
    cells: &'a [Vec<u64>],
    /// The next repeat of each cell.
    next: Vec<usize>,
}

impl<'a> Tape<'a> {
    /// A recorded run from a moment on that leaves so many repeats.
    fn new(rng: &mut ChaCha8Rng, cells: &'a [Vec<u64>], repeats: usize) -> Self {
        let spare = cells[0].len().checked_sub(repeats).expect("as many repeats as a gate takes");
        Self { cells, next: vec![rng.random_range(0..=spare); cells.len()] }
    }

    /// The next so many repeats of these cells, one cell of them slower on purpose.
    fn take(&mut self, repeats: usize, of: impl Fn(usize) -> bool, slow: Option<(usize, f64)>) -> Baseline {
        let first = (0..CELLS).filter(|&cell| of(cell)).map(|cell| self.next[cell]).max().expect("a cell");
        let cells = (0..CELLS).map(|cell| {
            if !of(cell) {
                return Vec::new();
            }
            self.next[cell] = first + repeats;
            let change = slow.filter(|&(slow, _)| slow == cell).map_or(1.0, |(_, change)| change);
            let figures = &self.cells[cell][first..first + repeats];
            figures.iter().map(|&figure| rounded(100.0 * number(figure) * change)).collect()
        });
        side(Clock::Real, cells.collect())
    }
}

/// Both sides from one recorded run, one after the other, or each from a run of its own.
fn on_recorded(recorded: &Recorded, seed: u64, counts: (usize, usize), change: Option<f64>, apart: bool) -> Ended {
    /// Repeats of a cell that may be run again: to the last look, and beside controls.
    const AGAIN: usize = 160 + 20;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let slow = change.map(|change| (rng.random_range(0..CELLS), change));
    let first = rng.random_range(0..recorded.len());
    // One run leaves less for a baseline than 60, or than 40 against 40: as many as it has then do.
    let needed = counts.1 + AGAIN;
    let baseline = counts.0.min(recorded[first][0].len() - if apart { 0 } else { needed });
    let mut tape = Tape::new(&mut rng, &recorded[first], if apart { baseline } else { baseline + needed });
    let before = tape.take(baseline, |_| true, None);
    let second = (first + rng.random_range(1..recorded.len())) % recorded.len();
    let mut tried = 0;
    tries(counts.1, || {
        // One run is not long enough to be tried again after its baseline: another moment of it stands for that.
        if apart || tried > 0 {
            tape = Tape::new(&mut rng, &recorded[if apart { second } else { first }], needed);
        }
        tried += 1;
        let after = tape.take(counts.1, |_| true, slow);
        let id = |cell: usize| after.cells[cell].cell.clone();
        let again = |round: &Round| tape.take(round.repeats, |cell| round.cells.contains(&id(cell)), slow);
        gate(&before, &after, slow.map(|(cell, _)| cell), again)
    })
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

/// Shares of gates over unchanged cells, and of those over one that is slower, in percent.
struct Row {
    name: String,
    counts: String,
    alarmed: f64,
    found: f64,
}

/// A share of gates in percent.
fn share(ended: &[Ended], of: fn(&Ended) -> bool) -> f64 {
    100.0 * number(ended.iter().filter(|ended| of(ended)).count() as u64) / number(ended.len() as u64)
}

/// So many gates, each with a seed of its own.
fn gates_of(gates: u64, change: Option<f64>, one: &(impl Fn(u64, Option<f64>) -> Ended + Sync)) -> Vec<Ended> {
    let first = if change.is_some() { gates } else { 0 };
    (0..gates).into_par_iter().map(|seed| one(first + seed, change)).collect()
}

fn row(name: &str, counts: &str, gates: u64, change: f64, one: impl Fn(u64, Option<f64>) -> Ended + Sync) -> Row {
    let (same, changed) = (gates_of(gates, None, &one), gates_of(gates, Some(change), &one));
    let again = number(same.iter().map(|ended| ended.again as u64).sum()) / number(gates);
    let row = Row {
        name: name.to_owned(),
        counts: counts.to_owned(),
        alarmed: share(&same, |ended| ended.alarmed),
        found: share(&changed, |ended| ended.found),
    };
    println!(
        "| {name} | {counts} | {:.1} | {again:.0} | {:.1} | {:.1} | {:.1} |",
        share(&same, |ended| ended.suspected),
        row.alarmed,
        share(&same, |ended| ended.withheld),
        row.found
    );
    row
}

/// Prints how often changes of several sizes are found, by the default repeats.
fn sizes(name: &str, gates: u64, one: impl Fn(u64, Option<f64>) -> Ended + Sync) {
    let found = SIZES.map(|size| format!("{:.1}", share(&gates_of(gates, Some(size), &one), |ended| ended.found)));
    println!("| {name} | {} |", found.join(" | "));
}

fn main() -> ExitCode {
    let gates = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(GATES);
    let only = std::env::args().nth(2).unwrap_or_default();
    let noises = || NOISE.iter().filter(|noise| noise.name.contains(&only));
    let recordings = || RECORDED.into_iter().filter(|(name, _)| name.contains(&only));
    let recorded = std::env::args().nth(3).map_or_else(
        || include_str!("native_noise.json").to_owned(),
        |file| std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read `{file}`: {error}")),
    );
    let recorded: Recorded = serde_json::from_str(&recorded).expect("the recorded noise");
    println!("{gates} gates a figure, {CELLS} cells each; shares in percent\n");
    println!(
        "| noise of a repeat | repeats, baseline / run | significant though unchanged | repeats run again | alarms though unchanged | withheld though unchanged | finds 10 % in one cell |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let mut broken = Vec::new();
    let mut keep = |row: &Row, finds: bool| {
        // A cell of a restless machine moves in ways that a baseline of eight repeats does not tell.
        if row.alarmed > 1.0 && !(row.name.starts_with("recorded") && row.counts == "8 / 8") {
            broken.push(format!("{}, {}: alarms in {} %", row.name, row.counts, row.alarmed));
        }
        if finds && row.counts == format!("{} / {}", DEFAULT.0, DEFAULT.1) && row.found < 95.0 {
            broken.push(format!("{}, {}: finds in {} %", row.name, row.counts, row.found));
        }
    };
    for noise in noises() {
        for counts in COUNTS {
            let names = format!("{} / {}", counts.0, counts.1);
            let one = |seed, change| on_made_up(noise, seed, counts, change);
            keep(&row(noise.name, &names, gates, SLOWER, one), noise.finds);
        }
    }
    for (name, apart) in recordings() {
        for counts in COUNTS {
            let names = format!("{} / {}", counts.0, counts.1);
            let one = |seed, change| on_recorded(&recorded, seed, counts, change, apart);
            keep(&row(name, &names, gates, SLOWER, one), false);
        }
    }
    let name = "virtual time, a change of 0.1 % against a threshold of 0.05 %";
    let virtual_time = row(name, "1 / 1", gates, 1.001, on_virtual_time);
    keep(&virtual_time, false);
    if virtual_time.found < 100.0 || virtual_time.alarmed > 0.0 {
        broken.push("virtual time".to_owned());
    }
    println!("\nHow often a change is found by {} repeats against {}, by its size\n", DEFAULT.1, DEFAULT.0);
    println!("| noise of a repeat | {} |", SIZES.map(|size| format!("× {size}")).join(" | "));
    println!("| --- | {} |", SIZES.map(|_| "---:").join(" | "));
    for noise in noises() {
        sizes(noise.name, gates, |seed, change| on_made_up(noise, seed, DEFAULT, change));
    }
    for (name, apart) in recordings() {
        sizes(name, gates, |seed, change| on_recorded(&recorded, seed, DEFAULT, change, apart));
    }
    precision::table(10 * gates);
    for broken in &broken {
        eprintln!("not as docs/gate.md says: {broken}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
