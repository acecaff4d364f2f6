//! `sweep plot` and `sweep report`: pictures and the page of a run, and the map of the ratio of two runs.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::plot::{self, Format, Metric, PlotOptions, Run, Sample, Stat, Theme};
use crate::record::{ensure_folder, write_atomically};
use crate::report::{PAGE, page};

use super::exit::Exit;
use super::read::Read;
use super::{complain, print};

/// Arguments of `sweep plot`.
#[derive(Debug, Args)]
pub(super) struct PlotArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// A second run: the picture is then the ratio of its figures to the first one's.
    other: Option<PathBuf>,
    /// What to draw instead of both latency and throughput: completion, goodput, chunk-p99, cpu, rcvbuf-final, …
    /// or a number that a program printed, by its name in [[workload.metric]].
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Which figure of a cell's repeats: median, min, max, mean or spread.
    #[arg(long, value_name = "STAT")]
    stat: Option<Stat>,
    /// The axis from left to right.
    #[arg(long, value_name = "AXIS")]
    x: Option<String>,
    /// The axis from bottom to top.
    #[arg(long, value_name = "AXIS")]
    y: Option<String>,
    /// Axes that become small pictures side by side.
    #[arg(long, value_name = "AXIS")]
    facet: Vec<String>,
    /// Draw the distribution of these samples for a few cells instead of a map: chunks or repeats.
    #[arg(long, value_name = "SAMPLES", conflicts_with = "other", group = "of-cells")]
    distribution: Option<Sample>,
    /// Draw buffers over time instead of a map: size, use and windows at both ends of a stream.
    #[arg(long, conflicts_with_all = ["other", "metric", "stat", "x", "y", "facet"], group = "of-cells")]
    over_time: bool,
    /// Cells of --distribution or --over-time, by id or its beginning; without it, a few from the fastest to the slowest, or
    /// the one whose buffers changed most.
    #[arg(long, value_name = "ID", requires = "of-cells")]
    cell: Vec<String>,
    /// svg or png.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// light or dark.
    #[arg(long, value_name = "THEME")]
    theme: Option<Theme>,
    /// Folder that gets the pictures; the run's own without it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Arguments of `sweep report`.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// Folder that gets the page; the run's own without it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn plot(arguments: &PlotArgs) -> Result<Exit, Exit> {
    let run = Read::open(&arguments.run)?;
    let printed = Metric::printed(&run.loaded.records);
    let named = arguments.metric.as_deref().map(|name| Metric::named(name, &printed)).transpose();
    let metric = named.map_err(|error| complain(&error))?.unwrap_or(Metric::COMPLETION);
    let mut options = PlotOptions::of(metric.clone());
    options.x.clone_from(&arguments.x);
    options.y.clone_from(&arguments.y);
    options.facet.clone_from(&arguments.facet);
    options.stat = arguments.stat.unwrap_or(options.stat);
    options.format = arguments.format.unwrap_or(options.format);
    options.theme = arguments.theme.unwrap_or(options.theme);
    let folder = arguments.out.clone().unwrap_or_else(|| run.dir.path().to_owned());
    ensure_folder(&folder).map_err(|error| complain(&error))?;
    let (records, cells) = (&run.loaded.records, &run.cells);
    let one = |name: &str, svg: Result<String, plot::PlotError>| {
        let path = folder.join(format!("{name}.{}", options.format));
        svg.and_then(|svg| plot::write(&path, svg, options.format)).map_err(|error| complain(&error))?;
        Ok(vec![path])
    };
    let paths = if let Some(sample) = arguments.distribution {
        one("distribution", plot::distribution(&run.manifest, cells, records, &arguments.cell, sample, &options))?
    } else if arguments.over_time {
        one("over-time", plot::over_time(&run.manifest, cells, records, &arguments.cell, &options))?
    } else if let Some(other) = &arguments.other {
        let other = Read::open(other)?;
        one(&format!("ratio-{metric}"), plot::ratio(run.parts(), other.parts(), &options))?
    } else if arguments.metric.is_some() {
        one(&metric.to_string(), plot::heatmap(run.parts(), &options))?
    } else {
        plot::write_run(&folder, run.parts(), &options).map_err(|error| complain(&error))?
    };
    for path in paths {
        print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn report(arguments: &ReportArgs) -> Result<Exit, Exit> {
    let run = Read::open(&arguments.run)?;
    let folder = arguments.out.clone().unwrap_or_else(|| run.dir.path().to_owned());
    ensure_folder(&folder).map_err(|error| complain(&error))?;
    let path = write_page(&folder, run.parts())?;
    print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

fn write_page(folder: &Path, run: Run<'_>) -> Result<PathBuf, Exit> {
    let path = folder.join(PAGE);
    let text = page(run);
    write_atomically(&path, text.as_bytes()).map_err(|error| complain(&error))?;
    Ok(path)
}

/// The pictures and the page that a run leaves at its end.
pub(super) fn write_all(run: &Read) -> Result<(), Exit> {
    let folder = run.dir.path();
    plot::write_run(folder, run.parts(), &PlotOptions::default()).map_err(|error| complain(&error))?;
    write_page(folder, run.parts()).map(drop)
}
