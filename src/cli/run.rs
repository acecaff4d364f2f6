//! `sweep run`: measures every cell of a sweep and stores every repeat.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::backend::Parallel;
use crate::plan::{Description, Plan};
use crate::record::{Manifest, RunDir, SweepSource};
use crate::report::{RunReport, SUMMARY, found, table, write_csv};
use crate::run::{Choice, Destination, Finished, Request, execute, place};
use crate::spec::Sweep;

use super::exit::Exit;
use super::more::{Differing, Terms, more, taken_up};
use super::output::say;
use super::progress::Reporter;
use super::read::Read;
use super::stored::stored_sweep;
use super::{SweepArgs, become_native, check, complain, plot, print, print_json, program, store, width};

/// Most cells at once.
pub(super) const MOST_AT_ONCE: u64 = 256;

/// Arguments of `sweep run`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct RunArgs {
    /// The sweep file. With --resume it may be left out: the run has its sweep stored. One that runs programs is taken from there only where
    /// its file is as it was.
    #[arg(required_unless_present_any = ["resume", "more"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    sweep: SweepArgs,
    /// Folder that gets a new folder for this run, and a link `latest` to it.
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Folder for this run, exactly; it must be empty or absent.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "results"])]
    out: Option<PathBuf>,
    /// Finish an interrupted run without repeating or losing anything.
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "results/latest", group = "again")]
    resume: Option<PathBuf>,
    /// Add repeats to a run that has come to its end: --repeat N more of each cell, or until --precision is reached, or until that of its
    /// sweep is; of the cells that --filter names, or all. Refuses what would mix figures of two kinds.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "resume", "results", "out", "dry_run", "no_evidence"], group = "again")]
    more: Option<PathBuf>,
    /// With --more and --resume: go on although these differ from when the run was measured.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "again")]
    allow: Vec<Differing>,
    /// Tell what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Cells at once. In virtual time this does not change a figure, and the default is the number of processors. In real time
    /// neighbours change each other's figures, and the default is one; with --more and --resume it is as many as the run had, and other
    /// ones are refused.
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::try_from(MOST_AT_ONCE).unwrap_or(i64::MAX)))]
    jobs: Option<u16>,
    /// Run cells in virtual time anew even if their results are known from an earlier run.
    #[arg(long)]
    fresh: bool,
    /// Do not read the kernel's counters and what it knows of each connection: cells then say no reasons.
    #[arg(long)]
    no_evidence: bool,
    /// Capture the packets of each repeat at both ends of the link, into pcapng files: as `run.capture = true` in the sweep.
    #[arg(long, conflicts_with = "resume")]
    capture: bool,
    /// Write no pictures and no page at the end.
    #[arg(long)]
    no_plot: bool,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Where to measure instead of on a kernel, for tests: `fake` makes figures up.
    #[arg(long, value_name = "NAME", hide = true, value_parser = ["fake"])]
    backend: Option<String>,
}

pub(super) fn run(arguments: &RunArgs) -> Result<Exit, Exit> {
    // From the beginning, so that a signal ends the program in one way whenever it comes.
    let interrupted = watch_signals()?;
    // Before any thread starts: an ordinary user needs a user namespace for native cells.
    let native_refused = if arguments.backend.is_some() { None } else { become_native() };
    let terms = Terms { allow: &arguments.allow, jobs: arguments.jobs };
    let topped_up = arguments.more.as_ref().map(|run| more(run, &arguments.sweep, terms)).transpose()?;
    let of_topped_up = topped_up.as_ref().and_then(|run| run.at_once);
    let fake = arguments.backend.is_some() || topped_up.as_ref().is_some_and(|run| run.fake);
    let evidence = topped_up.as_ref().map_or(!arguments.no_evidence, |run| run.evidence);
    let (sweep, source, added) = match topped_up {
        Some(run) => (run.sweep, run.source, Some(Box::new(run.more))),
        None => sweep(arguments).map(|(sweep, source)| (sweep, source, None))?,
    };
    if added.as_ref().is_some_and(|more| more.cells.is_empty()) {
        say!("nothing is added: no cell that was measured wants more repeats");
        return Ok(Exit::Done);
    }
    let plan = Plan::new(&sweep);
    let again = arguments.resume.as_ref().filter(|_| !arguments.dry_run);
    let taken_up = again.map(|run| taken_up(run, &plan, terms)).transpose()?;
    let stored = taken_up.as_ref().map_or(of_topped_up, |run| run.at_once);
    let asked = arguments.jobs.map(usize::from);
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parallel =
        Parallel { virtual_time: asked.unwrap_or_else(processors), real_time: asked.or(stored).unwrap_or(1) };
    let choice = Choice { program: program()?, parallel, native_refused, fake };
    if arguments.dry_run {
        let places = place(&plan.cells, &choice);
        print(&format!("{}\n{}", Description::new(&sweep, &plan), check::describe(&places)))?;
        return Ok(Exit::Done);
    }
    let destination =
        match (arguments.resume.as_ref().zip(taken_up), &arguments.out, arguments.more.as_ref().zip(added)) {
            (_, _, Some((run, more))) => Destination::More(run.clone(), more),
            (Some((run, taken_up)), _, None) => Destination::Resume { run: run.clone(), allowed: taken_up.allowed },
            (None, Some(out), None) => Destination::Out(out.clone()),
            (None, None, None) => Destination::Results(arguments.results.clone()),
        };
    let request = Request {
        sweep: &sweep,
        plan: &plan,
        source,
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        destination,
        choice,
        fresh: arguments.fresh,
        evidence,
        store: store(),
    };
    if interrupted.load(Ordering::Relaxed) {
        say!("interrupted: nothing was run");
        return Ok(Exit::Interrupted);
    }
    let mut reporter = Reporter::new(arguments.quiet);
    let finished = execute(&request, &interrupted, &mut |progress| reporter.tell(&progress));
    reporter.finish();
    let finished = finished.map_err(|error| complain(&error))?;
    conclude(&finished, arguments)
}

