//! Distributions: which share of repeats, or of chunks, was at most that slow.

use std::str::FromStr;

use super::canvas::{Canvas, Type, picture, px};
use super::error::PlotError;
use super::facts;
use super::heatmap::{in_title, lower, title};
use super::metric::Metric;
use super::options::PlotOptions;
use super::repeats::{by_cell, float};
use super::scale::Scale;
use super::sheet::{Legend, MARGIN, Sheet, line_colour};
use super::space::Space;
use super::text::{clean, width};
use super::unit::Unit;
use crate::measurement::{Number, Outcome};
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;
use crate::units::choice;

choice! {
    /// What a distribution is made of.
    Sample {
        /// The round trips of all chunks of all measured repeats.
        #[default] Chunks = "chunks",
        /// One figure of each measured repeat.
        Repeats = "repeats",
    }
}

impl FromStr for Sample {
    type Err = PlotError;

    fn from_str(typed: &str) -> Result<Self, PlotError> {
        Self::named(typed).ok_or_else(|| PlotError::unknown("sample", typed, Self::NAMES))
    }
}

/// Most lines on one picture: more cannot be told apart.
const MAX_LINES: usize = 6;
const SIZE: (i32, i32) = (900, 380);
const LETTERS: f64 = 11.0;

/// Draws distributions as an SVG with one line for each chosen cell: the share of the sample that is at most so large, on
/// a logarithmic axis where it spans more than a decade.
///
/// `chosen` are ids of cells or beginnings of ids. With none, up to six cells from the fastest to the slowest are taken.
/// The metric of the options is that of repeats; chunks always show their round trips.
///
/// # Errors
/// If there are no cells, an id names none, or none of the chosen has such figures.
pub fn distribution(
    manifest: &Manifest,
    cells: &[CellSummary],
    records: &[Record],
    chosen: &[String],
    sample: Sample,
    options: &PlotOptions,
) -> Result<String, PlotError> {
    if cells.is_empty() {
        return Err(PlotError::Empty);
    }
    let space = Space::of(manifest, cells);
    let repeats = by_cell(cells, records);
    let steps =
        |cell: usize| repeats.get(cell).map_or_else(Vec::new, |repeats| steps(repeats, sample, &options.metric));
    let lines: Vec<(String, Vec<(f64, f64)>)> = choose(cells, chosen)?
        .into_iter()
        .map(|cell| (name(&space, cell), steps(cell)))
        .filter(|(_, steps)| !steps.is_empty())
        .collect();
    let (what, named, unit) = match sample {
        Sample::Chunks => ("Round trips of chunks", lower("Round trips of chunks"), Unit::Nanoseconds),
        Sample::Repeats => (options.metric.title(), in_title(&options.metric), options.metric.unit()),
    };
    let Some(scale) = Scale::of(lines.iter().flat_map(|(_, steps)| steps.iter().map(|(figure, _)| *figure))) else {
        return Err(PlotError::NoFigures(match sample {
            Sample::Chunks => "round trips of chunks".to_owned(),
            Sample::Repeats => options.metric.name().to_owned(),
        }));
    };
    let share = match sample {
        Sample::Chunks => "the share of chunks that were back within a time",
        Sample::Repeats => "the share of repeats that had at most a figure",
    };
    let automatic =
        if chosen.is_empty() && lines.len() < cells.len() { ", from the fastest cell to the slowest" } else { "" };
    let sheet = Sheet {
        title: title(manifest, options, &format!("distribution of {named}")),
        facts: facts::all(manifest, cells, &space),
        legend: Legend::Lines {
            label: format!("Each line is {share}{automatic}"),
            names: lines.iter().map(|(name, _)| name.clone()).collect(),
        },
        marks: Vec::new(),
        notes: Vec::new(),
    };
    let left = MARGIN + 60;
    let laid = sheet.lay(left + SIZE.0 + MARGIN);
    let top = laid.head();
    let size = (i64::from(left + SIZE.0 + MARGIN), i64::from(top + SIZE.1 + 44 + laid.foot()));
    picture(size, options.theme, (&sheet.title, &sheet.facts.join(", ")), |canvas| {
        laid.draw_head(canvas);
        frame(canvas, &scale, unit, what, (left, top));
        for (index, (_, steps)) in lines.iter().enumerate() {
            let colour = line_colour(canvas, index);
            canvas.path(&stairs(steps, &scale, (left, top)), colour, 2);
        }
        laid.draw_foot(canvas, top + SIZE.1 + 44);
    })
}

/// The indexes of the chosen cells.
fn choose(cells: &[CellSummary], chosen: &[String]) -> Result<Vec<usize>, PlotError> {
    if chosen.is_empty() {
        let mut measured: Vec<usize> = (0..cells.len()).filter(|index| cells[*index].counts.measured > 0).collect();
        measured.sort_by_key(|index| cells[*index].completion_ns.map(|figures| figures.median));
        let last = measured.len().saturating_sub(1);
        let mut taken: Vec<usize> =
            (0..MAX_LINES).filter_map(|step| measured.get(last * step / (MAX_LINES - 1)).copied()).collect();
        taken.dedup();
        return Ok(taken);
    }
    let mut taken = by_id(cells, chosen)?;
    taken.truncate(MAX_LINES);
    Ok(taken)
}

