//! What holds between keys, and for all cells of a sweep: caps, clashes, cells that are one and the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::settings::{Axes, Conflict, Key, Limit, Preset, Settings, Value, Work, canonical};
use crate::units::Bytes;

use super::axis::{AxisDraft, MAX_LISTED};
use super::cells::{Cells, Origin, Point};
use super::check::Draft;
use super::error::{Place, SpecError};
use super::run::RunOptions;
use super::sweep::{Axis, Sweep};
use super::unknown::{count, split};

/// Most cells of a sweep.
pub const MAX_CELLS: Limit = Limit { name: "MAX_CELLS", max: 100_000 };
/// Most repeats of all cells of a sweep together, warm-ups included.
pub const MAX_RUNS: Limit = Limit { name: "MAX_RUNS", max: 1_000_000 };
/// Most bytes in one burst of an echo.
pub const MAX_BURST_BYTES: Limit = Limit { name: "MAX_BURST_BYTES", max: 1 << 30 };

/// Most places named in one error.
const MAX_PLACES: usize = 8;

impl Draft {
    /// The sweep, if nothing is wrong with it.
    pub(super) fn finish(mut self) -> Result<Sweep, Vec<SpecError>> {
        self.fixed_and_axis();
        let sweep = self.sweep();
        if self.bounds(&sweep) {
            let cells = sweep.cells();
            let points: Vec<Point<'_>> = cells.points().collect();
            self.clashes(&cells, &points);
            self.programs(&cells, &points);
            if self.errors.is_empty() {
                self.twins(&cells, &points);
            }
            if self.errors.is_empty() && points.is_empty() {
                self.nothing_left();
            }
        }
        if self.errors.is_empty() { Ok(sweep) } else { Err(self.errors) }
    }

    /// What was understood so far.
    fn sweep(&self) -> Sweep {
        let mut run = RunOptions::default();
        for setting in &self.run {
            (setting.key.set)(&mut run, &setting.value);
        }
        let axes = self.axes.iter().map(|axis| Axis {
            name: axis.key.name().to_owned(),
            path: axis.key.path.to_owned(),
            values: axis.values.iter().map(|(value, _)| value.clone()).collect(),
        });
        Sweep {
            name: self.name.clone().unwrap_or_default(),
            description: self.description.clone(),
            run,
            fixed: self.fixed.iter().map(|setting| (setting.key.path.to_owned(), setting.value.clone())).collect(),
            zip: (0..self.zips.len())
                .map(|zip| self.zipped(zip).map(|axis| axis.key.path.to_owned()).collect())
                .collect(),
            exclude: self
                .excludes
                .iter()
                .map(|exclude| {
                    let named = exclude.named.iter().map(|(index, values)| {
                        let key = self.axes[*index].key;
                        Axis { name: key.name().to_owned(), path: key.path.to_owned(), values: values.clone() }
                    });
                    named.collect()
                })
                .collect(),
            include: self
                .includes
                .iter()
                .map(|include| {
                    let names = self.axes.iter().map(|axis| axis.key.name().to_owned());
                    Axes(names.zip(include.values.iter().cloned()).collect())
                })
                .collect(),
            presets: self.presets(),
            exec: self.exec.template().map(Box::new),
            axes: axes.collect(),
        }
    }

    /// The axes of the [[zip]] of that number.
    fn zipped(&self, zip: usize) -> impl Iterator<Item = &AxisDraft> {
        self.axes.iter().filter(move |axis| axis.zip == Some(zip))
    }

    /// What the presets that are named stand for.
    fn presets(&self) -> BTreeMap<String, Axes> {
        let fixed = self.fixed.iter().map(|setting| (setting.key, &setting.value));
        let axes = self.axes.iter().flat_map(|axis| axis.values.iter().map(|(value, _)| (axis.key, value)));
        let included = self
            .includes
            .iter()
            .flat_map(|include| include.named.iter().map(|(index, value)| (self.axes[*index].key, value)));
        fixed
            .chain(axes)
            .chain(included)
            .filter_map(|(key, value): (&Key, &Value)| key.preset(value))
            .map(|preset| (preset.name.to_owned(), preset.values()))
            .collect()
    }

