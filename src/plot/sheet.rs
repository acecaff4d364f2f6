//! What stands around every picture: title, facts and legend above it, reasons and remarks beneath.

use super::canvas::{Area, Canvas, Type, count, px};
use super::colour::{Map, Rgb};
use super::scale::Scale;
use super::text::{bold_width, fit, lines, width, wrap};
use super::tile::{self, Side};
use super::unit::Unit;
use crate::explain::spoken;
use crate::measurement::Outcome;

/// Pixels around everything.
pub(super) const MARGIN: i32 = 24;
const TITLE: f64 = 18.0;
const FACT: f64 = 12.0;
const NOTE: f64 = 11.0;
const LINE: i32 = 18;
const BAR: Area = Area { x: MARGIN, y: 0, w: 380, h: 14 };

/// A mark in cells that the legend explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// A finding, by its letter and its name.
    Finding(char, &'static str),
    Knee,
    Given,
    Spread,
    Partly,
    Missing(Outcome),
    Without,
    Absent,
}

impl Mark {
    /// The letter of a finding and what it is called.
    pub(crate) fn finding(self) -> Option<(char, String)> {
        match self {
            Self::Finding(letter, _) => Some((letter, self.words())),
            _ => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Finding(_, name) => spoken(name),
            Self::Knee => {
                "from here on more does not help: within 5 % of the best, or within the repeats' range".to_owned()
            }
            Self::Given => "the kernel gave another size than asked".to_owned(),
            Self::Spread => format!("repeats range over more than {:.0} % of their median", tile::WIDE * 100.0),
            Self::Partly => "not all repeats were measured".to_owned(),
            Self::Missing(outcome) => tile::word(outcome).to_owned(),
            Self::Without => "has no such figure".to_owned(),
            Self::Absent => "not run".to_owned(),
        }
    }
}

/// What colours stand for.
#[derive(Clone, Debug)]
pub(super) enum Legend {
    /// A scale.
    Bar { label: String, scale: Scale, unit: Unit, map: Map },
    /// Lines, each with its name.
    Lines { label: String, names: Vec<String> },
    /// Only a sentence.
    Words(String),
}

/// Everything around a picture.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) facts: Vec<String>,
    pub(super) legend: Legend,
    pub(super) marks: Vec<Mark>,
    pub(super) notes: Vec<String>,
}

/// A sheet as it is broken into lines for a width.
pub(super) struct Laid<'a> {
    sheet: &'a Sheet,
    width: i32,
    facts: Vec<String>,
    /// The sentence of the legend.
    legend: Vec<String>,
    /// Rows of marks, each with its distance from the left.
    marks: Vec<Vec<(i32, Mark)>>,
    /// Rows of names of lines, with their number.
    names: Vec<Vec<(i32, usize)>>,
    notes: Vec<String>,
}

/// Most lines of the legend's sentence.
const SENTENCE: usize = 3;

/// A title that fits: of `sweep: what was measured` the sweep's name is cut, for the rest is shorter and says more.
fn fit_title(title: &str, room: f64) -> String {
    let size = TITLE * 1.12;
    let Some((name, what)) = title.rsplit_once(": ").filter(|_| width(title, size) > room) else {
        return fit(title, size, room);
    };
    let left = room - width(": ", size) - width(what, size);
    if left < room / 4.0 { fit(title, size, room) } else { format!("{}: {what}", fit(name, size, left)) }
}

/// Puts items of those widths into rows, and returns each one's distance from the left.
fn flow<T: Copy>(items: impl Iterator<Item = (T, f64)>, room: i32) -> Vec<Vec<(i32, T)>> {
    let mut rows: Vec<Vec<(i32, T)>> = Vec::new();
    let mut next = 0;
    for (item, wide) in items {
        let wide = px(wide);
        match rows.last_mut() {
            Some(row) if next + wide <= room => row.push((next, item)),
            _ => {
                rows.push(vec![(0, item)]);
                next = 0;
            }
        }
        next += wide + 22;
    }
    rows
}

