//! Why: findings as a person reads them, for one cell and for a whole sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::explain::{CellFindings, ClearFrom, Finding, Group, Knee, Seldom, Severity, SweepExplanation};
use crate::record::Record;
use crate::settings::{Value, find};
use crate::stats::CellSummary;

use super::words::{imprecise, rate, span};

/// The findings of a cell: each with what to try and where it comes from.
pub(super) fn findings(found: &CellFindings) -> String {
    let mut text = if found.findings.is_empty() {
        let most = if found.repeats > 1 { " of most repeats" } else { "" };
        format!("why: nothing to say{most}: no timer ran out, nothing was lost, and no limit was met\n")
    } else {
        String::from("why\n")
    };
    let mut tell = |often: &str, finding: &Finding| {
        let _ = writeln!(text, "  {}{often}: {}", finding.name, finding.sentence);
        let _ = writeln!(text, "    try: {}", finding.advice);
        let _ = writeln!(text, "    from: {}", finding.source);
    };
    found.findings.iter().for_each(|finding| tell("", finding));
    for one in &found.now_and_then {
        tell(&format!(" ({} only{})", one.how_often(found.repeats), numbers(&one.in_repeats)), &one.finding);
    }
    text
}

/// Most repeats that are each named.
const MAX_NAMED: usize = 8;

/// Which repeats, where they are few: `, repeats 3 and 17`.
fn numbers(repeats: &[u32]) -> String {
    match repeats {
        [one] => format!(", repeat {one}"),
        [others @ .., last] if repeats.len() <= MAX_NAMED => {
            let others = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            format!(", repeats {others} and {last}")
        }
        _ => String::new(),
    }
}

/// The counters that moved during a repeat, a line for each, with both ends side by side.
pub(super) fn counters(record: &Record) -> String {
    let of = |end: &crate::measurement::End| end.evidence.as_ref().and_then(|evidence| evidence.counters.clone());
    let (client, server) = (of(&record.measurement.client), of(&record.measurement.server));
    let shared = client.is_some() && server.is_none();
    let mut names: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, moved) in client.into_iter().flatten() {
        names.entry(name).or_default().0 = moved;
    }
    for (name, moved) in server.into_iter().flatten() {
        names.entry(name).or_default().1 = moved;
    }
    if names.is_empty() {
        return String::new();
    }
    let widest = names.keys().map(String::len).max().unwrap_or(0);
    let mut text = format!("kernel counters that moved in repeat {}", record.repeat);
    text += if shared { ", both ends together\n" } else { ": client, server\n" };
    for (name, (client, server)) in names {
        let _ = if shared {
            writeln!(text, "  {name:widest$} {client:>12}")
        } else {
            writeln!(text, "  {name:widest$} {client:>12} {server:>12}")
        };
    }
    text
}

/// What a whole sweep says: slow against fast, what the cells with a finding have in common, and where more does not help.
pub fn explanation(cells: &[CellSummary], explained: &SweepExplanation) -> String {
    let mut text = String::new();
    text += &range(cells);
    if explained.cells.iter().all(|cell| cell.repeats == 0) {
        text += "No cell was measured.\n";
        return text;
    }
    if explained.groups.is_empty() {
        let most = if explained.cells.iter().any(|cell| cell.repeats > 1) { "most repeats of " } else { "" };
        let _ = writeln!(
            text,
            "No finding in {most}any cell: no timer ran out, nothing was lost, no limit was met, and every size was given as asked."
        );
    }
    for (severity, title) in [
        (Severity::Stall, "Why cells wait"),
        (Severity::Limit, "What bounds the throughput"),
        (Severity::Note, "Worth knowing"),
    ] {
        let groups: Vec<&Group> = explained.groups.iter().filter(|group| group.severity == severity).collect();
        if groups.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title}");
        for group in groups {
            let _ = writeln!(text, "  {}: {}", group.name, extent(group));
            for ClearFrom { axis, value } in group.clear_from.iter().filter(|_| severity != Severity::Note) {
                let _ = writeln!(text, "    smallest {axis} without it: {}", shown(axis, value));
            }
            let _ = writeln!(text, "    for example: {}", group.example);
            let _ = writeln!(text, "    try: {}", group.advice);
        }
    }
    if !explained.now_and_then.is_empty() {
        text += "\nWhy some repeats stand out, which no median shows\n";
    }
    for Seldom { name, cells, repeats, of_repeats, cell, example, advice } in &explained.now_and_then {
        let those = if *cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
        let most = if *cells == 1 { "" } else { ", most of them" };
        let _ = writeln!(text, "  {name}: {repeats} of the {of_repeats} repeats of {those}{most} with {cell}");
        let _ = writeln!(text, "    for example: {example}");
        let _ = writeln!(text, "    try: {advice}");
    }
    if !explained.knees.is_empty() {
        text += "\nFrom where on more does not help\n";
        for line in knees(&explained.knees, cells) {
            let _ = writeln!(text, "  {line}");
        }
    }
    if let Some(line) = imprecise(cells) {
        let _ = writeln!(text, "\n{line}");
    }
    text
}

