//! The verdict on a run, and on each of its cells.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::baseline::Baseline;
use super::cells::{Matched, Matching, Side, matched};
use super::environment::{Aspect, Difference, differences};
use super::error::GateError;
use super::look::{Look, Shift, look};
use super::metric::Metric;
use super::rules::{CONFIRM, RESTLESS, Rules, SCREEN, Size};
use crate::measurement::Outcome;
use crate::settings::Axes;
use crate::stats::{Figures, MannWhitney, Ratio, Shape, holm, minimum_p, repeats_needed};
use crate::units::choice;

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

/// A cell, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Its id: the run's, or the baseline's if the run does not have it.
    pub cell: String,
    /// Where it lies on the axes.
    pub axes: Axes,
    /// Whether both sides were measured in virtual time and compared as they are.
    pub exact: bool,
    /// The baseline's side.
    pub before: Option<Side>,
    /// The run's side.
    pub after: Option<Side>,
    /// The run's median over the baseline's, with an interval.
    pub ratio: Option<Ratio>,
    /// The test of both sides, in real time.
    pub test: Option<MannWhitney>,
    /// Its p, corrected for all cells (Holm).
    pub adjusted_p: Option<f64>,
    /// The smallest p that so many repeats can reach.
    pub minimum_p: Option<f64>,
    /// What is to be said.
    pub verdict: Verdict,
    /// Why, or what else is to be known, in words.
    pub notes: Vec<String>,
    /// The side that was measured again, where it looked worse.
    pub again: Option<Side>,
    /// Whether it looks worse, and is to be run again before anything is said.
    #[serde(skip)]
    suspect: bool,
}

/// A run, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The sweep.
    pub sweep: String,
    /// What was compared.
    pub metric: Metric,
    /// The share by which a median may worsen.
    pub max_regression: f64,
    /// The least change that counts in real time, in the metric's unit.
    pub floor: u64,
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
    /// The cells.
    pub cells: Vec<Judged>,
    #[serde(skip)]
    rules: Rules,
}

/// The metric that both sides can be compared by.
pub(super) fn metric_of(rules: Option<Metric>, before: &Baseline, after: &Baseline) -> Result<Metric, GateError> {
    let metric = rules.unwrap_or_else(|| after.usual_metric());
    let has = |side: &Baseline| side.cells.iter().any(|cell| cell.figures.contains_key(metric.field()));
    // A side on which nothing at all was measured lacks every metric, and its outcomes are what is to be told.
    let measured = |side: &Baseline| side.cells.iter().any(|cell| !cell.figures.is_empty());
    let lacks: Vec<&str> = [("the baseline", before), ("the run", after)]
        .into_iter()
        .filter(|(_, side)| measured(side) && !has(side))
        .map(|(name, _)| name)
        .collect();
    if lacks.is_empty() {
        return Ok(metric);
    }
    Err(GateError::NoFigures { metric, which: format!("{} has none", lacks.join(" and ")) })
}

