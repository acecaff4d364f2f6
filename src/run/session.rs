//! The state of a run while it goes on: it asks each machine for its repeats, and records what comes.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::backend::guest::initramfs;
use crate::backend::{BackendError, Event, Job, Machine};
use crate::measurement::{Measurement, Outcome};
use crate::plan::{Cell, Run};
use crate::record::{self, FORMAT, KernelFacts, Manifest, Record, RepeatKey, Writer};
use crate::settings::Clock;
use crate::units::Span;

use super::placement::{Place, Placement, Ready, pack, prepare};
use super::reuse::{Results, Stored};
use super::{Progress, Request, RunError, phase};

/// The state of a run.
pub(super) struct Session<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) resumed: bool,
    /// Machines of a resumed run: the new ones must be like them.
    pub(super) known_machines: Vec<record::Machine>,
    pub(super) writer: Writer,
    pub(super) manifest: Manifest,
    pub(super) sequence: u64,
    pub(super) done: usize,
    pub(super) total: usize,
    pub(super) virtual_time: Option<Span>,
    pub(super) reused: usize,
    pub(super) tell: &'a mut dyn FnMut(Progress<'_>),
}

impl Session<'_> {
    fn cell(&self, run: Run) -> &Cell {
        &self.request.plan.cells[run.cell]
    }

    /// Runs the cells of one placement.
    pub(super) fn group(
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
        let packed = pack(placement, &self.request.plan.cells, &mut |note| (self.tell)(Progress::Note(note)));
        let mut belongings = match packed {
            Ok(belongings) => belongings,
            Err(error) => return self.give_up(placement, &error, &runs),
        };
        let runs = self.refuse(placement, std::mem::take(&mut belongings.refused), runs)?;
        if runs.is_empty() {
            return Ok(());
        }
        let choice = &self.request.choice;
        let ready = prepare(placement, belongings, choice, store, &consoles, interrupted, &mut |note| {
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
            Some((key, results)) if !self.request.fresh => self.reuse(placement, key, results, runs)?,
            _ => runs,
        };
        if runs.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Job> = runs.iter().map(|run| self.job(*run, placement)).collect();
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
    fn reuse(
        &mut self,
        placement: &Placement,
        key: &str,
        results: &Results,
        runs: Vec<Run>,
    ) -> Result<Vec<Run>, RunError> {
        let mut left = Vec::new();
        let mut met = false;
        for run in runs {
            let Some(stored) = results.get(key, &self.job(run, placement)) else {
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

    /// Skips the repeats of cells whose programs this machine lacks, and returns the others.
    fn refuse(
        &mut self,
        placement: &Placement,
        refused: HashMap<usize, String>,
        runs: Vec<Run>,
    ) -> Result<Vec<Run>, RunError> {
        let (skipped, left): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| refused.contains_key(&run.cell));
        let mut reasons: Vec<&String> = refused.values().collect();
        reasons.sort();
        reasons.dedup();
        for reason in reasons {
            let cells = refused.values().filter(|of_cell| *of_cell == reason).count();
            (self.tell)(Progress::Note(format!("{cells} cells of kernel {} skipped: {reason}", placement.asked)));
        }
        for run in skipped {
            let reason = refused.get(&run.cell).cloned().unwrap_or_default();
            let measurement = Measurement::without_figures(Outcome::Skipped, reason);
            self.record(run, measurement, None, placement, Timestamp::now(), None)?;
        }
        Ok(left)
    }

    fn job(&self, run: Run, placement: &Placement) -> Job {
        let options = &self.request.sweep.run;
        let mut settings = self.cell(run).settings.clone();
        if let (Place::Guest { .. }, Some(exec)) = (&placement.place, &mut settings.exec) {
            initramfs::HERE.clone_into(&mut exec.dir);
        }
        Job {
            settings,
            timeout: options.timeout,
            phase: phase::of(options.seed, run.repeat, run.warmup),
            evidence: self.request.evidence,
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
