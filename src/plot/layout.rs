//! Where everything goes: the size of cells, how many panels stand side by side, and where each begins.

use super::canvas::{count, px};
use super::grid::Grid;
use super::labels::{self, Along, Label, SIZE};
use super::sheet::MARGIN;
use super::text::width;

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

/// Where everything goes, from the upper left corner of the first panel's labels.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Of one cell.
    pub(super) cell: (i32, i32),
    pub(super) columns: usize,
    pub(super) along: Along,
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
    /// Lays out panels with those labels. `left` is the room that labels beside rows need.
    pub(super) fn new(grid: &Grid<'_>, limits: Limits, x: &[Label], left: i32) -> Self {
        let (across, up) = (count(grid.across()), count(grid.up()));
        let left = left + AXIS + 6;
        let room = ROOM - left;
        let title_lines = grid.panels.iter().map(|panel| panel.titles.len()).max().unwrap_or(0);
        // A panel is not narrower than what its titles say, within reason.
        let title = grid.panels.iter().flat_map(|panel| &panel.titles).map(|title| width(title, 12.0) * 1.12);
        let title = px(title.fold(0.0, f64::max)).min(260);
        let wanted = if across * up > 600 { 6 } else { limits.wanted };
        let panel = (wanted * across).max(title) + GAP;
        let columns = grid.columns(usize::try_from((room + GAP) / panel.max(1)).unwrap_or(1));
        let w = ((room + GAP) / count(columns) - GAP) / across.max(1);
        let w = w.clamp(5, limits.widest.max((title + across - 1) / across.max(1)));
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
        layout.height = rows * (layout.panel().1 + titles + GAP) - GAP + along.height + AXIS;
        layout
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
        (MARGIN + self.left + column * (w + GAP), top + self.titles + row * (h + self.titles + GAP))
    }

    /// Whether a panel has labels to its left.
    pub(super) fn is_first(&self, panel: usize) -> bool {
        panel.is_multiple_of(self.columns.max(1))
    }

    /// Whether a panel has labels beneath it: no other panel is there.
    pub(super) fn is_last(&self, panel: usize) -> bool {
        panel + self.columns >= self.panels
    }

    /// Room beneath a panel for a title along it.
    pub(super) fn title_width(&self) -> f64 {
        f64::from(self.panel().0).max(SIZE * 20.0)
    }
}
