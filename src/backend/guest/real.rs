//! Guests in real time: one boot for all jobs, and a new one where a guest is lost.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::share::share_out;
use crate::backend::{BackendError, Event, Job, Machine};
use crate::measurement::{Measurement, Outcome};

use super::failure::GuestFailure;
use super::protocol::{Assignment, Fault, Word, joined};
use super::qemu::{Launch, Memory};
use super::session::Session;
use super::{BOOT_DEADLINE, Guest};

/// How much longer than its timeout a job may take before the guest is taken for hanging: the agent ends jobs by itself.
const GRACE: Duration = Duration::from_secs(30);

/// The same with what a server program may take to end by itself after the timeout.
fn grace(job: &Job) -> Duration {
    job.settings.exec.as_ref().map_or(GRACE, |exec| GRACE + exec.server.grace.duration())
}

/// Guests that may be lost in a row without a single job begun.
const BOOT_ATTEMPTS: usize = 2;

/// How far a guest came.
struct Progress {
    /// Jobs that have an outcome, from the front.
    ended: usize,
    /// Whether the job after them had begun.
    begun: bool,
}

/// What a guest tells, with no borrow in it.
enum Told {
    Machine(Box<Machine>),
    Started(usize),
    Ended(usize, Box<Measurement>),
    Note(String),
    Lost(BackendError),
}

/// Runs all jobs in one guest, or shares them out among as many as were asked for.
pub(super) fn run(
    guest: &Guest,
    jobs: &[Job],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<(), BackendError> {
    let guests = guest.options.parallel.real_time.clamp(1, jobs.len().max(1));
    if guests == 1 {
        return alone(guest, jobs, &|job| job, interrupted, tell);
    }
    let mut introduced = false;
    let mut lost = None;
    let stop = AtomicBool::new(false);
    let work = |_: usize, first: usize, say: &dyn Fn(Told)| {
        let own: Vec<Job> = jobs.iter().skip(first).step_by(guests).cloned().collect();
        let told = alone(guest, &own, &|job| first + job * guests, interrupted, &mut |event| {
            say(match event {
                Event::Machine(machine) => Told::Machine(Box::new(machine.clone())),
                Event::Started(job) => Told::Started(job),
                Event::Ended(job, measurement) => Told::Ended(job, measurement),
                Event::Note(note) => Told::Note(note),
            });
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Err(error) = told {
            say(Told::Lost(error));
        }
    };
    share_out(guests, guests, interrupted, work, |told| {
        let flow = match told {
            Told::Machine(_) if introduced => ControlFlow::Continue(()),
            Told::Machine(machine) => {
                introduced = true;
                tell(Event::Machine(&machine))
            }
            Told::Started(job) => tell(Event::Started(job)),
            Told::Ended(job, measurement) => tell(Event::Ended(job, measurement)),
            Told::Note(note) => tell(Event::Note(note)),
            Told::Lost(error) => {
                lost = Some(error);
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            stop.store(true, Ordering::Relaxed);
        }
        flow
    });
    lost.map_or(Ok(()), Err)
}

/// Runs jobs in one guest, one after the other. `number` gives a job's number among those of the caller.
fn alone(
    guest: &Guest,
    jobs: &[Job],
    number: &dyn Fn(usize) -> usize,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<(), BackendError> {
    let mut tell = |event: Event<'_>| {
        tell(match event {
            Event::Started(job) => Event::Started(number(job)),
            Event::Ended(job, measurement) => Event::Ended(number(job), measurement),
            other => other,
        })
    };
    let tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()> = &mut tell;
    let initrd = guest.initrd_file()?;
    let mut first = 0;
    let mut attempts = 0;
    let mut introduced = false;
    while first < jobs.len() && !interrupted.load(Ordering::Relaxed) {
        let mut progress = Progress { ended: 0, begun: false };
        let console = guest.console("console")?;
        let faulty = |fault: Fault| (first..jobs.len()).find(|&job| number(job) == fault.job).map(|job| (job, fault));
        let fault = guest.fault.clone().and_then(faulty).map(|(job, fault)| Fault { job: job - first, ..fault });
        let assignment = serde_json::to_vec(&Assignment { jobs: jobs[first..].to_vec(), fault })
            .map_err(|error| BackendError::Broken(format!("the assignment cannot be written: {error}")))?;
        let launch = Launch {
            accelerator: guest.options.accelerator,
            kernel: &guest.bootable.kernel,
            initrd: Some(initrd.path()),
            assignment: &assignment,
            memory: Memory::Own,
            memory_mib: guest.bootable.memory_mib,
            freeze: false,
            console: &console,
        };
        let result = work(guest, &launch, &jobs[first..], first, interrupted, tell, &mut progress, &mut introduced);
        let failure = match result {
            Ok(()) | Err(GuestFailure::Interrupted) => return Ok(()),
            Err(failure) => failure,
        };
        let message = format!("{failure}\n  the whole console: {}", console.display());
        first += progress.ended;
        if progress.begun {
            // The job that was under way is lost, the ones before it are told, the ones after it get a new guest.
            let measurement = Measurement::without_figures(Outcome::Failed, message);
            if tell(Event::Ended(first, Box::new(measurement))).is_break() {
                return Ok(());
            }
            first += 1;
            attempts = 0;
        } else {
            attempts = if progress.ended > 0 { 1 } else { attempts + 1 };
            if attempts >= BOOT_ATTEMPTS || !introduced {
                return Err(BackendError::Broken(message));
            }
        }
        let _ = tell(Event::Note(format!("a guest was lost and another is booted: {failure}")));
    }
    Ok(())
}

/// One guest, from its boot to its last job.
#[expect(clippy::too_many_arguments, reason = "the state of the loop above, which exists only there")]
fn work(
    guest: &Guest,
    launch: &Launch<'_>,
    jobs: &[Job],
    first: usize,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    progress: &mut Progress,
    introduced: &mut bool,
) -> Result<(), GuestFailure> {
    let mut session = Session::start(&guest.qemu, launch, interrupted)?;
    let hello = session.hello(BOOT_DEADLINE)?;
    if !*introduced {
        *introduced = true;
        for note in guest.notes(&hello) {
            let _ = tell(Event::Note(note));
        }
        if tell(Event::Machine(&guest.machine(&hello))).is_break() {
            return Ok(());
        }
    }
    let mut patience = GRACE;
    loop {
        let flow = match session.next(patience)? {
            Word::Started { job } if job == progress.ended && job < jobs.len() => {
                progress.begun = true;
                patience = jobs[job].timeout.duration() + grace(&jobs[job]);
                tell(Event::Started(first + job))
            }
            Word::Ended { job, measurement, packets } if progress.begun && job == progress.ended => {
                progress.begun = false;
                progress.ended += 1;
                patience = GRACE;
                tell(Event::Ended(first + job, joined(measurement, packets)))
            }
            Word::Done if progress.ended == jobs.len() => return Ok(()),
            word => return Err(session.unexpected(&word)),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}