impl Sheet {
    /// Breaks it into lines for a picture of that width.
    pub(super) fn lay(&self, width_px: i32) -> Laid<'_> {
        let room = width_px - 2 * MARGIN;
        let mut marks = self.marks.clone();
        marks.sort();
        let names = match &self.legend {
            Legend::Lines { names, .. } => names.as_slice(),
            Legend::Bar { .. } | Legend::Words(_) => &[],
        };
        let most = f64::from(room) - 40.0;
        let sentence = match &self.legend {
            Legend::Bar { label, scale, .. } => format!("{label} ({})", scale.steps()),
            Legend::Lines { label, .. } => label.clone(),
            Legend::Words(words) => words.clone(),
        };
        Laid {
            sheet: self,
            width: width_px,
            facts: lines(&self.facts, FACT, f64::from(room)),
            legend: wrap(&sentence, FACT, f64::from(room), SENTENCE),
            marks: flow(marks.into_iter().map(|mark| (mark, width(&mark.words(), NOTE) + 26.0)), room),
            names: flow(names.iter().enumerate().map(|(i, name)| (i, width(name, FACT).min(most) + 34.0)), room),
            notes: self.notes.iter().flat_map(|note| wrap(note, NOTE, f64::from(room), 2)).collect(),
        }
    }
}

impl Laid<'_> {
    /// Height of what stands above the picture.
    pub(super) fn head(&self) -> i32 {
        let legend = match self.sheet.legend {
            Legend::Bar { .. } => 60 - LINE,
            Legend::Lines { .. } => 22 - LINE + LINE * count(self.names.len()),
            Legend::Words(_) => 24 - LINE,
        };
        let legend = legend + LINE * count(self.legend.len());
        MARGIN + 30 + LINE * count(self.facts.len()) + 20 + legend + self.marks_height() + 12
    }

    fn marks_height(&self) -> i32 {
        20 * count(self.marks.len())
    }

    /// Height of what stands beneath it.
    pub(super) fn foot(&self) -> i32 {
        let notes = if self.notes.is_empty() { 0 } else { 10 + 16 * count(self.notes.len()) };
        notes + MARGIN
    }

    /// Draws what stands above.
    pub(super) fn draw_head(&self, canvas: &mut Canvas<'_>) {
        let (text, muted) = (canvas.palette.text, canvas.palette.muted);
        let room = f64::from(self.width - 2 * MARGIN);
        let mut y = MARGIN + 8;
        let title = fit_title(&self.sheet.title, room);
        debug_assert!(bold_width(&title, TITLE) <= room + 1.0);
        canvas.text((MARGIN, y), &title, Type::new(TITLE, text).bold());
        y += 30;
        for line in &self.facts {
            canvas.text((MARGIN, y), line, Type::new(FACT, muted));
            y += LINE;
        }
        y += 12;
        for line in &self.legend {
            canvas.text((MARGIN, y), line, Type::new(FACT, text));
            y += LINE;
        }
        y -= LINE;
        match &self.sheet.legend {
            Legend::Bar { scale, unit, map, .. } => {
                bar(canvas, y + 14, scale, *unit, *map);
                y += 60;
            }
            Legend::Lines { .. } => y = self.draw_names(canvas, y + 22),
            Legend::Words(_) => y += 24,
        }
        for row in &self.marks {
            for &(x, mark) in row {
                let area = Area { x: MARGIN + x, y: y - 8, w: 20, h: 15 };
                swatch(canvas, area, mark);
                canvas.text((area.x + 26, y), &mark.words(), Type::new(NOTE, muted));
            }
            y += 20;
        }
    }

    fn draw_names(&self, canvas: &mut Canvas<'_>, mut y: i32) -> i32 {
        let text = canvas.palette.text;
        let Legend::Lines { names, .. } = &self.sheet.legend else { return y };
        for row in &self.names {
            for &(x, index) in row {
                let Some(name) = names.get(index) else { continue };
                let colour = line_colour(canvas, index);
                canvas.line((MARGIN + x, y), (MARGIN + x + 26, y), colour, 3);
                let name = fit(name, FACT, f64::from(self.width - 2 * MARGIN) - 40.0);
                canvas.text((MARGIN + x + 34, y), &name, Type::new(FACT, text));
            }
            y += LINE;
        }
        y
    }

    /// Draws what stands beneath, from `y` on.
    pub(super) fn draw_foot(&self, canvas: &mut Canvas<'_>, y: i32) {
        let muted = canvas.palette.muted;
        for (index, note) in self.notes.iter().enumerate() {
            canvas.text((MARGIN, y + 14 + 16 * count(index)), note, Type::new(NOTE, muted));
        }
    }
}

