//! Buffers over time of one cell, small enough that each cell of a page can have them: lines as paths of an SVG.

use std::fmt::Write;

use serde::Serialize;

use crate::plot::colour::{Palette, Rgb};
use crate::plot::scale::Scale;
use crate::plot::tracks::{self, Kind, Points, Track, Tracks};
use crate::plot::{Theme, Unit, whole};

/// Runs with more cells have no such charts on their page: these would be megabytes.
pub(super) const MOST_CELLS: usize = 1000;
/// Size of one end's chart, in units of its SVG.
const SIZE: (f64, f64) = (720.0, 220.0);
/// Points of a line, beyond which only every so many-th is taken.
const MOST_POINTS: usize = 90;

/// The chart of one repeat.
#[derive(Serialize)]
pub(super) struct Chart {
    repeat: u32,
    /// Places along the time axis and what stands there.
    x: Vec<(u64, String)>,
    /// The end that receives and the one that sends.
    ends: [EndChart; 2],
}

#[derive(Serialize)]
struct EndChart {
    title: &'static str,
    /// Places from above and the sizes that stand there.
    y: Vec<(u64, String)>,
    /// The kind of a line (its colour), what it is called, and its path.
    lines: Vec<(usize, &'static str, String)>,
}

impl Chart {
    pub(super) fn of(tracks: &Tracks) -> Self {
        let time = tracks::time_scale(tracks.last());
        let ticks = time.ticks(Unit::Nanoseconds, 5);
        Self {
            repeat: tracks.repeat,
            x: ticks.into_iter().map(|(instant, text)| (whole(time.place(instant) * SIZE.0), text)).collect(),
            ends: tracks.ends.each_ref().map(|track| end(track, &time)),
        }
    }
}

fn end(track: &Track, time: &Scale) -> EndChart {
    let bytes = track.scale();
    let ticks = if track.lines.is_empty() { Vec::new() } else { bytes.ticks(Unit::Bytes, 4) };
    let line = |(kind, points): &(Kind, Points)| {
        (Kind::ALL.iter().position(|known| known == kind).unwrap_or(0), kind.name(), path(points, time, &bytes))
    };
    EndChart {
        title: track.title,
        y: ticks.into_iter().map(|(size, text)| (whole((1.0 - bytes.place(size)) * SIZE.1), text)).collect(),
        lines: track.lines.iter().map(line).collect(),
    }
}

/// A line as SVG writes it.
fn path(points: &Points, time: &Scale, bytes: &Scale) -> String {
    let mut path = String::new();
    let stride = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let mut before = None;
    for (_, (instant, size)) in
        points.iter().enumerate().filter(|(index, _)| index.is_multiple_of(stride) || *index == last)
    {
        let [instant, size] = [*instant, *size].map(crate::plot::repeats::float);
        let place = (whole(time.place(instant) * SIZE.0), whole((1.0 - bytes.place(size)) * SIZE.1));
        if before == Some(place) {
            continue;
        }
        let command = if before.is_none() { 'M' } else { 'L' };
        // Writing to a `String` cannot fail.
        let _ = write!(path, "{command}{},{}", place.0, place.1);
        before = Some(place);
    }
    path
}

/// The colours of lines in both themes, as the pictures have them.
pub(super) fn colours() -> String {
    let of = |theme: Theme| {
        let lines = Palette::of(theme).lines;
        let named = lines.into_iter().map(Rgb::css).enumerate().map(|(index, css)| format!("--line-{index}: {css};"));
        named.collect::<Vec<_>>().join(" ")
    };
    let (light, dark) = (of(Theme::Light), of(Theme::Dark));
    format!(
        ":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=\"light\"]) {{ {dark} }} }}\n\
         @media screen {{ :root[data-theme=\"dark\"] {{ {dark} }} }}\n"
    )
}
