//! Lines: where only one axis varies, a figure for each of its values with the range of the repeats.

use super::axes;
use super::canvas::{Area, Canvas, Type, count, picture, px};
use super::error::PlotError;
use super::grid::{Grid, Panel};
use super::labels::SIZE;
use super::layout::{self, Layout};
use super::options::Theme;
use super::repeats::CellFigure;
use super::scale::Scale;
use super::sheet::{Mark, Sheet, line_colour};
use super::text::width;
use super::tile::{self, Side, Tile};
use super::unit::Unit;
use super::why::Why;
use crate::measurement::Outcome;
use crate::stats::CellSummary;

/// What is drawn.
pub(super) struct Lines<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) cells: &'a [CellSummary],
    pub(super) figures: &'a [Option<CellFigure>],
    pub(super) why: &'a [Why],
    /// Reaches beyond the range of every figure. `None` where there are none.
    pub(super) scale: Option<Scale>,
    pub(super) unit: Unit,
    /// What the axis upwards is called.
    pub(super) name: &'a str,
}

/// All that a line and its ranges reach.
pub(super) fn ends(figures: &[Option<CellFigure>]) -> impl Iterator<Item = f64> + '_ {
    figures.iter().flatten().flat_map(|figure| [figure.low, figure.value, figure.high])
}

/// Draws them.
pub(super) fn draw(lines: &Lines<'_>, mut sheet: Sheet, theme: Theme) -> Result<String, PlotError> {
    let Lines { grid, cells, figures, why, scale, unit, name } = *lines;
    let (x, said) = super::map::axis_labels(grid, cells, grid.x, |place| place);
    sheet.notes.splice(0..0, super::map::gets(said.iter().map(super::given::Given::verdict).collect()));
    for (cell, _) in cells.iter().zip(figures).filter(|(_, figure)| figure.is_none()) {
        Tile::without_figure(cell).marks(&mut sheet.marks);
    }
    if cells.iter().zip(figures).any(|(cell, figure)| figure.is_some() && is_partly(cell)) {
        sheet.marks.push(Mark::Partly);
    }
    if why.iter().zip(figures).any(|(why, figure)| figure.is_some() && !why.knees.is_empty()) {
        sheet.marks.push(Mark::Knee);
    }
    let ticks = scale.map_or_else(Vec::new, |scale| scale.ticks(unit, 6));
    let left = px(ticks.iter().map(|(_, label)| width(label, SIZE)).fold(0.0, f64::max)).max(30);
    let layout = Layout::new(grid, layout::LINE, &x, (left, &names(name, scale)));
    sheet.notes.splice(0..0, axes::meanings(&layout, grid));
    let laid = sheet.lay(layout.width);
    let top = laid.head();
    let size = (i64::from(layout.width), i64::from(top) + i64::from(layout.height) + i64::from(laid.foot()));
    picture(size, theme, (&sheet.title, &sheet.facts.join(", ")), |canvas| {
        laid.draw_head(canvas);
        axes::name_above(canvas, &layout, top);
        for (index, panel) in grid.panels.iter().enumerate() {
            let origin = layout.origin(index, top);
            axes::titles(canvas, &layout, panel, origin);
            if let Some(scale) = &scale {
                draw_panel(canvas, lines, panel, &layout, scale, (origin, layout.is_first(index)));
            }
            if layout.is_first(index) {
                axes::name_beside(canvas, &layout, origin);
            }
            if layout.is_last(index) {
                axes::beneath(canvas, &layout, &x, grid.x, (index, (origin.0, origin.1 + layout.panel().1)));
            }
        }
        laid.draw_foot(canvas, top + layout.height);
    })
}

/// What the axis upwards is called, the longest form first.
fn names(name: &str, scale: Option<Scale>) -> [String; 2] {
    let name = name.to_owned();
    [scale.map_or_else(|| name.clone(), |scale| format!("{name}, {}", scale.steps())), name]
}

/// Whether not all repeats of a cell were measured.
fn is_partly(cell: &CellSummary) -> bool {
    cell.outcome.worst != Outcome::Measured
}

