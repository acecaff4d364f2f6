//! The sweep of a stored run, for whoever runs cells of it again without naming its file: the gate, `--more`, and `--resume` alone.
//!
//! A folder of results may have been made by somebody else, and a sweep in it may name programs. They are run only where the file that they
//! come from is here, this user's, and as it was for the run: then they are the user's own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::record::{Manifest, RunDir};
use crate::run::programs;
use crate::spec::{Overrides, Sweep};
use crate::sys::process;

/// Why the sweep of a run cannot be run again, and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAgain {
    /// It is not understood.
    #[error("its sweep is none that this version can run ({0})")]
    Unknown(#[from] serde_json::Error),
    /// It runs programs, and is not the user's own.
    #[error("its sweep runs programs, and {0}")]
    Programs(#[from] NotOwn),
}

/// Why a sweep with programs is not taken for the user's own, and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotOwn {
    #[error("the manifest does not say which file they come from: run the sweep anew")]
    NoFile,
    #[error(
        "the file that they come from, `{}`, is gone ({error}): put it back as it was (`sweep.source` in the run's manifest.json has its text), or run the sweep anew",
        .path.display()
    )]
    Gone { path: PathBuf, error: std::io::Error },
    #[error(
        "the file that they come from, `{}`, has changed since the run: put it back as it was (`sweep.source` in the run's manifest.json has its text), or run the sweep anew",
        .0.display()
    )]
    Changed(PathBuf),
    #[error(
        "the file that they come from, `{}`, lies in the run's own folder, so that whoever made the run may have made it: move it out, and run the sweep anew",
        .0.display()
    )]
    InTheRun(PathBuf),
    #[error("the file that they come from, `{}`, belongs to another user ({owner}): run the sweep from a copy of yours", .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("the file that they come from, `{}`, is not understood without what --set said for the run: run the sweep anew", .0.display())]
    Incomplete(PathBuf),
    #[error("the run is not of the file `{}` as it stands: {why}; run the sweep anew, with what is to be run in the file", .path.display())]
    Strays { path: PathBuf, why: String },
}

/// The sweep of a run, as it was resolved, if it may be run again.
pub(super) fn stored_sweep(dir: &RunDir, manifest: &Manifest) -> Result<Sweep, NotAgain> {
    let sweep: Sweep = serde_json::from_value(manifest.sweep.resolved.clone())?;
    if let Some(exec) = &sweep.exec {
        is_own(dir, manifest, &sweep, Path::new(&exec.dir))?;
    }
    Ok(sweep)
}

/// Whether the file that a sweep with programs comes from is the user's own, and says what the sweep says.
fn is_own(dir: &RunDir, manifest: &Manifest, sweep: &Sweep, folder: &Path) -> Result<(), NotOwn> {
    let name = manifest.sweep.path.as_deref().and_then(|path| Path::new(path).file_name()).ok_or(NotOwn::NoFile)?;
    let path = folder.join(name);
    let gone = |error| NotOwn::Gone { path: path.clone(), error };
    let real = fs::canonicalize(&path).map_err(gone)?;
    if real.starts_with(dir.path()) {
        return Err(NotOwn::InTheRun(path));
    }
    let facts = fs::metadata(&real).map_err(gone)?;
    if !is_trusted(facts.uid()) {
        return Err(NotOwn::Foreign { path, owner: facts.uid() });
    }
    let source = &manifest.sweep.source;
    // What is no file, or is of another length, is not read at all.
    let is_same =
        facts.is_file() && facts.len() == source.len() as u64 && fs::read(&real).map_err(gone)? == source.as_bytes();
    if !is_same {
        return Err(NotOwn::Changed(path));
    }
    // The text is the user's. What the manifest makes of it may not be.
    let own = Sweep::parse(&path.display().to_string(), source, &Overrides::default());
    let Ok(own) = own else { return Err(NotOwn::Incomplete(path)) };
    match sweep.strays_from(&own) {
        Some(why) => Err(NotOwn::Strays { path, why }),
        None => Ok(()),
    }
}

/// Whether what belongs to a user may be run by this one: their own, root's, and that of whoever called sudo.
fn is_trusted(owner: u32) -> bool {
    let caller = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    let user = process::user();
    owner == user || owner == 0 || (user == 0 && caller() == Some(owner))
}

/// A program or file of a sweep that is not what it was in a run.
pub(super) struct Changed {
    /// Its name in the sweep.
    pub(super) name: String,
    /// Its digest then, if it was there.
    pub(super) was: Option<String>,
    /// Its digest now, if it is there.
    pub(super) is: Option<String>,
}

/// What the programs of a sweep are now and were not in a run of it. Nothing is told of a run that does not say what they were.
pub(super) fn changed_programs(manifest: &Manifest, plan: &Plan) -> Vec<Changed> {
    let was = &manifest.programs;
    if was.is_empty() {
        return Vec::new();
    }
    let is = programs(plan);
    let names: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let changed = names.into_iter().filter(|name| was.get(*name) != is.get(*name));
    changed.map(|name| Changed { name: name.clone(), was: was.get(name).cloned(), is: is.get(name).cloned() }).collect()
}
