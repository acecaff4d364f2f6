//! Which repeats are run next: all at once, or those that a search asks for, round by round.

use std::collections::HashMap;

use crate::measurement::Measurement;
use crate::plan::{Plan, Run, Searching};
use crate::record::Record;
use crate::settings::Condition;
use crate::spec::Sweep;
use crate::stats::{Verdict, figure_of};

/// Chooses the repeats of a run, round by round, by what was recorded so far.
#[derive(Debug)]
pub(super) struct Chooser {
    search: Option<Search>,
    /// Runs of the plan that are recorded.
    done: usize,
    total: usize,
}

/// The state of a search.
#[derive(Debug)]
struct Search {
    searching: Searching,
    condition: Condition,
    /// Cells of the plan by their id.
    places: HashMap<String, usize>,
    /// What each recorded repeat of each cell says; warm-ups say nothing.
    figures: Vec<Vec<Result<u64, String>>>,
    /// Repeats of each cell that count.
    repeats: usize,
    /// Repeats of each cell, warm-ups included.
    runs: usize,
}

impl Chooser {
    pub(super) fn new(sweep: &Sweep, plan: &Plan) -> Self {
        let search = sweep.find.as_ref().map(|search| Search {
            searching: Searching::new(search, &plan.cells),
            condition: search.condition,
            places: plan.cells.iter().enumerate().map(|(index, cell)| (cell.id.to_string(), index)).collect(),
            figures: vec![Vec::new(); plan.cells.len()],
            repeats: sweep.run.repeat as usize,
            runs: sweep.run.repeat as usize + sweep.run.warmup as usize,
        });
        let total = search.as_ref().map_or(plan.runs.len(), |search| search.searching.most() * search.runs);
        Self { search, done: 0, total }
    }

    /// Takes a repeat into account that is recorded.
    pub(super) fn note(&mut self, record: &Record) {
        self.done += 1;
        let Record { cell, warmup, measurement, .. } = record;
        if let Some(search) = self.search.as_mut().filter(|_| !warmup) {
            search.note(cell, measurement);
        }
    }

    /// Repeats recorded so far.
    pub(super) const fn done(&self) -> usize {
        self.done
    }

    /// All repeats of the run; of a search, as many as there are at most.
    pub(super) fn total(&self) -> usize {
        self.total.max(self.done)
    }

    /// Of these repeats, which have not been run yet, those that are to be run next. None of them: then none is needed any more.
    pub(super) fn next(&self, left: &[Run]) -> Vec<Run> {
        let Some(search) = &self.search else { return left.to_vec() };
        let wanted = search.searching.next(|cell| search.verdict(cell));
        left.iter().filter(|run| wanted.binary_search(&run.cell).is_ok()).copied().collect()
    }
}

impl Search {
    fn note(&mut self, cell: &str, measurement: &Measurement) {
        if let Some(figures) = self.places.get(cell).and_then(|&place| self.figures.get_mut(place)) {
            figures.push(figure_of(&self.condition, measurement));
        }
    }

    /// The verdict on a cell, once all its repeats are recorded.
    fn verdict(&self, cell: usize) -> Option<bool> {
        let figures = self.figures.get(cell).filter(|figures| figures.len() >= self.repeats)?;
        Some(Verdict::on(&self.condition, figures).holds)
    }
}