    /// Keys that are both fixed and an axis.
    fn fixed_and_axis(&mut self) {
        let both = self.axes.iter().filter_map(|axis| {
            self.fixed.iter().find(|setting| std::ptr::eq(setting.key, axis.key)).map(|setting| (setting, axis))
        });
        let errors: Vec<_> = both
            .map(|(setting, axis)| {
                SpecError::new(
                    format!("`{}` is set to one value and is an axis too", axis.key.path),
                    "leave one of the two out",
                )
                .at(&setting.place, "set here")
                .at(&axis.place, "an axis here")
            })
            .collect();
        self.errors.extend(errors);
    }

    /// Checks the size of the grid; false if the cells are too many to be looked at. Nothing of them is made before.
    fn bounds(&mut self, sweep: &Sweep) -> bool {
        let (grid, included) = (sweep.grid_count(), sweep.include.len() as u64);
        let factors: Vec<String> = sweep.lengths().iter().map(ToString::to_string).collect();
        let mut factors = factors.join(" × ");
        if included > 0 {
            factors = format!("{factors} + {included}");
        }
        let most = grid.saturating_add(included);
        if most > MAX_CELLS.max {
            let before = if sweep.exclude.is_empty() { "" } else { ", before any is left out," };
            let error = SpecError::new(
                format!("{factors} = {most} cells{before} are beyond {} ({})", MAX_CELLS.name, MAX_CELLS.max),
                "take values off the axes, or split the sweep",
            );
            self.errors.push(self.at_axes(error));
            return false;
        }
        let runs = sweep.run_count();
        if runs > MAX_RUNS.max {
            let mut error = SpecError::new(
                format!(
                    "{} cells × {} repeats = {runs} runs are beyond {} ({})",
                    sweep.cell_count(),
                    u64::from(sweep.run.repeat) + u64::from(sweep.run.warmup),
                    MAX_RUNS.name,
                    MAX_RUNS.max
                ),
                "repeat less often, take values off the axes, or split the sweep",
            );
            for setting in self.run.iter().filter(|setting| matches!(setting.key.path, "run.repeat" | "run.warmup")) {
                error = error.at(&setting.place, format!("times {}", setting.value));
            }
            self.errors.push(self.at_axes(error));
        }
        true
    }

    /// Adds the place of each axis.
    pub(super) fn at_axes(&self, error: SpecError) -> SpecError {
        let axes = self.axes.iter().filter(|axis| axis.values.len() > 1).take(MAX_PLACES);
        axes.fold(error, |error, axis| error.at(&axis.place, count(axis.values.len(), "value")))
    }

