//! What a search found: for each combination of the other axes, the value that was looked for, its figure, and its neighbour's.

use std::collections::HashMap;

use serde::Serialize;

use super::figures::Figures;
use super::summary::{CellSummary, by_cell};
use crate::measurement::{Distribution, Measurement, Outcome};
use crate::record::Record;
use crate::settings::{Axes, Condition, Figure, Search, Value, Wanted};

/// What a search found, in all combinations of the other axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// What was searched for.
    #[serde(flatten)]
    pub search: Search,
    /// Cells that were measured.
    pub cells: usize,
    /// One entry for each combination.
    pub found: Vec<Found>,
}

/// What was found in one combination of the other axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The other axes, those with one value left out.
    pub others: Axes,
    /// How it came out.
    pub ending: Ending,
    /// The cell with the value that was looked for; where there is none, the end of the axis at which the condition was to hold.
    pub at: Tried,
    /// The cell next to it, where the condition does not hold.
    pub neighbour: Option<Tried>,
    /// A cell where the condition holds, and one beyond it where it does not: then bisection may have missed the value.
    pub contradiction: Option<Box<(Tried, Tried)>>,
    /// All cells of the combination that were measured, in the order of the axis.
    pub tried: Vec<Tried>,
}

/// How a search came out in one combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The condition holds at the value, and not at its neighbour.
    Found,
    /// The condition holds at the very first value: it may hold beyond it, too.
    AtTheEnd,
    /// The condition holds at no value that was measured.
    Nowhere,
}

/// One cell of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Id of the cell.
    pub cell: String,
    /// Its value on the axis that is searched.
    pub value: Value,
    /// What its repeats say.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Whether a condition holds in a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it does.
    pub holds: bool,
    /// The median of the repeats, in nanoseconds or bits per second; `None` where not every repeat has the figure.
    pub figure: Option<u64>,
    /// Why there is no figure.
    pub reason: Option<String>,
}

impl Verdict {
    /// The verdict on a cell by what [`figure_of`] says of each of its repeats. A cell of which a repeat has no figure does not satisfy
    /// any condition.
    pub fn on(condition: &Condition, repeats: &[Result<u64, String>]) -> Self {
        let lacking = repeats.iter().filter_map(|repeat| repeat.as_ref().err());
        let reason = lacking.clone().next().map(|first| match (lacking.count(), repeats.len()) {
            (_, 1) => first.clone(),
            (lacking, of) => format!("{lacking} of {of} {first}"),
        });
        let figures = repeats.iter().filter_map(|repeat| repeat.as_ref().ok().copied()).collect();
        let figure = Figures::of(figures).map(|figures| figures.median).filter(|_| reason.is_none());
        Self { holds: figure.is_some_and(|figure| condition.holds(figure)), figure, reason }
    }
}

/// The figure of a repeat that a condition is about.
///
/// # Errors
/// Why the repeat has none.
pub fn figure_of(condition: &Condition, measurement: &Measurement) -> Result<u64, String> {
    if measurement.outcome != Outcome::Measured {
        let reason = measurement.reason.as_deref().unwrap_or("no reason was recorded");
        let reason = reason.lines().next().unwrap_or_default();
        return Err(format!("{}: {reason}", measurement.outcome));
    }
    let chunk = |pick: fn(&Distribution) -> Option<u64>| measurement.chunk_latency_ns.as_ref().and_then(pick);
    let figure = match condition.figure {
        Figure::Completion => measurement.completion_ns,
        Figure::Goodput => measurement.goodput_bps,
        Figure::ChunkP50 => chunk(|chunks| Some(chunks.p50)),
        Figure::ChunkP90 => chunk(|chunks| chunks.p90),
        Figure::ChunkP99 => chunk(|chunks| chunks.p99),
        Figure::ChunkP999 => chunk(|chunks| chunks.p99_9),
        Figure::ChunkMax => chunk(|chunks| Some(chunks.max)),
    };
    figure.ok_or_else(|| format!("without {}: too few chunks tell it, or the workload has none", condition.figure))
}

