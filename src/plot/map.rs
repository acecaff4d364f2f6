//! Maps: a coloured cell for each combination of two axes, in one panel for each value of the others.

use super::axes;
use super::canvas::{Area, count, picture};
use super::colour::Map;
use super::error::PlotError;
use super::given::{self, Given};
use super::grid::Grid;
use super::labels::{self, Label};
use super::layout::{self, Layout};
use super::options::Theme;
use super::sheet::{Mark, Sheet};
use super::space::Dimension;
use super::tile::{self, Side, Tile};
use super::why::Why;
use crate::stats::CellSummary;

/// Draws the map of those tiles, one for each cell.
pub(super) fn draw(
    grid: &Grid<'_>,
    (cells, why): (&[CellSummary], &[Why]),
    mut tiles: Vec<Tile>,
    mut sheet: Sheet,
    map: Map,
    theme: Theme,
) -> Result<String, PlotError> {
    let (x, said_x) = axis_labels(grid, cells, grid.x, |place| place % grid.across());
    let (y, said_y) = axis_labels(grid, cells, grid.y, |place| place / grid.across());
    let said: Vec<Given> = said_x.into_iter().chain(said_y).collect();
    let mut verdicts: Vec<&'static str> = Vec::new();
    for tile in &mut tiles {
        if let Tile::Figure(figure) = tile {
            for given in &figure.given {
                if !verdicts.contains(&given.verdict()) {
                    verdicts.push(given.verdict());
                }
            }
            // What an axis says need not be said again in each of its cells.
            figure.given.retain(|given| !said.contains(given));
        }
    }
    for tile in &tiles {
        tile.marks(&mut sheet.marks);
    }
    if grid.panels.iter().any(|panel| panel.cells.contains(&None)) {
        Tile::Absent.marks(&mut sheet.marks);
    }
    sheet.notes.splice(0..0, gets(verdicts));

    let named = |axis: Option<&Dimension>, knee: &String| axis.is_some_and(|axis| axis.is(knee));
    // A cell without a figure is not a place that anything was found from.
    let bends = why.iter().zip(&tiles).filter(|(_, tile)| matches!(tile, Tile::Figure(_)));
    if bends.flat_map(|(why, _)| &why.knees).any(|knee| named(grid.x, knee) || named(grid.y, knee)) {
        sheet.marks.push(Mark::Knee);
    }

    let upwards: Vec<String> = grid.y.map_or_else(Vec::new, |axis| vec![axis.title(), axis.name.clone()]);
    let layout = Layout::new(grid, layout::MAP, &x, (labels::beside(&y), &upwards));
    sheet.notes.splice(0..0, axes::meanings(&layout, grid));
    let laid = sheet.lay(layout.width);
    let top = laid.head();
    let size = (i64::from(layout.width), i64::from(top) + i64::from(layout.height) + i64::from(laid.foot()));
    let (w, h) = layout.cell;
    let gap = i32::from(w >= 8 && h >= 8);
    let lettering = tile::lettering(&tiles, (w - gap, h - gap));
    picture(size, theme, (&sheet.title, &sheet.facts.join(", ")), |canvas| {
        laid.draw_head(canvas);
        axes::name_above(canvas, &layout, top);
        for (index, panel) in grid.panels.iter().enumerate() {
            let origin = layout.origin(index, top);
            axes::titles(canvas, &layout, panel, origin);
            for (place, cell) in panel.cells.iter().enumerate() {
                let (column, row) = (count(place % grid.across()), count(grid.up() - 1 - place / grid.across()));
                let area = Area { x: origin.0 + column * w, y: origin.1 + row * h, w: w - gap, h: h - gap };
                let tile = cell.and_then(|cell| tiles.get(cell)).unwrap_or(&Tile::Absent);
                let why = cell.and_then(|cell| why.get(cell));
                tile::draw(canvas, area, tile, (map, lettering), why.map_or("", |why| &why.letters));
                for knee in why.iter().filter(|_| matches!(tile, Tile::Figure(_))).flat_map(|why| &why.knees) {
                    if named(grid.x, knee) {
                        tile::knee(canvas, area, tile, map, Side::Left);
                    } else if named(grid.y, knee) {
                        tile::knee(canvas, area, tile, map, Side::Bottom);
                    }
                }
            }
            if layout.is_first(index) {
                axes::beside(canvas, &layout, &y, origin);
                axes::name_beside(canvas, &layout, origin);
            }
            if layout.is_last(index) {
                axes::beneath(canvas, &layout, &x, grid.x, (index, (origin.0, origin.1 + layout.panel().1)));
            }
        }
        laid.draw_foot(canvas, top + layout.height);
    })
}

/// What `gets` in a label means, and why the kernel gave another size.
pub(super) fn gets(mut verdicts: Vec<&'static str>) -> Option<String> {
    verdicts.sort_unstable();
    verdicts.dedup();
    let what =
        "gets …: the size that the kernel gave, where it is not the double of the request that Linux usually gives";
    (!verdicts.is_empty()).then(|| format!("{what} ({})", verdicts.join(", ")))
}

/// The labels of an axis. Where it asks for a buffer and all cells of a value were given the same other size, the label
/// says so; these sizes are returned too.
pub(super) fn axis_labels(
    grid: &Grid<'_>,
    cells: &[CellSummary],
    axis: Option<&Dimension>,
    value_at: impl Fn(usize) -> usize,
) -> (Vec<Label>, Vec<Given>) {
    let Some(axis) = axis else { return (Vec::new(), Vec::new()) };
    let mut found: Vec<Option<Given>> = vec![None; axis.values.len()];
    let mut uniform = vec![true; axis.values.len()];
    if axis.name.ends_with("buf") {
        let mut seen = vec![false; axis.values.len()];
        for (place, cell) in grid.panels.iter().flat_map(|panel| panel.cells.iter().enumerate()) {
            let Some(cell) = cell.and_then(|cell| cells.get(cell)).filter(|cell| cell.counts.measured > 0) else {
                continue;
            };
            let value = value_at(place);
            let given = given::of(cell).into_iter().find(|given| given.is_of(&axis.name));
            if let (Some(found), Some(uniform), Some(seen)) =
                (found.get_mut(value), uniform.get_mut(value), seen.get_mut(value))
            {
                *uniform &= !*seen || *found == given;
                *found = given;
                *seen = true;
            }
        }
    }
    let given: Vec<Option<Given>> =
        found.into_iter().zip(uniform).map(|(given, uniform)| given.filter(|_| uniform)).collect();
    let labels = axis.values.iter().zip(&given).map(|(text, given)| Label {
        text: text.clone(),
        second: given.as_ref().map(|given| format!("gets {}", given::size(given.size))),
    });
    (labels.collect(), given.into_iter().flatten().collect())
}
