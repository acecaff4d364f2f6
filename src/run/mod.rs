//! The loop: which repeat next, on which machine, into which record. Imports `plan`, `spec`, `backend`, `record`, `workload`,
//! `settings`, `measurement` and `units`.

mod phase;
mod placement;
mod reuse;

pub use placement::{Choice, Place, Placement, place};

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;

use crate::backend::guest::kernel::KernelStore;
use crate::backend::{BackendError, Event, Job, Machine};
use crate::measurement::{Measurement, Outcome};
use crate::plan::{Cell, Plan, Run};
use crate::record::{self, FORMAT, KernelFacts, Manifest, Record, RepeatKey, RunDir, StoreError, SweepSource, Writer};
use crate::settings::Clock;
use crate::spec::Sweep;
use crate::units::Span;

use self::placement::{Ready, prepare};
use self::reuse::{Results, Stored};

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
    Resume(PathBuf),
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
    let (writer, manifest, completed, sequence) = open(request)?;
    let total = request.plan.runs.len();
    let left = total.saturating_sub(completed.len());
    writer.probe_room(RECORD_BYTES * left as u64)?;
    tell(Progress::Opened { dir: writer.dir(), done: completed.len(), total });
    let mut session = Session {
        request,
        resumed: matches!(request.destination, Destination::Resume(_)),
        known_machines: manifest.machines.clone(),
        writer,
        manifest,
        sequence,
        done: completed.len(),
        total,
        virtual_time: None,
        reused: 0,
        tell,
    };
    for placement in &placements {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        session.group(placement, &completed, interrupted)?;
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

/// Makes or opens the folder.
fn open(request: &Request<'_>) -> Result<(Writer, Manifest, HashSet<RepeatKey>, u64), RunError> {
    let new = || Manifest::new(request.command.clone(), request.source.clone());
    match &request.destination {
        Destination::Results(results) => {
            let manifest = new();
            Ok((RunDir::create(results, &manifest)?, manifest, HashSet::new(), 0))
        }
        Destination::Out(out) => {
            let manifest = new();
            Ok((RunDir::create_at(out, &manifest)?, manifest, HashSet::new(), 0))
        }
        Destination::Resume(path) => {
            let dir = RunDir::open(path)?;
            let manifest = dir.manifest()?;
            let changes = match serde_json::from_value::<Sweep>(manifest.sweep.resolved.clone()) {
                Ok(stored) => stored.differences(request.sweep),
                Err(_) => manifest.sweep.changes(&request.source.resolved),
            };
            if !changes.is_empty() {
                return Err(RunError::SweepChanged { path: path.clone(), changes });
            }
            let (writer, loaded) = dir.resume()?;
            let (completed, sequence) = (loaded.completed(), loaded.next_sequence());
            Ok((writer, manifest, completed, sequence))
        }
    }
}

/// The state of a run.
struct Session<'a> {
    request: &'a Request<'a>,
    resumed: bool,
    /// Machines of a resumed run: the new ones must be like them.
    known_machines: Vec<record::Machine>,
    writer: Writer,
    manifest: Manifest,
    sequence: u64,
    done: usize,
    total: usize,
    virtual_time: Option<Span>,
    reused: usize,
    tell: &'a mut dyn FnMut(Progress<'_>),
}

