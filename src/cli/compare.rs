//! `sweep compare`: two runs beside each other.

use std::path::PathBuf;

use clap::Args;

use crate::gate::{Comparison, Matching, comparison_text, load};

use super::exit::Exit;
use super::{complain, print, print_json, width};

/// Arguments of `sweep compare`.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// A run, or a file that `sweep baseline` wrote.
    first: PathBuf,
    /// Another. Ratios are its figures over the first one's.
    second: PathBuf,
    /// What to compare instead of completion (of goodput, where nothing has a completion): goodput, chunk-p50, chunk-p90,
    /// chunk-p99, chunk-p99.9, chunk-max, cpu, or a name of [[workload.metric]].
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// How cells are matched: by id, where everything that decides them is the same; or by axes, where settings that all cells share
    /// may differ, and the kernel too.
    #[arg(long = "match", value_name = "HOW", default_value = "id", value_parser = super::gate::matching)]
    matching: Matching,
    /// The least change of a median that counts as a difference: 5%. Two kernels in virtual time differ everywhere by a little.
    #[arg(long, value_name = "PERCENT", value_parser = super::gate::percent, default_value = "0%")]
    least: super::gate::Percent,
    /// Show only the cells that differ.
    #[arg(long)]
    changed: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn compare(arguments: &CompareArgs) -> Result<Exit, Exit> {
    let (first, _) = load(&arguments.first).map_err(|error| complain(&error))?;
    let (second, _) = load(&arguments.second).map_err(|error| complain(&error))?;
    let metric = arguments.metric.as_deref().map(|name| super::gate::metric(name, &first, &second)).transpose()?;
    let comparison = Comparison::new(&first, &second, metric.as_ref(), arguments.matching, arguments.least.0);
    let comparison = comparison.map_err(|error| complain(&error))?;
    if arguments.json {
        return print_json(&comparison);
    }
    print(&comparison_text(&comparison, arguments.changed, width()))?;
    Ok(Exit::Done)
}