/// The sweep to run, and where it comes from.
fn sweep(arguments: &RunArgs) -> Result<(Sweep, SweepSource), Exit> {
    if let Some(file) = &arguments.file {
        let (sweep, text) = arguments.sweep.load(file, arguments.capture)?;
        let source = source(&sweep, Some(file), text)?;
        return Ok((sweep, source));
    }
    let run = arguments.resume.as_deref().unwrap_or_else(|| Path::new("results/latest"));
    let dir = RunDir::open(run).map_err(|error| complain(&error))?;
    let manifest = dir.manifest().map_err(|error| complain(&error))?;
    match stored_sweep(&dir, &manifest) {
        Ok(sweep) => Ok((sweep, manifest.sweep)),
        Err(why) => {
            let (file, run) = (manifest.sweep.path.as_deref().unwrap_or("FILE"), run.display());
            say!(
                "error: `{run}` cannot be finished as it is stored: {why}; or name its file: sweep run {file} --resume={run}"
            );
            Err(Exit::Wrong)
        }
    }
}

fn source(sweep: &Sweep, file: Option<&Path>, text: String) -> Result<SweepSource, Exit> {
    Ok(SweepSource {
        name: sweep.name.clone(),
        path: file.map(|file| file.to_string_lossy().into_owned()),
        source: text,
        resolved: serde_json::to_value(sweep).map_err(|error| complain(&error))?,
    })
}

/// A flag that the first Ctrl-C sets; the second ends the program at once.
pub(super) fn watch_signals() -> Result<Arc<AtomicBool>, Exit> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: a signal that finds the flag set ends the program, and one that does not sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|error| complain(&error))?;
    }
    Ok(interrupted)
}

/// Whether the sweep of a run has programs of its own.
fn cells_run_programs(manifest: &Manifest) -> bool {
    manifest.sweep.resolved.get("exec").is_some()
}

/// Writes the summary, and pictures of what was measured.
fn write_files(run: &Read, no_plot: bool) -> Result<(), Exit> {
    write_csv(&run.dir.path().join(SUMMARY), &run.cells).map_err(|error| complain(&error))?;
    if no_plot || run.loaded.records.is_empty() { Ok(()) } else { plot::write_all(run) }
}

/// Writes the summary and the pictures, prints the table, and judges the run.
fn conclude(finished: &Finished, arguments: &RunArgs) -> Result<Exit, Exit> {
    let run = Read::of(finished.dir.clone())?;
    // What cannot be written is told; the table is printed all the same.
    let written = write_files(&run, arguments.no_plot);
    run.warn();
    let Read { manifest, loaded, cells, explained, .. } = &run;
    if arguments.json {
        print_json(&RunReport::new(manifest, cells, loaded))?;
    } else {
        print(&format!("{}\n", table(&manifest.sweep.name, cells, &explained.cells, width()).trim_end()))?;
        print(&found(manifest, cells, &loaded.records))?;
    }
    if !arguments.quiet {
        if finished.reused > 0 {
            say!("{} results were known from earlier runs (--fresh runs them anew)", finished.reused);
        }
        if let Some(covered) = finished.virtual_time {
            let (guest, host) = (covered, finished.host_time);
            say!("{guest} of virtual time took {host} of this machine's");
        }
        say!("results in {}", finished.dir.path().display());
    }
    written?;
    if finished.interrupted {
        let file = arguments.file.as_ref().filter(|_| cells_run_programs(manifest));
        let file = file.map(|file| format!("{} ", file.display())).unwrap_or_default();
        say!("interrupted: `sweep run {file}--resume={}` goes on from here", finished.dir.path().display());
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::of(&loaded.records))
}
