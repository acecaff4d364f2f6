//! What the program and the agent inside a guest say to each other: an assignment goes in through the firmware
//! configuration device, one JSON object a line comes out over a serial port of its own.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
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
        /// The packets that it captured: see [`pack`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packets: Option<String>,
    },
    /// The agent itself broke.
    Crashed {
        /// Its panic message and place.
        message: String,
    },
    /// All jobs have ended.
    Done,
}

/// Most characters that a capture may take on its way out of the guest. A serial port passes some megabytes a second.
const MAX_PACKED: usize = 8 << 20;
/// Most bytes that a capture may unpack to: what comes out of a guest is not trusted.
const MAX_UNPACKED: u64 = 512 << 20;

impl Word {
    /// The end of a job. Its capture is packed beside the measurement; one that is too large stays behind, and the measurement says so.
    pub(super) fn ended(job: usize, mut measurement: Measurement) -> Self {
        let packets = measurement.capture.as_mut().and_then(|capture| {
            if capture.pcapng.is_empty() {
                return None;
            }
            match pack(&capture.pcapng) {
                Ok(packed) if packed.len() <= MAX_PACKED => return Some(packed),
                Ok(packed) => capture.lose(format!(
                    "{} MB of packed packets do not leave a guest, where {} MB may: take fewer with run.capture_packets",
                    packed.len() >> 20,
                    MAX_PACKED >> 20
                )),
                Err(error) => capture.lose(format!("it could not be packed: {error}")),
            }
            None
        });
        Self::Ended { job, measurement: Box::new(measurement), packets }
    }
}

/// Puts the capture that came beside a measurement into it.
pub(super) fn joined(mut measurement: Box<Measurement>, packets: Option<String>) -> Box<Measurement> {
    if let (Some(capture), Some(packets)) = (measurement.capture.as_mut(), packets) {
        match unpack(&packets) {
            Ok(pcapng) => capture.pcapng = pcapng,
            Err(error) => capture.lose(format!("it came out of the guest damaged: {error}")),
        }
    }
    measurement
}

/// Compressed, since headers are much alike, and as text, since messages are lines.
fn pack(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

fn unpack(text: &str) -> io::Result<Vec<u8>> {
    let packed = STANDARD.decode(text).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).take(MAX_UNPACKED).read_to_end(&mut bytes)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::{MAX_PACKED, Word, joined};
    use crate::measurement::{Capture, Measurement};

    fn travel(pcapng: Vec<u8>) -> Box<Measurement> {
        let capture = Some(Box::new(Capture { pcapng, ..Capture::default() }));
        let word = Word::ended(0, Measurement { capture, ..Measurement::default() });
        let line = serde_json::to_vec(&word).expect("a line");
        assert!(line.len() < MAX_PACKED + 4096 && !line.contains(&b'\n'));
        let Ok(Word::Ended { measurement, packets, .. }) = serde_json::from_slice(&line) else { panic!("the end") };
        joined(measurement, packets)
    }

    #[test]
    fn a_capture_leaves_the_guest_whole_or_says_why_not() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(travel(bytes.clone()).capture.expect("a capture").pcapng, bytes);
        // Noise does not become smaller.
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let lost = travel((0..MAX_PACKED).map(|_| noise()).collect()).capture.expect("a capture");
        assert!(lost.pcapng.is_empty());
        assert!(lost.error.expect("why").contains("do not leave a guest"));
        assert_eq!(travel(Vec::new()).capture.expect("a capture").error, None);
    }

    #[test]
    fn a_damaged_capture_leaves_the_figures() {
        let measurement =
            Measurement { capture: Some(Box::default()), completion_ns: Some(7), ..Measurement::default() };
        let whole = joined(Box::new(measurement), Some("%%%".to_owned()));
        assert_eq!(whole.completion_ns, Some(7));
        assert!(whole.capture.expect("a capture").error.expect("why").contains("damaged"));
    }
}
