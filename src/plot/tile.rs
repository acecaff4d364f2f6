//! One cell of a map: coloured by its figure, or hatched by the reason why it has none.

use super::canvas::{Area, Canvas, Type};
use super::colour::{Map, Rgb};
use super::given::{self, Given};
use super::repeats::CellFigure;
use super::sheet::Mark;
use super::text::{bold_width, fit, width};
use crate::measurement::Outcome;
use crate::stats::CellSummary;

/// Repeats that range over more than this share of their median are marked.
pub(crate) const WIDE: f64 = 0.2;
/// Sizes that figures are written in, the largest first.
const SIZES: [f64; 6] = [14.0, 13.0, 12.0, 11.0, 10.0, 9.0];
/// The size of what stands beneath a figure.
const SMALL: f64 = 9.5;

/// What a cell shows.
#[derive(Clone, Debug)]
pub(super) enum Tile {
    /// A figure.
    Figure(Figure),
    /// Repeats of which none was measured.
    Missing(Outcome),
    /// Measured, and yet without this figure.
    Without,
    /// Never run.
    Absent,
}

/// A figure and what one should know about it.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Where it lies between the ends of the scale.
    pub(super) place: f64,
    /// As text, in shorter and shorter forms.
    pub(super) forms: Vec<String>,
    /// The range of the repeats, where it is wide: `38 %`.
    pub(super) spread: Option<String>,
    /// The outcome, where not all repeats were measured: `2 of 5 timed out`.
    pub(super) partly: Option<String>,
    /// Sizes that the kernel gave.
    pub(super) given: Vec<Given>,
}

/// What an outcome is called on a picture.
pub(crate) const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Measured => "measured",
        Outcome::Incomplete => "incomplete",
        Outcome::TimedOut => "timed out",
        Outcome::Invalid => "invalid",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    }
}

/// A wide range: in percent, and as a multiple where percent would be thousands.
fn wide(spread: f64) -> String {
    if spread < 9.995 { format!("{:.0} %", spread * 100.0) } else { format!("×{spread:.0}") }
}

impl Figure {
    /// The figure of a cell, at that place and in those forms.
    pub(super) fn of(cell: &CellSummary, figure: &CellFigure, place: f64, forms: Vec<String>) -> Self {
        Self {
            place,
            forms,
            spread: figure.spread.filter(|spread| *spread > WIDE).map(wide),
            partly: (cell.outcome.worst != Outcome::Measured).then(|| cell.outcome.to_string()),
            given: given::of(cell),
        }
    }
}

impl Tile {
    /// What a cell shows that has no figure.
    pub(super) fn without_figure(cell: &CellSummary) -> Self {
        if cell.counts.measured > 0 { Self::Without } else { Self::Missing(cell.outcome.worst) }
    }

    /// What the legend must explain because of this cell.
    pub(super) fn marks(&self, marks: &mut Vec<Mark>) {
        let mut add = |mark: Mark| {
            if !marks.contains(&mark) {
                marks.push(mark);
            }
        };
        match self {
            Self::Figure(figure) => {
                if figure.spread.is_some() {
                    add(Mark::Spread);
                }
                if figure.partly.is_some() {
                    add(Mark::Partly);
                }
                if !figure.given.is_empty() {
                    add(Mark::Given);
                }
            }
            Self::Missing(outcome) => add(Mark::Missing(*outcome)),
            Self::Without => add(Mark::Without),
            Self::Absent => add(Mark::Absent),
        }
    }

    fn figure(&self) -> Option<&Figure> {
        match self {
            Self::Figure(figure) => Some(figure),
            Self::Missing(_) | Self::Without | Self::Absent => None,
        }
    }
}

/// The form and the size of figures that fit all cells of that size, or `None` where they are too small.
pub(super) fn lettering(tiles: &[Tile], (w, h): (i32, i32)) -> Option<(usize, f64)> {
    let room = f64::from(w) - 6.0;
    (0..2).find_map(|form| {
        let widest = tiles
            .iter()
            .filter_map(Tile::figure)
            .filter_map(|figure| figure.forms.get(form).or(figure.forms.last()))
            .map(|text| width(text, 1.0))
            .fold(0.0, f64::max);
        SIZES.into_iter().find(|size| widest * size <= room && size + 4.0 <= f64::from(h)).map(|size| (form, size))
    })
}