impl Session<'_> {
    fn cell(&self, run: Run) -> &Cell {
        &self.request.plan.cells[run.cell]
    }

    /// Runs the cells of one placement.
    fn group(
        &mut self,
        placement: &Placement,
        completed: &HashSet<RepeatKey>,
        interrupted: &AtomicBool,
    ) -> Result<(), RunError> {
        let members: HashSet<usize> = placement.cells.iter().copied().collect();
        let runs: Vec<Run> = self
            .request
            .plan
            .runs
            .iter()
            .copied()
            .filter(|run| members.contains(&run.cell))
            .filter(|run| {
                let cell = self.cell(*run).id.to_string();
                !completed.contains(&RepeatKey { cell, repeat: run.repeat, warmup: run.warmup })
            })
            .collect();
        if runs.is_empty() {
            return Ok(());
        }
        (self.tell)(Progress::Placed(placement));
        let consoles = self.writer.dir().path().join("guest");
        let store = &self.request.store;
        let ready = prepare(placement, &self.request.choice, store, &consoles, interrupted, &mut |note| {
            (self.tell)(Progress::Note(note));
        });
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        match ready {
            Ok(ready) => self.run_on(placement, ready, runs, interrupted),
            Err(error) => self.give_up(placement, &error, &runs),
        }
    }

    /// Runs the given repeats on a machine that is ready, those whose results are known excepted.
    fn run_on(
        &mut self,
        placement: &Placement,
        mut ready: Ready,
        runs: Vec<Run>,
        interrupted: &AtomicBool,
    ) -> Result<(), RunError> {
        self.manifest.tools.append(&mut ready.tools);
        let results = self.request.store.as_ref().ok().and_then(|store| store.path().parent()).map(Results::below);
        let pure = ready.purity.as_deref().zip(results.as_ref());
        let runs = match pure {
            Some((key, results)) if !self.request.fresh => self.reuse(key, results, runs)?,
            _ => runs,
        };
        if runs.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Job> = runs.iter().map(|run| self.job(*run)).collect();
        let mut machine: Option<Machine> = None;
        let mut ended: HashSet<usize> = HashSet::new();
        let mut started = vec![Timestamp::UNIX_EPOCH; jobs.len()];
        let mut error: Option<RunError> = None;
        let result = ready.backend.run(&jobs, interrupted, &mut |event| {
            let told = match event {
                Event::Machine(up) => {
                    machine = Some(up.clone());
                    self.meet(up)
                }
                Event::Started(index) => {
                    started[index] = Timestamp::now();
                    let run = runs[index];
                    let cell = &self.request.plan.cells[run.cell];
                    (self.tell)(Progress::Started { cell, run });
                    Ok(())
                }
                Event::Ended(index, measurement) => {
                    ended.insert(index);
                    if let (Some((key, results)), Some(machine)) = (pure, &machine) {
                        let from = self.name();
                        let stored = Stored { measurement: (*measurement).clone(), machine: machine.clone(), from };
                        // A result that is not kept is measured again another time.
                        let _ = results.put(key, &jobs[index], &stored);
                        let covered = measurement.elapsed_ns.unwrap_or(0);
                        self.virtual_time = Some(Span(self.virtual_time.unwrap_or_default().0 + covered));
                    }
                    self.record(runs[index], *measurement, machine.as_ref(), placement, started[index], None)
                }
                Event::Note(note) => {
                    (self.tell)(Progress::Note(note));
                    Ok(())
                }
            };
            match told {
                Ok(()) => ControlFlow::Continue(()),
                Err(failed) => {
                    error = Some(failed);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
        match result {
            Err(broken) if !interrupted.load(Ordering::Relaxed) => {
                let left: Vec<Run> =
                    runs.iter().enumerate().filter(|(index, _)| !ended.contains(index)).map(|(_, run)| *run).collect();
                self.give_up(placement, &broken, &left)
            }
            _ => Ok(()),
        }
    }

    /// Records the repeats whose results are known, and returns the others.
    fn reuse(&mut self, key: &str, results: &Results, runs: Vec<Run>) -> Result<Vec<Run>, RunError> {
        let mut left = Vec::new();
        let mut met = false;
        for run in runs {
            let Some(stored) = results.get(key, &self.job(run)) else {
                left.push(run);
                continue;
            };
            if !met {
                met = true;
                self.meet(&stored.machine)?;
            }
            self.reused += 1;
            let placement = Placement {
                asked: stored.machine.image.clone(),
                place: Place::Guest { image: None, clock: Clock::Virtual },
                why: String::new(),
                cells: Vec::new(),
            };
            let from = Some(stored.from);
            self.record(run, stored.measurement, Some(&stored.machine), &placement, Timestamp::now(), from)?;
        }
        Ok(left)
    }

    fn job(&self, run: Run) -> Job {
        let options = &self.request.sweep.run;
        Job {
            settings: self.cell(run).settings.clone(),
            timeout: options.timeout,
            phase: phase::of(options.seed, run.repeat, run.warmup),
        }
    }

    /// The name of the run: its folder's.
    fn name(&self) -> String {
        let path = self.writer.dir().path();
        path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
    }

    /// Takes a machine into the manifest, unless it differs from the one that a resumed run had there.
    fn meet(&mut self, machine: &Machine) -> Result<(), RunError> {
        if self.resumed {
            let known = self.known_machines.iter().find(|known| known.image == machine.image);
            if let Some(known) = known {
                let facts = [
                    ("kernel", known.release.clone().unwrap_or_default(), machine.release.clone()),
                    ("kernel build", known.version.clone().unwrap_or_default(), machine.version.clone()),
                    ("machine", known.machine.clone(), machine.name.clone()),
                    ("clock", known.clock.to_string(), machine.clock.to_string()),
                ];
                if let Some((what, was, now)) = facts.into_iter().find(|(_, was, now)| was != now) {
                    let path = self.writer.dir().path().to_owned();
                    let what = format!("the {what} of `{}`", machine.image);
                    return Err(RunError::MachineChanged { path, what, was, now });
                }
            }
        }
        let entry = record::Machine {
            image: machine.image.clone(),
            release: Some(machine.release.clone()),
            version: Some(machine.version.clone()),
            package_version: machine.package_version.clone(),
            clock: machine.clock,
            machine: machine.name.clone(),
            accelerator: machine.name.strip_prefix("guest:").map(str::to_owned),
            note: Some(machine.why.clone()),
            sysctls: machine.sysctls.clone(),
        };
        if !self.manifest.machines.contains(&entry) {
            self.manifest.machines.push(entry);
            self.writer.update(&self.manifest)?;
        }
        (self.tell)(Progress::Machine(machine));
        Ok(())
    }

    fn record(
        &mut self,
        run: Run,
        measurement: Measurement,
        machine: Option<&Machine>,
        placement: &Placement,
        started: Timestamp,
        reused_from: Option<String>,
    ) -> Result<(), RunError> {
        let cell = &self.request.plan.cells[run.cell];
        let record = Record {
            format: FORMAT,
            cell: cell.id.to_string(),
            repeat: run.repeat,
            warmup: run.warmup,
            sequence: self.sequence,
            axes: cell.axes.clone(),
            measurement,
            clock: machine.map_or(unmet_clock(placement), |machine| machine.clock),
            kernel: KernelFacts {
                release: machine.map(|machine| machine.release.clone()),
                version: machine.map(|machine| machine.version.clone()),
                image: machine.map_or_else(|| placement.asked.clone(), |machine| machine.image.clone()),
                package_version: machine.and_then(|machine| machine.package_version.clone()),
            },
            machine: machine.map_or_else(|| unmet_name(placement).to_owned(), |machine| machine.name.clone()),
            started,
            reused_from,
        };
        self.writer.append(&record)?;
        self.sequence += 1;
        self.done += 1;
        (self.tell)(Progress::Ended { record: &record, done: self.done, total: self.total });
        Ok(())
    }

    /// Records repeats that a machine did not run, with the reason. The other cells go on.
    fn give_up(&mut self, placement: &Placement, error: &BackendError, runs: &[Run]) -> Result<(), RunError> {
        let outcome = match error {
            BackendError::Unavailable(_) => Outcome::Skipped,
            BackendError::Broken(_) => Outcome::Failed,
        };
        (self.tell)(Progress::Note(format!(
            "{} cells of kernel {} {outcome}: {error}",
            placement.cells.len(),
            placement.asked
        )));
        for run in runs {
            let measurement = Measurement::without_figures(outcome, error.to_string());
            self.record(*run, measurement, None, placement, Timestamp::now(), None)?;
        }
        Ok(())
    }
}

/// The clock of a machine that never came up: the one it would have had.
fn unmet_clock(placement: &Placement) -> Clock {
    match placement.place {
        Place::Guest { clock: Clock::Virtual | Clock::Auto, .. } => Clock::Virtual,
        Place::Guest { clock: Clock::Real, .. } | Place::Native | Place::Fake => Clock::Real,
    }
}

/// The name of a machine that never came up.
fn unmet_name(placement: &Placement) -> &'static str {
    match placement.place {
        Place::Native => "native",
        Place::Guest { .. } => "guest",
        Place::Fake => "fake",
    }
}
