//! One summary per cell, kernel and clock.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::figures::Figures;
use super::interval::{MedianInterval, median_interval};
use super::metric::MetricSummary;
use super::shape::Shape;
use crate::measurement::{Buffer, End, Outcome};
use crate::record::{KernelFacts, Record};
use crate::settings::{Axes, Clock};

/// The confidence of the intervals of medians.
const CONFIDENCE: f64 = 0.95;

/// What the repeats of one cell say together. Warm-ups are left out of all of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// Stable id of the cell.
    pub cell: String,
    /// Where it lies on the axes of its sweep.
    pub axes: Axes,
    /// The kernel that it ran on.
    pub kernel: KernelFacts,
    /// The clock that measured.
    pub clock: Clock,
    /// What ran it, in order of first appearance: more than one entry if an interrupted run was finished elsewhere.
    pub machines: Vec<String>,
    /// The cell as a whole.
    pub outcome: CellOutcome,
    /// How many repeats ended in which way.
    pub counts: Counts,
    /// Completion of the measured repeats, in nanoseconds.
    pub completion_ns: Option<Figures>,
    /// Range of the completion over its median (0.02 is 2 %).
    pub completion_spread: Option<f64>,
    /// An interval that holds the median of the completion, at 95 %. `None` where so few repeats support none.
    pub completion_interval: Option<MedianInterval>,
    /// What stands out among the completions, in the order of the run.
    pub completion_shape: Shape,
    /// Goodput of the measured repeats, in bits per second.
    pub goodput_bps: Option<Figures>,
    /// Range of the goodput over its median (0.02 is 2 %).
    pub goodput_spread: Option<f64>,
    /// An interval that holds the median of the goodput, at 95 %. `None` where so few repeats support none.
    pub goodput_interval: Option<MedianInterval>,
    /// What stands out among the goodputs, in the order of the run.
    pub goodput_shape: Shape,
    /// Numbers of the measured repeats that their programs printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSummary>,
    /// Buffers of the client's end.
    pub client: EndSummary,
    /// Buffers of the server's end.
    pub server: EndSummary,
    /// Chunks lost, in the repeats that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_chunks: Option<Figures>,
    /// Why repeats were not measured, each reason once, the most frequent first.
    pub reasons: Vec<Reason>,
    /// What a reader of the figures has to know, each remark once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// How many repeats ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Those whose figures stand.
    pub measured: u32,
    /// Those that lost chunks of a burst.
    pub incomplete: u32,
    /// Those that ran into their deadline.
    pub timed_out: u32,
    /// Those whose combination the kernel refused.
    pub invalid: u32,
    /// Those that the machine could not do.
    pub skipped: u32,
    /// Those that broke.
    pub failed: u32,
}

impl Counts {
    /// All repeats.
    pub const fn total(&self) -> u32 {
        self.measured + self.incomplete + self.timed_out + self.invalid + self.skipped + self.failed
    }

    /// Those that ended in that way.
    pub const fn of(&self, outcome: Outcome) -> u32 {
        match outcome {
            Outcome::Measured => self.measured,
            Outcome::Incomplete => self.incomplete,
            Outcome::TimedOut => self.timed_out,
            Outcome::Invalid => self.invalid,
            Outcome::Skipped => self.skipped,
            Outcome::Failed => self.failed,
        }
    }

    fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Measured => &mut self.measured,
            Outcome::Incomplete => &mut self.incomplete,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Invalid => &mut self.invalid,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Failed => &mut self.failed,
        } += 1;
    }

    /// The worst outcome among the repeats.
    fn worst(&self) -> CellOutcome {
        let worst = [Outcome::Failed, Outcome::TimedOut, Outcome::Incomplete, Outcome::Invalid, Outcome::Skipped]
            .into_iter()
            .find(|&outcome| self.of(outcome) > 0)
            .unwrap_or(Outcome::Measured);
        CellOutcome { worst, count: self.of(worst), repeats: self.total() }
    }
}

/// The outcome of a cell as a whole: measured if every repeat was, else the worst one and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CellOutcome {
    /// The worst outcome of a repeat: failed before timed out, incomplete, invalid, skipped and measured.
    pub worst: Outcome,
    /// Repeats with that outcome.
    pub count: u32,
    /// All repeats.
    pub repeats: u32,
}

impl fmt::Display for CellOutcome {
    /// As a person reads it: `measured`, `2 of 5 timed out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.worst {
            Outcome::Measured => return f.pad("measured"),
            Outcome::Incomplete => "incomplete",
            Outcome::TimedOut => "timed out",
            Outcome::Invalid => "invalid",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
        };
        if self.repeats == 1 { f.pad(word) } else { f.pad(&format!("{} of {} {word}", self.count, self.repeats)) }
    }
}