/// The values on the other axes.
type Others<'a> = Vec<(&'a str, &'a Value)>;

impl Searched {
    /// What the records of a run say of its search. `cells` are their summaries.
    pub fn of(search: &Search, cells: &[CellSummary], records: &[Record]) -> Self {
        let repeats = by_cell(cells, records);
        let mut lines: Vec<(Others<'_>, Vec<Tried>)> = Vec::new();
        let mut places: HashMap<Others<'_>, usize> = HashMap::new();
        for (cell, repeats) in cells.iter().zip(&repeats) {
            let Some(value) = cell.axes.get(&search.axis).filter(|value| Search::has_order(value)) else { continue };
            let figures: Vec<_> =
                repeats.iter().map(|record| figure_of(&search.condition, &record.measurement)).collect();
            let verdict = Verdict::on(&search.condition, &figures);
            let tried = Tried { cell: cell.cell.clone(), value: value.clone(), verdict };
            let others = cell.axes.0.iter().filter(|(axis, _)| search.is_other(axis));
            let others: Others<'_> = others.map(|(axis, value)| (axis.as_str(), value)).collect();
            let place = *places.entry(others.clone()).or_insert(lines.len());
            if place == lines.len() {
                lines.push((others, Vec::new()));
            }
            lines[place].1.push(tried);
        }
        let constant: Vec<&str> = lines.first().map_or_else(Vec::new, |(first, _)| {
            let same = |axis: &(&str, &Value)| lines.iter().all(|(others, _)| others.contains(axis));
            first.iter().filter(|axis| same(axis)).map(|(name, _)| *name).collect()
        });
        let found = lines.iter().filter_map(|(others, tried)| {
            let others = others.iter().filter(|(name, _)| !constant.contains(name));
            let others = Axes(others.map(|&(name, value)| (name.to_owned(), value.clone())).collect());
            conclude(search, others, tried.clone())
        });
        Self { search: search.clone(), cells: cells.len(), found: found.collect() }
    }
}

/// What the cells of one combination say.
fn conclude(search: &Search, others: Axes, mut tried: Vec<Tried>) -> Option<Found> {
    tried.sort_by(|a, b| a.value.cmp(&b.value));
    let mut line: Vec<&Tried> = tried.iter().collect();
    if search.wanted == Wanted::Largest {
        line.reverse();
    }
    // Now the condition is expected to hold from somewhere on.
    let holds = line.iter().position(|tried| tried.verdict.holds);
    let fails_beyond = holds.and_then(|holds| line[holds..].iter().position(|tried| !tried.verdict.holds));
    let contradiction = holds.zip(fails_beyond).map(|(holds, beyond)| {
        // The nearest two.
        let fails = holds + beyond;
        Box::new((line[fails - 1].clone(), line[fails].clone()))
    });
    let (ending, at, neighbour) = match holds {
        None => (Ending::Nowhere, *line.last()?, None),
        Some(0) => (Ending::AtTheEnd, line[0], None),
        Some(holds) => (Ending::Found, line[holds], Some(line[holds - 1].clone())),
    };
    Some(Found { others, ending, at: at.clone(), neighbour, contradiction, tried })
}

#[cfg(test)]
mod tests {
    use super::{Ending, Searched, Verdict, figure_of};
    use crate::measurement::{Measurement, Outcome};
    use crate::record::{Record, example};
    use crate::settings::{Axes, Search, Value, Wanted};
    use crate::stats::summarise;

    fn search(wanted: Wanted, condition: &str) -> Search {
        let condition = condition.parse().expect("a condition");
        Search { axis: "rcvbuf".into(), path: "socket.rcvbuf".into(), with: Vec::new(), wanted, condition }
    }

    /// A cell of that size and switch with these completions in milliseconds, one a repeat.
    fn cell(rcvbuf: u64, nodelay: bool, completions: &[u64]) -> Vec<Record> {
        let record = |(repeat, ms): (u32, &u64)| Record {
            axes: Axes(vec![("rcvbuf".into(), Value::Int(rcvbuf)), ("nodelay".into(), Value::Bool(nodelay))]),
            ..example(&format!("{rcvbuf}{nodelay}"), repeat, ms * 1_000_000)
        };
        (0..).zip(completions).map(record).collect()
    }

