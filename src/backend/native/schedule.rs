//! Which processor a thread runs on, and how it is scheduled.

use std::io;

use crate::measurement::Scheduled;
use crate::settings::Policy;
use crate::sys::process::{
    SCHED_BATCH, SCHED_FIFO, SCHED_OTHER, SCHED_RR, SchedulingPolicy, allowed_processors, policy, set_policy,
    stay_on_processor,
};

/// Why a thread could not be placed as asked. The machine cannot do it: the cell is skipped.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There is no such processor, or this program may not use it.
    #[error("there is no processor {cpu} for the {end} ({error}): this program may use {}", list(.allowed))]
    NoProcessor {
        /// Which end.
        end: &'static str,
        /// The processor asked for.
        cpu: u32,
        /// What the kernel said.
        error: io::Error,
        /// Those that may be used.
        allowed: Vec<usize>,
    },
    /// The policy may not be used.
    #[error(
        "the {end} cannot run under the policy `{policy}` ({error}): real-time policies take root or a limit on real-time priorities above zero"
    )]
    Policy {
        /// Which end.
        end: &'static str,
        /// The policy asked for.
        policy: Policy,
        /// What the kernel said.
        error: io::Error,
    },
}

fn list(processors: &[usize]) -> String {
    processors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The kernel's policy of that name, and the other way round.
const POLICIES: [(Policy, SchedulingPolicy); 4] =
    [(Policy::Other, SCHED_OTHER), (Policy::Batch, SCHED_BATCH), (Policy::Fifo, SCHED_FIFO), (Policy::Rr, SCHED_RR)];

/// Places the calling thread.
pub(super) fn place(end: &'static str, cpu: Option<u32>, asked: Policy) -> Result<(), ScheduleError> {
    if let Some(cpu) = cpu {
        let allowed = allowed_processors().unwrap_or_default();
        let result = match usize::try_from(cpu) {
            // The kernel takes a set that holds one usable processor; the set here holds this one only.
            Ok(number) => stay_on_processor(number),
            Err(_) => Err(io::ErrorKind::InvalidInput.into()),
        };
        result.map_err(|error| ScheduleError::NoProcessor { end, cpu, error, allowed })?;
    }
    if let Some((_, policy)) = POLICIES.iter().find(|(name, _)| *name == asked) {
        set_policy(*policy).map_err(|error| ScheduleError::Policy { end, policy: asked, error })?;
    }
    Ok(())
}

/// How the calling thread is placed.
pub(super) fn read() -> Scheduled {
    let now = policy().ok();
    let name = POLICIES.iter().find(|(_, policy)| Some(*policy) == now).map(|(name, _)| name.name().to_owned());
    let processors = allowed_processors().unwrap_or_default();
    Scheduled { processors: processors.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect(), policy: name }
}