    /// Combinations that no kernel could make sense of, each kind of them once.
    fn clashes(&mut self, cells: &Cells<'_>, points: &[Point<'_>]) {
        let fixed = self.fixed.iter().map(|setting| setting.key.path);
        let paths: Vec<&str> = fixed.chain(self.axes.iter().map(|axis| axis.key.path)).collect();
        let mut clashes: Vec<Clash> = Vec::new();
        for point in points {
            let settings = cells.settings(point);
            let set = |path: &str| paths.contains(&path) || cells.preset_sets(point, path);
            for conflict in settings.conflicts(&set).into_iter().chain(burst(&settings)) {
                if conflict.keys.iter().any(|key| self.broken.contains(key)) {
                    continue;
                }
                let known = clashes.iter().position(|clash| clash.conflict.keys == conflict.keys);
                let known = known.unwrap_or_else(|| {
                    let seen = vec![BTreeSet::new(); self.axes.len()];
                    clashes.push(Clash { conflict, first: cells.axes(point), count: 0, seen, included: Vec::new() });
                    clashes.len() - 1
                });
                let clash = &mut clashes[known];
                clash.count += 1;
                match &point.origin {
                    Origin::Grid(positions) => {
                        for (seen, &position) in clash.seen.iter_mut().zip(positions) {
                            seen.insert(position);
                        }
                    }
                    Origin::Included(index) => clash.included.push(*index),
                }
            }
        }
        let errors: Vec<_> = clashes.iter().map(|clash| clash.error(self, points.len())).collect();
        self.errors.extend(errors);
    }

    /// Combinations of axis values that come to the same cell.
    fn twins(&mut self, cells: &Cells<'_>, points: &[Point<'_>]) {
        let mut seen: HashMap<String, &Point<'_>> = HashMap::new();
        let mut pair = None;
        let mut count = 0usize;
        for point in points {
            match seen.entry(canonical(&cells.settings(point))) {
                std::collections::hash_map::Entry::Occupied(first) => {
                    count += 1;
                    pair.get_or_insert((*first.get(), point));
                }
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(point);
                }
            }
        }
        if let Some((first, second)) = pair {
            self.errors.push(self.twin(cells, [first, second], count));
        }
    }

    /// The error of two combinations that come to the same cell.
    fn twin(&self, cells: &Cells<'_>, [first, second]: [&Point<'_>; 2], count: usize) -> SpecError {
        let more = if count > 1 { format!(", and {} more pairs do", count - 1) } else { String::new() };
        if let Origin::Included(index) = second.origin {
            let mut error = SpecError::new(
                format!("`{}` is included and there already{more}", cells.axes(second)),
                "leave the [[include]] out: each cell is measured `run.repeat` times anyway",
            )
            .at(&self.includes[index].place, "there already");
            if let Origin::Included(earlier) = first.origin {
                error = error.at(&self.includes[earlier].place, "first here");
            } else if first.values != second.values {
                error = SpecError::new(
                    format!(
                        "`{}` is included, and comes to the same cell as `{}`{more}",
                        cells.axes(second),
                        cells.axes(first)
                    ),
                    "leave the [[include]] out, or the key that overrides one of its values",
                )
                .at(&self.includes[index].place, "the same cell");
            }
            return error;
        }
        let mut error = SpecError::new(
            format!("`{}` and `{}` come to the same cell{more}", cells.axes(first), cells.axes(second)),
            "nothing else tells them apart: take one of the values off, or the key that overrides the axis (a key for one end wins over one for both, and any key over a preset)",
        );
        let (Origin::Grid(first), Origin::Grid(second)) = (&first.origin, &second.origin) else { return error };
        let differing = self.axes.iter().enumerate().filter(|(index, _)| first[*index] != second[*index]);
        let mut overriding: Vec<(&Place, &Key)> = Vec::new();
        for (index, axis) in differing.take(MAX_PLACES) {
            error = error.at(&axis.values[first[index]].1, "one").at(&axis.values[second[index]].1, "the other");
            let name = split(axis.key.path).1;
            let specific = self.fixed.iter().filter(|setting| {
                setting.key.specificity() > axis.key.specificity()
                    && setting.key.path.split('.').next() == axis.key.path.split('.').next()
                    && split(setting.key.path).1 == name
            });
            overriding.extend(specific.map(|setting| (&setting.place, setting.key)));
        }
        overriding
            .iter()
            .fold(error, |error, (place, key)| error.at(place, format!("`{}` wins over the axis", key.path)))
    }

    /// The value of a fixed key, or an axis, or the preset that sets the key.
    fn setter(&self, path: &str) -> Option<Setter<'_>> {
        let presets = |key: &Key, value: &Value| key.preset(value).is_some_and(|preset: &Preset| preset.has(path));
        let fixed = self.fixed.iter().find(|setting| setting.key.path == path);
        let axis = self.axes.iter().position(|axis| axis.key.path == path);
        if let Some(setting) = fixed {
            return Some(Setter::Fixed(&setting.place, "is set here"));
        }
        if let Some(setting) = self.fixed.iter().find(|setting| axis.is_none() && presets(setting.key, &setting.value))
        {
            return Some(Setter::Fixed(&setting.place, "is set by this preset"));
        }
        let index = axis.or_else(|| {
            self.axes.iter().position(|axis| axis.values.iter().any(|(value, _)| presets(axis.key, value)))
        })?;
        Some(Setter::Axis(index, &self.axes[index]))
    }
}

