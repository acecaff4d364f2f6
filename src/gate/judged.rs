//! The verdict on one cell.

use serde::Serialize;

use super::again::Suspicion;
use super::cells::{Matched, Side};
use super::judge::Verdict;
use super::look::Shift;
use super::metric::Metric;
use super::rules::{GO_ON, PLAIN, RESTLESS, Rules, Size};
use crate::measurement::{Number, Outcome};
use crate::settings::Axes;
use crate::stats::{Figures, MannWhitney, Ratio, Shape, holm, minimum_p, repeats_needed};

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
    /// Whether it may be worse, and is to be run again before anything is said.
    #[serde(skip)]
    pub(super) suspicion: Suspicion,
    /// How many times it was to be run again so far.
    #[serde(skip)]
    pub(super) asked: usize,
}

/// The figures of a cell beside each other, not judged yet.
pub(super) fn compared(matched: &Matched<'_>, metric: &Metric) -> Judged {
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
        suspicion: Suspicion::None,
        asked: 0,
    }
}

/// Corrects the tests of these cells for each other, and for the others of so many that they were chosen from.
pub(super) fn correct(cells: &mut [Judged], among: usize) {
    let tested: Vec<&mut Judged> = cells.iter_mut().filter(|cell| cell.test.is_some()).collect();
    let mut values: Vec<f64> = tested.iter().filter_map(|cell| cell.test).map(|test| test.p).collect();
    values.resize(among.max(values.len()), 1.0);
    tested.into_iter().zip(holm(&values)).for_each(|(cell, p)| cell.adjusted_p = Some(p));
}

/// Whether an outcome is worse than another. A skipped cell was not tried; and where datagrams are lost by chance, which repeats are
/// incomplete is chance too: what is compared then is the others, as long as there are any.
pub(super) fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Measured | Outcome::Skipped | Outcome::Incomplete => 0,
        Outcome::Invalid => 1,
        Outcome::TimedOut => 2,
        Outcome::Failed => 3,
    }
}

impl Judged {
    /// Judges a compared and corrected cell among so many tests.
    pub(super) fn judge(&mut self, metric: &Metric, rules: &Rules, tests: usize, shift: Option<Shift>) {
        let (verdict, note) = self.by_outcome().unwrap_or_else(|| self.by_figures(metric, rules, tests, shift));
        self.verdict = verdict;
        self.notes.extend(note);
        if let Some(after) = self.after.as_ref().filter(|_| !self.exact) {
            self.notes.extend(Shape::of(&after.figures).notes(&|figure| metric.show(figure)));
        }
    }

    /// Whether a judged cell is to be run again: it regressed, or it may have and so few repeats do not tell.
    pub(super) fn looks_worse(&self, metric: &Metric, rules: &Rules, shift: Option<Shift>) -> bool {
        match self.verdict {
            _ if self.exact => false,
            Verdict::Regressed => true,
            Verdict::Unchanged | Verdict::Underpowered => self.may_be_worse(metric, rules, shift),
            _ => false,
        }
    }

    /// Whether the medians differ by at least half of what the cell is allowed, beyond what the run as a whole changed by.
    fn may_be_worse(&self, metric: &Metric, rules: &Rules, shift: Option<Shift>) -> bool {
        let screening = self.rules(rules).screening();
        let expected =
            |before| times(before, shift.filter(|shift| !shift.is_large(rules)).map_or(1.0, |shift| shift.ratio));
        self.medians()
            .is_some_and(|(before, after)| screening.size(metric, expected(before), after, self.exact) == Size::Worse)
    }

    /// Whether a look at a cell that was run again, and that did not find a change, leaves open that there is one.
    pub(super) fn is_open(&self, metric: &Metric, rules: &Rules, shift: Option<Shift>) -> bool {
        self.test.is_some_and(|test| test.p <= GO_ON) && self.may_be_worse(metric, rules, shift)
    }

    /// Whether it is worse beside controls that moved like this, or is not measured any more.
    pub(super) fn is_still_worse(&self, metric: &Metric, rules: &Rules, shift: Option<Shift>) -> bool {
        match self.by_outcome() {
            Some((verdict, _)) => verdict == Verdict::Regressed,
            None => self.may_be_worse(metric, rules, shift),
        }
    }

    /// Whether it is so much worse, or so clearly no longer measured, that a few more repeats will tell.
    pub(super) fn is_plain(&self, metric: &Metric, rules: &Rules) -> bool {
        let plain = Rules { max_regression: PLAIN, ..rules.clone() };
        let is_worse = |(before, after)| plain.size(metric, before, after, self.exact) == Size::Worse;
        self.by_outcome().is_some() || self.medians().is_some_and(is_worse)
    }

    /// The medians of the baseline and of the run.
    fn medians(&self) -> Option<(Number, Number)> {
        let median = |side: &Option<Side>| side.as_ref().and_then(|side| side.median);
        median(&self.before).zip(median(&self.after))
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
            let without = if has_other_figures(side) { ", without this figure" } else { "" };
            format!("{}{without}{reason}", side.outcome)
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
        if has_other_figures(before) && after.measured > 0 {
            // Nothing is known of how it was: that is no improvement, and no pass.
            return Some((Verdict::New, Some("the baseline was measured, but has no such figure of it".to_owned())));
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
        metric: &Metric,
        rules: &Rules,
        tests: usize,
        shift: Option<Shift>,
    ) -> (Verdict, Option<String>) {
        let Some((before, after)) = self.medians() else { return (Verdict::WithoutFigures, None) };
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
    fn within_restlessness(&self, metric: &Metric, rules: &Rules, shift: Option<Shift>) -> Option<String> {
        let variation = self.restlessness(rules)?;
        let (median, now) = self.medians()?;
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

/// Whether a side was measured and has nothing of what is compared: it was not kept, or the cell does not have it.
fn has_other_figures(side: &Side) -> bool {
    side.outcome == Outcome::Measured && side.measured == 0
}

/// Fewest repeats of a side that tell how much they vary.
const FEWEST_FOR_RESTLESSNESS: usize = 20;

/// The median of the distances of figures from their median.
fn deviation(figures: &[Number], median: Number) -> f64 {
    let distances = figures.iter().filter_map(|figure| Number::new((figure.get() - median.get()).abs())).collect();
    Figures::of(distances).map_or(0.0, |figures| figures.median.get())
}

/// A share of a whole; `None` of nothing.
fn share_of(part: f64, whole: Number) -> Option<f64> {
    (whole.get() != 0.0).then(|| part / whole.get().abs())
}

/// A figure times a ratio.
fn times(figure: Number, ratio: f64) -> Number {
    Number::new(figure.get() * ratio).unwrap_or(figure)
}

/// A probability with two significant digits.
struct Significant(f64);

impl std::fmt::Display for Significant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&super::words::probability(self.0))
    }
}
