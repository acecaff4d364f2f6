//! Guests in virtual time: every repeat goes on from the frozen machine, so that its figures depend on nothing but the cell.

use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backend::{BackendError, Event, Job};
use crate::measurement::{Measurement, Outcome};
use crate::settings::Work;
use crate::units::Span;

use super::Guest;
use super::failure::{GuestFailure, Silence};
use super::frozen::Frozen;
use super::frozen::memory_stays;
use super::protocol::{Assignment, Fault, Word};
use super::qemu::{Accelerator, Launch, Memory, STATE};
use super::qmp::QmpError;
use super::session::Session;

/// How much longer than a job's timeout the guest's clock may run before the guest is stopped: the agent ends jobs by
/// itself, unless the guest is so busy that the agent never gets to run.
const GUEST_GRACE: Span = Span(2_000_000_000);

/// How long the host may take for a job, whatever the guest's clock says.
const HOST_DEADLINE: Duration = Duration::from_mins(1);
/// And how much more for each second that a stream keeps the guest busy, which costs ten seconds and more.
const HOST_PER_STREAM: u32 = 40;

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
    /// How many guests it took until two agreed.
    Agreed(Option<usize>),
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
    share_out(guest, &frozen, jobs, interrupted, tell);
    Ok(())
}

/// Lets workers take jobs one by one, each in a guest of its own.
fn share_out(
    guest: &Guest,
    frozen: &Frozen,
    jobs: &[Job],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, told) = channel();
    let mut loads = Vec::new();
    let (mut repeated, mut unequal) = (0, 0);
    thread::scope(|scope| {
        for _ in 0..guest.options.parallel.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let fault = guest.fault.clone().filter(|fault| fault.job == index);
                    let fault = fault.map(|fault| Fault { job: 0, ..fault });
                    // The receiver is gone only when the run is being stopped.
                    let say = |word| drop(sender.send(word));
                    say(Told::Started(index));
                    let loaded = |took| say(Told::Loaded(took));
                    let once = || once(guest, frozen, job, fault.clone(), interrupted, loaded);
                    let result = agreeing(once);
                    if let Ok((_, guests)) = &result {
                        say(Told::Agreed(*guests));
                    }
                    say(Told::Ended(index, result.map(|(measurement, _)| Box::new(measurement))));
                }
            });
        }
        drop(sender);
        for word in told {
            let event = match word {
                Told::Loaded(took) => {
                    loads.push(took);
                    continue;
                }
                Told::Agreed(guests) => {
                    repeated += usize::from(guests.is_none_or(|guests| guests > 2));
                    unequal += usize::from(guests.is_none());
                    continue;
                }
                Told::Started(index) => Event::Started(index),
                Told::Ended(index, Ok(measurement)) => Event::Ended(index, measurement),
                Told::Ended(_, Err(GuestFailure::Interrupted)) => continue,
                Told::Ended(index, Err(failure)) => {
                    let failed = Measurement::without_figures(Outcome::Failed, failure.to_string());
                    Event::Ended(index, Box::new(failed))
                }
            };
            if tell(event).is_break() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
    });
    if repeated > 0 {
        let agreed = if unequal == 0 { "all came to agree".to_owned() } else { format!("{unequal} never agreed") };
        let _ = tell(Event::Note(format!("{repeated} repeats took more than two guests until two agreed; {agreed}")));
    }
    loads.sort_unstable();
    if let Some(median) = loads.get(loads.len() / 2) {
        let _ = tell(Event::Note(format!("a frozen machine was loaded in {median} (median of {})", loads.len())));
    }
}

/// Runs a repeat until two guests agree in every figure. Returns its measurement and how many guests it took; `None` where no
/// two of [`MOST_GUESTS`] agreed, and then the measurement is the last one's.
///
/// QEMU's main loop runs beside the emulated processor, and now and then it looks at the clock of one that goes idle before
/// the instructions it has just executed are counted (`icount_start_warp_timer` beside `icount_process_data`): it then moves
/// the clock too far, by nanoseconds as a rule. It is rare, and no two guests meet it in the same way.
fn agreeing(
    once: impl Fn() -> Result<Measurement, GuestFailure>,
) -> Result<(Measurement, Option<usize>), GuestFailure> {
    let mut seen = vec![once()?];
    loop {
        let next = once()?;
        let guests = seen.len() + 1;
        if seen.contains(&next) {
            return Ok((next, Some(guests)));
        }
        if guests == MOST_GUESTS {
            return Ok((next, None));
        }
        seen.push(next);
    }
}

/// One guest.
fn once(
    guest: &Guest,
    frozen: &Frozen,
    job: &Job,
    fault: Option<Fault>,
    interrupted: &AtomicBool,
    loaded: impl Fn(Span),
) -> Result<Measurement, GuestFailure> {
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
        freeze: true,
        console: console.path(),
    };
    let mut session = Session::start(&guest.qemu, &launch, interrupted)?;
    let result = converse(&mut session, job, loaded);
    if result.is_err() {
        // A folder for it exists: the boot's own log was there.
        let log = format!("failed-{}-{}.log", std::process::id(), session.age().0);
        session.keep_console(&guest.options.consoles.join(log));
    }
    result
}

fn converse(session: &mut Session<'_>, job: &Job, loaded: impl Fn(Span)) -> Result<Measurement, GuestFailure> {
    session.resumed();
    let resumed = resume(session);
    let resumed_at = resumed.map_err(|error| session.state("resumed", &error))?;
    loaded(session.age());
    let busy = match job.settings.workload.kind {
        Work::Echo => Duration::ZERO,
        Work::Stream => job.settings.workload.stream_duration().unwrap_or(job.timeout).duration(),
    };
    let begun = Instant::now();
    let deadline = begun + HOST_DEADLINE + busy * HOST_PER_STREAM;
    let quiet = begun + QUIET + busy * HOST_PER_STREAM / 2;
    let guest_limit = Span(job.timeout.0 + GUEST_GRACE.0);
    loop {
        let patience = quiet.saturating_duration_since(Instant::now()).max(CLOCK_PERIOD);
        match session.glance(patience) {
            Ok(Word::Ended { job: 0, measurement }) => return Ok(*measurement),
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
