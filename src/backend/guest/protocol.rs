//! What the program and the agent inside a guest say to each other: an assignment goes in through the firmware
//! configuration device, one JSON object a line comes out over a serial port of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backend::Job;
use crate::measurement::Measurement;
use crate::workload::BufferLimits;

/// Name of the assignment in QEMU's firmware configuration.
pub(super) const FW_CFG_NAME: &str = "opt/sweep/assignment";
/// Set on the kernel's command line, and so in PID 1's environment, to make the program an agent.
pub(super) const AGENT_VARIABLE: &str = "SWEEP_AGENT";
/// Value of [`AGENT_VARIABLE`] for a guest that works through its assignment at once.
pub(super) const AGENT_RUN: &str = "run";
/// Value of [`AGENT_VARIABLE`] for a guest that stops itself when it is ready, to be saved and resumed for each repeat.
pub(super) const AGENT_FREEZE: &str = "freeze";
/// The serial port that the agent talks over. The console is the other one.
pub(super) const AGENT_PORT: &str = "/dev/ttyS1";
/// Folder of the kernel modules in the initramfs, and in it the list of their file names in load order.
pub(super) const MODULES: &str = "/modules";

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// The jobs, in the order in which they are run.
    pub(super) jobs: Vec<Job>,
    /// A fault to commit, for tests of what happens then.
    pub(super) fault: Option<Fault>,
}

/// A fault that the agent commits when it comes to a job, so that tests see each kind of failure for real.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fault {
    /// Index of the job.
    pub(super) job: usize,
    /// What happens.
    pub(super) kind: FaultKind,
}

/// Kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FaultKind {
    /// The kernel panics.
    Panic,
    /// Nothing ever happens again.
    Hang,
    /// The agent computes for ever, so that the guest is never idle.
    Spin,
    /// The agent panics.
    Crash,
    /// The machine goes down.
    Exit,
    /// The agent writes what is no message.
    Garble,
}

impl Fault {
    /// A fault named as `panic@3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, job) = text.split_once('@')?;
        let kind = match kind {
            "panic" => FaultKind::Panic,
            "hang" => FaultKind::Hang,
            "spin" => FaultKind::Spin,
            "crash" => FaultKind::Crash,
            "exit" => FaultKind::Exit,
            "garble" => FaultKind::Garble,
            _ => return None,
        };
        Some(Self { job: job.parse().ok()?, kind })
    }
}

/// What the agent says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum Word {
    /// It is up.
    Hello(Hello),
    /// The job of this index begins.
    Started {
        /// Its index in the assignment.
        job: usize,
    },
    /// The job of this index has ended.
    Ended {
        /// Its index in the assignment.
        job: usize,
        /// What it yielded.
        measurement: Box<Measurement>,
    },
    /// The agent itself broke.
    Crashed {
        /// Its panic message and place.
        message: String,
    },
    /// All jobs have ended.
    Done,
}

/// What the agent knows of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// `uname -r`.
    pub(super) release: String,
    /// `uname -v`.
    pub(super) version: String,
    /// Bounds of buffer sizes.
    pub(super) limits: BufferLimits,
    /// Sysctls that bear on buffers.
    pub(super) sysctls: BTreeMap<String, String>,
    /// Modules that could not be loaded, and why.
    pub(super) modules_failed: Vec<(String, String)>,
    /// Nanoseconds that the guest's monotonic clock had counted.
    pub(super) uptime_ns: u64,
}
