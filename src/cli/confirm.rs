//! Running a few cells of a stored run again.

use std::path::{Path, PathBuf};

use crate::backend::Parallel;
use crate::gate::{Baseline, Round, all_metrics};
use crate::plan::{Plan, Run};
use crate::record::{Host, Manifest, Program, RunDir};
use crate::run::{Choice, Destination, Request, execute};

use super::exit::Exit;
use super::more::at_once;
use super::output::say;
use super::progress::Reporter;
use super::run::watch_signals;
use super::stored::{changed_programs, stored_sweep};
use super::{complain, program, store};

/// What became of an attempt to run cells again.
pub(super) enum Confirmation {
    /// They were: what they measured.
    Again(Box<Baseline>),
    /// They cannot be, and why.
    Impossible(String),
}

/// Runs cells again, into a folder of their own within the run's.
pub(super) fn confirm(
    dir: &RunDir,
    manifest: &Manifest,
    round: &Round,
    native_refused: Option<String>,
    quiet: bool,
) -> Result<Confirmation, Exit> {
    if let Some(why) = elsewhere(manifest) {
        return Ok(Confirmation::Impossible(why));
    }
    let mut sweep = match stored_sweep(dir, manifest) {
        Ok(sweep) => sweep,
        Err(why) => return Ok(Confirmation::Impossible(why.to_string())),
    };
    // What is run again is chosen by the gate, not by a search.
    sweep.find = None;
    sweep.run.repeat = u32::try_from(round.repeats).unwrap_or(u32::MAX);
    // As many as were asked for, and no fewer.
    sweep.run.precision = None;
    let plan = only(&Plan::new(&sweep), &round.cells);
    if plan.cells.len() != round.cells.len() {
        return Ok(Confirmation::Impossible("its sweep does not give these cells in this version".to_owned()));
    }
    let changed = changed_programs(manifest, &plan);
    if !changed.is_empty() {
        let names: Vec<String> = changed.iter().map(|program| format!("`{}`", program.name)).collect();
        return Ok(Confirmation::Impossible(format!(
            "{}, which its sweep names, or what that needs, has changed since the run, and to run another program again confirms nothing: run \
             the sweep anew",
            names.join(", ")
        )));
    }
    let fake = manifest.machines.iter().any(|machine| machine.machine == "fake");
    let parallel = Parallel { virtual_time: 1, real_time: at_once(manifest).unwrap_or(1) };
    let mut source = manifest.sweep.clone();
    source.resolved = serde_json::to_value(&sweep).map_err(|error| complain(&error))?;
    let request = Request {
        sweep: &sweep,
        plan: &plan,
        source,
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        destination: Destination::Out(folder(dir.path())),
        choice: Choice { program: program()?, parallel, native_refused, fake },
        fresh: true,
        evidence: !manifest.command.iter().any(|word| word == "--no-evidence"),
        store: store(),
    };
    let interrupted = watch_signals()?;
    let mut reporter = Reporter::new(quiet);
    let finished = execute(&request, &interrupted, &mut |progress| reporter.tell(&progress));
    reporter.finish();
    let finished = finished.map_err(|error| complain(&error))?;
    if finished.interrupted {
        say!("interrupted: nothing is judged");
        return Err(Exit::Interrupted);
    }
    let (manifest, loaded) = finished
        .dir
        .manifest()
        .and_then(|manifest| Ok((manifest, finished.dir.read()?)))
        .map_err(|error| complain(&error))?;
    let again =
        Baseline::of(&manifest, &loaded.records, &all_metrics(&loaded.records)).map_err(|error| complain(&error))?;
    Ok(Confirmation::Again(Box::new(again)))
}

/// What is run again, in words.
pub(super) fn what_is_run(round: &Round, whole: bool) -> String {
    if whole {
        return format!("the machine did not hold still, and the whole run is run again: {}", count(round.cells.len()));
    }
    let suspects = round.cells.len() - round.controls.len();
    let (is, was) = if suspects == 1 { ("is", "was") } else { ("are", "were") };
    let (cells, repeats) = (count(suspects), round.repeats);
    match round.controls.len() {
        0 => format!("{cells} may be worse and {is} run again, {repeats} times each"),
        controls => {
            format!(
                "{cells} {was} worse again and {is} run beside {controls} that nobody suspects, {repeats} times each"
            )
        }
    }
}

/// A number of cells.
fn count(cells: usize) -> String {
    format!("{cells} cell{}", if cells == 1 { "" } else { "s" })
}

/// Why running cells here would not be running them again, if so.
fn elsewhere(manifest: &Manifest) -> Option<String> {
    let (then, now) = (&manifest.host, Host::gather());
    if then.hostname != now.hostname || then.cpu_model != now.cpu_model || then.cores != now.cores {
        return Some("the run was made on another host".to_owned());
    }
    if then.kernel_release != now.kernel_release || then.kernel_version != now.kernel_version {
        return Some("the host's kernel is another one than in the run".to_owned());
    }
    let digest = Program::this().executable_sha256;
    (manifest.program.executable_sha256 != digest)
        .then(|| "the run was made by another build of this program".to_owned())
}

/// A plan with these cells alone, in its order.
fn only(plan: &Plan, cells: &[String]) -> Plan {
    let chosen: Vec<usize> = plan
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cells.contains(&cell.id.to_string()))
        .map(|(index, _)| index)
        .collect();
    let place = |cell: usize| chosen.iter().position(|&index| index == cell);
    Plan {
        cells: chosen.iter().map(|&index| plan.cells[index].clone()).collect(),
        runs: plan.runs.iter().filter_map(|run| Some(Run { cell: place(run.cell)?, ..*run })).collect(),
    }
}

/// A folder within the run's that is not there yet: `confirm`, `confirm-2` and so on.
fn folder(run: &Path) -> PathBuf {
    let names = std::iter::once("confirm".to_owned()).chain((2_u64..).map(|number| format!("confirm-{number}")));
    names.map(|name| run.join(name)).find(|path| !path.exists()).unwrap_or_else(|| run.join("confirm"))
}
