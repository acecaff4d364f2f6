//! What a terminal shows.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableStyle, presets};

use super::cells::Side;
use super::compare::{Comparison, Difference as Found};
use super::environment::Difference;
use super::judge::{Judgement, Overall, Verdict};
use super::look::Shift;
use super::metric::Metric;
use super::words::{MISSING, change, probability};
use crate::measurement::Number;
use crate::stats::{MannWhitney, Ratio};

/// A judgement for a terminal of that width in columns, or as wide as it gets where that is `None`. Cells of which nothing is to be said
/// are counted, and shown where `all` is set.
pub fn judgement_text(judgement: &Judgement, all: bool, width: Option<u16>) -> String {
    let mut lines = vec![format!("sweep   {}", judgement.sweep), format!("metric  {}", judgement.metric)];
    lines.push(differing(&judgement.differences));
    lines.extend(judgement.shift.map(|shift| format!("shift   {}", moved(&shift))));
    lines.push(String::new());
    if !judgement.withheld.is_empty() {
        lines.push("nothing is judged:".to_owned());
        lines.extend(judgement.withheld.iter().map(|why| format!("  {why}")));
        lines.push(String::new());
    }
    if !judgement.before_that.is_empty() {
        lines.push("run again as a whole, since of what was measured before nothing could be judged:".to_owned());
        lines.extend(judgement.before_that.iter().map(|why| format!("  {why}")));
        lines.push(String::new());
    }
    let shown = |verdict: Verdict| all || !matches!(verdict, Verdict::Unchanged | Verdict::WithoutFigures);
    let mut table = plain_table(width);
    table.set_header(header(["baseline", "run"], ["p (Holm)", "verdict"]));
    let mut rows = 0;
    for cell in judgement.cells.iter().filter(|cell| shown(cell.verdict)) {
        rows += 1;
        let mut row = vec![Cell::new(cell.axes.to_string())];
        row.extend(figures(&judgement.metric, cell.before.as_ref(), cell.after.as_ref(), cell.ratio.as_ref()));
        row.push(figure(p_of(cell.test, cell.adjusted_p, cell.exact)));
        let verdict = [&[words(cell.verdict).to_owned()], &cell.notes[..]].concat();
        row.push(Cell::new(verdict.join("\n")));
        table.add_row(row);
    }
    if rows > 0 {
        lines.extend([table.trim_fmt(), String::new()]);
    }
    lines.push(conclusion(judgement));
    lines.join("\n") + "\n"
}

/// Two runs beside each other, or only their cells that differ (`changed`), for a terminal of that width in columns, or as wide as it gets
/// where that is `None`.
pub fn comparison_text(comparison: &Comparison, changed: bool, width: Option<u16>) -> String {
    let [first, second] = &comparison.sweeps;
    let names = if first == second { first.clone() } else { format!("{first} and {second}") };
    let mut table = plain_table(width);
    table.set_header(header(["first", "second"], ["p (BH)", "the second is"]));
    for cell in comparison.cells.iter().filter(|cell| !changed || cell.difference != Found::None) {
        let mut row = vec![Cell::new(cell.axes.to_string())];
        row.extend(figures(&comparison.metric, cell.first.as_ref(), cell.second.as_ref(), cell.ratio.as_ref()));
        row.push(figure(p_of(cell.test, cell.adjusted_p, cell.exact)));
        row.push(Cell::new(cell.difference.name()));
        table.add_row(row);
    }
    let count = |found: Found| comparison.cells.iter().filter(|cell| cell.difference == found).count();
    let counts = format!(
        "{} worse, {} better, {} with no difference, of {} cells",
        count(Found::Worse),
        count(Found::Better),
        count(Found::None),
        comparison.cells.len()
    );
    [
        format!("sweep   {names}"),
        format!("metric  {}", comparison.metric),
        differing(&comparison.differences),
        String::new(),
        table.trim_fmt(),
        String::new(),
        counts,
    ]
    .join("\n")
        + "\n"
}

/// What differs between the places, a line each.
fn differing(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "differs nothing of where the two were measured".to_owned();
    }
    let lines: Vec<String> = differences.iter().map(|difference| format!("differs {}", difference.text)).collect();
    lines.join("\n")
}

/// How the run moved as a whole.
pub(super) fn moved(shift: &Shift) -> String {
    let Shift { cells, more, less, ratio } = *shift;
    format!(
        "of {cells} cells {more} have more than in the baseline and {less} less, by {} in the middle",
        change(ratio)
    )
}