    fn searched(search: &Search, cells: &[Vec<Record>]) -> Searched {
        let records = cells.concat();
        Searched::of(search, &summarise(&records), &records)
    }

    #[test]
    fn the_value_its_figure_and_its_neighbour_are_told_for_each_combination() {
        let cells = [
            cell(1024, true, &[4000, 30, 4000]),
            cell(4096, true, &[2, 1, 200]),
            cell(65536, true, &[1, 1, 1]),
            cell(1024, false, &[4000]),
            cell(65536, false, &[200]),
        ];
        let told = searched(&search(Wanted::Smallest, "completion < 10ms"), &cells);
        assert_eq!((told.cells, told.found.len()), (5, 2));
        let [off, on] = &told.found[..] else { panic!("two") };
        assert_eq!(
            (on.ending, &on.at.value, on.at.verdict.figure),
            (Ending::Found, &Value::Int(4096), Some(2_000_000))
        );
        let neighbour = on.neighbour.as_ref().expect("there is one");
        assert_eq!((&neighbour.value, neighbour.verdict.figure), (&Value::Int(1024), Some(4_000_000_000)));
        assert_eq!(on.others.to_string(), "nodelay=on");
        assert_eq!((off.ending, &off.at.value, off.at.verdict.holds), (Ending::Nowhere, &Value::Int(65536), false));
        let told = searched(&search(Wanted::Smallest, "completion < 5s"), &cells);
        assert!(told.found.iter().all(|found| found.ending == Ending::AtTheEnd && found.contradiction.is_none()));
        assert_eq!(told.found[0].at.value, Value::Int(1024));
    }

    #[test]
    fn the_largest_value_is_looked_for_from_the_other_end() {
        let cells = [cell(1, true, &[1]), cell(2, true, &[2]), cell(3, true, &[30])];
        let told = searched(&search(Wanted::Largest, "completion <= 2ms"), &cells);
        let found = &told.found[0];
        assert_eq!((found.ending, &found.at.value), (Ending::Found, &Value::Int(2)));
        assert_eq!(found.neighbour.as_ref().expect("there is one").value, Value::Int(3));
        assert_eq!(found.others.to_string(), "", "an axis with one value says nothing");
    }

    #[test]
    fn cells_that_contradict_the_order_are_told() {
        let cells = [cell(1, true, &[90]), cell(2, true, &[1]), cell(3, true, &[90]), cell(4, true, &[1])];
        let told = searched(&search(Wanted::Smallest, "completion < 10ms"), &cells);
        let (holds, fails) = *told.found[0].contradiction.clone().expect("a contradiction");
        assert_eq!((holds.value, fails.value), (Value::Int(2), Value::Int(3)));
    }

    #[test]
    fn a_cell_with_a_repeat_that_was_not_measured_satisfies_nothing() {
        let condition = "completion < 10ms".parse().expect("a condition");
        let late = Measurement::without_figures(Outcome::TimedOut, "nothing came\nin time");
        let missing = figure_of(&condition, &late);
        assert_eq!(missing, Err("timed-out: nothing came".to_owned()));
        let verdict = Verdict::on(&condition, &[Ok(1), missing.clone(), Ok(2)]);
        assert_eq!((verdict.holds, verdict.figure), (false, None));
        assert_eq!(verdict.reason.as_deref(), Some("1 of 3 timed-out: nothing came"));
        assert_eq!(Verdict::on(&condition, &[missing]).reason.as_deref(), Some("timed-out: nothing came"));
        let stream = Measurement { outcome: Outcome::Measured, goodput_bps: Some(5), ..Measurement::default() };
        assert!(figure_of(&condition, &stream).expect_err("none").starts_with("without completion"));
        assert_eq!(figure_of(&"goodput > 1bit/s".parse().expect("a condition"), &stream), Ok(5));
    }
}
