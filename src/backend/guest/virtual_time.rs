//! Guests in virtual time: every repeat goes on from the frozen machine, so that its figures depend on nothing but the cell.

use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backend::share::share_out;
use crate::backend::{BackendError, Event, Job};
use crate::measurement::{Measurement, Outcome};
use crate::settings::Work;
use crate::sys::process::{allowed_processors, current_processor};
use crate::units::Span;

use super::Guest;
use super::failure::{GuestFailure, Silence};
use super::frozen::Frozen;
use super::frozen::memory_stays;
use super::protocol::{Assignment, Fault, Word, joined};
use super::qemu::{Accelerator, Launch, Memory, STATE};
use super::qmp::QmpError;
use super::session::Session;

/// How much longer than a job's phase and timeout the guest's clock may run before the guest is stopped: the agent ends jobs by
/// itself, unless the guest is so busy that the agent never gets to run.
const GUEST_GRACE: Span = Span(2_000_000_000);

/// How long the host may take for a job, whatever the guest's clock says.
const HOST_DEADLINE: Duration = Duration::from_mins(1);
/// And how much more for each second that a stream keeps the guest busy, which costs ten seconds and more.
const HOST_PER_STREAM: u32 = 40;

/// One repeat in so many is run by two guests although their turns are ordered, to see whether that holds.
const CHECKED_EVERY: usize = 24;

/// Guests of one repeat after which no further agreement is sought.
const MOST_GUESTS: usize = 5;

/// How long resuming may take.
const RESUME_DEADLINE: Duration = Duration::from_mins(1);

/// How long a guest is left alone before it is asked for its clock, and how often it is asked then. Every word to QEMU runs its
/// main loop at a moment that the host decides, and the main loop may then look at the clock of a processor that goes idle
/// before the instructions it has just executed are counted: it moves the clock by that much too far.
const QUIET: Duration = Duration::from_secs(20);
const CLOCK_PERIOD: Duration = Duration::from_secs(2);

/// What a worker tells.
enum Told {
    Started(usize),
    Loaded(Span),
    /// What became of the guests of a repeat.
    Ran(Guests),
    Ended(usize, Result<Box<Measurement>, GuestFailure>),
}

pub(super) fn run(
    guest: &Guest,
    jobs: &[Job],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<(), BackendError> {
    let console = guest.console("boot")?;
    let frozen = guest.frozen.get_or_make(&guest.bootable, &guest.qemu, &console, interrupted, &mut |note| {
        let _ = tell(Event::Note(note));
    });
    let frozen = match frozen {
        Ok(frozen) => frozen,
        Err(GuestFailure::Interrupted) => return Ok(()),
        Err(failure) => {
            return Err(BackendError::Broken(format!("{failure}\n  the whole console: {}", console.display())));
        }
    };
    if !frozen.made {
        // The log of a boot that did not happen.
        drop(fs::remove_file(&console));
    }
    for note in guest.notes(frozen.hello()) {
        let _ = tell(Event::Note(note));
    }
    if tell(Event::Machine(&guest.machine(frozen.hello()))).is_break() {
        return Ok(());
    }
    run_jobs(guest, &frozen, jobs, interrupted, tell);
    Ok(())
}

/// Runs all jobs, each in guests of its own.
fn run_jobs(
    guest: &Guest,
    frozen: &Frozen,
    jobs: &[Job],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) {
    let turns = Turns::new();
    let workers = guest.options.parallel.virtual_time.min(jobs.len());
    let mut loads = Vec::new();
    let mut tally = Tally::default();
    let work = |worker: usize, index: usize, say: &dyn Fn(Told)| {
        let job = &jobs[index];
        let fault = guest.fault.clone().filter(|fault| fault.job == index).map(|fault| Fault { job: 0, ..fault });
        say(Told::Started(index));
        let loaded = |took| say(Told::Loaded(took));
        let processor = turns.processor(worker, workers);
        let once = || once(guest, frozen, job, fault.clone(), processor, interrupted, loaded);
        let result = trusted(once, &turns, index);
        if let Ok((_, guests)) = &result {
            say(Told::Ran(*guests));
        }
        say(Told::Ended(index, result.map(|(measurement, _)| Box::new(measurement))));
    };
    share_out(jobs.len(), workers, interrupted, work, |word| {
        let event = match word {
            Told::Loaded(took) => {
                loads.push(took);
                return ControlFlow::Continue(());
            }
            Told::Ran(guests) => {
                tally.add(guests);
                return ControlFlow::Continue(());
            }
            Told::Started(index) => Event::Started(index),
            Told::Ended(index, Ok(measurement)) => Event::Ended(index, measurement),
            Told::Ended(_, Err(GuestFailure::Interrupted)) => return ControlFlow::Continue(()),
            Told::Ended(index, Err(failure)) => {
                let failed = Measurement::without_figures(Outcome::Failed, failure.to_string());
                Event::Ended(index, Box::new(failed))
            }
        };
        tell(event)
    });
    for note in tally.notes(&turns) {
        let _ = tell(Event::Note(note));
    }
    loads.sort_unstable();
    if let Some(median) = loads.get(loads.len() / 2) {
        let _ = tell(Event::Note(format!("a frozen machine was loaded in {median} (median of {})", loads.len())));
    }
}

/// Whether QEMU's two threads take turns at moments that the guest decides.
///
/// QEMU's main loop runs beside the thread that emulates the processor. Whenever the guest sets a timer it is woken, and if it
/// gets to run just as the processor goes idle, it looks at the clock before the instructions just executed are counted
/// (`icount_start_warp_timer` beside `icount_process_data`): it then moves the clock too far, by nanoseconds as a rule. On one
/// processor, with the main loop first, it has always run before the guest goes on, and there is no such moment. That takes a
/// right that root has. Without it a repeat is run until two guests agree in every figure: no two go wrong in the same way.
pub(super) struct Turns {
    processors: Vec<usize>,
    /// Set when a repeat whose guests took turns was checked, and they did not agree.
    broken: AtomicBool,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { processors: allowed_processors().unwrap_or_default(), broken: AtomicBool::new(false) }
    }

    /// The processor for a guest: each worker's own, and for a single one wherever there is room just now.
    pub(super) fn processor(&self, worker: usize, workers: usize) -> Option<usize> {
        if workers == 1
            && let Some(here) = current_processor()
        {
            return Some(here);
        }
        self.processors.get(worker % self.processors.len().max(1)).copied()
    }
}

