//! The verdict on a run, and on each of its cells.

use std::collections::BTreeMap;

use serde::Serialize;

use super::again::{Round, Suspicion};
use super::baseline::{Baseline, BaselineCell};
use super::cells::{Matching, matched};
use super::environment::{Aspect, Difference, differences};
use super::error::GateError;
use super::judged::{Judged, compared, correct};
use super::look::{Look, Shift, look};
use super::metric::Metric;
use super::rules::Rules;
use crate::measurement::Number;
use crate::units::{Better, choice};

choice! {
    /// What is to be said of a cell.
    Verdict {
        /// No change that counts.
        #[default] Unchanged = "unchanged",
        /// It became worse.
        Regressed = "regressed",
        /// It became better.
        Improved = "improved",
        /// It looked worse, and was not when it was run again.
        NotConfirmed = "not-confirmed",
        /// Too few repeats: no change, however large, could have been significant.
        Underpowered = "underpowered",
        /// Neither side has figures, for the same reason.
        WithoutFigures = "without-figures",
        /// The baseline has it and the run does not, or could not do it.
        Missing = "missing",
        /// The run has it and the baseline does not.
        New = "new",
        /// Not judged, because of the reasons told for the whole run.
        Withheld = "withheld",
    }
}

choice! {
    /// What is to be said of the run.
    Overall {
        /// No regression, and nothing that kept the gate from telling.
        #[default] Passed = "passed",
        /// At least one cell became worse.
        Regression = "regression",
        /// It could not be judged, or not all of it.
        NotJudged = "not-judged",
    }
}

/// A run, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The sweep.
    pub sweep: String,
    /// What was compared.
    pub metric: Metric,
    /// The unit of its figures, of [`Judgement::floor`] too; empty for a program's number that has none.
    pub unit: String,
    /// Which direction of it is an improvement.
    pub better: Better,
    /// The share by which a median may worsen.
    pub max_regression: f64,
    /// The least change that counts in real time, in the metric's unit.
    pub floor: Number,
    /// The probability of a significant change anywhere among cells that did not change.
    pub alpha: f64,
    /// Cells tested together in real time.
    pub tests: usize,
    /// What differs between the places where both sides were measured.
    pub differences: Vec<Difference>,
    /// The look at the run's halves; `None` where nothing was measured in real time.
    pub look: Option<Look>,
    /// How the run as a whole compares with the baseline, in real time; `None` where its cells did not move one way together.
    pub shift: Option<Shift>,
    /// Why nothing is judged; empty where it is.
    pub withheld: Vec<String>,
    /// Why nothing of what the run measured before was judged, where the whole run was run again and that is what is judged.
    pub before_that: Vec<String>,
    /// The cells.
    pub cells: Vec<Judged>,
    #[serde(skip)]
    pub(super) rules: Rules,
    /// What suspects measured when they were run again, by their id.
    #[serde(skip)]
    pub(super) measured_again: BTreeMap<String, BaselineCell>,
}

/// The metric that both sides can be compared by.
pub(super) fn metric_of(rules: Option<&Metric>, before: &Baseline, after: &Baseline) -> Result<Metric, GateError> {
    let metric = rules.cloned().unwrap_or_else(|| after.usual_metric());
    let has = |side: &Baseline| side.cells.iter().any(|cell| cell.has(&metric));
    // A side on which nothing at all was measured lacks every metric, and its outcomes are what is to be told.
    let measured = |side: &Baseline| side.cells.iter().any(|cell| !cell.is_without_figures());
    let lacks: Vec<&str> = [("the baseline", before), ("the run", after)]
        .into_iter()
        .filter(|(_, side)| measured(side) && !has(side))
        .map(|(name, _)| name)
        .collect();
    if lacks.is_empty() {
        return same_unit(&metric, before, after).map(|()| metric);
    }
    Err(GateError::NoFigures { metric, which: format!("{} has none", lacks.join(" and ")) })
}

/// Whether a program's number means the same on both sides.
fn same_unit(metric: &Metric, before: &Baseline, after: &Baseline) -> Result<(), GateError> {
    let of = |side: &Baseline| {
        let named =
            side.metrics.iter().find(|found| found.name == metric.name() && matches!(metric, Metric::Program(_)));
        named.map(|found| format!("in `{}`, where {} is better", found.unit, found.better))
    };
    match (of(before), of(after)) {
        (Some(before), Some(after)) if before != after => {
            Err(GateError::NotTheSame { metric: metric.clone(), before, after })
        }
        _ => Ok(()),
    }
}