/// Which cells a finding is of.
fn extent(group: &Group) -> String {
    let Group { cells, of, others, .. } = group;
    match &group.rule {
        _ if cells == of => format!("all {of} cells"),
        Some(rule) if *others == 0 => format!("{cells} of {of} cells: all those with {rule}, and no other"),
        Some(rule) => {
            format!("{cells} of {of} cells: {cells} of the {} with {rule}, and no other", cells + others)
        }
        None => format!("{cells} of {of} cells, which no three axes tell from the others"),
    }
}

/// A value of an axis as a person reads it.
fn shown(axis: &str, value: &Value) -> String {
    find(axis).map_or_else(|| value.to_string(), |key| key.kind.show(value))
}

/// The slowest and the fastest cell.
fn range(cells: &[CellSummary]) -> String {
    let completion = |cell: &&CellSummary| cell.completion_ns.map(|figures| figures.median);
    let goodput = |cell: &&CellSummary| cell.goodput_bps.map(|figures| figures.median);
    let line = |what: &str, low: (u64, &CellSummary), high: (u64, &CellSummary), show: fn(Option<u64>) -> String| {
        let (low_shown, high_shown) = (show(Some(low.0)), show(Some(high.0)));
        format!("{what}: from {low_shown} ({}) to {high_shown} ({})\n", low.1.axes, high.1.axes)
    };
    let ends = |figure: &dyn Fn(&&CellSummary) -> Option<u64>| {
        let all = || cells.iter().filter_map(|cell| Some((figure(&cell)?, cell)));
        Some((all().min_by_key(|(figure, _)| *figure)?, all().max_by_key(|(figure, _)| *figure)?))
    };
    if let Some((low, high)) = ends(&completion) {
        return line("completion", low, high, span);
    }
    ends(&goodput).map_or_else(String::new, |(low, high)| line("goodput", low, high, rate))
}

/// Knees in words, those that say the same in one line.
fn knees(knees: &[Knee], cells: &[CellSummary]) -> Vec<String> {
    // The choices of the other axes: where all of them say the same, none is named.
    let choices = |knee: &Knee| {
        let is_other = |name: &String| *name != knee.axis && knee.together.get(name).is_none();
        let others =
            |cell: &CellSummary| cell.axes.0.iter().filter(|(name, _)| is_other(name)).cloned().collect::<Vec<_>>();
        cells.iter().map(others).collect::<BTreeSet<_>>().len()
    };
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for knee in knees {
        let same = knees.iter().filter(|other| knee_of(other) == knee_of(knee)).count();
        let everywhere = same == choices(knee);
        let (said, others) = (knee_of(knee), if everywhere { String::new() } else { knee.others.to_string() });
        match lines.iter_mut().find(|(other, _)| *other == said) {
            Some((_, wherever)) => wherever.push(others),
            None => lines.push((said, vec![others])),
        }
    }
    lines
        .into_iter()
        .map(|(said, others)| {
            let others: Vec<String> = others.into_iter().filter(|others| !others.is_empty()).collect();
            if others.is_empty() { said } else { format!("{said} ({})", others.join("; ")) }
        })
        .collect()
}

fn knee_of(knee: &Knee) -> String {
    let Knee { axis, value, together, flat, default_as_good, metric, .. } = knee;
    let with = together.0.iter().map(|(name, value)| format!("{name} {}", shown(name, value)));
    let with = with.collect::<Vec<_>>().join(", ");
    let with = if with.is_empty() { with } else { format!(" (with {with})") };
    let shown = shown(axis, value) + &with;
    let what = if *flat {
        format!("{axis} makes no difference to the {metric}: {shown}, the smallest, is as good as any")
    } else {
        format!("{axis} {shown} is the smallest whose {metric} is as good as the best")
    };
    let kernel = match default_as_good {
        None => "",
        Some(true) => ", and so is leaving it to the kernel",
        Some(false) => ", and leaving it to the kernel is not",
    };
    format!("{what}{kernel}")
}
