//! The cells of a sweep, the stable id of each, and the order in which they run. Imports `spec`, `settings` and `units` only.

mod describe;
mod estimate;
mod id;

pub use describe::{AxisDescription, CommandDescription, Description, FixedDescription};
pub use estimate::Estimate;
pub use id::{CellId, ParseCellIdError};

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use crate::settings::{Axes, Settings};
use crate::spec::{Order, Sweep};

/// One combination of axis values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The same in every run and on every host.
    pub id: CellId,
    /// Where it lies on the axes.
    pub axes: Axes,
    /// Everything that decides it.
    pub settings: Settings,
}

/// One repeat of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Index into [`Plan::cells`].
    pub cell: usize,
    /// Which repeat, from 0. Warm-ups count for themselves.
    pub repeat: u32,
    /// Whether it is left out of summaries.
    pub warmup: bool,
}

/// What a run of a sweep does, one thing after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The cells, in the order of the axes, the last axis varying fastest; then those that are added to the grid.
    pub cells: Vec<Cell>,
    /// The repeats, in the order in which they run: rounds that hold each cell once, warm-ups first.
    pub runs: Vec<Run>,
}

impl Plan {
    /// The plan of a sweep. Its order is the same on every host.
    pub fn new(sweep: &Sweep) -> Self {
        let grid = sweep.cells();
        // A checked sweep is within MAX_CELLS.
        let cells: Vec<Cell> = grid
            .points()
            .map(|point| {
                let settings = grid.settings(&point);
                Cell { id: CellId::of(&settings), axes: grid.axes(&point), settings }
            })
            .collect();
        let count = cells.len();
        let warmups = (0..sweep.run.warmup).map(|repeat| (repeat, true));
        let repeats = (0..sweep.run.repeat).map(|repeat| (repeat, false));
        let mut rng = ChaCha8Rng::seed_from_u64(sweep.run.seed);
        let mut order: Vec<usize> = (0..count).collect();
        let mut runs = Vec::new();
        for (repeat, warmup) in warmups.chain(repeats) {
            match sweep.run.order {
                Order::Listed => {}
                Order::Shuffled => order.shuffle(&mut rng),
            }
            runs.extend(order.iter().map(|&cell| Run { cell, repeat, warmup }));
        }
        Self { cells, runs }
    }

    /// What works in some cells and is likely not what was meant there, each once, with how many cells it is about.
    pub fn warnings(&self) -> Vec<String> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for warning in self.cells.iter().flat_map(|cell| cell.settings.warnings()) {
            match found.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, count)) => *count += 1,
                None => found.push((warning, 1)),
            }
        }
        let cells = self.cells.len();
        let place = |count| if count < cells { format!(" (in {count} of {cells} cells)") } else { String::new() };
        found.into_iter().map(|(warning, count)| format!("{warning}{}", place(count))).collect()
    }

    /// The cell of that id.
    pub fn cell(&self, id: CellId) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }
}

#[cfg(test)]
mod tests;
