//! Buffers over time: their sizes, what is in them and the windows, at both ends of a stream, as lines on one time axis.

use super::canvas::{Area, Canvas, Type, count, picture, px};
use super::ecdf::{by_id, name};
use super::error::PlotError;
use super::facts;
use super::heatmap::title;
use super::options::PlotOptions;
use super::repeats::{by_cell, float};
use super::scale::Scale;
use super::sheet::{Legend, MARGIN, Sheet, line_colour};
use super::space::Space;
use super::text::{width, wrap};
use super::tracks::{self, Kind, Track, Tracks};
use super::unit::Unit;
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;

/// Most cells on one picture.
const MAX_CELLS: usize = 6;
/// Cells side by side.
const MAX_COLUMNS: usize = 3;
const LETTERS: f64 = 11.0;
/// Left of each panel, for sizes.
const LEFT: i32 = 62;
const GAP: i32 = 22;
/// Above each panel, for its title.
const TITLE: i32 = 28;
/// Beneath the lower panel, for times.
const BENEATH: i32 = 56;

/// A cell that is drawn.
struct Drawn {
    name: String,
    tracks: Tracks,
}

/// Draws buffers over time as an SVG: for each chosen cell the end that receives above the end that sends, with the size of
/// the buffer, what is in it, and for TCP the advertised and the congestion window. Of each cell the first measured repeat is
/// drawn.
///
/// `chosen` are ids of cells or beginnings of ids. With none, the cell whose buffers changed most is taken.
///
/// # Errors
/// If there are no cells, an id names none, or none of the chosen has samples.
pub fn over_time(
    manifest: &Manifest,
    cells: &[CellSummary],
    records: &[Record],
    chosen: &[String],
    options: &PlotOptions,
) -> Result<String, PlotError> {
    if cells.is_empty() {
        return Err(PlotError::Empty);
    }
    let space = Space::of(manifest, cells);
    let repeats = by_cell(cells, records);
    let drawn = |cell: usize| {
        let tracks = tracks::of(manifest, cells.get(cell)?, repeats.get(cell)?)?;
        Some(Drawn { name: name(&space, cell), tracks })
    };
    let wanted = by_id(cells, chosen)?;
    let (mut blocks, lacking): (Vec<Drawn>, usize) = if chosen.is_empty() {
        let most = (0..cells.len())
            .filter_map(drawn)
            .reduce(|most, next| if next.tracks.growth() > most.tracks.growth() { next } else { most });
        (most.into_iter().collect(), 0)
    } else {
        let found: Vec<Drawn> = wanted.iter().copied().filter_map(drawn).collect();
        let lacking = wanted.len() - found.len();
        (found, lacking)
    };
    if blocks.is_empty() {
        return Err(PlotError::NoSamples);
    }
    blocks.truncate(MAX_CELLS);

    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|kind| blocks.iter().any(|b| b.tracks.kinds().any(|k| k == *kind))).collect();
    let sheet = sheet(manifest, cells, &space, &kinds, &blocks, (chosen.is_empty(), lacking), options);
    // Four are two by two.
    let columns = if blocks.len() == 4 { 2 } else { blocks.len().min(MAX_COLUMNS) };
    let (w, h) = match columns {
        1 => (860, 210),
        2 => (470, 180),
        _ => (330, 170),
    };
    let across = MARGIN + count(columns) * (LEFT + w + GAP) - GAP + MARGIN;
    let laid = sheet.lay(across);
    let top = laid.head();
    let names: Vec<Vec<String>> =
        blocks.iter().map(|block| wrap(&block.name, 12.0 * 1.12, f64::from(w + LEFT - 10), 2)).collect();
    let head = 17 * count(names.iter().map(Vec::len).max().unwrap_or(1)) + 4;
    let block = head + 2 * (TITLE + h) + BENEATH;
    let rows = count(blocks.len().div_ceil(columns));
    let size = (i64::from(across), i64::from(top + rows * block + laid.foot()));
    let time = tracks::time_scale(blocks.iter().map(|block| block.tracks.last()).max().unwrap_or(0));
    picture(size, options.theme, (&sheet.title, &sheet.facts.join(", ")), |canvas| {
        laid.draw_head(canvas);
        for (index, drawn) in blocks.iter().enumerate() {
            let x = MARGIN + LEFT + count(index % columns) * (LEFT + w + GAP);
            let y = top + count(index / columns) * block;
            let text = canvas.palette.text;
            for (line, name) in names.get(index).into_iter().flatten().enumerate() {
                canvas.text((x - LEFT, y + 8 + 17 * count(line)), name, Type::new(12.0, text).bold());
            }
            for (place, track) in drawn.tracks.ends.iter().enumerate() {
                let area = Area { x, y: y + head + TITLE + count(place) * (TITLE + h), w, h };
                panel(canvas, track, area, &time, &kinds);
            }
            times(canvas, &time, Area { x, y: y + head + 2 * (TITLE + h), w, h: 0 });
        }
        laid.draw_foot(canvas, top + rows * block);
    })
}

