//! The surface that pictures are drawn on: plotters' SVG, with the few shapes and kinds of text that they need.
//!
//! Coordinates are whole pixels and fonts are only named, so the same run gives the same bytes everywhere.

use plotters::backend::SVGBackend;
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::Theme;
use super::colour::{Palette, Rgb};
use super::error::PlotError;
use super::text::clean;

/// What plotters divides a font's size by.
const EM: f64 = 1.24;
/// No side is longer.
const MAX_SIDE: i64 = 65_000;

/// How a text is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) colour: Rgb,
    pub(super) bold: bool,
    pub(super) anchor: Anchor,
    pub(super) upwards: bool,
}

/// Which side of a text is at its place. Texts are centred vertically, or horizontally where they run upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Type {
    pub(super) const fn new(size: f64, colour: Rgb) -> Self {
        Self { size, colour, bold: false, anchor: Anchor::Start, upwards: false }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(super) const fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub(super) const fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    pub(super) const fn upwards(self) -> Self {
        Self { upwards: true, ..self }
    }
}

/// A rectangle: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
}

impl Area {
    pub(super) const fn middle(self) -> (i32, i32) {
        (self.x + self.w / 2, self.y + self.h / 2)
    }
}

/// The nearest pixel.
pub(super) fn px(place: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and no picture is that large")]
    let pixel = place.round() as i32;
    pixel
}

/// A number of things as a number of pixels to be multiplied.
pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A picture while it is drawn. The first error is kept until the end.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
    failed: Option<PlotError>,
    pub(super) palette: Palette,
}

const fn plain(colour: Rgb) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

/// Draws a picture of that size. The title and the description are for those who cannot see it.
pub(super) fn picture(
    (width, height): (i64, i64),
    theme: Theme,
    (title, description): (&str, &str),
    draw: impl FnOnce(&mut Canvas<'_>),
) -> Result<String, PlotError> {
    let checked = |side: i64| u32::try_from(side).ok().filter(|_| (1..=MAX_SIDE).contains(&side));
    let size = checked(width).zip(checked(height)).ok_or(PlotError::TooLarge { width, height })?;
    let mut svg = String::new();
    let mut canvas =
        Canvas { backend: SVGBackend::with_string(&mut svg, size), failed: None, palette: Palette::of(theme) };
    let ground = canvas.palette.ground;
    let [w, h] = [size.0, size.1].map(|side| i32::try_from(side).unwrap_or(i32::MAX));
    canvas.rect(Area { x: 0, y: 0, w, h }, ground);
    draw(&mut canvas);
    let presented = canvas.backend.present();
    canvas.note(presented);
    let failed = canvas.failed.take();
    drop(canvas);
    match failed {
        Some(error) => Err(error),
        None => Ok(described(&svg, title, description)),
    }
}

/// The SVG with its name in words.
fn described(svg: &str, title: &str, description: &str) -> String {
    let escape = |text: &str| clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (title, description) = (escape(title), escape(description));
    svg.replacen(">\n", &format!(" role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>\n"), 1)
}

impl Canvas<'_> {
    fn note<E: std::fmt::Display>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.failed.get_or_insert_with(|| PlotError::Draw(error.to_string()));
        }
    }

    pub(super) fn rect(&mut self, area: Area, fill: Rgb) {
        self.shade(area, fill, 1.0);
    }

    /// A rectangle that lets through what is beneath it.
    pub(super) fn shade(&mut self, area: Area, fill: Rgb, opacity: f64) {
        let style = ShapeStyle { color: plain(fill).mix(opacity), filled: true, stroke_width: 0 };
        let drawn = self.backend.draw_rect((area.x, area.y), (area.x + area.w, area.y + area.h), &style, true);
        self.note(drawn);
    }

    pub(super) fn frame(&mut self, area: Area, colour: Rgb) {
        let style = plain(colour).stroke_width(1);
        let drawn = self.backend.draw_rect((area.x, area.y), (area.x + area.w, area.y + area.h), &style, false);
        self.note(drawn);
    }

    pub(super) fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb, width: u32) {
        let drawn = self.backend.draw_line(from, to, &plain(colour).stroke_width(width));
        self.note(drawn);
    }

    pub(super) fn path(&mut self, points: &[(i32, i32)], colour: Rgb, width: u32) {
        let drawn = self.backend.draw_path(points.iter().copied(), &plain(colour).stroke_width(width));
        self.note(drawn);
    }

    pub(super) fn polygon(&mut self, points: &[(i32, i32)], fill: Rgb, opacity: f64) {
        let style = ShapeStyle { color: plain(fill).mix(opacity), filled: true, stroke_width: 0 };
        let drawn = self.backend.fill_polygon(points.iter().copied(), &style);
        self.note(drawn);
    }

    pub(super) fn dot(&mut self, at: (i32, i32), radius: u32, fill: Rgb) {
        let drawn = self.backend.draw_circle(at, radius, &plain(fill).filled(), true);
        self.note(drawn);
    }

    pub(super) fn text(&mut self, (x, y): (i32, i32), text: &str, kind: Type) {
        let anchor = match kind.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = if kind.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = ("sans-serif", kind.size * EM).into_font().style(style);
        let font = font.transform(if kind.upwards { FontTransform::Rotate270 } else { FontTransform::None });
        let colour = plain(kind.colour);
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(anchor, VPos::Center));
        let drawn = self.backend.draw_text(&clean(text), &style, (x, y));
        self.note(drawn);
    }
}