/// One panel: the grid, then what was not measured, the ranges, the line and its points, and their figures.
fn draw_panel(
    canvas: &mut Canvas<'_>,
    lines: &Lines<'_>,
    panel: &Panel,
    layout: &Layout,
    scale: &Scale,
    (origin, labelled): ((i32, i32), bool),
) {
    let (rule, text, muted) = (canvas.palette.rule, canvas.palette.text, canvas.palette.muted);
    let colour = line_colour(canvas, 0);
    let (w, h) = layout.cell;
    let (wide, _) = layout.panel();
    let at = |figure: f64| origin.1 + h - px(scale.place(figure) * f64::from(h));
    for (value, label) in scale.ticks(lines.unit, 6) {
        let y = at(value);
        canvas.line((origin.0, y), (origin.0 + wide, y), rule, 1);
        if labelled {
            canvas.text((origin.0 - 6, y), &label, Type::new(SIZE, text).end());
        }
    }
    if lines.unit == Unit::Ratio {
        // Where both runs are the same.
        canvas.line((origin.0, at(1.0)), (origin.0 + wide, at(1.0)), muted, 1);
    }
    let centre = |place: usize| origin.0 + w * count(place) + w / 2;
    let found: Vec<(usize, Option<&CellFigure>)> = panel
        .cells
        .iter()
        .enumerate()
        .map(|(place, cell)| (place, cell.and_then(|cell| lines.figures.get(cell)).and_then(Option::as_ref)))
        .collect();
    for (place, cell) in panel.cells.iter().enumerate() {
        let Some(cell) = cell.and_then(|cell| lines.cells.get(cell)) else { continue };
        if let Some((_, None)) = found.get(place)
            && let Tile::Missing(outcome) = Tile::without_figure(cell)
        {
            tile::draw(
                canvas,
                Area { x: origin.0 + w * count(place) + 2, y: origin.1, w: w - 4, h },
                &Tile::Missing(outcome),
                (super::colour::Map::Figures, None),
                "",
            );
        }
    }
    // A line only between neighbours: what lies between them is not known where one was not measured.
    for run in found.split(|(_, figure)| figure.is_none()).filter(|run| !run.is_empty()) {
        let upper = run.iter().filter_map(|(place, figure)| Some((centre(*place), at(figure.as_ref()?.high))));
        let lower = run.iter().rev().filter_map(|(place, figure)| Some((centre(*place), at(figure.as_ref()?.low))));
        let band: Vec<_> = upper.chain(lower).collect();
        if run.len() > 1 {
            canvas.polygon(&band, colour, 0.18);
            let points: Vec<_> =
                run.iter().filter_map(|(place, f)| Some((centre(*place), at(f.as_ref()?.value)))).collect();
            canvas.path(&points, colour, 2);
        }
    }
    let lettered = |figure: &CellFigure| lines.unit.forms(figure.value).into_iter().next().unwrap_or_default();
    let fits = found
        .iter()
        .filter_map(|(_, figure)| *figure)
        .all(|figure| width(&lettered(figure), SIZE) + 8.0 <= f64::from(w));
    for (place, figure) in found.iter().filter_map(|(place, figure)| Some((*place, (*figure)?))) {
        let (x, y) = (centre(place), at(figure.value));
        if w >= 10 {
            range(canvas, x, (at(figure.high), at(figure.low)), colour);
            canvas.dot((x, y), 4, colour);
        }
        if fits {
            let beside = |step: Option<usize>| {
                let neighbour = step.and_then(|step| found.get(step)).and_then(|(_, figure)| *figure);
                neighbour.is_none_or(|neighbour| at(neighbour.value) < y)
            };
            // Above the range; beneath it at the foot of a valley, and where there is no room above.
            let (above, below) = (at(figure.high) - 12, at(figure.low) + 13);
            let valley = beside(place.checked_sub(1)) && beside(Some(place + 1)) && found.len() > 1;
            let down = (valley && below < origin.1 + h - 6) || above < origin.1 + 4;
            let text_at = (x, if down { below } else { above });
            let half = px(width(&lettered(figure), SIZE) / 2.0) + 2;
            let ground = canvas.palette.ground;
            canvas.shade(Area { x: x - half, y: text_at.1 - 7, w: 2 * half, h: 14 }, ground, 0.8);
            canvas.text(text_at, &lettered(figure), Type::new(SIZE, text).middle());
        }
    }
    for (place, why) in
        panel.cells.iter().enumerate().filter_map(|(place, cell)| Some((place, lines.why.get((*cell)?)?)))
    {
        let column = Area { x: origin.0 + w * count(place), y: origin.1, w, h };
        if !why.knees.is_empty() && found.get(place).is_some_and(|(_, figure)| figure.is_some()) {
            let middle = Area { x: centre(place), w: w / 2, ..column };
            tile::bracket(canvas, middle, muted, Side::Left);
        }
        if w >= 14 {
            let label = Area { y: origin.1 + 2, h: 14, ..column };
            tile::letters(canvas, label, &why.letters, text);
        }
    }
    for (place, _) in found.iter().filter(|(_, figure)| figure.is_some()) {
        let cell = panel.cells.get(*place).copied().flatten().and_then(|cell| lines.cells.get(cell));
        if cell.is_some_and(is_partly) {
            let column = Area { x: origin.0 + w * count(*place), y: origin.1, w: w - 4, h };
            tile::corner(canvas, column, text);
        }
    }
    canvas.line((origin.0, origin.1 + h), (origin.0 + wide, origin.1 + h), muted, 1);
}

/// The range of the repeats.
fn range(canvas: &mut Canvas<'_>, x: i32, (top, bottom): (i32, i32), colour: super::colour::Rgb) {
    if bottom - top < 3 {
        return;
    }
    canvas.line((x, top), (x, bottom), colour, 1);
    canvas.line((x - 4, top), (x + 4, top), colour, 1);
    canvas.line((x - 4, bottom), (x + 4, bottom), colour, 1);
}