/// The indexes of the cells of those ids, or beginnings of ids.
pub(super) fn by_id(cells: &[CellSummary], chosen: &[String]) -> Result<Vec<usize>, PlotError> {
    let mut taken = Vec::new();
    for typed in chosen {
        let found: Vec<usize> =
            (0..cells.len()).filter(|index| cells[*index].cell.starts_with(typed.as_str())).collect();
        if found.is_empty() {
            let known: Vec<_> = cells.iter().take(8).map(|cell| cell.cell.as_str()).collect();
            return Err(PlotError::unknown("cell", typed, &known));
        }
        taken.extend(found.into_iter().filter(|index| !taken.contains(index)).collect::<Vec<_>>());
    }
    Ok(taken)
}

/// A cell by what tells it from others.
pub(super) fn name(space: &Space, cell: usize) -> String {
    let places = space.places.get(cell).map_or(&[][..], Vec::as_slice);
    let varying = space.dimensions.iter().zip(places).filter(|(dimension, _)| dimension.values.len() > 1);
    let parts: Vec<_> = varying
        .filter_map(|(dimension, place)| Some(format!("{} {}", dimension.name, dimension.values.get(*place)?)))
        .collect();
    if parts.is_empty() { "the only cell".to_owned() } else { clean(&parts.join(", ")) }
}

/// Figures in order, each with the share that is at most as large.
fn steps(repeats: &[&Record], sample: Sample, metric: &Metric) -> Vec<(f64, f64)> {
    let measured = || repeats.iter().filter(|record| record.measurement.outcome == Outcome::Measured);
    let mut counted: Vec<(Number, u64)> = match sample {
        Sample::Repeats => measured().filter_map(|record| Some((metric.of(&record.measurement)?, 1))).collect(),
        Sample::Chunks => measured()
            .filter_map(|record| record.measurement.chunk_latency_ns.as_ref()?.unpack())
            .flat_map(|histogram| {
                histogram
                    .iter_recorded()
                    .map(|step| (Number::from(step.value_iterated_to()), step.count_at_value()))
                    .collect::<Vec<_>>()
            })
            .collect(),
    };
    counted.sort_unstable();
    let total = float(counted.iter().map(|(_, count)| count).sum());
    let mut below = 0;
    counted
        .into_iter()
        .map(|(figure, count)| {
            below += count;
            (figure.get(), float(below) / total)
        })
        .collect()
}

/// The line of a distribution: level up to a figure, and straight up there.
fn stairs(steps: &[(f64, f64)], scale: &Scale, (left, top): (i32, i32)) -> Vec<(i32, i32)> {
    let x = |figure: f64| left + px(scale.place(figure) * f64::from(SIZE.0));
    let y = |share: f64| top + SIZE.1 - px(share * f64::from(SIZE.1));
    let mut points = vec![(left, y(0.0))];
    let mut below = 0.0;
    for (figure, share) in steps {
        points.push((x(*figure), y(below)));
        points.push((x(*figure), y(*share)));
        below = *share;
    }
    points.push((left + SIZE.0, y(below)));
    points.dedup();
    points
}

/// Ticks, their lines, and the names of both axes.
fn frame(canvas: &mut Canvas<'_>, scale: &Scale, unit: Unit, what: &str, (left, top): (i32, i32)) {
    let (rule, text, muted) = (canvas.palette.rule, canvas.palette.text, canvas.palette.muted);
    for percent in [0, 25, 50, 75, 90, 100] {
        let y = top + SIZE.1 - SIZE.1 * percent / 100;
        canvas.line((left, y), (left + SIZE.0, y), rule, 1);
        canvas.text((left - 6, y), &format!("{percent} %"), Type::new(LETTERS, text).end());
    }
    for (value, label) in scale.ticks(unit, 8) {
        let x = left + px(scale.place(value) * f64::from(SIZE.0));
        canvas.line((x, top), (x, top + SIZE.1 + 4), rule, 1);
        let half = px(width(&label, LETTERS) / 2.0);
        canvas.text(
            (x.min(left + SIZE.0 + MARGIN - 4 - half), top + SIZE.1 + 13),
            &label,
            Type::new(LETTERS, text).middle(),
        );
    }
    canvas.line((left, top + SIZE.1), (left + SIZE.0, top + SIZE.1), muted, 1);
    let scaled = if scale.log { ", logarithmic" } else { "" };
    canvas.text((left, top + SIZE.1 + 34), &format!("{what}{scaled}"), Type::new(LETTERS, muted));
}
