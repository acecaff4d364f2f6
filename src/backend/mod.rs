//! Where a cell runs: on this machine's kernel (`native`), in a QEMU guest (`guest`), or nowhere (`fake`, for tests of
//! everything else). Imports `workload`, `plan`, `settings`, `measurement`, `sys` and `units`.

pub mod fake;
pub mod guest;
pub mod native;
mod share;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::measurement::{CaptureLimits, Measurement};
use crate::settings::{Clock, Settings};
use crate::units::Span;
use crate::workload::BufferLimits;

/// One repeat of a cell, as a backend is asked to run it. Holds nothing that does not decide the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What decides the cell.
    pub settings: Settings,
    /// How long the repeat may take before it is ended as timed out.
    pub timeout: Span,
    /// How long after its fixed starting point a repeat in virtual time begins, so that repeats sample the timer tick.
    pub phase: Span,
    /// Whether to read the kernel's counters and what it knows of the connection, beside the figures.
    pub evidence: bool,
    /// How much of the packets to capture, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureLimits>,
}

/// The machine that measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `native`, `guest:tcg`, `guest:kvm` or `fake`.
    pub name: String,
    /// Which kernel was asked for, as it was resolved: `host`, `debian:6.12`, a path.
    pub image: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// Version of the package that the kernel came in.
    pub package_version: Option<String>,
    /// Which clock measures: real or virtual, never auto.
    pub clock: Clock,
    /// Why this machine and no other, in a sentence.
    pub why: String,
    /// Bounds of buffer sizes.
    pub limits: BufferLimits,
    /// Sysctls that bear on buffers, as a new network namespace of the machine has them.
    pub sysctls: BTreeMap<String, String>,
}

/// How many cells are measured at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// In virtual time, where it changes no figure.
    pub virtual_time: usize,
    /// In real time, where each cell measures its neighbours too.
    pub real_time: usize,
}

impl Parallel {
    /// What to say of real-time cells that run at once; `None` if they do not.
    pub fn warning(self) -> Option<String> {
        let many = self.real_time;
        (many > 1).then(|| {
            format!(
                "{many} cells at once (-j) share processors, caches and memory, so each figure depends on its neighbours too: \
                 compare these figures with no others"
            )
        })
    }
}

/// What a backend tells while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The machine is up.
    Machine(&'a Machine),
    /// The job of this index has begun.
    Started(usize),
    /// The job of this index has ended.
    Ended(usize, Box<Measurement>),
    /// Something that a person should know, such as that a kernel is being fetched.
    Note(String),
}

/// Why a backend could not run all jobs.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// This machine cannot be had here: its cells are skipped with this reason.
    #[error("{0}")]
    Unavailable(String),
    /// It broke; the jobs that had not ended are failed with this reason.
    #[error("{0}")]
    Broken(String),
}

/// Somewhere that jobs run.
pub trait Backend {
    /// Runs all jobs and tells of each as it ends, in any order. Stops early, without an error, when `tell` says so or
    /// `interrupted` is set; jobs that had not ended are then not told of.
    ///
    /// # Errors
    /// When the machine cannot be had, or broke in a way that leaves jobs without an outcome.
    fn run(
        &mut self,
        jobs: &[Job],
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<(), BackendError>;
}
