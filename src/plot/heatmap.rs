//! The picture of one run: a map, or a line where one axis varies only.

use super::colour::Map;
use super::error::PlotError;
use super::facts;
use super::grid::Grid;
use super::line::{self, Lines};
use super::map;
use super::metric::{Direction, Metric, Stat};
use super::notes;
use super::options::PlotOptions;
use super::repeats::{CellFigure, by_cell, unit};
use super::run::Run;
use super::scale::Scale;
use super::sheet::{Legend, Sheet};
use super::space::Space;
use super::text::clean;
use super::tile::{Figure, Tile};
use super::unit::Unit;
use super::why;
use crate::measurement::Outcome;
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;

/// Whether any cell has a figure of that metric.
pub fn has_figures(records: &[Record], metric: &Metric) -> bool {
    let measured = records.iter().filter(|r| !r.warmup && r.measurement.outcome == Outcome::Measured);
    measured.into_iter().any(|record| metric.of(&record.measurement).is_some())
}

/// Draws a run as an SVG: a map of the two chosen axes with a small one for each value of the others, or a line where one
/// axis varies only.
///
/// # Errors
/// If there are no cells, or the options name an axis that the run does not have.
pub fn heatmap(run: Run<'_>, options: &PlotOptions) -> Result<String, PlotError> {
    let Run { manifest, cells, records, .. } = run;
    if cells.is_empty() {
        return Err(PlotError::Empty);
    }
    let space = Space::of(manifest, cells);
    let choice = space.choose(options)?;
    let grid = Grid::new(&space, &choice);
    let unit = unit(&options.metric, options.stat);
    let figures: Vec<Option<CellFigure>> =
        by_cell(cells, records).iter().map(|repeats| CellFigure::of(repeats, &options.metric, options.stat)).collect();
    let scale = Scale::of(figures.iter().flatten().map(|figure| figure.value));
    let of = statistic(options.stat, cells);
    let metric = options.metric.title();
    let (why, mut marks) = why::of(run, &options.metric, options.stat);
    // A cell that was measured and yet has no such figure shows no letters, and what none shows needs no words.
    let lettered = |letter: char| {
        let told = why.iter().zip(cells).zip(&figures);
        told.filter(|((_, cell), figure)| figure.is_some() || cell.counts.measured == 0)
            .any(|((why, _), _)| why.letters.contains(letter))
    };
    marks.retain(|mark| mark.finding().is_none_or(|(letter, _)| lettered(letter)));
    let notes = notes::letters(&marks).into_iter().chain(notes::reasons(cells)).collect();
    let mut sheet = Sheet {
        title: title(manifest, options, &in_title(&options.metric)),
        facts: facts::all(manifest, cells, &space),
        legend: Legend::Words(nothing(&options.metric, cells)),
        marks,
        notes,
    };
    let is_line = grid.is_line();
    if let Some(scale) = scale {
        let darker = darker(&options.metric, options.stat);
        sheet.legend = if is_line {
            let direction = direction(&options.metric, options.stat);
            Legend::Words(format!(
                "{metric}, {of}{direction}; band and bars reach from the smallest to the largest repeat"
            ))
        } else if figures.iter().flatten().count() == 1 {
            // One figure has nothing to be darker than.
            Legend::Words(format!("{metric}, {of}"))
        } else {
            Legend::Bar { label: format!("{metric}, {of}: {darker}"), scale, unit, map: Map::Figures }
        };
    }
    if is_line {
        let scale = Scale::of(line::ends(&figures)).map(Scale::of_a_line);
        let lines = Lines { grid: &grid, cells, figures: &figures, why: &why, scale, unit, name: metric };
        return line::draw(&lines, sheet, options.theme);
    }
    let tiles = cells.iter().zip(&figures).map(|(cell, figure)| match figure.as_ref().zip(scale) {
        Some((figure, scale)) => {
            Tile::Figure(Figure::of(cell, figure, scale.place(figure.value), unit.forms(figure.value)))
        }
        None => Tile::without_figure(cell),
    });
    map::draw(&grid, (cells, &why), tiles.collect(), sheet, Map::Figures, options.theme)
}

/// The title that was asked for, or one of sweep and metric.
pub(super) fn title(manifest: &Manifest, options: &PlotOptions, what: &str) -> String {
    options.title.as_deref().map_or_else(|| format!("{}: {what}", clean(&manifest.sweep.name)), clean)
}

/// A metric as part of a title: a sentence of ours begins small, a name of the user's is as they wrote it.
pub(super) fn in_title(metric: &Metric) -> String {
    if metric.is_printed() { metric.title().to_owned() } else { lower(metric.title()) }
}

/// With a small first letter.
pub(super) fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The statistic as part of a sentence: `median of 3 repeats`.
pub(super) fn statistic(stat: Stat, cells: &[CellSummary]) -> String {
    let totals = || cells.iter().map(|cell| cell.counts.total());
    let of = match (totals().min(), totals().max()) {
        (Some(1), Some(1)) => return "one repeat of each cell".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} repeats"),
        _ => "the repeats".to_owned(),
    };
    match stat {
        Stat::Median => format!("median of {of}"),
        Stat::Min => format!("smallest of {of}"),
        Stat::Max => format!("largest of {of}"),
        Stat::Mean => format!("mean of {of}"),
        Stat::Spread => format!("range of {of} over their median"),
    }
}

/// What a dark colour means.
pub(super) fn darker(metric: &Metric, stat: Stat) -> &'static str {
    match (stat, metric.unit(), metric.direction()) {
        (Stat::Spread, ..) => "darker is less certain",
        (_, Unit::Nanoseconds, Direction::WorseUp) if metric.name().starts_with("cpu") && !metric.is_printed() => {
            "darker is more work, which is worse"
        }
        (_, Unit::Nanoseconds, Direction::WorseUp) => "darker is slower, which is worse",
        (_, _, Direction::WorseUp) => "darker is more, which is worse",
        (_, Unit::BitsPerSecond, Direction::WorseDown) => "darker is faster, which is better",
        (_, _, Direction::WorseDown) => "darker is more, which is better",
        (_, _, Direction::Neutral) => "darker is larger",
    }
}

/// The same for a line.
pub(super) fn direction(metric: &Metric, stat: Stat) -> &'static str {
    match (stat, metric.direction()) {
        (Stat::Spread, _) | (_, Direction::WorseUp) => " (lower is better)",
        (_, Direction::WorseDown) => " (higher is better)",
        (_, Direction::Neutral) => "",
    }
}

/// Why there is no figure at all.
fn nothing(metric: &Metric, cells: &[CellSummary]) -> String {
    if cells.iter().all(|cell| cell.counts.measured == 0) {
        return "No cell was measured.".to_owned();
    }
    let what = metric.title();
    match metric.name() {
        "completion" => {
            format!(
                "No cell has a {}: a stream that is sent for a fixed time has none. Look at its goodput.",
                lower(what)
            )
        }
        name if name.starts_with("chunk") => {
            "No cell has round trips of chunks, or too few for this figure: only an echo has them.".to_owned()
        }
        _ if metric.is_printed() => format!("No repeat has a number for {what}."),
        _ => format!("{what} was not recorded in any cell."),
    }
}
