//! `sweep baseline`: keeps what a run measured in a file to be committed.

use std::path::PathBuf;

use clap::Args;

use crate::gate::{Baseline, GateError, Metric, ProgramMetric, load};
use crate::record::{ensure_folder, write_atomically};

use super::exit::Exit;
use super::output::say;
use super::{complain, print};

/// Arguments of `sweep baseline`.
#[derive(Debug, Args)]
pub(super) struct BaselineArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// The file. Where it exists, the reasons in it are kept.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Why these figures are the right ones from now on; kept in the file. Needed where the file exists and its figures change.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Keep these figures of each repeat instead of completion, goodput and what programs printed: chunk-p99, cpu, a name of
    /// [[workload.metric]], …
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<String>,
}

pub(super) fn baseline(arguments: &BaselineArgs) -> Result<Exit, Exit> {
    let wrong = |error: GateError| complain(&error);
    let (_, run) = load(&arguments.run).map_err(wrong)?;
    let Some((dir, manifest)) = run else {
        say!("error: `{}` is a file: name the folder of a run, such as results/latest", arguments.run.display());
        return Err(Exit::Wrong);
    };
    let loaded = dir.read().map_err(|error| complain(&error))?;
    for warning in &loaded.warnings {
        say!("warning: {warning}");
    }
    let printed = ProgramMetric::of_all(&loaded.records);
    let metrics: Vec<Metric> = if arguments.metric.is_empty() {
        [Metric::Completion, Metric::Goodput].into_iter().chain(printed.into_iter().map(Metric::Program)).collect()
    } else {
        let named: Result<_, _> = arguments.metric.iter().map(|name| Metric::named(name, &printed)).collect();
        named.map_err(|error| complain(&error))?
    };
    let new = Baseline::of(&manifest, &loaded.records, &metrics).map_err(wrong)?;
    if !arguments.metric.is_empty()
        && let Some(metric) = metrics.iter().find(|metric| !new.cells.iter().any(|cell| cell.has(metric)))
    {
        return Err(wrong(GateError::NothingToKeep { metric: metric.clone(), run: arguments.run.clone() }));
    }
    let reason = arguments.reason.as_deref();
    let file = &arguments.out;
    let kept = if file.exists() {
        let old = Baseline::read(file).map_err(wrong)?;
        new.replacing(old, reason, file).map_err(wrong)?
    } else {
        new.accepting(reason)
    };
    let text = kept.text().map_err(wrong)?;
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        ensure_folder(folder).map_err(|error| complain(&error))?;
    }
    write_atomically(file, text.as_bytes()).map_err(|error| complain(&error))?;
    let without = kept.cells.iter().filter(|cell| cell.is_without_figures()).count();
    if without > 0 {
        say!("note: {without} of {} cells have no figures", kept.cells.len());
    }
    print(&format!("{}\n", file.display()))?;
    Ok(Exit::Done)
}
