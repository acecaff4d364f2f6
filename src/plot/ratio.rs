//! Two runs, cell by cell: the second over the first.

use std::collections::HashMap;

use super::colour::Map;
use super::error::PlotError;
use super::facts;
use super::grid::Grid;
use super::heatmap::{direction, in_title, statistic};
use super::line::{self, Lines};
use super::map;
use super::metric::{Direction, Stat};
use super::options::PlotOptions;
use super::repeats::{CellFigure, by_cell};
use super::run::Run;
use super::scale::Scale;
use super::sheet::{Legend, Sheet};
use super::space::{Space, kernel_name};
use super::text::clean;
use super::tile::{Figure, Tile};
use super::unit::Unit;
use crate::settings::Clock;
use crate::stats::CellSummary;

/// What tells a cell from the others of its run. Two runs of one kernel each are compared across kernels.
type Key = (String, Option<String>, Option<Clock>);

/// Keys of cells, with the kernel and the clock only where they vary in both runs.
fn keys(cells: &[CellSummary], kernels: bool, clocks: bool) -> impl Iterator<Item = Key> + '_ {
    cells.iter().map(move |cell| {
        let axes = cell.axes.0.iter().filter(|(name, _)| kernels || !name.starts_with("kernel."));
        let axes: Vec<_> = axes.map(|(name, value)| format!("{name}={value:?}")).collect();
        (axes.join("\n"), kernels.then(|| kernel_name(cell)), clocks.then_some(cell.clock))
    })
}

fn varies<T: PartialEq>(cells: &[CellSummary], of: impl Fn(&CellSummary) -> T) -> bool {
    cells.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// Draws the ratio of two runs as an SVG, the second over the first: blue where the second is better, orange where it is
/// worse. Cells are matched by their values on the axes, and by kernel and clock where both runs have several.
///
/// # Errors
/// If the runs have no cell in common, or the options name an axis that the second run does not have.
pub fn ratio(first: Run<'_>, second: Run<'_>, options: &PlotOptions) -> Result<String, PlotError> {
    if first.cells.is_empty() || second.cells.is_empty() {
        return Err(PlotError::Empty);
    }
    let kernels = varies(first.cells, kernel_name) && varies(second.cells, kernel_name);
    let clocks = varies(first.cells, |cell| cell.clock) && varies(second.cells, |cell| cell.clock);
    // The range over the median has no meaning as a ratio of two runs.
    let stat = if options.stat == Stat::Spread { Stat::Median } else { options.stat };
    let figures = |run: Run<'_>| -> Vec<Option<CellFigure>> {
        by_cell(run.cells, run.records).iter().map(|repeats| CellFigure::of(repeats, &options.metric, stat)).collect()
    };
    let before: HashMap<Key, Option<CellFigure>> = keys(first.cells, kernels, clocks).zip(figures(first)).collect();
    let matched: Vec<Option<Option<CellFigure>>> =
        keys(second.cells, kernels, clocks).map(|key| before.get(&key).copied()).collect();
    if matched.iter().all(Option::is_none) {
        let axes = |run: Run<'_>| {
            Space::of(run.manifest, run.cells).dimensions.iter().map(|d| d.name.clone()).collect::<Vec<_>>().join(", ")
        };
        return Err(PlotError::NothingInCommon(axes(first), axes(second)));
    }
    let after = figures(second);
    let ratios: Vec<Option<f64>> = matched
        .iter()
        .zip(&after)
        .map(|(before, after)| {
            let (before, after) = ((*before)??, (*after)?);
            (before.value > 0.0 && after.value > 0.0).then(|| after.value / before.value)
        })
        .collect();
    let scale = Scale::of_ratios(ratios.iter().flatten().copied());
    let worse_down = options.metric.direction() == Direction::WorseDown;
    // Orange is worse, whichever way that is.
    let place = |ratio: f64| if worse_down { 1.0 - scale.place(ratio) } else { scale.place(ratio) };
    let space = Space::of(second.manifest, second.cells);
    let choice = space.choose(options)?;
    let grid = Grid::new(&space, &choice);
    let metric = options.metric.title();
    let of = statistic(stat, second.cells);
    let names = [first, second].map(|run| clean(&run.manifest.sweep.name));
    let title = options
        .title
        .as_deref()
        .map_or_else(|| format!("{}: {}, second run over first", names[1], in_title(&options.metric)), clean);
    let facts =
        [("first", first), ("second", second)].into_iter().flat_map(|(which, run)| described(which, run)).collect();
    if grid.is_line() {
        let figures: Vec<Option<CellFigure>> =
            matched.iter().zip(&after).map(|(before, after)| between(&(*before)??, after.as_ref()?)).collect();
        let better = direction(&options.metric, stat);
        let sheet = Sheet {
            title,
            facts,
            legend: Legend::Words(format!(
                "{metric}, {of}, second run over first{better}; band and bars: from smallest over largest repeat to largest \
                 over smallest"
            )),
            marks: Vec::new(),
            notes: Vec::new(),
        };
        let scale = Some(Scale::of_ratios(line::ends(&figures)).widened());
        let name = format!("{metric}, second over first");
        let lines = Lines {
            grid: &grid,
            cells: second.cells,
            figures: &figures,
            why: &[],
            scale,
            unit: Unit::Ratio,
            name: &name,
        };
        return line::draw(&lines, sheet, options.theme);
    }
    let tiles =
        second.cells.iter().zip(&ratios).zip(&matched).zip(&after).map(|(((cell, ratio), before), after)| {
            match (ratio, before, after) {
                (Some(ratio), _, Some(after)) => {
                    let figure = Figure::of(cell, after, place(*ratio), Unit::Ratio.forms(*ratio));
                    Tile::Figure(Figure { given: Vec::new(), ..figure })
                }
                (_, None, _) => Tile::Absent,
                (_, Some(None), Some(_)) => Tile::Without,
                _ => Tile::without_figure(cell),
            }
        });
    let words = match options.metric.direction() {
        Direction::WorseUp => "blue is less, which is better; orange is more, which is worse",
        Direction::WorseDown => "blue is more, which is better; orange is less, which is worse",
        Direction::Neutral => "blue is less, orange is more",
    };
    let legend_scale = if worse_down { Scale { low: scale.high, high: scale.low, log: true } } else { scale };
    let sheet = Sheet {
        title,
        facts,
        legend: Legend::Bar {
            label: format!("{metric}, {of}, second run over first: {words}"),
            scale: legend_scale,
            unit: Unit::Ratio,
            map: Map::Ratios,
        },
        marks: Vec::new(),
        notes: vec!["Marks are those of the second run.".to_owned()],
    };
    map::draw(&grid, (second.cells, &[]), tiles.collect(), sheet, Map::Ratios, options.theme)
}

/// The ratio of two figures, with the widest range that their repeats allow. `None` where it is not a positive number.
fn between(before: &CellFigure, after: &CellFigure) -> Option<CellFigure> {
    (before.low > 0.0 && after.low > 0.0).then(|| CellFigure {
        value: after.value / before.value,
        low: after.low / before.high,
        high: after.high / before.low,
        spread: None,
    })
}

/// A run in a line.
fn described(which: &str, run: Run<'_>) -> Vec<String> {
    let mut facts = vec![format!("{which}: {}, {}", clean(&run.manifest.sweep.name), facts::when(run.manifest))];
    facts.extend(facts::where_it_ran(run.cells));
    facts.push(facts::repeats(run.cells));
    facts
}
