//! The cells of a sweep: the grid that its axes span, without those that are left out, and with those that are added.

use std::collections::HashSet;

use crate::settings::{Axes, Key, Settings, Value, Work, find};

use super::sweep::{Axis, Sweep};

/// What sets one key of a cell.
#[derive(Clone, Copy, Debug)]
enum Setter<'a> {
    Fixed(&'a Value),
    Axis(usize),
}

/// Where a cell comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The grid: its position on each axis.
    Grid(Vec<usize>),
    /// The [[include]] of that number.
    Included(usize),
}

/// One cell by its value on each axis.
#[derive(Clone, Debug)]
pub(crate) struct Point<'a> {
    pub(crate) values: Vec<&'a Value>,
    pub(crate) origin: Origin,
}

/// The cells of a sweep, in the order of its axes.
#[derive(Debug)]
pub(crate) struct Cells<'a> {
    sweep: &'a Sweep,
    setters: Vec<(&'static Key, Setter<'a>)>,
    /// For each axis, which dimension of the grid it belongs to: zipped axes share one.
    dimensions: Vec<usize>,
    /// How long each dimension is.
    lengths: Vec<usize>,
    /// For each exclusion: axes by their index, and which of their positions are meant.
    excluded: Vec<Vec<(usize, Vec<bool>)>>,
}

/// The dimension of each axis, and the length of each dimension.
fn dimensions(sweep: &Sweep) -> (Vec<usize>, Vec<usize>) {
    let mut dimensions: Vec<usize> = Vec::new();
    let mut lengths: Vec<usize> = Vec::new();
    for (index, axis) in sweep.axes.iter().enumerate() {
        let zipped = sweep.zip_of(&axis.path);
        let with = sweep.axes[..index].iter().position(|other| zipped.is_some_and(|zip| zip.contains(&other.path)));
        if let Some(with) = with {
            let dimension = dimensions[with];
            lengths[dimension] = lengths[dimension].min(axis.values.len());
            dimensions.push(dimension);
        } else {
            dimensions.push(lengths.len());
            lengths.push(axis.values.len());
        }
    }
    (dimensions, lengths)
}

impl Sweep {
    /// The lengths of the grid: one for each axis, and one for all axes that are zipped.
    pub fn lengths(&self) -> Vec<usize> {
        dimensions(self).1
    }

    /// How many cells the axes span before any is left out or added, as far as 64 bits can count. One without axes.
    pub fn grid_count(&self) -> u64 {
        self.lengths().iter().fold(1, |cells: u64, &length| cells.saturating_mul(length as u64))
    }

    /// How many cells there are, as far as 64 bits can count. Where cells are left out, this walks the grid.
    pub fn cell_count(&self) -> u64 {
        self.grid_count().saturating_sub(self.excluded_count()).saturating_add(self.include.len() as u64)
    }

    /// How many cells of the grid are left out. Walks the grid if there is any exclusion.
    pub fn excluded_count(&self) -> u64 {
        if self.exclude.is_empty() {
            return 0;
        }
        let cells = self.cells();
        let excluded = (0..self.grid_count()).filter(|index| cells.is_excluded(&cells.positions(*index)));
        excluded.count() as u64
    }

    /// How many repeats there are of all cells, warm-ups included.
    pub fn run_count(&self) -> u64 {
        self.cell_count().saturating_mul(u64::from(self.run.repeat) + u64::from(self.run.warmup))
    }

    /// The cells, to be made one by one.
    pub(crate) fn cells(&self) -> Cells<'_> {
        let fixed = self.fixed.iter().map(|(path, value)| (path, Setter::Fixed(value)));
        let axes = self.axes.iter().enumerate().map(|(index, axis)| (&axis.path, Setter::Axis(index)));
        let mut setters: Vec<_> =
            fixed.chain(axes).filter_map(|(path, setter)| find(path).map(|key| (key, setter))).collect();
        // The more specific key wins, whichever of the two is the axis.
        setters.sort_by_key(|(key, _)| key.specificity());
        let (dimensions, lengths) = dimensions(self);
        let meant = |named: &Axis| {
            let index = self.axes.iter().position(|axis| axis.path == named.path)?;
            let values: HashSet<&Value> = named.values.iter().collect();
            Some((index, self.axes[index].values.iter().map(|value| values.contains(value)).collect()))
        };
        // An axis that this sweep does not have keeps no cell from anything.
        let excluded = self.exclude.iter().map(|named| named.iter().map(meant).collect::<Option<_>>());
        Cells { sweep: self, setters, dimensions, lengths, excluded: excluded.flatten().collect() }
    }
}

impl<'a> Cells<'a> {
    /// The cells: those of the grid, the last axis varying fastest, then those that are added.
    pub(crate) fn points(&self) -> impl Iterator<Item = Point<'a>> {
        let grid = (0..self.sweep.grid_count()).filter_map(|index| {
            let positions = self.positions(index);
            if self.is_excluded(&positions) {
                return None;
            }
            let values = self.sweep.axes.iter().zip(&positions).map(|(axis, &position)| &axis.values[position]);
            Some(Point { values: values.collect(), origin: Origin::Grid(positions) })
        });
        let included = self.sweep.include.iter().enumerate().filter_map(|(index, included)| {
            let values: Option<Vec<_>> = self.sweep.axes.iter().map(|axis| included.get(&axis.name)).collect();
            Some(Point { values: values?, origin: Origin::Included(index) })
        });
        grid.chain(included)
    }

    /// The position on each axis of the combination of that index: the last axis varies fastest.
    fn positions(&self, mut index: u64) -> Vec<usize> {
        let mut along = vec![0; self.lengths.len()];
        for (position, &length) in along.iter_mut().zip(&self.lengths).rev() {
            let length = length.max(1) as u64;
            *position = usize::try_from(index % length).unwrap_or(0);
            index /= length;
        }
        self.dimensions.iter().map(|&dimension| along[dimension]).collect()
    }

    /// Whether the combination at these positions is left out.
    fn is_excluded(&self, positions: &[usize]) -> bool {
        self.excluded.iter().any(|named| named.iter().all(|(axis, meant)| meant[positions[*axis]]))
    }

    /// Where a cell lies on the axes.
    pub(crate) fn axes(&self, point: &Point<'_>) -> Axes {
        let values = self.sweep.axes.iter().zip(&point.values);
        Axes(values.map(|(axis, &value)| (axis.name.clone(), value.clone())).collect())
    }

    /// The settings of a cell.
    pub(crate) fn settings(&self, point: &Point<'_>) -> Settings {
        let mut settings = Settings::default();
        for (key, setter) in &self.setters {
            let value = match *setter {
                Setter::Fixed(value) => value,
                Setter::Axis(axis) => point.values[axis],
            };
            key.put(&mut settings, value);
        }
        if settings.workload.kind == Work::Exec {
            settings.exec = self.sweep.exec.as_ref().map(|exec| Box::new(exec.fill(&settings)));
        }
        settings
    }

    /// Whether the preset of a cell, if it has one, sets the key of that path.
    pub(crate) fn preset_sets(&self, point: &Point<'_>, path: &str) -> bool {
        self.setters.iter().any(|(key, setter)| {
            let value = match *setter {
                Setter::Fixed(value) => value,
                Setter::Axis(axis) => point.values[axis],
            };
            key.preset(value).is_some_and(|preset| preset.has(path))
        })
    }
}
