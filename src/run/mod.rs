//! The loop: which repeat next, on which machine, into which record. Imports `plan`, `spec`, `backend`, `record`, `stats`, `workload`,
//! `settings`, `measurement` and `units`.

mod agenda;
mod phase;
mod placement;
mod reuse;
mod search;
mod session;

pub use placement::{Choice, Place, Placement, place};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;

use crate::backend::Machine;
use crate::backend::guest::initramfs::identities;
use crate::backend::guest::kernel::KernelStore;
use crate::plan::{Cell, Plan, Run};
use crate::record::{Loaded, Manifest, More, Record, RunDir, StoreError, SweepSource, Writer};
use crate::spec::Sweep;
use crate::units::Span;

use self::agenda::{Agenda, rounds};
use self::session::Session;

/// Bytes that a record may take, for the look at the disk before the run.
const RECORD_BYTES: u64 = 4096;

/// What is to be run.
#[derive(Debug)]
pub struct Request<'a> {
    /// The sweep, as resolved.
    pub sweep: &'a Sweep,
    /// Its cells and runs.
    pub plan: &'a Plan,
    /// Where the sweep came from, for the manifest.
    pub source: SweepSource,
    /// The command line, for the manifest.
    pub command: Vec<String>,
    /// Where results go.
    pub destination: Destination,
    /// Where cells run.
    pub choice: Choice,
    /// Run virtual cells anew even if their results are known.
    pub fresh: bool,
    /// Read the kernel's counters, and what it knows of each connection, beside the figures.
    pub evidence: bool,
    /// The store of kernels, or why there is none.
    pub store: Result<KernelStore, String>,
}

/// Where results go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A new folder below this one, which `latest` then points to.
    Results(PathBuf),
    /// This folder.
    Out(PathBuf),
    /// The folder of a run that was interrupted.
    Resume {
        /// Its folder.
        run: PathBuf,
        /// What differs from when it was measured, and was allowed, in words.
        allowed: Vec<String>,
    },
    /// The folder of a run that is to have more repeats.
    More(PathBuf, Box<More>),
}

/// What the loop tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The folder stands; so many repeats are to be run beside those that it has.
    Opened {
        /// The folder.
        dir: &'a RunDir,
        /// Repeats that are recorded already.
        done: usize,
        /// All repeats.
        total: usize,
    },
    /// Where a group of cells runs.
    Placed(&'a Placement),
    /// A machine is up.
    Machine(&'a Machine),
    /// A repeat has begun.
    Started {
        /// Its cell.
        cell: &'a Cell,
        /// Which repeat.
        run: Run,
    },
    /// A repeat is recorded.
    Ended {
        /// Its record.
        record: &'a Record,
        /// Repeats recorded so far.
        done: usize,
        /// All repeats.
        total: usize,
    },
    /// Something that a person should know.
    Note(String),
}

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// Its folder.
    pub dir: RunDir,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Host time that this invocation took.
    pub host_time: Span,
    /// Virtual time that the repeats run by this invocation covered; `None` if none ran in virtual time.
    pub virtual_time: Option<Span>,
    /// Repeats whose results were known already.
    pub reused: usize,
}

/// Why a run did not go to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The results could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run to be resumed is of another sweep.
    #[error(
        "`{}` cannot be resumed, because the sweep has changed since:\n{}\nrun it anew without --resume, or leave the file out to go on with the sweep as it was",
        .path.display(),
        .changes.iter().map(|change| format!("  {change}")).collect::<Vec<_>>().join("\n")
    )]
    SweepChanged {
        /// The run.
        path: PathBuf,
        /// What changed, a line each.
        changes: Vec<String>,
    },
    /// The run to be resumed was measured on another machine.
    #[error(
        "`{}` cannot be resumed: {what} was {was} then and is {now} now, and their figures do not belong in one run; run it anew without --resume",
        .path.display()
    )]
    MachineChanged {
        /// The run.
        path: PathBuf,
        /// Which fact of which machine.
        what: String,
        /// As it was.
        was: String,
        /// As it is.
        now: String,
    },
}