impl Judgement {
    /// Judges a run against a baseline. In real time a regression is still to be confirmed, see [`Judgement::suspects`].
    ///
    /// # Errors
    /// If no cell has the figures that are to be compared.
    pub fn new(before: &Baseline, after: &Baseline, rules: &Rules) -> Result<Self, GateError> {
        let metric = metric_of(rules.metric.as_ref(), before, after)?;
        let matched = matched(before, after, rules.matching);
        let differences = differences(before, after, &matched, &rules.allow);
        let look = look(after, &metric, rules);
        let mut withheld: Vec<String> = differences
            .iter()
            .filter(|difference| difference.refused)
            .map(|difference| format!("{} (--allow {})", difference.text, difference.aspect))
            .collect();
        if let Some(found) = look.as_ref().filter(|found| found.alarm) {
            withheld.push(alarm(found));
        }
        let mut cells: Vec<Judged> = matched.iter().map(|matched| compared(matched, &metric)).collect();
        let tests = cells.iter().filter(|cell| cell.test.is_some()).count();
        correct(&mut cells, tests);
        let real = cells.iter().filter(|cell| cell.test.is_some());
        let shift = Shift::of(real.filter_map(|cell| cell.ratio?.medians).collect());
        if let Some(found) = shift.filter(|found| found.is_large(rules) && !has_a_cause(&differences)) {
            withheld.push(shifted(&found));
        }
        for cell in &mut cells {
            cell.judge(&metric, rules, tests, shift);
            if cell.looks_worse(&metric, rules, shift) {
                cell.suspicion = Suspicion::Open;
            }
        }
        if !withheld.is_empty() {
            cells.iter_mut().filter(|cell| cell.verdict != Verdict::Missing && cell.verdict != Verdict::New).for_each(
                |cell| {
                    cell.verdict = Verdict::Withheld;
                    cell.suspicion = Suspicion::None;
                    cell.notes.clear();
                },
            );
        }
        Ok(Self {
            sweep: after.sweep.clone(),
            max_regression: rules.max_regression,
            floor: rules.floor.unwrap_or_else(|| metric.floor()),
            unit: metric.unit().to_owned(),
            better: metric.better(),
            metric,
            alpha: rules.alpha,
            tests,
            differences,
            look,
            shift,
            withheld,
            before_that: Vec::new(),
            cells,
            rules: rules.clone(),
            measured_again: BTreeMap::new(),
        })
    }

    /// What is to be said of the run.
    pub fn overall(&self) -> Overall {
        let any = |verdicts: &[Verdict]| self.cells.iter().any(|cell| verdicts.contains(&cell.verdict));
        let missing = any(&[Verdict::Missing, Verdict::New]) && !self.rules.allow.contains(&Aspect::Cells);
        if !self.withheld.is_empty() {
            Overall::NotJudged
        } else if any(&[Verdict::Regressed]) {
            Overall::Regression
        } else if missing || any(&[Verdict::Underpowered]) || !self.cells.iter().any(|cell| cell.before.is_some()) {
            Overall::NotJudged
        } else {
            Overall::Passed
        }
    }

    /// Whether nothing is judged because of what the machine did, and of nothing else: run again, it may hold still.
    pub fn is_restless(&self) -> bool {
        !self.withheld.is_empty() && !self.differences.iter().any(|difference| difference.refused)
    }

    /// The whole run, to be run again as often as it was.
    pub fn whole(&self) -> Round {
        let of_run = || self.cells.iter().filter_map(|cell| Some((cell, cell.after.as_ref()?)));
        Round {
            cells: of_run().map(|(cell, _)| cell.cell.clone()).collect(),
            repeats: of_run().map(|(_, side)| side.repeats).max().unwrap_or(1),
            controls: Vec::new(),
        }
    }

    /// The verdict on the whole run when it was run again, which takes the place of this one.
    ///
    /// # Errors
    /// If no cell has the figures that are to be compared.
    pub fn of_another_try(&self, before: &Baseline, again: &Baseline) -> Result<Self, GateError> {
        let judged = Self::new(before, again, &self.rules)?;
        Ok(Self { before_that: [&self.before_that[..], &self.withheld].concat(), ..judged })
    }

    /// Cells of that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }
}

/// The A/A look's alarm in words.
fn alarm(look: &Look) -> String {
    if look.changed.is_empty() {
        let ratio = look.ratio.map_or_else(String::new, |ratio| format!(", by {}", super::words::change(ratio)));
        return format!(
            "the machine changed while it measured: of {} cells {} have more in the second half of the run and {} less{ratio} \
             in the middle; run the sweep again on a quiet machine",
            look.cells, look.slower, look.faster
        );
    }
    format!(
        "the machine changed while it measured: the first and the second half of the run differ for {}; run the sweep again on a \
         quiet machine, or with more repeats if these cells have two modes",
        look.changed.join("; ")
    )
}

/// Whether anything differs between both sides that can make all cells faster or slower, but for the computer and its load.
pub(super) fn has_a_cause(differences: &[Difference]) -> bool {
    let causes = |aspect: Aspect| !matches!(aspect, Aspect::Host | Aspect::Cells | Aspect::Seed);
    differences.iter().any(|difference| causes(difference.aspect))
}

/// A large shift of the whole run, in words.
fn shifted(shift: &Shift) -> String {
    format!(
        "the run as a whole is not as the baseline: {}, and nothing differs that could cause it but the machine; run both sides one soon \
         after the other, on a quiet machine",
        super::table::moved(shift)
    )
}

impl Judgement {
    /// Whether cells were matched by their place on the axes.
    pub(super) fn by_axes(&self) -> bool {
        self.rules.matching == Matching::Axes
    }

    /// Whether anything was measured in real time.
    pub(super) fn any_real(&self) -> bool {
        self.cells.iter().any(|cell| !cell.exact)
    }
}

#[cfg(test)]
mod tests;
