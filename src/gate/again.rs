//! Cells that are run again, and what that decides.

use std::collections::{BTreeMap, HashMap};

use super::baseline::Baseline;
use super::cells::{Matched, matched};
use super::judge::{Judgement, Verdict};
use super::judged::{Judged, compared, correct};
use super::rules::CONFIRM;
use crate::measurement::Outcome;
use crate::stats::{count, repeats_needed};

impl Judgement {
    /// Ids of the cells that look worse in real time, and are to be run again before anything is said. Most of them will not be worse: a
    /// few repeats do not tell a change from chance, and more of them do. In virtual time they would give the same figures again.
    pub fn suspects(&self) -> Vec<&str> {
        self.cells.iter().filter(|cell| cell.suspect).map(|cell| cell.cell.as_str()).collect()
    }

    /// How many repeats of each suspect are to decide: enough to be significant among all cells, and as many as the run had; and 40,
    /// where all suspects together then take no longer than the run did.
    pub fn repeats_to_confirm(&self) -> usize {
        let level = self.alpha / count(self.tests.max(1));
        let of_cell = |cell: &Judged| {
            let (before, after) = (cell.before.as_ref()?, cell.after.as_ref()?);
            Some(after.repeats.max(repeats_needed(before.measured.max(1), level).unwrap_or(after.repeats)))
        };
        let suspects = || self.cells.iter().filter(|cell| cell.suspect);
        let of_run: usize = self.cells.iter().filter_map(|cell| cell.after.as_ref()).map(|side| side.repeats).sum();
        let within = of_run / suspects().count().max(1);
        suspects().filter_map(of_cell).max().unwrap_or(1).max(within.min(CONFIRM))
    }

    /// Takes in the suspects' new measurements, `again`. They alone decide, against the baseline and by the same rules; and since the
    /// suspects were chosen among all cells, corrected for all of them.
    pub fn confirm(&mut self, before: &Baseline, again: &Baseline) {
        let rules = self.rules.clone();
        let matched: HashMap<String, Matched<'_>> =
            matched(before, again, rules.matching).into_iter().map(|cell| (cell.id(), cell)).collect();
        let mut fresh: Vec<Judged> =
            self.suspects().iter().filter_map(|id| matched.get(*id)).map(|cell| compared(cell, &self.metric)).collect();
        let tests = self.tests.max(fresh.len());
        correct(&mut fresh, tests);
        for cell in &mut fresh {
            cell.judge(&self.metric, &rules, tests, self.shift);
        }
        let fresh: BTreeMap<String, Judged> = fresh.into_iter().map(|cell| (cell.cell.clone(), cell)).collect();
        for cell in self.cells.iter_mut().filter(|cell| cell.suspect) {
            let Some(found) = fresh.get(&cell.cell) else {
                cell.notes.push("was not run again".to_owned());
                continue;
            };
            cell.again.clone_from(&found.after);
            let median = found.after.as_ref().and_then(|side| side.median).map(|median| self.metric.show(median));
            let outcome =
                found.after.as_ref().filter(|side| side.outcome != Outcome::Measured).map(|side| side.outcome);
            let shown = match (median, outcome) {
                (Some(median), None) => median,
                (Some(median), Some(outcome)) => format!("{outcome}, and {median} where measured"),
                (None, Some(outcome)) => outcome.to_string(),
                (None, None) => "no figures".to_owned(),
            };
            let shown = format!("{shown} ({} repeats)", found.after.as_ref().map_or(0, |side| side.repeats));
            match (found.verdict, cell.verdict) {
                (Verdict::Regressed, was) => {
                    if was != Verdict::Regressed {
                        // Why the run's own repeats did not tell it.
                        cell.notes.clear();
                    }
                    cell.verdict = Verdict::Regressed;
                    cell.notes.push(format!("confirmed by running it again: {shown}"));
                }
                (_, Verdict::Regressed) => {
                    cell.verdict = Verdict::NotConfirmed;
                    cell.notes.push(format!(
                        "looked worse, and running it again does not show it by the same rules: {shown}"
                    ));
                }
                // Too few repeats in the run, and enough now.
                (verdict, _) => {
                    cell.verdict = if verdict == Verdict::Underpowered { verdict } else { Verdict::Unchanged };
                    cell.notes.push(format!("might have been worse, and running it again does not show it: {shown}"));
                }
            }
        }
    }

    /// Says of each suspect why it was not run again. It stays a regression.
    pub fn unconfirmed(&mut self, why: &str) {
        let regressed = self.cells.iter_mut().filter(|cell| cell.verdict == Verdict::Regressed && !cell.exact);
        regressed.for_each(|cell| cell.notes.push(format!("not run again: {why}")));
    }
}