/// Which edge of a cell is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The axis goes to the right.
    Left,
    /// The axis goes upwards.
    Bottom,
}

/// Draws a cell, with the letters of its findings.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Area,
    tile: &Tile,
    (map, lettering): (Map, Option<(usize, f64)>),
    found: &str,
) {
    match tile {
        Tile::Figure(figure) => draw_figure(canvas, area, figure, (map, lettering), found),
        Tile::Missing(outcome) => {
            hatch(canvas, area, *outcome);
            label(canvas, area, word(*outcome));
            let text = canvas.palette.text;
            letters(canvas, area, found, text);
        }
        Tile::Without => {
            let ground = canvas.palette.hatch_ground;
            canvas.rect(area, ground);
            label(canvas, area, "–");
        }
        Tile::Absent => {
            if area.w >= 6 && area.h >= 6 {
                let rule = canvas.palette.rule;
                canvas.frame(Area { w: area.w - 1, h: area.h - 1, ..area }, rule);
            }
        }
    }
}

fn draw_figure(
    canvas: &mut Canvas<'_>,
    area: Area,
    figure: &Figure,
    (map, lettering): (Map, Option<(usize, f64)>),
    found: &str,
) {
    let colour = map.at(figure.place);
    let ink = colour.ink();
    canvas.rect(area, colour);
    let (x, y) = area.middle();
    // Letters in the corner beneath have the same distance on the other side, for the text is in the middle.
    let room = f64::from(area.w) - 8.0 - 2.0 * bold_width(found, SMALL);
    // One line has room beneath the figure: what is most likely to mislead comes first.
    let given = figure.given.first().map(|given| match figure.given.len() {
        1 => given.in_a_cell(),
        more => format!("{} +{}", given.in_a_cell(), more - 1),
    });
    let below = [figure.partly.clone(), given, figure.spread.as_ref().map(|spread| format!("spread {spread}"))]
        .into_iter()
        .flatten()
        .find(|text| lettering.is_some() && area.h >= 34 && width(text, SMALL) <= room);
    if let Some((form, size)) = lettering
        && let Some(text) = figure.forms.get(form).or(figure.forms.last())
    {
        let up = if below.is_some() { 6 } else { 0 };
        canvas.text((x, y - up), text, Type::new(size, ink).middle());
    }
    if let Some(text) = below {
        canvas.text((x, y + 10), &text, Type::new(SMALL, ink).middle());
    }
    letters(canvas, area, found, ink);
    if figure.partly.is_some() {
        corner(canvas, area, ink);
    }
    if figure.spread.is_some() {
        beam(canvas, area, ink);
    }
    if !figure.given.is_empty() {
        wedge(canvas, area, ink);
    }
}

/// The word on a hatched cell, on a ground of its own.
fn label(canvas: &mut Canvas<'_>, area: Area, word: &str) {
    let room = f64::from(area.w) - 6.0;
    let Some(size) =
        [11.0, 10.0, 9.0].into_iter().find(|size| width(word, *size) <= room && f64::from(area.h) >= size + 5.0)
    else {
        return;
    };
    let (x, y) = area.middle();
    let half = super::canvas::px(width(word, size) / 2.0) + 3;
    let (ground, text) = (canvas.palette.hatch_ground, canvas.palette.text);
    canvas.rect(Area { x: (x - half).max(area.x), y: y - 7, w: (2 * half).min(area.w), h: 14 }, ground);
    canvas.text((x, y), &fit(word, size, room), Type::new(size, text).middle());
}

/// Lines across a cell, in another direction for each outcome.
pub(super) fn hatch(canvas: &mut Canvas<'_>, area: Area, outcome: Outcome) {
    let (ground, line) = (canvas.palette.hatch_ground, canvas.palette.hatch);
    canvas.rect(area, ground);
    let step = if area.w < 12 || area.h < 12 { 4 } else { 7 };
    let (rising, falling, level) = match outcome {
        Outcome::TimedOut | Outcome::Measured => (true, false, false),
        Outcome::Invalid => (false, true, false),
        Outcome::Skipped => (false, false, true),
        Outcome::Failed => (true, true, false),
        Outcome::Incomplete => (true, false, true),
    };
    for offset in (step / 2..area.w + area.h).step_by(usize::try_from(step).unwrap_or(7)) {
        // From a point on the left or lower edge to one on the upper or right edge.
        let (from, to) =
            ((offset.min(area.w), (offset - area.w).max(0)), ((offset - area.h).max(0), offset.min(area.h)));
        if rising {
            canvas.line((area.x + from.0, area.y + from.1), (area.x + to.0, area.y + to.1), line, 1);
        }
        if falling {
            canvas.line((area.x + area.w - from.0, area.y + from.1), (area.x + area.w - to.0, area.y + to.1), line, 1);
        }
        if level && offset < area.h {
            canvas.line((area.x, area.y + offset), (area.x + area.w, area.y + offset), line, 1);
        }
    }
}

