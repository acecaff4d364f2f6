//! Titles of panels, labels of values and names of axes around maps and lines.

use super::canvas::{Canvas, Type, count};
use super::grid::Panel;
use super::labels::{self, Label, SECOND, SIZE};
use super::layout::Layout;
use super::space::{Dimension, KERNEL};
use super::text::{bold_width, fit, width};

/// The titles above a panel.
pub(super) fn titles(canvas: &mut Canvas<'_>, layout: &Layout, panel: &Panel, (x, y): (i32, i32)) {
    let text = canvas.palette.text;
    let lines = count(panel.titles.len());
    for (index, title) in panel.titles.iter().enumerate() {
        let room = f64::from(layout.panel().0);
        // A kernel's image says which one it is: better that alone than a release cut short.
        let image =
            title.split_once(" (").filter(|_| title.starts_with(KERNEL)).map_or(title.as_str(), |(image, _)| image);
        let title = if bold_width(title, 12.0) <= room { title } else { image };
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
    (x, y): (i32, i32),
) {
    let (text, muted) = (canvas.palette.text, canvas.palette.muted);
    let (w, _) = layout.cell;
    let along = layout.along;
    for index in labels::shown(labels.len(), along.every) {
        let Some(label) = labels.get(index) else { continue };
        let centre = x + w * count(index) + w / 2;
        if along.upright {
            let shown = match &label.second {
                Some(second) => format!("{} ({second})", label.text),
                None => label.text.clone(),
            };
            let shown = fit(&shown, SIZE, labels::UPRIGHT);
            canvas.text((centre, y + 6), &shown, Type::new(SIZE, text).end().upwards());
            continue;
        }
        canvas.text((centre, y + 12), &label.text, Type::new(SIZE, text).middle());
        if let Some(second) = &label.second {
            canvas.text((centre, y + 26), second, Type::new(SECOND, muted).middle());
        }
    }
    if let Some(axis) = axis {
        let room = layout.title_width();
        let title = [axis.title(), axis.name.clone()].into_iter().find(|title| width(title, SIZE) <= room);
        let title = title.unwrap_or_else(|| fit(&axis.name, SIZE, room));
        canvas.text((x, y + along.height + 9), &title, Type::new(SIZE, muted));
    }
}

/// Labels beside a panel's rows, and the name of their axis.
pub(super) fn beside(
    canvas: &mut Canvas<'_>,
    layout: &Layout,
    labels: &[Label],
    axis: Option<&Dimension>,
    (x, y): (i32, i32),
) {
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
    if let Some(axis) = axis {
        name_beside(canvas, layout, &[&axis.title(), &axis.name], (x, y));
    }
}

/// The name of an axis that runs upwards: the first text that fits, or the last one cut.
pub(super) fn name_beside(canvas: &mut Canvas<'_>, layout: &Layout, texts: &[&str], (x, y): (i32, i32)) {
    let muted = canvas.palette.muted;
    let (_, tall) = layout.panel();
    let room = f64::from(tall).max(50.0);
    let fitting = texts.iter().find(|text| width(text, SIZE) <= room);
    let Some(text) = fitting.or(texts.last()) else { return };
    let text = fit(text, SIZE, room);
    let middle = y + tall / 2;
    canvas.text((x - layout.left + 8, middle), &text, Type::new(SIZE, muted).middle().upwards());
}