/// A verdict as a person reads it.
pub(super) const fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Unchanged => "unchanged",
        Verdict::Regressed => "REGRESSED",
        Verdict::Improved => "improved",
        Verdict::NotConfirmed => "not confirmed",
        Verdict::Underpowered => "UNDERPOWERED",
        Verdict::WithoutFigures => "without figures, as before",
        Verdict::Missing => "MISSING",
        Verdict::New => "NEW",
        Verdict::Withheld => "withheld",
    }
}

/// The last line: what it comes to, and what to do.
pub(super) fn conclusion(judgement: &Judgement) -> String {
    let counts: Vec<String> = [
        Verdict::Regressed,
        Verdict::NotConfirmed,
        Verdict::Underpowered,
        Verdict::Missing,
        Verdict::New,
        Verdict::Withheld,
        Verdict::Improved,
        Verdict::WithoutFigures,
        Verdict::Unchanged,
    ]
    .into_iter()
    .filter_map(|verdict| {
        let count = judgement.count(verdict);
        (count > 0).then(|| format!("{count} {}", words(verdict).to_lowercase()))
    })
    .collect();
    let rule = if judgement.any_real() {
        format!(
            "a change counts beyond {}, {}and at p = {} over {} cells together",
            change(1.0 + judgement.max_regression).trim_start_matches('+'),
            if judgement.floor > Number::default() {
                format!("beyond {} in real time, ", judgement.metric.show(judgement.floor))
            } else {
                String::new()
            },
            probability(judgement.alpha),
            judgement.tests
        )
    } else {
        format!(
            "virtual time: a change counts beyond {}",
            change(1.0 + judgement.max_regression).trim_start_matches('+')
        )
    };
    let word = match judgement.overall() {
        Overall::Passed => "passed",
        Overall::Regression => "REGRESSION",
        Overall::NotJudged => "NOT JUDGED",
    };
    let mut text = format!("{word}: {} ({rule})", counts.join(", "));
    if judgement.withheld.is_empty() {
        if judgement.count(Verdict::Missing) + judgement.count(Verdict::New) > 0 {
            text += "\ncells that one side lacks cannot be judged: run the whole sweep, renew the baseline, or say --allow cells";
            if !judgement.by_axes() && judgement.count(Verdict::New) > 0 && judgement.count(Verdict::Missing) > 0 {
                text += "; --match axes compares cells whose shared settings changed";
            }
        }
        if judgement.count(Verdict::Underpowered) > 0 {
            text += "\nunderpowered cells cannot pass: run more repeats (--repeat N), or make the baseline from more";
        }
        if judgement.count(Verdict::Improved) > 0 && judgement.overall() == Overall::Passed {
            text += "\nto hold what improved, renew the baseline: sweep baseline RUN -o FILE --reason TEXT";
        }
    }
    text
}

fn header(sides: [&str; 2], [p, verdict]: [&str; 2]) -> Vec<Cell> {
    let mut header = vec![Cell::new("cell")];
    header.extend(sides.into_iter().chain(["change", "95 % interval", p]).map(figure));
    header.push(Cell::new(verdict));
    header
}

/// The medians of both sides, the change and its interval.
fn figures(metric: &Metric, before: Option<&Side>, after: Option<&Side>, ratio: Option<&Ratio>) -> [Cell; 4] {
    let median = |side: Option<&Side>| match side {
        Some(Side { median: Some(median), figures, .. }) => format!("{} ({})", metric.show(*median), figures.len()),
        Some(side) => side.outcome.to_string(),
        None => MISSING.to_owned(),
    };
    let changed = ratio.and_then(|ratio| ratio.medians).map_or_else(|| MISSING.to_owned(), change);
    let interval = ratio.and_then(|ratio| ratio.interval).map_or_else(
        || MISSING.to_owned(),
        |interval| {
            let high = interval.high.map_or_else(|| "…".to_owned(), change);
            format!("{} to {high}", change(interval.low))
        },
    );
    [median(before), median(after), changed, interval].map(figure)
}

fn p_of(test: Option<MannWhitney>, adjusted: Option<f64>, exact: bool) -> String {
    match (test.and(adjusted), exact) {
        (Some(p), _) => probability(p),
        (None, true) => "exact".to_owned(),
        (None, false) => MISSING.to_owned(),
    }
}

/// A cell for a number, to the right.
fn figure(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

/// A table with one line, under its header, as `sweep show` prints it.
fn plain_table(width: Option<u16>) -> Table {
    let rule: TableStyle = presets::NOTHING.header_separator(comfy_table::LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(rule).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table
}
