//! Cells that are run again, and what that decides.

use std::collections::BTreeMap;

use super::baseline::Baseline;
use super::cells::matched;
use super::judge::{Judgement, Verdict, has_a_cause};
use super::judged::{Judged, compared, correct};
use super::look::Shift;
use super::rules::{CONTROLS, CONTROLS_MOVED, FEWEST_CONTROLS, LOOKS};
use crate::measurement::{Number, Outcome};
use crate::stats::{count, repeats_needed};

/// Cells that are to be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Their ids.
    pub cells: Vec<String>,
    /// How many times each.
    pub repeats: usize,
    /// Ids of those among them that nobody suspects: where they are worse too, it is the machine. Empty where suspects alone are run.
    pub controls: Vec<String>,
}

/// How far a cell is from being told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Suspicion {
    /// Nothing is to be run again.
    #[default]
    None,
    /// It may be worse.
    Open,
    /// It was worse when it was run again, as these words say, and is to be run beside others that nobody suspects.
    Worse(String),
}

impl Judgement {
    /// Ids of the cells that may be worse in real time, and are to be run again before anything is said. Most of them will not be worse:
    /// a few repeats do not tell a change from chance, and more of them do. In virtual time they would give the same figures again.
    pub fn suspects(&self) -> Vec<&str> {
        self.cells.iter().filter(|cell| cell.is_suspect()).map(|cell| cell.cell.as_str()).collect()
    }

    /// What is to be run again next; `None` where all is told. First the suspects, those that need the fewest more repeats until the next
    /// look; and when each of them is told, those that are worse once more, beside controls.
    pub fn round(&self) -> Option<Round> {
        let open = || self.cells.iter().filter(|cell| cell.suspicion == Suspicion::Open);
        let wanted = |cell: &Judged| self.next_look(cell).saturating_sub(cell.asked).max(1);
        if let Some(repeats) = open().map(wanted).min() {
            let cells = open().filter(|cell| wanted(cell) == repeats).map(|cell| cell.cell.clone()).collect();
            return Some(Round { cells, repeats, controls: Vec::new() });
        }
        let worse: Vec<String> =
            self.cells.iter().filter(|cell| cell.is_suspect()).map(|cell| cell.cell.clone()).collect();
        let controls = self.controls();
        (!worse.is_empty()).then(|| Round { cells: [worse, controls.clone()].concat(), repeats: LOOKS[0], controls })
    }

    /// Cells that nobody suspects, spread evenly over the sweep; none where they are too few to tell anything of the machine.
    fn controls(&self) -> Vec<String> {
        let innocent = |cell: &&Judged| {
            let verdict = matches!(cell.verdict, Verdict::Unchanged | Verdict::Improved | Verdict::Underpowered);
            verdict && cell.again.is_none() && cell.ratio.is_some_and(|ratio| ratio.medians.is_some()) && !cell.exact
        };
        let all: Vec<&Judged> = self.cells.iter().filter(innocent).collect();
        let wanted = all.len().min(CONTROLS);
        let spread = (0..wanted).map(|number| all[number * all.len() / wanted].cell.clone());
        if wanted >= FEWEST_CONTROLS { spread.collect() } else { Vec::new() }
    }

    /// How many repeats a suspect is to have been run again for at the next look: as many as [`LOOKS`] says, and enough to be
    /// significant among all cells.
    fn next_look(&self, cell: &Judged) -> usize {
        let level = self.rules.of_a_look(0).alpha / count(self.tests.max(1));
        let before = cell.before.as_ref().map_or(1, |side| side.measured.max(1));
        let fewest = repeats_needed(before, level).unwrap_or(1);
        let fewest = fewest.max(cell.after.as_ref().map_or(1, |side| side.repeats));
        if cell.asked == 0 && cell.is_plain(&self.metric, &self.rules) {
            return fewest;
        }
        LOOKS.map(|look| look.max(fewest)).into_iter().find(|&look| look > cell.asked).unwrap_or(cell.asked)
    }