/// What became of the guests of a repeat.
#[derive(Clone, Copy)]
struct Guests {
    /// How many there were.
    number: usize,
    /// Whether they took turns.
    ordered: bool,
    /// Whether two agreed, where there were two.
    agreed: bool,
}

/// The same of all repeats.
#[derive(Default)]
struct Tally {
    checked: usize,
    unordered: usize,
    repeated: usize,
    unequal: usize,
}

impl Tally {
    fn add(&mut self, guests: Guests) {
        self.unordered += usize::from(!guests.ordered);
        self.checked += usize::from(guests.ordered && guests.number > 1);
        self.repeated += usize::from(guests.number > 2);
        self.unequal += usize::from(guests.number > 1 && !guests.agreed);
    }

    fn notes(&self, turns: &Turns) -> Vec<String> {
        let mut notes = Vec::new();
        if self.checked > 0 && !turns.broken.load(Ordering::Relaxed) {
            notes.push(format!("{} repeats were run by two guests each as a check: all agreed", self.checked));
        }
        if self.unordered > 0 {
            notes.push(format!(
                "{} repeats were run until two guests agreed, since QEMU's threads cannot be ordered here (root can)",
                self.unordered
            ));
        }
        if self.repeated > 0 {
            let agreed = if self.unequal == 0 {
                "all came to agree".to_owned()
            } else {
                format!("{} never agreed", self.unequal)
            };
            notes.push(format!("{} repeats took more than two guests until two agreed; {agreed}", self.repeated));
        }
        notes
    }
}

/// Runs a repeat: once where QEMU's threads take turns, else until two guests agree in every figure. Where no two of
/// [`MOST_GUESTS`] agree, the measurement is the last one's.
fn trusted(
    once: impl Fn() -> Result<(Measurement, bool), GuestFailure>,
    turns: &Turns,
    index: usize,
) -> Result<(Measurement, Guests), GuestFailure> {
    let (first, ordered) = once()?;
    if ordered && !index.is_multiple_of(CHECKED_EVERY) && !turns.broken.load(Ordering::Relaxed) {
        return Ok((first, Guests { number: 1, ordered, agreed: true }));
    }
    let mut seen = vec![first];
    loop {
        let (next, _) = once()?;
        let number = seen.len() + 1;
        let agreed = seen.contains(&next);
        if agreed || number == MOST_GUESTS {
            return Ok((next, Guests { number, ordered, agreed }));
        }
        if ordered {
            turns.broken.store(true, Ordering::Relaxed);
        }
        seen.push(next);
    }
}