/// Not all repeats were measured: the upper right corner is turned down.
pub(super) fn corner(canvas: &mut Canvas<'_>, area: Area, ink: Rgb) {
    let side = (area.w.min(area.h) / 3).clamp(2, 9);
    let right = area.x + area.w;
    canvas.polygon(&[(right - side, area.y), (right, area.y), (right, area.y + side)], ink, 0.85);
}

/// The repeats are spread widely: an interval in the lower right corner.
pub(super) fn beam(canvas: &mut Canvas<'_>, area: Area, ink: Rgb) {
    if area.w < 14 || area.h < 12 {
        canvas.rect(Area { x: area.x + area.w - 3, y: area.y + area.h - 3, w: 2, h: 2 }, ink);
        return;
    }
    let (x, bottom) = (area.x + area.w - 6, area.y + area.h - 3);
    canvas.line((x, bottom - 8), (x, bottom), ink, 1);
    canvas.line((x - 2, bottom - 8), (x + 3, bottom - 8), ink, 1);
    canvas.line((x - 2, bottom), (x + 3, bottom), ink, 1);
}

/// What was found, by letters in the lower left corner; a dot where these have no room.
pub(super) fn letters(canvas: &mut Canvas<'_>, area: Area, letters: &str, ink: Rgb) {
    if letters.is_empty() {
        return;
    }
    if area.h < 14 || bold_width(letters, SMALL) + 4.0 > f64::from(area.w) {
        canvas.rect(Area { x: area.x + 1, y: area.y + area.h - 3, w: 2, h: 2 }, ink);
        return;
    }
    canvas.text((area.x + 4, area.y + area.h - 8), letters, Type::new(SMALL, ink).bold());
}

/// From this cell on, more does not help: its edge, and which way that is.
pub(super) fn knee(canvas: &mut Canvas<'_>, area: Area, tile: &Tile, map: Map, side: Side) {
    let ink = tile.figure().map_or(canvas.palette.text, |figure| map.at(figure.place).ink());
    bracket(canvas, area, ink, side);
}

/// An edge with an arrow away from it.
pub(super) fn bracket(canvas: &mut Canvas<'_>, area: Area, ink: Rgb, side: Side) {
    let (x, y) = area.middle();
    let bottom = area.y + area.h;
    let room = (area.w.min(area.h) / 4).clamp(0, 4);
    match side {
        Side::Left => {
            canvas.rect(Area { w: 2.min(area.w), ..area }, ink);
            canvas.polygon(&[(area.x + 2, y - room), (area.x + 2 + room, y), (area.x + 2, y + room)], ink, 1.0);
        }
        Side::Bottom => {
            canvas.rect(Area { y: bottom - 2.min(area.h), h: 2.min(area.h), ..area }, ink);
            canvas.polygon(&[(x - room, bottom - 2), (x, bottom - 2 - room), (x + room, bottom - 2)], ink, 1.0);
        }
    }
}

/// A buffer is not what was asked: a wedge in the upper left corner.
pub(super) fn wedge(canvas: &mut Canvas<'_>, area: Area, ink: Rgb) {
    if area.w < 14 || area.h < 12 {
        canvas.rect(Area { x: area.x + 1, y: area.y + 1, w: 2, h: 2 }, ink);
        return;
    }
    let (x, y) = (area.x + 4, area.y + 4);
    canvas.polygon(&[(x, y + 6), (x + 7, y + 6), (x + 3, y)], ink, 0.85);
}

#[cfg(test)]
mod tests {
    use super::wide;

    #[test]
    fn wide_ranges_are_percent_or_multiples() {
        assert_eq!([0.38, 2.26, 51.4].map(wide), ["38 %", "226 %", "×51"]);
    }
}