/// Runs every repeat of a plan that is not recorded yet, and records it.
///
/// # Errors
/// When results cannot be written, or a run cannot be resumed. What was recorded before stays.
pub fn execute(
    request: &Request<'_>,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Finished, RunError> {
    let begun = Instant::now();
    let placements = place(&request.plan.cells, &request.choice);
    let (writer, mut manifest, loaded) = open(request)?;
    let before = matches!(request.destination, Destination::More(..)).then(|| manifest.clone());
    let added = if let Destination::More(_, more) = &request.destination { Some((**more).clone()) } else { None };
    manifest.more.extend(added);
    if let Destination::Resume { allowed, .. } = &request.destination {
        let new = allowed.iter().filter(|text| !manifest.allowed.contains(text)).cloned().collect::<Vec<_>>();
        manifest.allowed.extend(new);
    }
    let options = &request.sweep.run;
    let longer = Some(rounds(options, &manifest.more)).filter(|&rounds| rounds > options.repeat);
    let longer = longer.map(|rounds| Plan::of_rounds(request.sweep, rounds));
    let plan = longer.as_ref().unwrap_or(request.plan);
    let agenda = Agenda::new(plan, request.sweep, &manifest.more, &loaded.records);
    writer.probe_room(RECORD_BYTES * agenda.total().saturating_sub(agenda.done()) as u64)?;
    if matches!(request.destination, Destination::More(..)) {
        // From here on the run is unfinished, and can be resumed.
        manifest.finished = None;
        writer.update(&manifest)?;
    }
    let done = agenda.done();
    tell(Progress::Opened { dir: writer.dir(), done: agenda.done(), total: agenda.total() });
    for warning in request.plan.warnings() {
        tell(Progress::Note(warning));
    }
    let mut session = Session {
        request,
        resumed: matches!(request.destination, Destination::Resume { .. } | Destination::More(..)),
        known_machines: manifest.machines.clone(),
        known_places: loaded
            .records
            .iter()
            // Where no machine came up nothing was measured.
            .filter(|record| record.kernel.release.is_some())
            .map(|record| (record.cell.clone(), record.kernel.image.clone()))
            .collect(),
        met: Vec::new(),
        writer,
        manifest,
        plan,
        agenda,
        sequence: loaded.next_sequence(),
        virtual_time: None,
        reused: 0,
        tell,
    };
    for placement in &placements {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        if let Err(error) = session.group(placement, interrupted) {
            // Where nothing could be added, the run is as it was, and not one to be resumed.
            if let Some(before) = before.as_ref().filter(|_| session.agenda.done() == done) {
                session.writer.update(before)?;
            }
            return Err(error);
        }
    }
    let interrupted = interrupted.load(Ordering::Relaxed);
    session.manifest.interrupted = interrupted;
    session.manifest.finished = (!interrupted).then(Timestamp::now);
    session.writer.sync()?;
    session.writer.update(&session.manifest)?;
    Ok(Finished {
        dir: session.writer.dir().clone(),
        interrupted,
        host_time: begun.elapsed().into(),
        virtual_time: session.virtual_time,
        reused: session.reused,
    })
}

/// What the programs of a plan's cells are on this machine now: a digest of each, by its name in the sweep.
pub fn programs(plan: &Plan) -> BTreeMap<String, String> {
    identities(plan.cells.iter().filter_map(|cell| cell.settings.exec.as_deref()))
}

/// Makes or opens the folder.
fn open(request: &Request<'_>) -> Result<(Writer, Manifest, Loaded), RunError> {
    let new = || Manifest {
        cells: Some(request.plan.cells.len() as u64),
        at_once: Some(request.choice.parallel.real_time as u64),
        programs: programs(request.plan),
        ..Manifest::new(request.command.clone(), request.source.clone())
    };
    match &request.destination {
        Destination::Results(results) => {
            let manifest = new();
            Ok((RunDir::create(results, &manifest)?, manifest, Loaded::default()))
        }
        Destination::Out(out) => {
            let manifest = new();
            Ok((RunDir::create_at(out, &manifest)?, manifest, Loaded::default()))
        }
        Destination::Resume { run: path, .. } | Destination::More(path, _) => {
            let dir = RunDir::open(path)?;
            let mut manifest = dir.manifest()?;
            let changes = match serde_json::from_value::<Sweep>(manifest.sweep.resolved.clone()) {
                Ok(stored) => stored.differences(request.sweep),
                Err(_) => manifest.sweep.changes(&request.source.resolved),
            };
            if !changes.is_empty() {
                return Err(RunError::SweepChanged { path: path.clone(), changes });
            }
            let (writer, loaded) = dir.resume()?;
            // Anew, now that nobody else writes to it: whoever did may have ended in between, and told more of the run.
            manifest = dir.manifest()?;
            if loaded.records.iter().all(|record| record.warmup) {
                // Nothing was measured where it was begun.
                let Manifest { program, host, sysctls, at_once, programs, .. } = new();
                manifest = Manifest { program, host, sysctls, at_once, programs, ..manifest };
            }
            Ok((writer, manifest, loaded))
        }
    }
}
