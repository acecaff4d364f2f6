//! The state of a run while it goes on: it asks each machine for its repeats, and records what comes.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::backend::guest::initramfs;
use crate::backend::{BackendError, Event, Job, Machine};
use crate::measurement::{CaptureLimits, Measurement, Outcome};
use crate::plan::{Cell, Plan, Run};
use crate::record::{self, FORMAT, KernelFacts, Manifest, Record, Writer};
use crate::settings::Clock;
use crate::units::Span;

use super::agenda::Agenda;
use super::placement::{Place, Placement, Ready, pack, prepare};
use super::reuse::{Results, Stored};
use super::{Progress, Request, RunError, phase};

/// The state of a run.
pub(super) struct Session<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) resumed: bool,
    /// Machines of a resumed run: the new ones must be like them.
    pub(super) known_machines: Vec<record::Machine>,
    /// Where the cells of a resumed run were measured, by their id: what is added to them must be measured there, too.
    pub(super) known_places: HashMap<String, String>,
    /// Machines that were told of.
    pub(super) met: Vec<record::Machine>,
    pub(super) writer: Writer,
    pub(super) manifest: Manifest,
    pub(super) plan: &'a Plan,
    /// What is to be run next.
    pub(super) agenda: Agenda<'a>,
    pub(super) sequence: u64,
    pub(super) virtual_time: Option<Span>,
    pub(super) reused: usize,
    pub(super) tell: &'a mut dyn FnMut(Progress<'_>),
}