impl Judgement {
    /// Judges a run against a baseline. In real time a regression is still to be confirmed, see [`Judgement::suspects`].
    ///
    /// # Errors
    /// If no cell has the figures that are to be compared.
    pub fn new(before: &Baseline, after: &Baseline, rules: &Rules) -> Result<Self, GateError> {
        let metric = metric_of(rules.metric, before, after)?;
        let matched = matched(before, after, rules.matching);
        let differences = differences(before, after, &matched, &rules.allow);
        let look = look(after, metric, rules);
        let mut withheld: Vec<String> = differences
            .iter()
            .filter(|difference| difference.refused)
            .map(|difference| format!("{} (--allow {})", difference.text, difference.aspect))
            .collect();
        if let Some(found) = look.as_ref().filter(|found| found.alarm) {
            withheld.push(alarm(found));
        }
        let mut cells: Vec<Judged> = matched.iter().map(|matched| compared(matched, metric)).collect();
        let tests = cells.iter().filter(|cell| cell.test.is_some()).count();
        correct(&mut cells, tests);
        let real = cells.iter().filter(|cell| cell.test.is_some());
        let shift = Shift::of(real.filter_map(|cell| cell.ratio?.medians).collect());
        if let Some(found) = shift.filter(|found| found.is_large(rules) && !has_a_cause(&differences)) {
            withheld.push(shifted(&found));
        }
        for cell in &mut cells {
            cell.judge(metric, rules, tests, shift);
            cell.suspect = cell.looks_worse(metric, rules);
        }
        if !withheld.is_empty() {
            cells.iter_mut().filter(|cell| cell.verdict != Verdict::Missing && cell.verdict != Verdict::New).for_each(
                |cell| {
                    cell.verdict = Verdict::Withheld;
                    cell.suspect = false;
                    cell.notes.clear();
                },
            );
        }
        Ok(Self {
            sweep: after.sweep.clone(),
            metric,
            max_regression: rules.max_regression,
            floor: rules.floor.unwrap_or(metric.floor()),
            alpha: rules.alpha,
            tests,
            differences,
            look,
            shift,
            withheld,
            cells,
            rules: rules.clone(),
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

    /// Cells of that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }

    /// Ids of the cells that look worse in real time, and are to be run again before anything is said. Most of them will not be worse: a
    /// few repeats do not tell a change from chance, and more of them do. In virtual time they would give the same figures again.
    pub fn suspects(&self) -> Vec<&str> {
        self.cells.iter().filter(|cell| cell.suspect).map(|cell| cell.cell.as_str()).collect()
    }

    /// How many repeats of each suspect are to decide: enough to be significant among all cells, and as many as the run had; and 40,
    /// where all suspects together then take no longer than the run did.
    pub fn repeats_to_confirm(&self) -> usize {
        let level = self.alpha / crate::stats::count(self.tests.max(1));
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
            self.suspects().iter().filter_map(|id| matched.get(*id)).map(|cell| compared(cell, self.metric)).collect();
        let tests = self.tests.max(fresh.len());
        correct(&mut fresh, tests);
        for cell in &mut fresh {
            cell.judge(self.metric, &rules, tests, self.shift);
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

/// The figures of a cell beside each other, not judged yet.
fn compared(matched: &Matched<'_>, metric: Metric) -> Judged {
    let (before, after) = matched.sides(metric);
    let (test, ratio) = matched.contrast(before.as_ref(), after.as_ref());
    let counts = before.as_ref().zip(after.as_ref()).map(|(before, after)| (before.figures.len(), after.figures.len()));
    let smallest = test.and(counts).map(|(before, after)| minimum_p(before, after));
    Judged {
        cell: matched.id(),
        axes: matched.axes(),
        exact: matched.exact(),
        ratio,
        test,
        adjusted_p: None,
        minimum_p: smallest,
        verdict: Verdict::default(),
        notes: Vec::new(),
        before,
        after,
        again: None,
        suspect: false,
    }
}

/// Corrects the tests of these cells for each other, and for the others of so many that they were chosen from.
fn correct(cells: &mut [Judged], among: usize) {
    let tested: Vec<&mut Judged> = cells.iter_mut().filter(|cell| cell.test.is_some()).collect();
    let mut values: Vec<f64> = tested.iter().filter_map(|cell| cell.test).map(|test| test.p).collect();
    values.resize(among.max(values.len()), 1.0);
    tested.into_iter().zip(holm(&values)).for_each(|(cell, p)| cell.adjusted_p = Some(p));
}

/// Whether anything differs between both sides that can make all cells faster or slower, but for the computer and its load.
fn has_a_cause(differences: &[Difference]) -> bool {
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

/// Whether an outcome is worse than another. A skipped cell was not tried; and where datagrams are lost by chance, which repeats are
/// incomplete is chance too: what is compared then is the others, as long as there are any.
fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Measured | Outcome::Skipped | Outcome::Incomplete => 0,
        Outcome::Invalid => 1,
        Outcome::TimedOut => 2,
        Outcome::Failed => 3,
    }
}

impl Judged {
    /// Judges a compared and corrected cell among so many tests.
    fn judge(&mut self, metric: Metric, rules: &Rules, tests: usize, shift: Option<Shift>) {
        let (verdict, note) = self.by_outcome().unwrap_or_else(|| self.by_figures(metric, rules, tests, shift));
        self.verdict = verdict;
        self.notes.extend(note);
        if let Some(after) = self.after.as_ref().filter(|_| !self.exact) {
            self.notes.extend(Shape::of(&after.figures).notes(&|figure| metric.show(figure)));
        }
    }

    /// Whether a judged cell is to be run again: it regressed, or it may have and so few repeats do not tell.
    fn looks_worse(&self, metric: Metric, rules: &Rules) -> bool {
        let medians =
            self.before.as_ref().and_then(|side| side.median).zip(self.after.as_ref().and_then(|side| side.median));
        let worse = || {
            medians
                .is_some_and(|(before, after)| rules.screening().size(metric, before, after, self.exact) == Size::Worse)
        };
        match self.verdict {
            _ if self.exact => false,
            Verdict::Regressed => true,
            Verdict::Unchanged | Verdict::Underpowered => self.test.is_some_and(|test| test.p <= SCREEN) && worse(),
            _ => false,
        }
    }

    /// The verdict where the outcomes alone give it.
    fn by_outcome(&self) -> Option<(Verdict, Option<String>)> {
        let (before, after) = match (&self.before, &self.after) {
            (Some(before), Some(after)) => (before, after),
            (Some(_), None) => return Some((Verdict::Missing, Some("the run does not have it".to_owned()))),
            _ => return Some((Verdict::New, Some("the baseline does not have it".to_owned()))),
        };
        let why = |side: &Side| {
            let reason = side.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!("{}{reason}", side.outcome)
        };
        let skipped = |side: &Side| side.outcome == Outcome::Skipped && side.measured == 0;
        match (skipped(before), skipped(after)) {
            (true, true) => return Some((Verdict::WithoutFigures, Some(why(after)))),
            (false, true) => {
                return Some((Verdict::Missing, Some(format!("this run could not do it, {}", why(after)))));
            }
            (true, false) => return Some((Verdict::New, Some("the baseline's run could not do it".to_owned()))),
            (false, false) => {}
        }
        let (was, is) = (rank(before.outcome), rank(after.outcome));
        if is > was || (before.measured > 0 && after.measured == 0) {
            return Some((Verdict::Regressed, Some(format!("was {}, is {}", before.outcome, why(after)))));
        }
        if is < was || (before.measured == 0 && after.measured > 0) {
            return Some((Verdict::Improved, Some(format!("was {}, is {}", why(before), after.outcome))));
        }
        let nothing = before.figures.is_empty() || after.figures.is_empty();
        match (nothing, before.measured == 0 && after.measured == 0) {
            (true, true) => Some((Verdict::WithoutFigures, Some(why(after)))),
            (true, false) => Some((Verdict::Underpowered, Some("the two sides have no repeat in common".to_owned()))),
            (false, _) => None,
        }
    }

    /// The verdict on two sides with figures.
    fn by_figures(
        &self,
        metric: Metric,
        rules: &Rules,
        tests: usize,
        shift: Option<Shift>,
    ) -> (Verdict, Option<String>) {
        let medians =
            self.before.as_ref().and_then(|side| side.median).zip(self.after.as_ref().and_then(|side| side.median));
        let Some((before, after)) = medians else { return (Verdict::WithoutFigures, None) };
        let size = rules.size(metric, before, after, self.exact);
        let by_size = match size {
            Size::Worse => Verdict::Regressed,
            Size::Better => Verdict::Improved,
            Size::Small => Verdict::Unchanged,
        };
        if self.exact {
            return (by_size, None);
        }
        if self.adjusted_p.is_some_and(|p| p <= rules.alpha) {
            if by_size == Verdict::Regressed
                && let Some(note) = self.within_restlessness(metric, rules, shift)
            {
                return (Verdict::Unchanged, Some(note));
            }
            let ordinary = shift.filter(|shift| by_size == Verdict::Regressed && !shift.is_large(rules));
            return match ordinary {
                Some(shift) if rules.size(metric, times(before, shift.ratio), after, false) != Size::Worse => {
                    let whole = super::words::change(shift.ratio);
                    let note =
                        format!("no worse than the run as a whole, which changed by {whole}, by more than is allowed");
                    (Verdict::Unchanged, Some(note))
                }
                _ => (by_size, None),
            };
        }
        let level = rules.alpha / crate::stats::count(tests.max(1));
        let same =
            |side: &Option<Side>| side.as_ref().is_some_and(|side| side.figures.iter().all(|&figure| figure == before));
        if self.minimum_p.is_some_and(|smallest| smallest > level) && !(same(&self.before) && same(&self.after)) {
            return (Verdict::Underpowered, Some(self.too_few(level, tests)));
        }
        (Verdict::Unchanged, (size == Size::Worse).then(|| "within what the repeats vary by".to_owned()))
    }

    /// How much the repeats of a side vary by where that is more than is allowed: such a cell is restless, and moves by as much from
    /// one run to the next, so that only a change of several times that is one. A side with few repeats does not tell.
    fn restlessness(&self, rules: &Rules) -> Option<f64> {
        let variation = |side: &Side| share_of(deviation(&side.figures, side.median?), side.median?);
        let sides = [&self.before, &self.after].into_iter().flatten();
        let told = sides.filter(|side| side.figures.len() >= FEWEST_FOR_RESTLESSNESS).filter_map(variation);
        told.max_by(f64::total_cmp).filter(|&variation| variation > rules.max_regression)
    }

    /// The rules for this cell: those of a restless one allow more.
    fn rules(&self, rules: &Rules) -> Rules {
        let allowed = self.restlessness(rules).map_or(rules.max_regression, |variation| RESTLESS * variation);
        Rules { max_regression: allowed, ..rules.clone() }
    }

    /// Why a change of a restless cell does not count, if it does not.
    fn within_restlessness(&self, metric: Metric, rules: &Rules, shift: Option<Shift>) -> Option<String> {
        let variation = self.restlessness(rules)?;
        let (median, now) = (self.before.as_ref()?.median?, self.after.as_ref()?.median?);
        let expected = times(median, shift.filter(|shift| !shift.is_large(rules)).map_or(1.0, |shift| shift.ratio));
        let percent = |share: f64| super::words::change(1.0 + share).trim_start_matches('+').to_owned();
        (self.rules(rules).size(metric, expected, now, false) != Size::Worse).then(|| {
            format!(
                "its repeats vary by {} around the median, so that only a change of more than {} is told from a restless machine",
                percent(variation),
                percent(RESTLESS * variation)
            )
        })
    }

    /// Why so many repeats tell nothing, and how many would.
    fn too_few(&self, level: f64, tests: usize) -> String {
        let count = |side: &Option<Side>| side.as_ref().map_or(0, |side| side.figures.len());
        let (before, after) = (count(&self.before), count(&self.after));
        let both = (1..=1000).find(|&count| minimum_p(count, count) <= level).unwrap_or(1000);
        let run = match repeats_needed(before, level) {
            Some(run) if run < both => format!(", or {run} of the run"),
            _ => String::new(),
        };
        let baseline = match repeats_needed(after, level) {
            Some(baseline) if baseline < 200 => format!(", or {baseline} of the baseline"),
            _ => String::new(),
        };
        let among = if tests == 1 { String::new() } else { format!(" among {tests} cells") };
        format!(
            "{before} repeats against {after} can reach p = {}, and {}{among} is needed: {both} of each would do{run}{baseline}",
            Significant(self.minimum_p.unwrap_or(1.0)),
            Significant(level)
        )
    }
}

/// Fewest repeats of a side that tell how much they vary.
const FEWEST_FOR_RESTLESSNESS: usize = 20;

/// The median of the distances of figures from their median.
fn deviation(figures: &[u64], median: u64) -> u64 {
    let distances = figures.iter().map(|figure| figure.abs_diff(median)).collect();
    Figures::of(distances).map_or(0, |figures| figures.median)
}

/// A share of a whole; `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "measurements, which have no 16 digits")]
fn share_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A figure times a ratio.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "measurements, which have no 16 digits and are not negative"
)]
fn times(figure: u64, ratio: f64) -> u64 {
    (figure as f64 * ratio).round() as u64
}

/// A probability with two significant digits.
struct Significant(f64);

impl std::fmt::Display for Significant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&super::words::probability(self.0))
    }
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