/// What sets a key of a clash.
enum Setter<'a> {
    /// Its place, and what it does there.
    Fixed(&'a Place, &'static str),
    Axis(usize, &'a AxisDraft),
}

/// A conflict, with the cells that have it.
struct Clash {
    conflict: Conflict,
    /// Where the first of these cells lies.
    first: Axes,
    /// How many there are.
    count: usize,
    /// For each axis, the positions of those of the grid on it.
    seen: Vec<BTreeSet<usize>>,
    /// Those that are added to the grid, by their number.
    included: Vec<usize>,
}

impl Clash {
    fn error(&self, draft: &Draft, cells: usize) -> SpecError {
        let mut message = self.conflict.message.clone();
        let mut places: Vec<(&Place, String)> = Vec::new();
        let mut narrowed: Vec<String> = Vec::new();
        let gridless = self.included.len() == self.count;
        for path in self.conflict.keys {
            match draft.setter(path) {
                None => {}
                Some(Setter::Fixed(place, how)) => places.push((place, format!("`{path}` {how}"))),
                // Only cells that were added: what they have on the axis is in their own place.
                Some(Setter::Axis(..)) if gridless => {}
                Some(Setter::Axis(index, axis)) if self.seen[index].len() == axis.values.len() => {
                    places.push((&axis.place, format!("for every value of `{}`", axis.key.name())));
                }
                Some(Setter::Axis(index, axis)) => {
                    let values: Vec<_> = self.seen[index].iter().map(|&position| &axis.values[position]).collect();
                    let mut shown: Vec<_> = values.iter().map(|(value, _)| axis.key.kind.show(value)).collect();
                    // The rows of a zip may have the same value.
                    shown.dedup();
                    if shown.len() > MAX_LISTED {
                        let more = shown.len() - MAX_LISTED;
                        shown.truncate(MAX_LISTED);
                        shown.push(format!("one of {more} more"));
                    }
                    let narrow = format!("{} is {}", axis.key.name(), shown.join(" or "));
                    if narrowed.contains(&narrow) {
                        continue;
                    }
                    narrowed.push(narrow);
                    places
                        .extend(values.iter().take(MAX_PLACES).map(|(_, place)| (place, "with this value".to_owned())));
                }
            }
        }
        let included = self.included.iter().take(MAX_PLACES);
        places.extend(included.map(|&index| (&draft.includes[index].place, "in this cell".to_owned())));
        // A range is one place for many values.
        let mut seen: Vec<(*const (), Range<usize>)> = Vec::new();
        places.retain(|(place, _)| {
            let this = (Arc::as_ptr(&place.source).cast::<()>(), place.span.clone());
            let new = !seen.contains(&this);
            seen.push(this);
            new
        });
        let mut fix = self.conflict.fix.to_owned();
        if self.count < cells {
            let such = format!("in {} of {cells} cells", self.count);
            if narrowed.is_empty() {
                message = format!("{message} ({such}, the first `{}`)", self.first);
            } else {
                message = format!("{message} ({such}: where {})", narrowed.join(" and "));
                fix.push_str("; or take the value off the axis, or leave such cells out with [[exclude]]");
            }
        }
        places.iter().fold(SpecError::new(message, fix), |error, (place, label)| error.at(place, label.clone()))
    }
}

/// A burst beyond the cap.
fn burst(settings: &Settings) -> Option<Conflict> {
    let work = &settings.workload;
    (work.kind == Work::Echo && work.burst_bytes() > MAX_BURST_BYTES.max).then(|| Conflict {
        keys: &["workload.chunk_count", "workload.chunk_size"],
        message: format!(
            "a burst of {} chunks of {} is {}, beyond {} ({})",
            work.chunk_count,
            Bytes(work.chunk_bytes().into()),
            Bytes(work.burst_bytes()).short(),
            MAX_BURST_BYTES.name,
            Bytes(MAX_BURST_BYTES.max)
        ),
        fix: "send fewer or smaller chunks",
    })
}