/// What stands around it.
fn sheet(
    manifest: &Manifest,
    cells: &[CellSummary],
    space: &Space,
    kinds: &[Kind],
    blocks: &[Drawn],
    (automatic, lacking): (bool, usize),
    options: &PlotOptions,
) -> Sheet {
    let repeat = match blocks {
        [first, rest @ ..] if rest.iter().all(|block| block.tracks.repeat == first.tracks.repeat) => {
            format!("Repeat {}", first.tracks.repeat)
        }
        _ => "The first measured repeat of each cell".to_owned(),
    };
    let which = if automatic && cells.len() > 1 { " of the cell whose buffers changed most" } else { "" };
    let heard = blocks.iter().any(|block| block.tracks.heard);
    let windows = kinds.iter().any(|kind| matches!(kind, Kind::Window | Kind::Congestion));
    let mut notes = vec![
        "Size and use are the kernel's memory, with its own overhead for each packet (SO_MEMINFO)".to_owned()
            + if windows { "; windows are bytes of data (TCP_INFO)." } else { "." },
        if blocks.iter().any(|block| block.tracks.watched) {
            "A program's sockets are looked at from outside (sock_diag): what happens between two looks is not seen."
        } else {
            "Each end looks at its socket between its own calls: what happens while it sleeps in one is not seen."
        }
        .to_owned(),
    ];
    if heard {
        notes.push(
            "Kernels before 6.2 do not tell the window that an end advertises: drawn is what its peer heard."
                .to_owned(),
        );
    }
    if lacking > 0 {
        let have = if lacking == 1 { "cell has" } else { "cells have" };
        notes.push(format!("{lacking} chosen {have} no samples."));
    }
    Sheet {
        title: title(manifest, options, "buffers over time"),
        facts: facts::all(manifest, cells, space),
        legend: Legend::Lines {
            label: format!("{repeat}{which}, both ends on one time axis"),
            names: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        },
        marks: Vec::new(),
        notes,
    }
}

/// One end: its grid, and its lines over it.
fn panel(canvas: &mut Canvas<'_>, track: &Track, area: Area, time: &Scale, kinds: &[Kind]) {
    let bytes = track.scale();
    let (rule, text, muted) = (canvas.palette.rule, canvas.palette.text, canvas.palette.muted);
    let Area { x, y, w, h } = area;
    canvas.text((x, y - 9), track.title, Type::new(LETTERS, muted));
    let at = |(instant, size): &(u64, u64)| {
        let across = px(time.place(float(*instant)) * f64::from(w));
        (x + across, y + h - px(bytes.place(float(*size)) * f64::from(h)))
    };
    let silent = track.lines.iter().all(|(_, points)| points.is_empty());
    let sizes = if silent { Vec::new() } else { bytes.ticks(Unit::Bytes, 4) };
    for (value, label) in sizes {
        let level = y + h - px(bytes.place(value) * f64::from(h));
        canvas.line((x, level), (x + w, level), rule, 1);
        canvas.text((x - 6, level), &label, Type::new(LETTERS, text).end());
    }
    for (value, _) in time.ticks(Unit::Nanoseconds, 6) {
        let place = x + px(time.place(value) * f64::from(w));
        canvas.line((place, y), (place, y + h), rule, 1);
    }
    canvas.line((x, y + h), (x + w, y + h), muted, 1);
    if silent {
        canvas.text((x + w / 2, y + h / 2), "no samples of this end", Type::new(LETTERS, muted).middle());
    }
    // What is in use jumps up and down: it lies beneath the others.
    let order = |kind: Kind| (kind != Kind::Used, kind);
    let mut lines: Vec<_> = track.lines.iter().collect();
    lines.sort_by_key(|(kind, _)| order(*kind));
    for (kind, points) in lines {
        let colour = line_colour(canvas, kinds.iter().position(|known| known == kind).unwrap_or(0));
        let mut points: Vec<(i32, i32)> = points.iter().map(at).collect();
        points.dedup();
        match points.as_slice() {
            [] => {}
            [only] => canvas.dot(*only, 3, colour),
            line => canvas.path(line, colour, if *kind == Kind::Used { 1 } else { 2 }),
        }
    }
}

/// The time axis beneath both ends.
fn times(canvas: &mut Canvas<'_>, time: &Scale, Area { x, y, w, .. }: Area) {
    let (text, muted) = (canvas.palette.text, canvas.palette.muted);
    for (value, label) in time.ticks(Unit::Nanoseconds, 6) {
        let place = x + px(time.place(value) * f64::from(w));
        canvas.line((place, y), (place, y + 4), muted, 1);
        let half = px(width(&label, LETTERS) / 2.0);
        let centre = place.min(x + w + GAP / 2 - half);
        canvas.text((centre, y + 13), &label, Type::new(LETTERS, text).middle());
    }
    canvas.text((x, y + 31), "time since the first send", Type::new(LETTERS, muted));
}
