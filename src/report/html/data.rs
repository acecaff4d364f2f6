//! What the page's script works on, in as few bytes as can be: a run may have a hundred thousand repeats.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::explain::{Finding, spoken};
use crate::measurement::{Measurement, Number, Outcome};
use crate::plot::colour::Map;
use crate::plot::repeats::{CellFigure, by_cell};
use crate::plot::scale::Scale;
use crate::plot::space::Space;
use crate::plot::why::{self, Why};
use crate::plot::{Direction, Metric, PlotOptions, Run, Stat, Unit, text, tile, tracks};
use crate::record::Record;
use crate::stats::{BufferSummary, CellSummary};
use crate::units::command_line;

use super::over_time;
use crate::report::words::{ended, known, not_precise};

/// Longest reason that is kept.
const MAX_REASON: usize = 2000;

#[derive(Serialize)]
struct Data<'a> {
    /// Axes, kernel and clock.
    dims: Vec<Dim<'a>>,
    /// The axes that the map begins with.
    x: Option<usize>,
    y: Option<usize>,
    metrics: Vec<MetricData<'a>>,
    /// Sizes of each unit and their names, the largest first.
    units: BTreeMap<&'static str, &'static [(f64, &'static str)]>,
    /// Colours from little to much.
    stops: Vec<String>,
    outcomes: Vec<&'static str>,
    /// From which spread on repeats are marked.
    wide: f64,
    /// Whether there are samples and too many cells for a chart of each.
    by_hand: bool,
    /// Each buffer once: asked, initial, final, peak, verdict, whether repeats differ.
    buffers: Vec<BufferRow>,
    /// Each reason once.
    reasons: Vec<String>,
    /// Each finding once: its name in words, the sentence, what to try, where it comes from.
    findings: Vec<FindingRow>,
    /// Each program that ran, once: which end, its command, how it ended, its last lines.
    programs: Vec<ProgramRow>,
    /// What the letters in cells stand for.
    letters: Vec<(char, String)>,
    cells: Vec<CellData<'a>>,
}

#[derive(Serialize)]
struct Dim<'a> {
    name: &'a str,
    about: &'static str,
    values: &'a [String],
}

#[derive(Serialize)]
struct MetricData<'a> {
    name: &'a str,
    title: &'a str,
    unit: &'static str,
    /// 1: more is worse; -1: more is better; 0: neither.
    worse: i8,
    /// The scale of maps and the one of lines, for the median, the smallest, the largest and the spread.
    scales: [(Option<ScaleData>, Option<ScaleData>); 4],
}

