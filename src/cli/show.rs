//! `sweep show`: the table of a run again, or everything about one of its cells.

use std::path::PathBuf;

use clap::Args;

use crate::explain::CellFindings;
use crate::record::Record;
use crate::report::{CellReport, RunReport, found, show_cell, table};
use crate::settings::{Axes, find};
use crate::stats::{CellSummary, select};

use super::exit::Exit;
use super::output::say;
use super::read::Read;
use super::{is_key, print, print_json, width};

/// Arguments of `sweep show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// Only these cells: an id or its beginning, or axis values such as rcvbuf=1024 nodelay=true.
    #[arg(value_name = "CELL")]
    cells: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn show(arguments: &ShowArgs) -> Result<Exit, Exit> {
    let Read { manifest, loaded, cells, explained, .. } = Read::open(&arguments.run)?;
    if arguments.cells.is_empty() {
        if arguments.json {
            return print_json(&RunReport::new(&manifest, &cells, &loaded));
        }
        print(&format!("{}\n", table(&manifest.sweep.name, &cells, &explained.cells, width()).trim_end()))?;
        print(&found(&manifest, &cells, &loaded.records))?;
        return Ok(Exit::Done);
    }
    let chosen: Vec<(&CellSummary, &CellFindings)> =
        cells.iter().zip(&explained.cells).filter(|(cell, _)| matches(cell, &arguments.cells)).collect();
    if chosen.is_empty() {
        say!("error: {}", no_such_cell(&arguments.cells, &cells));
        return Err(Exit::Wrong);
    }
    let repeats: Vec<Vec<&Record>> = chosen.iter().map(|(cell, _)| select(&loaded.records, cell)).collect();
    let all = chosen.into_iter().zip(&repeats);
    if arguments.json {
        let reports: Vec<CellReport<'_>> =
            all.map(|((summary, findings), repeats)| CellReport { summary, findings, repeats }).collect();
        return print_json(&reports);
    }
    for (index, ((cell, found), repeats)) in all.enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        print(&format!("{gap}{}\n", show_cell(cell, repeats, found, width()).trim_end()))?;
    }
    Ok(Exit::Done)
}

/// Whether a cell is named by every word: by its id, or by a value on an axis.
fn matches(cell: &CellSummary, words: &[String]) -> bool {
    words.iter().all(|word| match word.split_once('=') {
        Some((axis, value)) => on_axis(&cell.axes, axis, value),
        None => cell.cell.starts_with(word.as_str()),
    })
}

/// Whether a cell has that value on that axis; the axis by its name or path, the value as typed in a sweep file.
pub(super) fn on_axis(place: &Axes, axis: &str, typed: &str) -> bool {
    let key = find(axis);
    let name = key.map_or(axis, |key| key.name());
    place.get(name).is_some_and(|value| {
        let size = typed.parse().ok().map(|crate::units::Bytes(bytes)| bytes);
        value.to_string() == typed
            || key.is_some_and(|key| key.kind.show(value) == typed)
            || (size.is_some() && value.int() == size)
    })
}

/// Why no cell is shown, with what there is.
fn no_such_cell(words: &[String], cells: &[CellSummary]) -> String {
    let Some(first) = cells.first() else {
        return "the run has no records yet".to_owned();
    };
    let known: Vec<&str> = first.axes.0.iter().map(|(name, _)| name.as_str()).collect();
    let unknown = words.iter().find_map(|word| {
        let (axis, _) = word.split_once('=')?;
        (!known.contains(&axis) && find(axis).is_none_or(|key| !known.contains(&key.name()))).then_some(axis)
    });
    match unknown {
        Some(axis) => {
            let why = if is_key(axis) { "is no axis of this sweep" } else { "is no key" };
            format!("`{axis}` {why}; its axes are {}", known.join(", "))
        }
        None => format!(
            "no cell is `{}`; `sweep show RUN` lists them, with their axes, and --json with their ids",
            words.join(" ")
        ),
    }
}
