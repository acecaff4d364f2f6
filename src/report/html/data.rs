//! What the page's script works on, in as few bytes as can be: a run may have a hundred thousand repeats.

use std::collections::HashMap;

use serde::Serialize;

use crate::measurement::{Measurement, Outcome};
use crate::plot::colour::Map;
use crate::plot::repeats::{CellFigure, by_cell};
use crate::plot::space::Space;
use crate::plot::{Direction, Metric, PlotOptions, Stat, text, tile};
use crate::record::Record;
use crate::stats::{BufferSummary, CellSummary};

/// Longest reason that is kept.
const MAX_REASON: usize = 2000;

#[derive(Serialize)]
struct Data<'a> {
    /// Axes, kernel and clock.
    dims: Vec<Dim<'a>>,
    /// The axes that the map begins with.
    x: Option<usize>,
    y: Option<usize>,
    metrics: Vec<MetricData>,
    /// Colours from little to much.
    stops: Vec<String>,
    outcomes: Vec<&'static str>,
    /// From which spread on repeats are marked.
    wide: f64,
    /// Each buffer once: asked, initial, final, peak, verdict, whether repeats differ.
    buffers: Vec<BufferRow>,
    /// Each reason once.
    reasons: Vec<String>,
    cells: Vec<CellData<'a>>,
}

#[derive(Serialize)]
struct Dim<'a> {
    name: &'a str,
    about: &'static str,
    values: &'a [String],
}

#[derive(Serialize)]
struct MetricData {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    /// 1: more is worse; -1: more is better; 0: neither.
    worse: i8,
}

type BufferRow = (Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<&'static str>, bool);

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
    m: Vec<Option<(u64, u64, u64)>>,
    /// Indexes of buffers: receive and send of the client, then of the server.
    b: [usize; 4],
    /// Each repeat.
    n: Vec<RepeatData>,
}

/// Outcome, completion, goodput, and the median, 99th percentile and largest of the round trips of its chunks.
type RepeatData = (usize, Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<u64>);

const OUTCOMES: [Outcome; 6] =
    [Outcome::Measured, Outcome::TimedOut, Outcome::Invalid, Outcome::Skipped, Outcome::Failed, Outcome::Incomplete];

fn outcome(outcome: Outcome) -> usize {
    OUTCOMES.iter().position(|known| *known == outcome).unwrap_or(0)
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
fn figures(repeats: &[&Record], metric: Metric) -> Option<(u64, u64, u64)> {
    let figure = CellFigure::of(repeats, metric, Stat::Median)?;
    let [value, low, high] = [figure.value, figure.low, figure.high].map(crate::plot::whole);
    Some((value, low, high))
}

/// The data as JSON that can stand in a page: nothing in it can end the block that it stands in.
pub(super) fn json(cells: &[CellSummary], records: &[Record]) -> String {
    let space = Space::of(cells);
    let choice = space.choose(&PlotOptions::default()).ok();
    let repeats = by_cell(cells, records);
    let metrics: Vec<Metric> = Metric::all()
        .filter(|metric| !metric.name().starts_with("client-") && !metric.name().starts_with("server-"))
        .filter(|metric| crate::plot::has_figures(records, *metric))
        .collect();
    let mut buffers = Once::new();
    let mut reasons = Once::new();
    let cells = cells.iter().zip(&repeats).zip(&space.places).map(|((cell, repeats), at)| CellData {
        id: &cell.cell,
        at,
        o: outcome(cell.outcome.worst),
        w: cell.outcome.to_string(),
        r: cell
            .reasons
            .iter()
            .map(|reason| {
                let text: String = text::clean(&reason.text).chars().take(MAX_REASON).collect();
                (reasons.place(format!("{}: {text}", tile::word(reason.outcome))), reason.count)
            })
            .collect(),
        m: metrics.iter().map(|metric| figures(repeats, *metric)).collect(),
        b: [&cell.client.rcvbuf, &cell.client.sndbuf, &cell.server.rcvbuf, &cell.server.sndbuf]
            .map(|summary| buffers.place(buffer(summary))),
        n: repeats.iter().map(|record| repeat(&record.measurement)).collect(),
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
        metrics: metrics
            .iter()
            .map(|metric| MetricData {
                name: metric.name(),
                title: metric.title(),
                unit: metric.unit().name(),
                worse: match metric.direction() {
                    Direction::WorseUp => 1,
                    Direction::WorseDown => -1,
                    Direction::Neutral => 0,
                },
            })
            .collect(),
        stops: Map::Figures.stops().into_iter().map(crate::plot::colour::Rgb::css).collect(),
        outcomes: OUTCOMES.map(tile::word).into(),
        wide: tile::WIDE,
        buffers: buffers.values,
        reasons: reasons.values,
        cells,
    };
    // Plain data: it cannot fail. A page without figures would still say where they come from.
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