/// Ends of a scale, whether it is logarithmic, and round figures on it with what stands beside them.
#[derive(Serialize)]
struct ScaleData {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

type BufferRow = (Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<&'static str>, bool);

type FindingRow = (String, String, &'static str, &'static str);

#[derive(Serialize)]
struct CellData<'a> {
    id: &'a str,
    /// Index of its value on each dimension.
    at: &'a [usize],
    /// Index of its outcome, and the outcome in words.
    o: usize,
    w: String,
    /// Index of each reason and how often.
    r: Vec<(usize, u32)>,
    /// Median, smallest, largest of each metric.
    m: Vec<Option<(Number, Number, Number)>>,
    /// Indexes of buffers: receive and send of the client, then of the server.
    b: [usize; 4],
    /// Each repeat.
    n: Vec<RepeatData>,
    /// Each finding's place: why it is as it is.
    f: Vec<usize>,
    /// The letters of those that it waits for or is bounded by.
    l: &'a str,
    /// From this cell on, more does not help: the metric, and the dimension.
    k: Vec<(String, usize)>,
    /// Index of each program that ran in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p: Vec<usize>,
    /// Its buffers over time, where there are samples.
    s: Option<over_time::Chart>,
}

/// Which end, the command, and how it ended.
type ProgramRow = (&'static str, String, String);

/// Outcome, completion, goodput, and the median, 99th percentile and largest of the round trips of its chunks.
type RepeatData = (usize, Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<u64>);

const OUTCOMES: [Outcome; 6] =
    [Outcome::Measured, Outcome::TimedOut, Outcome::Invalid, Outcome::Skipped, Outcome::Failed, Outcome::Incomplete];

fn outcome(outcome: Outcome) -> usize {
    OUTCOMES.iter().position(|known| *known == outcome).unwrap_or(0)
}

/// The outcome of a cell, and whether its median is known well enough where that was asked for.
fn outcome_in_words(cell: &CellSummary) -> String {
    match &cell.precision {
        Some(reached) if reached.enough => format!("{}; the median is known to {}", cell.outcome, known(reached)),
        Some(reached) => format!("{}; {}", cell.outcome, not_precise(reached)),
        None => cell.outcome.to_string(),
    }
}

/// Keeps each value once and says where.
struct Once<T> {
    values: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T: Clone + Eq + std::hash::Hash> Once<T> {
    fn new() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }

    fn place(&mut self, value: T) -> usize {
        let next = self.values.len();
        let place = *self.places.entry(value.clone()).or_insert(next);
        if place == next {
            self.values.push(value);
        }
        place
    }
}

fn buffer(summary: &BufferSummary) -> BufferRow {
    let buffer = &summary.buffer;
    (
        buffer.asked,
        buffer.initial,
        buffer.end,
        buffer.peak,
        buffer.verdict.map(crate::measurement::Verdict::name),
        summary.differs,
    )
}

fn repeat(measurement: &Measurement) -> RepeatData {
    let chunks = measurement.chunk_latency_ns.as_ref();
    (
        outcome(measurement.outcome),
        measurement.completion_ns,
        measurement.goodput_bps,
        chunks.map(|chunks| chunks.p50),
        chunks.and_then(|chunks| chunks.p99),
        chunks.map(|chunks| chunks.max),
    )
}

/// Median, smallest and largest of a metric.
fn three(median: &CellFigure) -> (Number, Number, Number) {
    let [value, low, high] =
        [median.value, median.low, median.high].map(|figure| Number::new(figure).unwrap_or_default());
    (value, low, high)
}

/// The programs of a cell, each with every way in which its repeats ended.
fn programs(repeats: &[&Record]) -> impl Iterator<Item = ProgramRow> {
    let ends = |record: &&Record| {
        let Measurement { client, server, .. } = &record.measurement;
        [("client", client.program.clone()), ("server", server.program.clone())]
    };
    let ran = repeats.iter().flat_map(ends).filter_map(|(end, program)| Some((end, program?)));
    ran.map(|(end, program)| (end, text::clean(&command_line(&program.command)), ended(&program)))
}

impl<'a> MetricData<'a> {
    fn of(metric: &'a Metric, medians: &[Option<CellFigure>]) -> Self {
        Self {
            name: metric.name(),
            title: metric.title(),
            unit: metric.unit().name(),
            worse: match metric.direction() {
                Direction::WorseUp => 1,
                Direction::WorseDown => -1,
                Direction::Neutral => 0,
            },
            scales: STATS.map(|stat| scales(medians, metric, stat)),
        }
    }
}

const STATS: [Stat; 4] = [Stat::Median, Stat::Min, Stat::Max, Stat::Spread];

/// The scale of maps and the one of lines.
fn scales(medians: &[Option<CellFigure>], metric: &Metric, stat: Stat) -> (Option<ScaleData>, Option<ScaleData>) {
    let unit = crate::plot::repeats::unit(metric, stat);
    let figures: Vec<CellFigure> = medians.iter().flatten().filter_map(|median| median.with(stat)).collect();
    let data =
        |scale: Scale| ScaleData { low: scale.low, high: scale.high, log: scale.log, ticks: scale.ticks(unit, 5) };
    let map = Scale::of(figures.iter().map(|figure| figure.value));
    let line = Scale::of(figures.iter().flat_map(|figure| [figure.low, figure.value, figure.high]));
    (map.map(data), line.map(Scale::of_a_line).map(data))
}

/// The data as JSON that can stand in a page: nothing in it can end the block that it stands in.
pub(super) fn json(run: Run<'_>) -> String {
    let Run { manifest, cells, records, explained } = run;
    let space = Space::of(manifest, cells);
    let choice = space.choose(&PlotOptions::default()).ok();
    let repeats = by_cell(cells, records);
    let metrics: Vec<Metric> = Metric::all()
        .filter(|metric| !metric.name().starts_with("client-") && !metric.name().starts_with("server-"))
        .chain(Metric::printed(records))
        .filter(|metric| crate::plot::has_figures(records, metric))
        .collect();
    let medians: Vec<Vec<Option<CellFigure>>> = metrics
        .iter()
        .map(|metric| repeats.iter().map(|repeats| CellFigure::of(repeats, metric, Stat::Median)).collect())
        .collect();
    let (why, letters) = why::of(run, &Metric::COMPLETION, Stat::Median);
    let (of_goodput, _) = why::of(run, &Metric::GOODPUT, Stat::Median);
    let knees = |metric: &Metric, why: Option<&Why>| {
        let axes = why.map(|why| why.knees.clone()).unwrap_or_default();
        axes.into_iter()
            .filter_map(|name| Some((metric.name().to_owned(), space.dimensions.iter().position(|d| d.is(&name))?)))
            .collect::<Vec<_>>()
    };
    let mut buffers = Once::new();
    let mut reasons = Once::new();
    let mut findings = Once::new();
    let mut ran = Once::new();
    let sampled = cells.len() <= over_time::MOST_CELLS;
    let cells =
        cells.iter().zip(&repeats).zip(&space.places).enumerate().map(|(index, ((cell, repeats), at))| CellData {
            id: &cell.cell,
            at,
            o: outcome(cell.outcome.worst),
            w: outcome_in_words(cell),
            r: cell
                .reasons
                .iter()
                .map(|reason| {
                    let text: String = text::clean(&reason.text).chars().take(MAX_REASON).collect();
                    (reasons.place(format!("{}: {text}", tile::word(reason.outcome))), reason.count)
                })
                .collect(),
            m: medians.iter().map(|medians| medians.get(index)?.as_ref().map(three)).collect(),
            f: explained
                .cells
                .get(index)
                .map(|found| {
                    let place = |(often, found): (Option<String>, &Finding)| {
                        let name = spoken(found.name) + &often.map_or_else(String::new, |often| format!(", {often}"));
                        findings.place((name, found.sentence.clone(), found.advice, found.source))
                    };
                    found.all().map(place).collect()
                })
                .unwrap_or_default(),
            l: why.get(index).map_or("", |why| &why.letters),
            k: [knees(&Metric::COMPLETION, why.get(index)), knees(&Metric::GOODPUT, of_goodput.get(index))].concat(),
            b: [&cell.client.rcvbuf, &cell.client.sndbuf, &cell.server.rcvbuf, &cell.server.sndbuf]
                .map(|summary| buffers.place(buffer(summary))),
            n: repeats.iter().map(|record| repeat(&record.measurement)).collect(),
            p: {
                let mut places: Vec<usize> = programs(repeats).map(|program| ran.place(program)).collect();
                places.sort_unstable();
                places.dedup();
                places
            },
            s: tracks::of(manifest, cell, repeats).filter(|_| sampled).map(|tracks| over_time::Chart::of(&tracks)),
        });
    let cells = cells.collect();
    let data = Data {
        dims: space
            .dimensions
            .iter()
            .map(|dimension| Dim { name: &dimension.name, about: dimension.about, values: &dimension.values })
            .collect(),
        x: choice.as_ref().and_then(|choice| choice.x),
        y: choice.as_ref().and_then(|choice| choice.y),
        metrics: metrics.iter().zip(&medians).map(|(metric, medians)| MetricData::of(metric, medians)).collect(),
        units: [Unit::Nanoseconds, Unit::BitsPerSecond, Unit::Bytes, Unit::Count, Unit::Number, Unit::Share]
            .map(|unit| (unit.name(), unit.sizes()))
            .into(),
        stops: Map::Figures.stops().into_iter().map(crate::plot::colour::Rgb::css).collect(),
        outcomes: OUTCOMES.map(tile::word).into(),
        wide: tile::WIDE,
        by_hand: !sampled && records.iter().any(|record| record.measurement.client.samples.is_some()),
        buffers: buffers.values,
        reasons: reasons.values,
        findings: findings.values,
        programs: ran.values,
        letters: letters.iter().filter_map(|mark| mark.finding()).collect(),
        cells,
    };
    // Plain data: it cannot fail. A page without figures would still say where they come from.
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