/// The colour of a line, in turn.
pub(super) fn line_colour(canvas: &Canvas<'_>, index: usize) -> Rgb {
    let lines = canvas.palette.lines;
    lines[index % lines.len()]
}

/// A bar of all colours, with ticks.
fn bar(canvas: &mut Canvas<'_>, y: i32, scale: &Scale, unit: Unit, map: Map) {
    let steps = 76;
    for step in 0..steps {
        let place = (f64::from(step) + 0.5) / f64::from(steps);
        let w = BAR.w / steps;
        // Wider by one, so that no background shows between two steps.
        let over = i32::from(step + 1 < steps);
        canvas.rect(Area { x: BAR.x + step * w, y, w: w + over, h: BAR.h }, map.at(place));
    }
    let (text, muted) = (canvas.palette.text, canvas.palette.muted);
    let level = y + BAR.h + 12;
    let ticks: Vec<(i32, String)> = scale
        .ticks(unit, 5)
        .into_iter()
        .map(|(value, label)| (BAR.x + px(scale.place(value) * f64::from(BAR.w)), label))
        .collect();
    // Both ends are told, by the round figure that is there or else by what it is.
    let end = |x: i32, value: f64| {
        let round = ticks.iter().find(|(at, _)| (at - x).abs() <= 1).map(|(_, label)| label.clone());
        round.unwrap_or_else(|| if value == 0.0 { "0".to_owned() } else { unit.end(value) })
    };
    let (low, high) = (end(BAR.x, scale.low), end(BAR.x + BAR.w, scale.high));
    canvas.text((BAR.x, level), &low, Type::new(NOTE, text));
    canvas.text((BAR.x + BAR.w, level), &high, Type::new(NOTE, text).end());
    let apart = 7.0;
    let mut free = f64::from(BAR.x) + width(&low, NOTE) + apart;
    let last = f64::from(BAR.x + BAR.w) - width(&high, NOTE) - apart;
    for (x, label) in ticks {
        let half = width(&label, NOTE) / 2.0;
        if f64::from(x) - half >= free && f64::from(x) + half <= last {
            canvas.line((x, y + BAR.h), (x, y + BAR.h + 4), muted, 1);
            canvas.text((x, level), &label, Type::new(NOTE, text).middle());
            free = f64::from(x) + half + apart;
        }
    }
}

/// An example of a mark.
fn swatch(canvas: &mut Canvas<'_>, area: Area, mark: Mark) {
    let (text, rule, ground) = (canvas.palette.text, canvas.palette.rule, canvas.palette.hatch_ground);
    match mark {
        Mark::Missing(outcome) => return tile::hatch(canvas, area, outcome),
        Mark::Without => return canvas.rect(area, ground),
        Mark::Finding(..) | Mark::Knee | Mark::Given | Mark::Spread | Mark::Partly | Mark::Absent => {
            canvas.frame(area, rule);
        }
    }
    match mark {
        Mark::Finding(letter, _) => tile::letters(canvas, area, letter.encode_utf8(&mut [0; 4]), text),
        Mark::Knee => tile::bracket(canvas, area, text, Side::Left),
        Mark::Given => tile::wedge(canvas, area, text),
        Mark::Spread => tile::beam(canvas, area, text),
        Mark::Partly => tile::corner(canvas, area, text),
        Mark::Missing(_) | Mark::Without | Mark::Absent => {}
    }
}
