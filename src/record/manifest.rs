//! `manifest.json`: what was run, by which program, where, and how it ended. Written before the first measurement.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::environment::Host;
use super::error::StoreError;
use super::files::write_atomically;
use super::format::{FORMAT, KernelFacts};
use super::revision::Revision;
use crate::settings::{Clock, Precision};
use crate::units::hex;

/// Where the records of a run come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of this file and of the records beside it.
    pub format: u32,
    /// The program that ran the sweep.
    pub program: Program,
    /// The command line, the program's own name first.
    pub command: Vec<String>,
    /// What was run.
    pub sweep: SweepSource,
    /// The git revision of the folder that the sweep file lies in, if it lies in a checkout.
    #[serde(default)]
    pub revision: Option<Revision>,
    /// The host that ran the program. Where cells ran is in `machines`.
    pub host: Host,
    /// Versions of the tools that were used, by name: `qemu`.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// The host's kernel parameters that decide about buffers, by their dotted name.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Offloads of the interfaces that cells ran over, by name.
    #[serde(default)]
    pub offloads: BTreeMap<String, String>,
    /// Cells at once in real time, which changes figures. `None` in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u64>,
    /// What the programs of the sweep were: a digest of each program and file that it names and of all that it needs, by that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The machines that cells ran on, in the order in which they came up.
    #[serde(default)]
    pub machines: Vec<Machine>,
    /// Cells of the sweep. With `[find]` not all of them are run. `None` in runs of earlier versions.
    #[serde(default)]
    pub cells: Option<u64>,
    /// When the run started (UTC). A run that is taken up again keeps it.
    pub started: Timestamp,
    /// When it ended, or `None` while it runs and after it was killed.
    #[serde(default)]
    pub finished: Option<Timestamp>,
    /// Whether it ended early because someone asked it to.
    #[serde(default)]
    pub interrupted: bool,
    /// What differed when the run was taken up again, and was allowed, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What was run later, on top of what the sweep says (`sweep run --more`), the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<More>,
}

/// Repeats that were added to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct More {
    /// When that started (UTC).
    pub started: Timestamp,
    /// The command line.
    pub command: Vec<String>,
    /// The program that ran it.
    pub program: Program,
    /// What differs from where the run was measured, and was allowed, in words.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// When a cell has enough; `None` where the number of repeats is fixed.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// The cells that got more, by their id.
    pub cells: BTreeMap<String, MoreRepeats>,
}

/// How many repeats a cell had and was to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoreRepeats {
    /// So many it had.
    pub from: u32,
    /// So many it was to have, at most.
    pub to: u32,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The git revision that it was built from, where the build said so (`SWEEP_REVISION`).
    #[serde(default)]
    pub revision: Option<String>,
    /// SHA-256 of its executable file, in hexadecimal.
    #[serde(default)]
    pub executable_sha256: Option<String>,
}

impl Program {
    /// This program.
    pub fn this() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("SWEEP_REVISION").map(str::to_owned),
            executable_sha256: sha256_of(Path::new("/proc/self/exe")).ok(),
        }
    }
}

/// A sweep, as written and as understood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSource {
    /// Its name.
    pub name: String,
    /// The file that it was read from.
    pub path: Option<String>,
    /// The text of that file.
    pub source: String,
    /// What it means after defaults and the command line have been applied.
    pub resolved: serde_json::Value,
}

impl SweepSource {
    /// What differs in `now` from the sweep as it was run, one line for each value: `run.repeat: 5 -> 7`.
    pub fn changes(&self, now: &serde_json::Value) -> Vec<String> {
        let mut changes = Vec::new();
        compare("", &self.resolved, now, &mut changes);
        changes
    }
}

/// Adds a line for each place where two values differ.
fn compare(place: &str, old: &serde_json::Value, new: &serde_json::Value, changes: &mut Vec<String>) {
    use serde_json::Value::{Null, Object};
    if old == new {
        return;
    }
    let (Object(old_map), Object(new_map)) = (old, new) else {
        let place = if place.is_empty() { "the sweep" } else { place };
        changes.push(format!("{place}: {old} -> {new}"));
        return;
    };
    let added = new_map.keys().filter(|key| !old_map.contains_key(*key));
    for key in old_map.keys().chain(added) {
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        compare(&place, old_map.get(key).unwrap_or(&Null), new_map.get(key).unwrap_or(&Null), changes);
    }
}

/// A machine that cells ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The image that was asked for.
    pub image: String,
    /// As `uname -r` says on it.
    pub release: Option<String>,
    /// As `uname -v` says on it.
    pub version: Option<String>,
    /// Version of the package that the image came from.
    pub package_version: Option<String>,
    /// The clock that measured on it.
    pub clock: Clock,
    /// `native`, `guest:tcg`, `guest:kvm` or `fake`, as in records.
    pub machine: String,
    /// What QEMU ran it with: `tcg` or `kvm`. `None` for the host itself.
    pub accelerator: Option<String>,
    /// Why it was chosen.
    pub note: Option<String>,
    /// Its kernel parameters that decide about buffers, as a new network namespace there has them.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
}

