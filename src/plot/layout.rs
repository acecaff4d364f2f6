//! Where everything goes: the size of cells, how many panels stand side by side, and where each begins.

use super::canvas::{count, px};
use super::grid::Grid;
use super::labels::{self, Along, Label, SIZE};
use super::sheet::MARGIN;
use super::space::{Dimension, KERNEL};
use super::text::{bold_width, fit, width};

/// Room for panels and labels on an ordinary picture.
const ROOM: i32 = 1160;
/// Narrowest picture: title and facts need that much.
const NARROWEST: i32 = 780;
/// Between panels.
const GAP: i32 = 26;
/// One line of a panel's title.
const TITLE: i32 = 17;
/// A line along an axis.
const AXIS: i32 = 20;

/// Smallest and largest size of what stands at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Width that is wanted before panels are put beneath each other.
    pub(super) wanted: i32,
    pub(super) widest: i32,
    /// Fixed height of a row, or one that follows from the width.
    pub(super) height: Option<i32>,
}

/// Cells of a map: wide enough for `4.67 s` and a remark if there are not too many.
pub(super) const MAP: Limits = Limits { wanted: 66, widest: 124, height: None };
/// Columns of a line.
pub(super) const LINE: Limits = Limits { wanted: 60, widest: 150, height: Some(260) };

/// What the axis upwards is called, and where that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Upwards {
    Nothing,
    /// Beside each panel that has labels, from bottom to top.
    Beside(String),
    /// Once above all panels: it is longer than a panel is tall.
    Above(String),
}

/// Where everything goes, from the upper left corner of the first panel's labels.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Of one cell.
    pub(super) cell: (i32, i32),
    pub(super) columns: usize,
    pub(super) along: Along,
    pub(super) upwards: Upwards,
    /// Room to the left of a row of panels.
    pub(super) left: i32,
    pub(super) titles: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    across: i32,
    up: i32,
    panels: usize,
}

impl Layout {
    /// Lays out panels with those labels. `left` is the room that labels beside rows need, `names` are those of the axis
    /// upwards, the longest first.
    pub(super) fn new(grid: &Grid<'_>, limits: Limits, x: &[Label], (left, names): (i32, &[String])) -> Self {
        let (across, up) = (count(grid.across()), count(grid.up()));
        let left = left + AXIS + 6;
        let room = ROOM - left;
        let title_lines = grid.panels.iter().map(|panel| panel.titles.len()).max().unwrap_or(0);
        // A panel is not narrower than what its titles say, within reason.
        let titles = grid.panels.iter().flat_map(|panel| &panel.titles);
        let title = px(titles.map(|title| bold_width(shortest(title), 12.0)).fold(0.0, f64::max)).min(260);
        let wanted = if across * up > 600 { 6 } else { limits.wanted };
        let panel = (wanted * across).max(title) + GAP;
        let columns = grid.columns(usize::try_from((room + GAP) / panel.max(1)).unwrap_or(1));
        let w = ((room + GAP) / count(columns) - GAP) / across.max(1);
        let widest = limits.widest.max((title + across - 1) / across.max(1)).max(labels::level_column(x));
        let w = w.clamp(5, widest);
        let h = limits.height.unwrap_or_else(|| {
            let tall = (w * 5 / 8).clamp(5, 62);
            // Few rows may be taller than wide, so that figures fit; many must not make the picture endless.
            let least = if up <= 20 { 40.min(w) } else { 11 };
            if up * tall > 4000 { 5 } else { tall.max(least) }
        });
        let numbers = grid.x.is_some_and(|x| x.numbers);
        let along = labels::along(x, w, numbers);
        let titles = TITLE * count(title_lines) + if title_lines > 0 { 4 } else { 0 };
        let mut layout = Self {
            cell: (w, h),
            columns,
            along,
            upwards: Upwards::Nothing,
            left,
            titles,
            width: 0,
            height: 0,
            across,
            up,
            panels: grid.panels.len(),
        };
        let rows = count(layout.rows());
        layout.width = (2 * MARGIN + left + count(columns) * (layout.panel().0 + GAP) - GAP).max(NARROWEST);
        layout.upwards = upwards(names, layout.panel().1, layout.width - 2 * MARGIN);
        layout.height = layout.above() + rows * (layout.panel().1 + titles + GAP) - GAP + along.height + AXIS;
        layout
    }

    /// Height of the line above all panels.
    fn above(&self) -> i32 {
        if matches!(self.upwards, Upwards::Above(_)) { AXIS } else { 0 }
    }

    fn rows(&self) -> usize {
        self.panels.div_ceil(self.columns.max(1))
    }

    /// Size of one panel without its titles and labels.
    pub(super) fn panel(&self) -> (i32, i32) {
        (self.cell.0 * self.across, self.cell.1 * self.up)
    }

    /// The upper left corner of a panel's cells, where the first row of panels begins at `top`.
    pub(super) fn origin(&self, panel: usize, top: i32) -> (i32, i32) {
        let (w, h) = self.panel();
        let (column, row) = (count(panel % self.columns.max(1)), count(panel / self.columns.max(1)));
        (MARGIN + self.left + column * (w + GAP), top + self.above() + self.titles + row * (h + self.titles + GAP))
    }

    /// Whether a panel has labels to its left.
    pub(super) fn is_first(&self, panel: usize) -> bool {
        panel.is_multiple_of(self.columns.max(1))
    }

    /// Whether a panel has labels beneath it: no other panel is there.
    pub(super) fn is_last(&self, panel: usize) -> bool {
        panel + self.columns >= self.panels
    }

    /// Room beneath a panel for the name of the axis along it: up to the next panel, or to the edge of the picture.
    pub(super) fn name_room(&self, panel: usize) -> f64 {
        let (w, _) = self.panel();
        let column = panel % self.columns.max(1);
        let next = column + 1 < self.columns && panel + 1 < self.panels;
        let room = if next { w + GAP - 8 } else { self.width - MARGIN - self.origin(panel, 0).0 };
        f64::from(room)
    }

    /// Whether name and meaning of that axis stand beneath every panel that has labels.
    pub(super) fn tells_along(&self, axis: &Dimension) -> bool {
        (0..self.panels).filter(|panel| self.is_last(*panel)).all(|panel| {
            let room = self.name_room(panel);
            width(&axis.title(), SIZE) <= room
        })
    }

    /// Whether name and meaning of that axis stand beside the panels or above them.
    pub(super) fn tells_upwards(&self, axis: &Dimension) -> bool {
        matches!(&self.upwards, Upwards::Beside(text) | Upwards::Above(text) if *text == axis.title())
    }
}

/// The shortest form of a panel's title: a kernel's image without its release.
pub(super) fn shortest(title: &str) -> &str {
    title.split_once(" (").filter(|_| title.starts_with(KERNEL)).map_or(title, |(image, _)| image)
}

/// The first of those names that can run up a panel; else the first that can stand above all of them, or the last one cut.
fn upwards(names: &[String], tall: i32, wide: i32) -> Upwards {
    let Some(last) = names.last() else { return Upwards::Nothing };
    let fitting = |room: i32| names.iter().find(|name| width(name, SIZE) <= f64::from(room));
    match fitting(tall.max(50)) {
        Some(name) => Upwards::Beside(name.clone()),
        None => Upwards::Above(fitting(wide).cloned().unwrap_or_else(|| fit(last, SIZE, f64::from(wide)))),
    }
}
