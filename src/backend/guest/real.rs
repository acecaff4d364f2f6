//! Guests in real time: one boot for all jobs, and a new one where a guest is lost.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::{BackendError, Event, Job};
use crate::measurement::{Measurement, Outcome};

use super::failure::GuestFailure;
use super::protocol::{Assignment, Fault, Word};
use super::qemu::{Launch, Memory};
use super::session::Session;
use super::{BOOT_DEADLINE, Guest};

/// How much longer than its timeout a job may take before the guest is taken for hanging: the agent ends jobs by itself.
const GRACE: Duration = Duration::from_secs(30);

/// Guests that may be lost in a row without a single job begun.
const BOOT_ATTEMPTS: usize = 2;

/// How far a guest came.
struct Progress {
    /// Jobs that have an outcome, from the front.
    ended: usize,
    /// Whether the job after them had begun.
    begun: bool,
}

pub(super) fn run(
    guest: &Guest,
    jobs: &[Job],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<(), BackendError> {
    let initrd = guest.initrd_file()?;
    let mut first = 0;
    let mut attempts = 0;
    let mut introduced = false;
    while first < jobs.len() && !interrupted.load(Ordering::Relaxed) {
        let mut progress = Progress { ended: 0, begun: false };
        let console = guest.console("console")?;
        let fault = guest.fault.clone().and_then(|fault| Some(Fault { job: fault.job.checked_sub(first)?, ..fault }));
        let assignment = serde_json::to_vec(&Assignment { jobs: jobs[first..].to_vec(), fault })
            .map_err(|error| BackendError::Broken(format!("the assignment cannot be written: {error}")))?;
        let launch = Launch {
            accelerator: guest.options.accelerator,
            kernel: &guest.bootable.kernel,
            initrd: Some(initrd.path()),
            assignment: &assignment,
            memory: Memory::Own,
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
                patience = jobs[job].timeout.duration() + GRACE;
                tell(Event::Started(first + job))
            }
            Word::Ended { job, measurement } if progress.begun && job == progress.ended => {
                progress.begun = false;
                progress.ended += 1;
                patience = GRACE;
                tell(Event::Ended(first + job, measurement))
            }
            Word::Done if progress.ended == jobs.len() => return Ok(()),
            word => return Err(session.unexpected(&word)),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}