/// Buffers of one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndSummary {
    /// The receive buffer.
    pub rcvbuf: BufferSummary,
    /// The send buffer.
    pub sndbuf: BufferSummary,
}

/// One buffer of one end: as in the first measured repeat (or, if none was measured, the first that read it).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferSummary {
    /// Sizes in bytes; the peak is the largest of all repeats.
    #[serde(flatten)]
    pub buffer: Buffer,
    /// Whether other repeats had another initial or final size, or another verdict.
    pub differs: bool,
}

/// Why some repeats were not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How they ended.
    pub outcome: Outcome,
    /// Why, as recorded.
    pub text: String,
    /// How many ended so.
    pub count: u32,
}

/// Summarises records, in any order, by cell, kernel release and clock. Summaries are sorted by the values on the axes, then
/// by kernel and clock, then by first appearance.
///
/// A repeat whose machine did not come up far enough to say its release counts with the other repeats of its cell on
/// the same image.
pub fn summarise(records: &[Record]) -> Vec<CellSummary> {
    let mut summaries: Vec<CellSummary> =
        group(records).into_par_iter().filter_map(|repeats| summary(&repeats)).collect();
    summaries.sort_by(|a, b| {
        by_axes(&a.axes, &b.axes).then_with(|| a.kernel.release.cmp(&b.kernel.release)).then(a.clock.cmp(&b.clock))
    });
    summaries
}

/// The records that a summary was made of, warm-ups left out, in the order of their repeats.
pub fn select<'a>(records: &'a [Record], of: &CellSummary) -> Vec<&'a Record> {
    let mut selected: Vec<_> = group(records)
        .into_iter()
        .find(|repeats| {
            repeats.first().is_some_and(|first| {
                let first_release = repeats.iter().find_map(|record| record.kernel.release.as_ref());
                first.cell == of.cell && first.clock == of.clock && first_release == of.kernel.release.as_ref()
            })
        })
        .unwrap_or_default();
    selected.sort_by_key(|record| record.repeat);
    selected
}

/// The repeats of each cell in their order, warm-ups left out: what [`select`] finds for one cell, for all
/// of them at once.
pub fn by_cell<'a>(cells: &[CellSummary], records: &'a [Record]) -> Vec<Vec<&'a Record>> {
    let mut places: HashMap<(&str, Clock), Vec<usize>> = HashMap::with_capacity(cells.len());
    for (place, cell) in cells.iter().enumerate() {
        places.entry((&cell.cell, cell.clock)).or_default().push(place);
    }
    let mut repeats = vec![Vec::new(); cells.len()];
    for record in records.iter().filter(|record| !record.warmup) {
        let found = places.get(&(record.cell.as_str(), record.clock)).map_or(&[][..], Vec::as_slice);
        let same = |place: &&usize| cells[**place].kernel.release == record.kernel.release;
        // A machine that did not come up far enough counts with the others on its image, if there is one such kernel only.
        let on_image = || {
            let mut on_image = found.iter().filter(|place| cells[**place].kernel.image == record.kernel.image);
            let first = on_image.next();
            if on_image.next().is_some() { None } else { first }
        };
        if let Some(&place) = found.iter().find(same).or_else(on_image) {
            repeats[place].push(record);
        }
    }
    for cell in &mut repeats {
        cell.sort_by_key(|record| record.repeat);
    }
    repeats
}

