//! A search for a value of an axis: of which cells repeats are wanted, by what was recorded so far.

use std::collections::HashMap;

use crate::measurement::Measurement;
use crate::plan::{Plan, Searching};
use crate::settings::Condition;
use crate::spec::Sweep;
use crate::stats::{Verdict, figure_of};

/// The state of a search.
#[derive(Debug)]
pub(super) struct Search {
    searching: Searching,
    condition: Condition,
    /// Cells of the plan by their id.
    places: HashMap<String, usize>,
    /// What each recorded repeat of each cell says; warm-ups say nothing.
    figures: Vec<Vec<Result<u64, String>>>,
}

impl Search {
    /// The search of a sweep that has one.
    pub(super) fn of(sweep: &Sweep, plan: &Plan) -> Option<Self> {
        sweep.find.as_ref().map(|search| Self {
            searching: Searching::new(search, &plan.cells),
            condition: search.condition,
            places: plan.cells.iter().enumerate().map(|(index, cell)| (cell.id.to_string(), index)).collect(),
            figures: vec![Vec::new(); plan.cells.len()],
        })
    }

    /// Takes a repeat of a cell into account that is recorded, and counts.
    pub(super) fn note(&mut self, cell: &str, measurement: &Measurement) {
        if let Some(figures) = self.places.get(cell).and_then(|&place| self.figures.get_mut(place)) {
            figures.push(figure_of(&self.condition, measurement));
        }
    }

    /// The cells that are to be run next, in order. `settled` tells of a cell whether all its repeats are recorded.
    pub(super) fn next(&self, settled: impl Fn(usize) -> bool) -> Vec<usize> {
        self.searching.next(|cell| {
            let figures = self.figures.get(cell).filter(|_| settled(cell))?;
            Some(Verdict::on(&self.condition, figures).holds)
        })
    }

    /// How many cells are run at most.
    pub(super) fn most(&self) -> usize {
        self.searching.most()
    }
}