impl Manifest {
    /// The sysctls of the machine that ran cells on that kernel; empty where it never came up.
    pub fn sysctls_of(&self, kernel: &KernelFacts) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let same = |machine: &&Machine| machine.image == kernel.image && machine.release == kernel.release;
        self.machines.iter().find(same).map_or(&NONE, |machine| &machine.sysctls)
    }

    /// How well the median of a cell was to be known: what was asked last.
    pub fn precision_of(&self, cell: &str) -> Option<Precision> {
        let later = self.more.iter().rev().find_map(|more| more.precision.filter(|_| more.cells.contains_key(cell)));
        later.or_else(|| serde_json::from_value(self.sweep.resolved.pointer("/run/precision")?.clone()).ok())
    }

    /// The manifest of a run that starts now on this host. The caller adds tools, offloads and machines as it learns of
    /// them.
    pub fn new(command: Vec<String>, sweep: SweepSource) -> Self {
        let revision = sweep.path.as_deref().and_then(|path| Revision::of_folder_of(Path::new(path)));
        Self {
            format: FORMAT,
            program: Program::this(),
            command,
            sweep,
            revision,
            host: Host::gather(),
            tools: BTreeMap::new(),
            sysctls: super::environment::sysctls(),
            offloads: BTreeMap::new(),
            at_once: None,
            programs: BTreeMap::new(),
            machines: Vec::new(),
            cells: None,
            started: Timestamp::now(),
            finished: None,
            interrupted: false,
            allowed: Vec::new(),
            more: Vec::new(),
        }
    }

    /// Writes it in one step.
    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::Unstorable { what: "the manifest".to_owned(), why: error.to_string() })?;
        text.push(b'\n');
        write_atomically(path, &text)
    }

    /// Reads it, with fields that this format does not know passed over.
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let damaged = |why: String| StoreError::DamagedManifest { path: path.to_owned(), why };
        let text = fs::read(path).map_err(StoreError::io("read", path))?;
        let versioned: Versioned = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        match versioned.format {
            FORMAT => serde_json::from_slice(&text).map_err(|error| damaged(error.to_string())),
            0 => Err(damaged("there is no format 0".to_owned())),
            found => Err(StoreError::NewerFormat { path: path.to_owned(), found }),
        }
    }
}

/// SHA-256 of a file, in hexadecimal.
fn sha256_of(path: &Path) -> io::Result<String> {
    use std::io::Read as _;

    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use serde_json::json;

    use super::{Manifest, StoreError, SweepSource, sha256_of};

    /// A manifest of a sweep of that name, started at a fixed time.
    pub(crate) fn example(name: &str) -> Manifest {
        let sweep = SweepSource {
            name: name.to_owned(),
            path: None,
            source: format!("name = \"{name}\""),
            resolved: json!({"name": name, "run": {"repeat": 5, "timeout": "3m"}}),
        };
        let mut manifest = Manifest::new(vec!["sweep".into(), "run".into()], sweep);
        manifest.started = "2026-11-30T14:05:01Z".parse().expect("a time");
        manifest
    }

    #[test]
    fn it_survives_the_disk_and_a_newer_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("manifest.json");
        let manifest = example("smoke");
        manifest.write(&path).expect("written");
        assert_eq!(Manifest::read(&path).expect("read"), manifest);

        let newer = fs::read_to_string(&path).expect("text").replacen("\"format\": 1", "\"format\": 2", 1);
        fs::write(&path, newer).expect("written");
        let error = Manifest::read(&path).expect_err("newer");
        assert!(matches!(error, StoreError::NewerFormat { found: 2, .. }), "{error}");
        fs::write(&path, "{").expect("written");
        let error = Manifest::read(&path).expect_err("damaged");
        assert!(matches!(error, StoreError::DamagedManifest { .. }), "{error}");
    }

    #[test]
    fn changes_are_named_by_their_place() {
        let sweep = example("smoke").sweep;
        assert!(sweep.changes(&sweep.resolved).is_empty());
        let now = json!({"name": "smoke", "run": {"repeat": 7}, "link": {"mtu": 9000}});
        assert_eq!(
            sweep.changes(&now),
            ["run.repeat: 5 -> 7", "run.timeout: \"3m\" -> null", "link: null -> {\"mtu\":9000}"]
        );
    }

    #[test]
    fn the_hash_is_sha256() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "abc").expect("written");
        assert_eq!(
            sha256_of(file.path()).expect("hashed"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