/// The repeats of each cell, kernel release and clock, in order of first appearance.
fn group(records: &[Record]) -> Vec<Vec<&Record>> {
    let repeats = || records.iter().filter(|record| !record.warmup);
    // The releases that an image came up with. An image that came up with one only is known by it throughout.
    let mut releases: HashMap<(&str, &str, Clock), Vec<&str>> = HashMap::new();
    for record in repeats() {
        if let Some(release) = &record.kernel.release {
            let known = releases.entry((&record.cell, &record.kernel.image, record.clock)).or_default();
            if !known.contains(&release.as_str()) {
                known.push(release);
            }
        }
    }
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    let mut places = HashMap::new();
    for record in repeats() {
        let release = record.kernel.release.as_deref().or_else(|| {
            match releases.get(&(record.cell.as_str(), record.kernel.image.as_str(), record.clock))?[..] {
                [only] => Some(only),
                _ => None,
            }
        });
        let place = *places.entry((record.cell.as_str(), release, record.clock)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(record);
    }
    groups
}

/// By the value on each axis, axes in the order of the sweep file.
fn by_axes(a: &Axes, b: &Axes) -> Ordering {
    let named = |axes: &Axes| axes.0.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let values = |axes: &Axes| axes.0.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    // Cells of one sweep have the same axes. Those of several, taken together, are kept apart.
    named(a).cmp(&named(b)).then_with(|| values(a).cmp(&values(b)))
}

/// The summary of one cell's repeats, or `None` if there are none.
fn summary(repeats: &[&Record]) -> Option<CellSummary> {
    let first = repeats.first()?;
    let measured: Vec<_> =
        repeats.iter().copied().filter(|record| record.measurement.outcome == Outcome::Measured).collect();
    let mut counts = Counts::default();
    let mut machines: Vec<String> = Vec::new();
    for record in repeats {
        counts.add(record.measurement.outcome);
        if !machines.contains(&record.machine) {
            machines.push(record.machine.clone());
        }
    }
    let mut in_order = measured.clone();
    in_order.sort_by_key(|record| record.sequence);
    let figures = |pick: fn(&Record) -> Option<u64>| in_order.iter().copied().filter_map(pick).collect::<Vec<u64>>();
    let completions = figures(|record| record.measurement.completion_ns);
    let goodputs = figures(|record| record.measurement.goodput_bps);
    let metrics = MetricSummary::of_all(measured.iter().map(|record| &record.measurement.metrics));
    let (completion_ns, goodput_bps) = (Figures::of(completions.clone()), Figures::of(goodputs.clone()));
    // Buffers in the order of the repeats, so that the summary does not depend on the order of the run.
    let mut with_buffers = if measured.is_empty() { repeats.to_vec() } else { measured };
    with_buffers.sort_by_key(|record| record.repeat);
    Some(CellSummary {
        cell: first.cell.clone(),
        axes: first.axes.clone(),
        kernel: repeats.iter().find(|record| record.kernel.release.is_some()).unwrap_or(first).kernel.clone(),
        clock: first.clock,
        machines,
        outcome: counts.worst(),
        counts,
        completion_ns,
        completion_spread: completion_ns.and_then(|figures| figures.spread()),
        completion_interval: median_interval(&completions, CONFIDENCE),
        completion_shape: Shape::of(&completions),
        goodput_bps,
        goodput_spread: goodput_bps.and_then(|figures| figures.spread()),
        goodput_interval: median_interval(&goodputs, CONFIDENCE),
        goodput_shape: Shape::of(&goodputs),
        metrics,
        client: end(with_buffers.iter().map(|record| &record.measurement.client)),
        server: end(with_buffers.iter().map(|record| &record.measurement.server)),
        lost_chunks: Figures::of(repeats.iter().filter_map(|record| record.measurement.lost_chunks).collect()),
        reasons: reasons(repeats),
        remarks: remarks(repeats),
    })
}

/// The buffers of one end over its repeats.
fn end<'a>(repeats: impl Iterator<Item = &'a End> + Clone) -> EndSummary {
    EndSummary {
        rcvbuf: buffer(repeats.clone().map(|end| &end.rcvbuf)),
        sndbuf: buffer(repeats.map(|end| &end.sndbuf)),
    }
}

/// One buffer over its repeats.
fn buffer<'a>(repeats: impl Iterator<Item = &'a Buffer> + Clone) -> BufferSummary {
    let mut read = repeats.clone().filter(|buffer| buffer.initial.is_some());
    let Some(first) = read.next().or_else(|| repeats.clone().next()) else { return BufferSummary::default() };
    let without_peak = |buffer: &Buffer| (buffer.asked, buffer.initial, buffer.end, buffer.verdict);
    let differs = read.any(|buffer| without_peak(buffer) != without_peak(first));
    let peak = repeats.filter_map(|buffer| buffer.peak).max();
    BufferSummary { buffer: Buffer { peak, ..first.clone() }, differs }
}

/// The remarks of all repeats, each once.
fn remarks(repeats: &[&Record]) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for remark in repeats.iter().flat_map(|record| &record.measurement.remarks) {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    remarks
}

/// The reasons of repeats that were not measured, each once.
fn reasons(repeats: &[&Record]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for record in repeats {
        let outcome = record.measurement.outcome;
        if outcome == Outcome::Measured {
            continue;
        }
        let text = record.measurement.reason.as_deref().unwrap_or("no reason was recorded");
        match reasons.iter_mut().find(|reason| reason.outcome == outcome && reason.text == text) {
            Some(reason) => reason.count += 1,
            None => reasons.push(Reason { outcome, text: text.to_owned(), count: 1 }),
        }
    }
    reasons.sort_by(|a, b| b.count.cmp(&a.count).then(a.outcome.cmp(&b.outcome)).then_with(|| a.text.cmp(&b.text)));
    reasons
}

#[cfg(test)]
mod tests;
