//! What holds between keys, and for all cells of a sweep: caps, clashes, cells that are one and the same.

use std::collections::{BTreeSet, HashMap};

use crate::settings::{Axes, Conflict, Key, Limit, Settings, Work, canonical};
use crate::units::Bytes;

use super::axis::AxisDraft;
use super::check::Draft;
use super::error::{Place, SpecError};
use super::run::RunOptions;
use super::sweep::{Axis, Cells, Sweep};
use super::unknown::split;

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
        let in_bounds = self.bounds(&sweep);
        if in_bounds && sweep.cell_count() > 0 {
            self.clashes(&sweep);
            if self.errors.is_empty() {
                self.twins(&sweep);
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
            axes: axes.collect(),
        }
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

    /// Checks the size of the grid; false if the cells are too many to be looked at.
    fn bounds(&mut self, sweep: &Sweep) -> bool {
        let (cells, runs) = (sweep.cell_count(), sweep.run_count());
        let factors: Vec<String> = self.axes.iter().map(|axis| axis.values.len().to_string()).collect();
        let factors = factors.join(" × ");
        if cells > MAX_CELLS.max {
            let error = SpecError::new(
                format!("{factors} = {cells} cells are beyond {} ({})", MAX_CELLS.name, MAX_CELLS.max),
                "take values off the axes, or split the sweep",
            );
            self.errors.push(self.at_axes(error));
            return false;
        }
        if runs > MAX_RUNS.max {
            let mut error = SpecError::new(
                format!(
                    "{cells} cells × {} repeats = {runs} runs are beyond {} ({})",
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
    fn at_axes(&self, error: SpecError) -> SpecError {
        let axes = self.axes.iter().filter(|axis| axis.values.len() > 1).take(MAX_PLACES);
        axes.fold(error, |error, axis| error.at(&axis.place, format!("{} values", axis.values.len())))
    }

    /// Combinations that no kernel could make sense of, each kind of them once.
    fn clashes(&mut self, sweep: &Sweep) {
        let paths: Vec<&str> = sweep
            .fixed
            .iter()
            .map(|(path, _)| path)
            .chain(sweep.axes.iter().map(|axis| &axis.path))
            .map(String::as_str)
            .collect();
        let cells = sweep.cells();
        let mut clashes: Vec<Clash> = Vec::new();
        for index in 0..usize::try_from(sweep.cell_count()).unwrap_or(0) {
            let positions = cells.positions(index);
            let settings = cells.settings(&positions);
            for conflict in settings.conflicts(&|path| paths.contains(&path)).into_iter().chain(burst(&settings)) {
                if conflict.keys.iter().any(|key| self.broken.contains(key)) {
                    continue;
                }
                let known = clashes.iter().position(|clash| clash.conflict.keys == conflict.keys);
                let known = known.unwrap_or_else(|| {
                    let seen = vec![BTreeSet::new(); positions.len()];
                    clashes.push(Clash { conflict, first: cells.axes(&positions), count: 0, seen });
                    clashes.len() - 1
                });
                let clash = &mut clashes[known];
                clash.count += 1;
                for (seen, &position) in clash.seen.iter_mut().zip(&positions) {
                    seen.insert(position);
                }
            }
        }
        let errors: Vec<_> = clashes.iter().map(|clash| clash.error(self, sweep)).collect();
        self.errors.extend(errors);
    }

    /// Combinations of axis values that come to the same cell.
    fn twins(&mut self, sweep: &Sweep) {
        let cells = sweep.cells();
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut pair = None;
        let mut count = 0usize;
        for index in 0..usize::try_from(sweep.cell_count()).unwrap_or(0) {
            match seen.entry(canonical(&cells.settings(&cells.positions(index)))) {
                std::collections::hash_map::Entry::Occupied(first) => {
                    count += 1;
                    pair.get_or_insert((*first.get(), index));
                }
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(index);
                }
            }
        }
        if let Some((first, second)) = pair {
            self.errors.push(self.twin(&cells, [first, second], count));
        }
    }

    /// The error of two combinations that come to the same cell.
    fn twin(&self, cells: &Cells<'_>, pair: [usize; 2], count: usize) -> SpecError {
        let [first, second] = pair.map(|index| cells.positions(index));
        let more = if count > 1 { format!(", and {} more pairs do", count - 1) } else { String::new() };
        let mut error = SpecError::new(
            format!("`{}` and `{}` come to the same cell{more}", cells.axes(&first), cells.axes(&second)),
            "nothing else tells them apart: take one of the values off, or the key that overrides the axis (a key for one end wins over one for both)",
        );
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

    /// The value of a fixed key, or an axis.
    fn setter(&self, path: &str) -> Option<Setter<'_>> {
        let fixed = self.fixed.iter().find(|setting| setting.key.path == path);
        let axis = || self.axes.iter().position(|axis| axis.key.path == path);
        fixed
            .map(|setting| Setter::Fixed(&setting.place))
            .or_else(|| axis().map(|index| Setter::Axis(index, &self.axes[index])))
    }
}

/// What sets a key of a clash.
enum Setter<'a> {
    Fixed(&'a Place),
    Axis(usize, &'a AxisDraft),
}

/// A conflict, with the cells that have it.
struct Clash {
    conflict: Conflict,
    /// Where the first of these cells lies.
    first: Axes,
    /// How many there are.
    count: u64,
    /// For each axis, the positions of these cells on it.
    seen: Vec<BTreeSet<usize>>,
}

impl Clash {
    fn error(&self, draft: &Draft, sweep: &Sweep) -> SpecError {
        let mut message = self.conflict.message.clone();
        let mut places: Vec<(&Place, String)> = Vec::new();
        let mut narrowed: Vec<String> = Vec::new();
        for path in self.conflict.keys {
            match draft.setter(path) {
                None => {}
                Some(Setter::Fixed(place)) => places.push((place, format!("`{path}` is set here"))),
                Some(Setter::Axis(index, axis)) if self.seen[index].len() == axis.values.len() => {
                    places.push((&axis.place, format!("for every value of `{}`", axis.key.name())));
                }
                Some(Setter::Axis(index, axis)) => {
                    let values: Vec<_> = self.seen[index].iter().map(|&position| &axis.values[position]).collect();
                    let shown: Vec<_> = values.iter().map(|(value, _)| axis.key.kind.show(value)).collect();
                    narrowed.push(format!("{} is {}", axis.key.name(), shown.join(" or ")));
                    places
                        .extend(values.iter().take(MAX_PLACES).map(|(_, place)| (place, "with this value".to_owned())));
                }
            }
        }
        let mut fix = self.conflict.fix.to_owned();
        if self.count < sweep.cell_count() {
            let such = format!("in {} of {} cells", self.count, sweep.cell_count());
            if narrowed.is_empty() {
                message = format!("{message} ({such}, the first `{}`)", self.first);
            } else {
                message = format!("{message} ({such}: where {})", narrowed.join(" and "));
                fix.push_str("; or take the value off the axis");
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
