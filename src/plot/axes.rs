//! Titles of panels, labels of values and names of axes around maps and lines.

use super::canvas::{Canvas, Type, count};
use super::grid::{Grid, Panel};
use super::labels::{self, Label, SECOND, SIZE};
use super::layout::{Layout, Upwards, shortest};
use super::sheet::MARGIN;
use super::space::Dimension;
use super::text::{bold_width, fit, width};

/// The titles above a panel.
pub(super) fn titles(canvas: &mut Canvas<'_>, layout: &Layout, panel: &Panel, (x, y): (i32, i32)) {
    let text = canvas.palette.text;
    let lines = count(panel.titles.len());
    for (index, title) in panel.titles.iter().enumerate() {
        let room = f64::from(layout.panel().0);
        // A kernel's image says which one it is: better that alone than a release cut short.
        let title = if bold_width(title, 12.0) <= room { title } else { shortest(title) };
        let title = fit(title, 12.0 * 1.12, room);
        let line = y - 4 - 17 * (lines - count(index)) + 9;
        canvas.text((x, line), &title, Type::new(12.0, text).bold());
    }
}

/// Labels beneath a panel's columns, and the name of their axis.
pub(super) fn beneath(
    canvas: &mut Canvas<'_>,
    layout: &Layout,
    labels: &[Label],
    axis: Option<&Dimension>,
    (panel, (x, y)): (usize, (i32, i32)),
) {
    let (text, muted) = (canvas.palette.text, canvas.palette.muted);
    let (w, _) = layout.cell;
    let along = layout.along;
    for index in labels::shown(labels.len(), along.every) {
        let Some(label) = labels.get(index) else { continue };
        let centre = x + w * count(index) + w / 2;
        if along.upright {
            let shown = fit(&label.in_one(), SIZE, labels::UPRIGHT);
            canvas.text((centre, y + 6), &shown, Type::new(SIZE, text).end().upwards());
            continue;
        }
        let room = labels::level_room(along, w);
        canvas.text((centre, y + 12), &fit(&label.text, SIZE, room), Type::new(SIZE, text).middle());
        if let Some(second) = &label.second {
            canvas.text((centre, y + 26), &fit(second, SECOND, room), Type::new(SECOND, muted).middle());
        }
    }
    if let Some(axis) = axis {
        let room = layout.name_room(panel);
        let title = [axis.title(), axis.name.clone()].into_iter().find(|title| width(title, SIZE) <= room);
        let title = title.unwrap_or_else(|| fit(&axis.name, SIZE, room));
        canvas.text((x, y + along.height + 9), &title, Type::new(SIZE, muted));
    }
}

/// Labels beside a panel's rows.
pub(super) fn beside(canvas: &mut Canvas<'_>, layout: &Layout, labels: &[Label], (x, y): (i32, i32)) {
    let (text, muted) = (canvas.palette.text, canvas.palette.muted);
    let (_, h) = layout.cell;
    let (_, tall) = layout.panel();
    for index in labels::shown(labels.len(), labels::every_row(labels, h)) {
        let Some(label) = labels.get(index) else { continue };
        let centre = y + tall - h * count(index) - h / 2;
        let room = f64::from(layout.left - 26);
        let shown = fit(&label.text, SIZE, room);
        match &label.second {
            Some(second) if h >= 26 => {
                canvas.text((x - 6, centre - 6), &shown, Type::new(SIZE, text).end());
                canvas.text((x - 6, centre + 7), &fit(second, SECOND, room), Type::new(SECOND, muted).end());
            }
            _ => canvas.text((x - 6, centre), &shown, Type::new(SIZE, text).end()),
        }
    }
}

/// The name of the axis upwards, where it stands beside a panel.
pub(super) fn name_beside(canvas: &mut Canvas<'_>, layout: &Layout, (x, y): (i32, i32)) {
    let Upwards::Beside(name) = &layout.upwards else { return };
    let muted = canvas.palette.muted;
    let middle = y + layout.panel().1 / 2;
    canvas.text((x - layout.left + 8, middle), name, Type::new(SIZE, muted).middle().upwards());
}

/// The name of the axis upwards, where it stands above all panels, which begin at `top`.
pub(super) fn name_above(canvas: &mut Canvas<'_>, layout: &Layout, top: i32) {
    let Upwards::Above(name) = &layout.upwards else { return };
    let muted = canvas.palette.muted;
    canvas.text((MARGIN, top + 6), name, Type::new(SIZE, muted));
}

/// What axes set whose names stand alone on the picture, each in a line for its foot.
pub(super) fn meanings(layout: &Layout, grid: &Grid<'_>) -> Vec<String> {
    let x = grid.x.filter(|axis| !layout.tells_along(axis));
    let y = grid.y.filter(|axis| !layout.tells_upwards(axis));
    let untold = x.into_iter().chain(y).chain(grid.facets.iter().copied());
    let cut = |axis: &&Dimension| !axis.about.is_empty() || width(&axis.name, SIZE) > 200.0;
    untold.filter(cut).map(Dimension::title).collect()
}
