//! What a search found, as a person reads it.

use std::fmt::Write as _;

use super::words::value;
use crate::record::{Manifest, Record};
use crate::settings::{Search, Wanted};
use crate::stats::{CellSummary, Ending, Found, Searched, Tried};

/// The search of a run, if its sweep has one.
fn search(manifest: &Manifest) -> Option<Search> {
    serde_json::from_value(manifest.sweep.resolved.get("find")?.clone()).ok()
}

/// What the search of a run found, if its sweep has one and a cell of it was measured.
pub fn searched(manifest: &Manifest, cells: &[CellSummary], records: &[Record]) -> Option<Searched> {
    let searched = Searched::of(&search(manifest)?, cells, records);
    (!searched.found.is_empty()).then_some(searched)
}

/// What the search of a run found: a line for each combination of the other axes. Empty without a search.
pub fn found(manifest: &Manifest, cells: &[CellSummary], records: &[Record]) -> String {
    searched(manifest, cells, records).map_or_else(String::new, |searched| text(&searched, manifest))
}

fn text(searched: &Searched, manifest: &Manifest) -> String {
    let mut text = format!("\n{}\n", heading(searched, manifest));
    for found in &searched.found {
        let others = if found.others.0.is_empty() { String::new() } else { format!("{}: ", found.others) };
        let _ = writeln!(text, "  {others}{}", sentence(&searched.search, found));
    }
    text
}

/// What was searched for, and how many cells that took.
pub(super) fn heading(searched: &Searched, manifest: &Manifest) -> String {
    let run = searched.cells;
    let cells = match manifest.cells {
        Some(all) if all > run as u64 => {
            let why = if manifest.finished.is_some() {
                "the search did not need the others, which were not run"
            } else {
                "the search is not finished"
            };
            format!(" ({run} of {all} cells: {why})")
        }
        _ => String::new(),
    };
    format!("find {}{cells}", searched.search)
}

/// What was found in one combination.
pub(super) fn sentence(search: &Search, found: &Found) -> String {
    let show = |tried: &Tried| value(&search.axis, &tried.value);
    let Found { ending, at, neighbour, contradiction, .. } = found;
    let (this, last, beyond) = match search.wanted {
        Wanted::Smallest => ("smallest", "largest", "smaller"),
        Wanted::Largest => ("largest", "smallest", "larger"),
    };
    let mut text = match ending {
        Ending::Found => format!("{}, with {}", show(at), figure(search, at)),
        Ending::AtTheEnd => {
            format!("{}, with {}: the {this} of all, and a {beyond} one may do too", show(at), figure(search, at))
        }
        Ending::Nowhere => {
            format!("none: not even at {}, the {last} that was run, with {}", show(at), figure(search, at))
        }
    };
    if let Some(neighbour) = neighbour {
        let _ = write!(text, "; not at {}, with {}", show(neighbour), figure(search, neighbour));
    }
    if let Some((holds, fails)) = contradiction.as_deref() {
        let _ = write!(
            text,
            "; but it holds at {} ({}) and not at {} ({}), so it does not go by the order of {}, and the search ended there: \
             take larger steps, or leave [find] out to measure every cell",
            show(holds),
            figure(search, holds),
            show(fails),
            figure(search, fails),
            search.axis
        );
    }
    text
}

/// The figure of a cell, or why it has none.
fn figure(search: &Search, tried: &Tried) -> String {
    let figure = search.condition.figure;
    match (tried.verdict.figure, &tried.verdict.reason) {
        (Some(median), _) => format!("{figure} {}", figure.show(median)),
        (None, Some(reason)) => format!("no {figure} ({reason})"),
        (None, None) => format!("no {figure}"),
    }
}
