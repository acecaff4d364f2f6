//! The store of results: in virtual time a repeat is a pure function of its job and its machine, so what was measured once
//! need not be run again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::backend::{Job, Machine};
use crate::measurement::{Measurement, Outcome};
use crate::units::hex;

/// Raised when the meaning of a stored result changes.
const VERSION: u32 = 1;

/// The store of results below the cache folder.
#[derive(Clone, Debug)]
pub(super) struct Results {
    folder: PathBuf,
}

/// A stored result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    /// What was measured.
    pub(super) measurement: Measurement,
    /// On which machine.
    pub(super) machine: Machine,
    /// The run that measured it.
    pub(super) from: String,
}

impl Results {
    pub(super) fn below(cache: &Path) -> Self {
        Self { folder: cache.join("results") }
    }

    /// Where the result of that job on that machine is kept. Everything in a job decides its figures, and nothing else does.
    fn path(&self, machine: &str, job: &Job) -> io::Result<PathBuf> {
        let mut hash = Sha256::new();
        for part in [VERSION.to_string().as_bytes(), machine.as_bytes(), &serde_json::to_vec(job)?] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let key = hex(&hash.finalize());
        Ok(self.folder.join(&key[..2]).join(format!("{}.json", &key[2..])))
    }

    /// The stored result, if there is a whole one.
    pub(super) fn get(&self, machine: &str, job: &Job) -> Option<Stored> {
        serde_json::from_slice(&fs::read(self.path(machine, job).ok()?).ok()?).ok()
    }

    /// Stores a result, in one step. A failure is none of the cell's and is not kept.
    pub(super) fn put(&self, machine: &str, job: &Job, stored: &Stored) -> io::Result<()> {
        if stored.measurement.outcome == Outcome::Failed {
            return Ok(());
        }
        let path = self.path(machine, job)?;
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let file = tempfile::NamedTempFile::new_in(folder)?;
        fs::write(file.path(), serde_json::to_vec(stored)?)?;
        file.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Results, Stored};
    use crate::backend::{Job, Machine};
    use crate::measurement::{Measurement, Outcome};
    use crate::settings::Settings;
    use crate::units::Span;

    #[test]
    fn a_result_is_found_for_the_same_job_and_machine_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = Results::below(folder.path());
        let job =
            Job { settings: Settings::default(), timeout: Span(1), phase: Span(2), evidence: true, capture: None };
        let measurement = Measurement { outcome: Outcome::Measured, completion_ns: Some(7), ..Default::default() };
        let stored = Stored { measurement, machine: Machine::default(), from: "a run".into() };
        results.put("m", &job, &stored).expect("stored");
        assert_eq!(results.get("m", &job).expect("found").measurement.completion_ns, Some(7));
        assert!(results.get("other", &job).is_none());
        for other in [Job { phase: Span(3), ..job.clone() }, Job { timeout: Span(4), ..job.clone() }] {
            assert!(results.get("m", &other).is_none());
        }
    }

    #[test]
    fn failures_are_not_kept_and_damaged_ones_are_not_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = Results::below(folder.path());
        let job =
            Job { settings: Settings::default(), timeout: Span(1), phase: Span(2), evidence: true, capture: None };
        let failed = Measurement::without_figures(Outcome::Failed, "lost");
        let mut stored = Stored { measurement: failed, machine: Machine::default(), from: "a run".into() };
        results.put("m", &job, &stored).expect("not stored");
        assert!(results.get("m", &job).is_none());
        stored.measurement.outcome = Outcome::Measured;
        results.put("m", &job, &stored).expect("stored");
        std::fs::write(results.path("m", &job).expect("a path"), "{").expect("written");
        assert!(results.get("m", &job).is_none());
    }
}
