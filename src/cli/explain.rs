//! `sweep explain`: why the cells of a run are as they are, and what separates the slow ones from the fast ones.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::explain::{CellFindings, Group, Knee, Seldom};
use crate::report::{explanation, found, searched};
use crate::settings::Axes;
use crate::stats::{CellSummary, Searched};

use super::exit::Exit;
use super::read::Read;
use super::{print, print_json};

/// Arguments of `sweep explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    sweep: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    find: Option<&'a Searched>,
    groups: &'a [Group],
    now_and_then: &'a [Seldom],
    knees: &'a [Knee],
    cells: Vec<CellExplained<'a>>,
}

#[derive(Serialize)]
struct CellExplained<'a> {
    cell: &'a str,
    axes: &'a Axes,
    #[serde(flatten)]
    findings: &'a CellFindings,
}

pub(super) fn explain(arguments: &ExplainArgs) -> Result<Exit, Exit> {
    let Read { manifest, loaded, cells, explained, .. } = Read::open(&arguments.run)?;
    let find = searched(&manifest, &cells, &loaded.records);
    if arguments.json {
        let one = |(cell, findings)| {
            let cell: &CellSummary = cell;
            CellExplained { cell: &cell.cell, axes: &cell.axes, findings }
        };
        return print_json(&Explained {
            sweep: &manifest.sweep.name,
            find: find.as_ref(),
            groups: &explained.groups,
            now_and_then: &explained.now_and_then,
            knees: &explained.knees,
            cells: cells.iter().zip(&explained.cells).map(one).collect(),
        });
    }
    let found = found(&manifest, &cells, &loaded.records);
    print(&format!("sweep {}\n{}{found}", manifest.sweep.name, explanation(&cells, &explained)))?;
    Ok(Exit::Done)
}
