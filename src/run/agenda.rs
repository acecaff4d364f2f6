//! Which repeats are to be run next, from what was recorded so far: all of them at once where their number is fixed, and look by look
//! where a cell is repeated until its median is known well enough.
//!
//! Whatever is run keeps the order of the plan, so that the repeats of a cell lie among those of the others.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::measurement::Measurement;
use crate::plan::{Plan, Run};
use crate::record::{More, Record};
use crate::settings::Precision;
use crate::spec::RunOptions;
use crate::stats::{deciding, reached};

/// How often a cell is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Goal {
    /// Repeats before the first look.
    least: u32,
    /// Repeats after which there are no more.
    most: u32,
    /// When it is enough before that.
    precision: Option<Precision>,
}

/// A cell, with what is recorded of it.
#[derive(Debug)]
struct State {
    goal: Goal,
    warmups: HashSet<u32>,
    /// By their number; without what does not decide.
    repeats: BTreeMap<u32, Measurement>,
    /// How many of them there are without a gap, from the first.
    whole: u32,
    /// Whether there are as many as there may be, or the median is known well enough, or not one of them has a figure, of which more would
    /// tell nothing.
    settled: bool,
    /// Its machine is lost: nothing more is asked of it.
    given_up: bool,
}

/// What is to be run of a plan.
#[derive(Debug)]
pub(super) struct Agenda<'a> {
    plan: &'a Plan,
    cells: Vec<State>,
    by_id: HashMap<String, usize>,
    done: usize,
    total: usize,
}

/// The most repeats that any cell may come to have: so many rounds a plan needs.
pub(super) fn rounds(options: &RunOptions, topped_up: &[More]) -> u32 {
    let most = topped_up.iter().flat_map(|more| more.cells.values()).map(|cell| cell.to).max();
    options.repeat.max(most.unwrap_or(0))
}

impl<'a> Agenda<'a> {
    /// The agenda of a plan that has [`rounds`] rounds, and of which these records are there already.
    pub(super) fn new(plan: &'a Plan, options: &RunOptions, topped_up: &[More], records: &[Record]) -> Self {
        let usual = Goal {
            least: options.precision.map_or(options.repeat, |precision| precision.min.min(options.repeat)),
            most: options.repeat,
            precision: options.precision,
        };
        let new = |goal| State {
            goal,
            warmups: HashSet::new(),
            repeats: BTreeMap::new(),
            whole: 0,
            settled: false,
            given_up: false,
        };
        let by_id: HashMap<String, usize> =
            plan.cells.iter().enumerate().map(|(index, cell)| (cell.id.to_string(), index)).collect();
        let cells = plan.cells.iter().map(|_| new(usual)).collect();
        let mut agenda = Self { plan, cells, by_id, done: 0, total: plan.runs.iter().filter(|run| run.warmup).count() };
        for more in topped_up {
            for (id, cell) in &more.cells {
                if let Some(&index) = agenda.by_id.get(id) {
                    let least = if more.precision.is_some() { cell.from.clamp(1, cell.to.max(1)) } else { cell.to };
                    agenda.cells[index].goal = Goal { least, most: cell.to, precision: more.precision };
                }
            }
        }
        agenda.total += agenda.cells.iter().map(State::may_have).sum::<usize>();
        for record in records {
            agenda.take(record);
        }
        agenda
    }

    /// Takes in what was recorded.
    pub(super) fn take(&mut self, record: &Record) {
        let Some(state) = self.by_id.get(&record.cell).and_then(|&index| self.cells.get_mut(index)) else { return };
        let before = state.may_have();
        if record.warmup {
            self.done += usize::from(state.warmups.insert(record.repeat));
        } else {
            let Measurement { outcome, completion_ns, goodput_bps, .. } = record.measurement;
            let deciding = Measurement { outcome, completion_ns, goodput_bps, ..Measurement::default() };
            self.done += usize::from(state.repeats.insert(record.repeat, deciding).is_none());
            state.look();
        }
        self.total = self.total + state.may_have() - before;
    }

    /// Asks nothing more of these cells.
    pub(super) fn give_up(&mut self, cells: &[usize]) {
        for &cell in cells {
            let state = &mut self.cells[cell];
            let before = state.may_have();
            state.given_up = true;
            self.total = self.total + state.may_have() - before;
        }
    }

    /// What is to be run of these cells until they are looked at again, in the order of the plan. Nothing where they are done.
    pub(super) fn next(&self, cells: &[usize]) -> Vec<Run> {
        let wanted: HashMap<usize, u32> = cells
            .iter()
            .filter(|&&cell| !self.cells[cell].given_up)
            .map(|&cell| (cell, self.cells[cell].wanted()))
            .collect();
        let is_next = |run: &&Run| {
            let (Some(&wanted), state) = (wanted.get(&run.cell), &self.cells[run.cell]) else { return false };
            if run.warmup {
                // Where a cell is done, a warm-up that is missing warms nothing up.
                !state.warmups.contains(&run.repeat) && !state.settled
            } else {
                run.repeat < wanted && !state.repeats.contains_key(&run.repeat)
            }
        };
        self.plan.runs.iter().filter(is_next).copied().collect()
    }

    /// Repeats that are recorded, warm-ups included.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// Repeats that there are and may still come, warm-ups included.
    pub(super) fn total(&self) -> usize {
        self.total.max(self.done)
    }
}

impl State {
    /// How many repeats of it there are or may come to be.
    fn may_have(&self) -> usize {
        let more = if self.given_up || self.settled { 0 } else { self.goal.most as usize };
        more.max(self.repeats.len())
    }

    /// How many repeats there are to be at the next look.
    fn wanted(&self) -> u32 {
        let mut look = self.goal.least;
        let passed = |look: u32| look < self.whole || (look == self.whole && !self.settled);
        while let Some(precision) = self.goal.precision.filter(|_| look < self.goal.most && passed(look)) {
            look = precision.next_look(look);
        }
        look.min(self.goal.most)
    }

    /// Looks at what there is.
    fn look(&mut self) {
        while self.repeats.contains_key(&self.whole) {
            self.whole += 1;
        }
        let Goal { least, most, precision } = self.goal;
        let Some(precision) = precision.filter(|_| self.whole < most) else {
            self.settled = self.whole >= most;
            return;
        };
        if self.whole >= least {
            let (metric, figures) = deciding(self.repeats.range(..self.whole).map(|(_, measurement)| measurement));
            self.settled = figures.is_empty() || reached(metric, &figures, &precision).enough;
        }
    }
}

#[cfg(test)]
mod tests;