impl Session<'_> {
    fn cell(&self, run: Run) -> &Cell {
        &self.plan.cells[run.cell]
    }

    /// Runs the cells of one placement, look by look, until nothing of them is left to run.
    pub(super) fn group(&mut self, placement: &Placement, interrupted: &AtomicBool) -> Result<(), RunError> {
        let runs = self.agenda.next(&placement.cells);
        if runs.is_empty() {
            return Ok(());
        }
        (self.tell)(Progress::Placed(placement));
        let consoles = self.writer.dir().path().join("guest");
        let store = &self.request.store;
        let belongings = match pack(placement, &self.plan.cells, &mut |note| (self.tell)(Progress::Note(note))) {
            Ok(belongings) => belongings,
            Err(error) => return self.give_up(placement, &error, &runs),
        };
        let refused = belongings.refused.clone();
        let mut runs = self.next(placement, &refused)?;
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
        let mut ready = match ready {
            Ok(ready) => ready,
            Err(error) => return self.give_up(placement, &error, &runs),
        };
        self.manifest.tools.append(&mut ready.tools);
        while !runs.is_empty() && !interrupted.load(Ordering::Relaxed) {
            self.run_on(placement, &mut ready, runs, interrupted)?;
            runs = self.next(placement, &refused)?;
        }
        Ok(())
    }

    /// The repeats to run next. Those of cells whose programs this machine lacks are skipped: of these a next look asks for no more.
    fn next(&mut self, placement: &Placement, refused: &HashMap<usize, String>) -> Result<Vec<Run>, RunError> {
        loop {
            let runs = self.agenda.next(&placement.cells);
            let none = runs.is_empty();
            let left = self.refuse(placement, refused, runs)?;
            if none || !left.is_empty() {
                return Ok(left);
            }
        }
    }

    /// Runs the given repeats on a machine that is ready, those whose results are known excepted.
    fn run_on(
        &mut self,
        placement: &Placement,
        ready: &mut Ready,
        runs: Vec<Run>,
        interrupted: &AtomicBool,
    ) -> Result<(), RunError> {
        let results = self.request.store.as_ref().ok().and_then(|store| store.path().parent()).map(Results::below);
        // Capturing takes time, which shows in virtual time: such a repeat is none that another run could use.
        let captures = self.request.sweep.run.capture;
        let pure = ready.purity.as_deref().zip(results.as_ref());
        let runs = match pure {
            Some((key, results)) if !self.request.fresh && !captures => self.reuse(placement, key, results, runs)?,
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
                    self.meet(up, placement)
                }
                Event::Started(index) => {
                    started[index] = Timestamp::now();
                    let run = runs[index];
                    let cell = &self.plan.cells[run.cell];
                    (self.tell)(Progress::Started { cell, run });
                    Ok(())
                }
                Event::Ended(index, measurement) => {
                    ended.insert(index);
                    if let (Some((key, results)), Some(machine)) = (pure, &machine) {
                        let from = self.name();
                        let stored = Stored { measurement: (*measurement).clone(), machine: machine.clone(), from };
                        // A result that is not kept is measured again another time.
                        if !captures {
                            let _ = results.put(key, &jobs[index], &stored);
                        }
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
                self.meet(&stored.machine, placement)?;
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
        refused: &HashMap<usize, String>,
        runs: Vec<Run>,
    ) -> Result<Vec<Run>, RunError> {
        let (skipped, left): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| refused.contains_key(&run.cell));
        let cells: HashSet<usize> = skipped.iter().map(|run| run.cell).collect();
        let mut reasons: Vec<&String> = cells.iter().filter_map(|cell| refused.get(cell)).collect();
        reasons.sort();
        for of_one in reasons.chunk_by(|a, b| a == b) {
            let (count, kernel) = (of_one.len(), &placement.asked);
            (self.tell)(Progress::Note(format!("{count} cells of kernel {kernel} skipped: {}", of_one[0])));
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
            capture: options
                .capture
                .then_some(CaptureLimits { packets: options.capture_packets, snap_bytes: options.capture_snap }),
        }
    }

    /// The name of the run: its folder's.
    fn name(&self) -> String {
        let path = self.writer.dir().path();
        path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
    }

    /// Takes a machine into the manifest, unless it differs from the one that a resumed run had there.
    fn meet(&mut self, machine: &Machine, placement: &Placement) -> Result<(), RunError> {
        let cells = placement.cells.iter().map(|&cell| self.plan.cells[cell].id.to_string());
        if let Some(was) = cells.filter_map(|id| self.known_places.get(&id)).find(|was| **was != machine.image) {
            return Err(RunError::MachineChanged {
                path: self.writer.dir().path().to_owned(),
                what: format!("what kernel.image = \"{}\" stands for", placement.asked),
                was: was.clone(),
                now: machine.image.clone(),
            });
        }
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
            self.manifest.machines.push(entry.clone());
            self.writer.update(&self.manifest)?;
        }
        // A machine that runs one round after the other is told of once.
        if !self.met.contains(&entry) {
            self.met.push(entry);
            (self.tell)(Progress::Machine(machine));
        }
        Ok(())
    }

    fn record(
        &mut self,
        run: Run,
        mut measurement: Measurement,
        machine: Option<&Machine>,
        placement: &Placement,
        started: Timestamp,
        reused_from: Option<String>,
    ) -> Result<(), RunError> {
        let cell = &self.plan.cells[run.cell];
        let remarks = measurement.remarks.len();
        if let Some(capture) = &mut measurement.capture {
            let name = capture_name(cell, run);
            self.writer.keep_capture(&name, capture);
            measurement.remarks.push(capture.remark());
        }
        let mut record = Record {
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
        if let Err(error) = self.writer.append(&record) {
            // The figures go before the packets.
            let Some(capture) = record.measurement.capture.as_mut().filter(|capture| capture.file.is_some()) else {
                return Err(error.into());
            };
            self.writer.drop_capture(capture, "there was no room for it beside the record");
            let remark = capture.remark();
            record.measurement.remarks.truncate(remarks);
            record.measurement.remarks.push(remark);
            self.writer.append(&record)?;
        }
        self.sequence += 1;
        self.agenda.take(&record);
        (self.tell)(Progress::Ended { record: &record, done: self.agenda.done(), total: self.agenda.total() });
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
        self.agenda.give_up(&placement.cells);
        for run in runs {
            let measurement = Measurement::without_figures(outcome, error.to_string());
            self.record(*run, measurement, None, placement, Timestamp::now(), None)?;
        }
        Ok(())
    }
}

/// The name of a repeat's capture, below the folder of captures.
fn capture_name(cell: &Cell, run: Run) -> String {
    let warmup = if run.warmup { "warmup-" } else { "" };
    format!("{}-{warmup}{}.pcapng", cell.id, run.repeat)
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