/// One guest. Returns its measurement, and whether QEMU's threads took turns.
fn once(
    guest: &Guest,
    frozen: &Frozen,
    job: &Job,
    fault: Option<Fault>,
    processor: Option<usize>,
    interrupted: &AtomicBool,
    loaded: impl Fn(Span),
) -> Result<(Measurement, bool), GuestFailure> {
    let assignment = Assignment { jobs: vec![job.clone()], fault };
    let start = |error: std::io::Error| GuestFailure::Start(error.to_string());
    let assignment = serde_json::to_vec(&assignment).map_err(|error| start(error.into()))?;
    let console = tempfile::NamedTempFile::with_prefix("sweep-console-").map_err(start)?;
    let launch = Launch {
        accelerator: Accelerator::TcgVirtual,
        kernel: &guest.bootable.kernel,
        initrd: Some(&frozen.initrd()),
        assignment: &assignment,
        memory: Memory::Frozen { memory: &frozen.memory(), state: &frozen.state() },
        memory_mib: guest.bootable.memory_mib,
        freeze: true,
        console: console.path(),
    };
    let mut session = Session::start(&guest.qemu, &launch, interrupted)?;
    session.resumed();
    let ordered = match processor.map(|processor| session.take_turns(processor)).transpose() {
        Ok(ordered) => ordered.unwrap_or(false),
        Err(error) => return Err(session.state("resumed", &error)),
    };
    let result = converse(&mut session, job, loaded);
    if result.is_err() {
        // A folder for it exists: the boot's own log was there.
        let log = format!("failed-{}-{}.log", std::process::id(), session.age().0);
        session.keep_console(&guest.options.consoles.join(log));
    }
    result.map(|measurement| (measurement, ordered))
}

fn converse(session: &mut Session<'_>, job: &Job, loaded: impl Fn(Span)) -> Result<Measurement, GuestFailure> {
    let resumed = resume(session);
    let resumed_at = resumed.map_err(|error| session.state("resumed", &error))?;
    loaded(session.age());
    let busy = match job.settings.workload.kind {
        Work::Echo => Duration::ZERO,
        Work::Stream => job.settings.workload.stream_duration().unwrap_or(job.timeout).duration(),
        // A program may compute all the time that it has.
        Work::Exec => job.timeout.duration(),
    };
    let begun = Instant::now();
    let deadline = begun + HOST_DEADLINE + busy * HOST_PER_STREAM;
    let quiet = begun + QUIET + busy * HOST_PER_STREAM / 2;
    let guest_limit = Span(job.phase.0 + job.timeout.0 + GUEST_GRACE.0);
    loop {
        let patience = quiet.saturating_duration_since(Instant::now()).max(CLOCK_PERIOD);
        match session.glance(patience) {
            Ok(Word::Ended { job: 0, measurement, packets }) => return Ok(*joined(measurement, packets)),
            Ok(word) => return Err(session.unexpected(&word)),
            Err(Silence::Deadline) => {}
            Err(silence) => return Err(session.fail(silence, patience)),
        }
        let now = guest_clock(session).unwrap_or(resumed_at);
        let passed = Span(now.saturating_sub(resumed_at) * 1_000_000_000);
        if passed > guest_limit || Instant::now() > deadline {
            let console = session.console().tail();
            return Err(GuestFailure::Livelock { guest: passed, host: session.age(), console });
        }
    }
}

/// Lets the machine go on from where it stopped itself. Returns its clock, in seconds.
fn resume(session: &mut Session<'_>) -> Result<u64, QmpError> {
    let deadline = Instant::now() + RESUME_DEADLINE;
    let qmp = session.qmp();
    qmp.command("migrate-set-capabilities", memory_stays(), deadline)?;
    // QEMU would tell a network of its move five times within the first second. There is none, and each time wakes its main
    // loop at a moment of the host's.
    qmp.command("migrate-set-parameters", json!({ "announce-rounds": 0 }), deadline)?;
    qmp.command("migrate-incoming", json!({ "uri": format!("exec:cat {STATE}") }), deadline)?;
    qmp.poll("query-status", deadline, |status| Ok(status["status"] != "inmigrate"))?;
    let clock = guest_clock(session)?;
    session.qmp().command("cont", Value::Null, deadline)?;
    Ok(clock)
}

/// The guest's clock in seconds: the one that its battery-backed chip shows, which follows virtual time. Reading it from
/// outside is invisible inside.
fn guest_clock(session: &mut Session<'_>) -> Result<u64, QmpError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let time = session.qmp().command("qom-get", json!({ "path": "/machine", "property": "rtc-time" }), deadline)?;
    let field = |name: &str| time[name].as_u64().unwrap_or(0);
    // Only differences are used, and no repeat lasts a day.
    Ok(((field("tm_yday") + field("tm_mday")) * 24 + field("tm_hour")) * 3600 + field("tm_min") * 60 + field("tm_sec"))
}