    /// Takes in what a round measured. All that a suspect was run again for decides alone, against the baseline and by the same rules; and
    /// since the suspects were chosen among all cells and are looked at several times, corrected for all of both.
    pub fn confirm(&mut self, before: &Baseline, round: &Round, measured: &Baseline) {
        let asked = self.cells.iter().filter(|cell| round.cells.contains(&cell.cell)).map(|cell| cell.asked).max();
        let rules = self.rules.of_a_look(asked.unwrap_or(0) + round.repeats);
        let of_round = |side: &Baseline| -> BTreeMap<String, Judged> {
            let matched = matched(before, side, rules.matching);
            let cells = matched.iter().filter(|cell| round.cells.contains(&cell.id()));
            cells.map(|cell| (cell.id(), compared(cell, &self.metric))).collect()
        };
        let alone = of_round(measured);
        let shift = if round.controls.is_empty() { self.shift } else { moved(&alone, &round.controls) };
        let is_the_machine = |shift: &Shift| shift.is_large(&rules) && shift.p() <= CONTROLS_MOVED;
        let machine = shift
            .filter(|shift| !round.controls.is_empty() && is_the_machine(shift) && !has_a_cause(&self.differences));
        let rules = machine.map_or(rules.clone(), |shift| rules.on_another_machine(shift.ratio));
        let suspects = || round.cells.iter().filter(|id| !round.controls.contains(id));
        for cell in measured.cells.iter().filter(|cell| suspects().any(|id| *id == cell.cell)) {
            let all = self.measured_again.entry(cell.cell.clone());
            all.and_modify(|all| all.add(cell)).or_insert_with(|| cell.clone());
        }
        let all = suspects().filter_map(|id| self.measured_again.get(id)).cloned().collect();
        let mut pooled: Vec<Judged> = of_round(&Baseline { cells: all, ..measured.clone() }).into_values().collect();
        pooled.retain(|cell| cell.after.is_some());
        let tests = self.tests.max(pooled.len());
        correct(&mut pooled, tests);
        for cell in &mut pooled {
            cell.judge(&self.metric, &rules, tests, shift);
        }
        let mut pooled: BTreeMap<String, Judged> = pooled.into_iter().map(|cell| (cell.cell.clone(), cell)).collect();
        let controlled = !round.controls.is_empty();
        let can_be_controlled = !self.controls().is_empty();
        for cell in self.cells.iter_mut().filter(|cell| cell.is_suspect() && round.cells.contains(&cell.cell)) {
            cell.asked += round.repeats;
            let Some(found) = pooled.remove(&cell.cell) else {
                cell.suspicion = Suspicion::None;
                cell.notes.push("was not run again".to_owned());
                continue;
            };
            cell.again.clone_from(&found.after);
            let shown = shown(&found, |figure| self.metric.show(figure));
            // Beside the controls alone, too: what was slower before may have been the machine.
            let still = |cell: &Judged| {
                alone.get(&cell.cell).is_some_and(|cell| cell.is_still_worse(&self.metric, &rules, shift))
            };
            match found.verdict {
                Verdict::Regressed if controlled && still(cell) => cell.settle(Verdict::Regressed, &shown),
                _ if machine.is_some() => {
                    cell.suspicion = Suspicion::None;
                    cell.verdict = Verdict::Withheld;
                    cell.notes.push(format!("run again on a machine that is not as it was: {shown}"));
                }
                Verdict::Regressed if controlled => cell.settle(Verdict::Unchanged, &shown),
                Verdict::Regressed if !can_be_controlled => cell.settle(Verdict::Regressed, &shown),
                Verdict::Regressed => cell.suspicion = Suspicion::Worse(shown),
                _ if !controlled
                    && cell.asked < LOOKS[LOOKS.len() - 1]
                    && found.is_open(&self.metric, &self.rules, self.shift) => {}
                verdict => cell.settle(verdict, &shown),
            }
        }
        if let Some(shift) =
            machine.filter(|_| self.count(Verdict::Withheld) > 0 && self.count(Verdict::Regressed) == 0)
        {
            self.withheld.push(format!(
                "the machine is not as it was for the baseline: run again, {}; run both sides one soon after the other, on a quiet machine",
                super::table::moved(&shift)
            ));
        }
    }

    /// Says why nothing more is run again. What was not run again at all stays what it is; what was, and is not told to be worse, is not
    /// confirmed.
    pub fn unconfirmed(&mut self, why: &str) {
        for cell in self.cells.iter_mut().filter(|cell| cell.is_suspect()) {
            match (std::mem::take(&mut cell.suspicion), cell.again.as_ref().map(|side| side.repeats)) {
                (Suspicion::Worse(shown), _) => {
                    cell.settle(Verdict::Regressed, &format!("{shown}, and no more: {why}"));
                }
                (_, Some(repeats)) => {
                    cell.settle(Verdict::Unchanged, &format!("{repeats} repeats, and no more: {why}"));
                }
                (_, None) if cell.verdict == Verdict::Regressed => cell.notes.push(format!("not run again: {why}")),
                (_, None) => {}
            }
        }
    }
}

/// How the controls of a round compare with the baseline.
fn moved(round: &BTreeMap<String, Judged>, controls: &[String]) -> Option<Shift> {
    Shift::by(controls.iter().filter_map(|id| round.get(id)?.ratio?.medians).collect())
}

/// What a cell that was run again measured, in words.
fn shown(found: &Judged, show: impl Fn(Number) -> String) -> String {
    let median = found.after.as_ref().and_then(|side| side.median).map(show);
    let outcome = found.after.as_ref().filter(|side| side.outcome != Outcome::Measured).map(|side| side.outcome);
    let shown = match (median, outcome) {
        (Some(median), None) => median,
        (Some(median), Some(outcome)) => format!("{outcome}, and {median} where measured"),
        (None, Some(outcome)) => outcome.to_string(),
        (None, None) => "no figures".to_owned(),
    };
    format!("{shown} ({} repeats)", found.after.as_ref().map_or(0, |side| side.repeats))
}

impl Judged {
    /// Whether it is to be run again before anything is said.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspicion != Suspicion::None
    }

    /// Ends the suspicion of a cell: what it was found to be when it was run again, and what that measured.
    fn settle(&mut self, found: Verdict, shown: &str) {
        self.suspicion = Suspicion::None;
        match (found, self.verdict) {
            (Verdict::Regressed, was) => {
                if was != Verdict::Regressed {
                    // Why the run's own repeats did not tell it.
                    self.notes.clear();
                }
                self.verdict = Verdict::Regressed;
                self.notes.push(format!("confirmed by running it again: {shown}"));
            }
            (_, Verdict::Regressed) => {
                self.verdict = Verdict::NotConfirmed;
                self.notes
                    .push(format!("looked worse, and running it again does not show it by the same rules: {shown}"));
            }
            // Too few repeats in the run, and enough now.
            (verdict, _) => {
                self.verdict = if verdict == Verdict::Underpowered { verdict } else { Verdict::Unchanged };
                self.notes.push(format!("might have been worse, and running it again does not show it: {shown}"));
            }
        }
    }
}
