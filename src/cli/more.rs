//! `sweep run --more`: repeats on top of those that a run has, and what may not be mixed in one run.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ValueEnum;
use jiff::Timestamp;

use crate::backend::guest::Qemu;
use crate::plan::Plan;
use crate::record::{Host, Manifest, More, MoreRepeats, Program, RunDir, SweepSource, sysctls};
use crate::settings::{Clock, Precision};
use crate::spec::{MAX_REPEATS, Sweep};
use crate::stats::{CellSummary, by_cell, deciding, reached, summarise};

use super::exit::Exit;
use super::output::say;
use super::run::MOST_AT_ONCE;
use super::show::on_axis;
use super::stored::{Changed, changed_programs, stored_sweep};
use super::{Assignment, SweepArgs, complain};

/// What may differ between a run and the repeats that are added to it or that finish it, where that is allowed. Another kernel is not among them: a cell
/// has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Differing {
    /// Another build of this program, or of one that the sweep runs.
    Program,
    /// Another computer.
    Host,
    /// Another version of QEMU.
    Qemu,
    /// Other kernel parameters that decide about buffers.
    Sysctl,
    /// Another number of cells at once (-j), in real time.
    Jobs,
}

/// A run that is to have more repeats.
pub(super) struct ToppedUp {
    pub(super) sweep: Sweep,
    pub(super) source: SweepSource,
    /// What is added; without cells where nothing is to be added.
    pub(super) more: More,
    /// Whether it was measured with evidence, as what is added then is, too.
    pub(super) evidence: bool,
    /// Whether its figures are made up.
    pub(super) fake: bool,
    /// Cells at once in real time.
    pub(super) at_once: Option<usize>,
}

/// How repeats are to be added to a run, or a run to be finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// What may differ.
    pub(super) allow: &'a [Differing],
    /// Cells at once, where that was asked for; else as many as in the run.
    pub(super) jobs: Option<u16>,
}

/// What a run that is finished was measured with.
pub(super) struct TakenUp {
    /// What differs and was allowed, in words.
    pub(super) allowed: Vec<String>,
    /// Cells at once in real time.
    pub(super) at_once: Option<usize>,
}

/// Finds out what is to be added to a run, and refuses what would mix figures of two kinds.
pub(super) fn more(path: &Path, asked: &SweepArgs, terms: Terms<'_>) -> Result<ToppedUp, Exit> {
    let dir = RunDir::open(path).map_err(|error| complain(&error))?;
    let manifest = dir.manifest().map_err(|error| complain(&error))?;
    let loaded = dir.read().map_err(|error| complain(&error))?;
    let refuse = |why: String| {
        say!("error: {why}");
        Exit::Wrong
    };
    if manifest.finished.is_none() {
        let shown = path.display();
        return Err(refuse(format!(
            "`{shown}` has not come to its end: finish it first, with `sweep run --resume={shown}`"
        )));
    }
    if !asked.set.is_empty() {
        return Err(refuse(
            "--set makes other cells, which do not belong into this run: run the sweep anew with it".to_owned(),
        ));
    }
    let stored = stored_sweep(&dir, &manifest);
    let sweep = stored.map_err(|why| refuse(format!("`{}` cannot have more repeats: {why}", path.display())))?;
    let cells = summarise(&loaded.records);
    // What was asked wrongly comes first: no `--allow` mends that.
    let wanted = Wanted::of(asked, &manifest, &sweep).map_err(refuse)?;
    let selected = cells.iter().map(|cell| is_chosen(cell, &asked.filter)).collect::<Result<Vec<bool>, String>>();
    let selected = selected.map_err(refuse)?;
    let allowed = mixed(path, &manifest, &cells, &Plan::new(&sweep), terms)?;
    let mut chosen = BTreeMap::new();
    let mut without = 0;
    for ((cell, repeats), selected) in cells.iter().zip(by_cell(&cells, &loaded.records)).zip(selected) {
        if !selected {
            continue;
        }
        let (metric, figures) = deciding(repeats.iter().map(|record| &record.measurement));
        if figures.is_empty() {
            without += 1;
            continue;
        }
        if wanted.precision.is_some_and(|precision| reached(metric, &figures, &precision).enough) {
            continue;
        }
        let from = repeats.iter().map(|record| record.repeat + 1).max().unwrap_or(0);
        let to = from.saturating_add(wanted.count);
        if u64::from(to) > MAX_REPEATS.max {
            return Err(refuse(format!(
                "{from} + {} repeats are beyond {} ({})",
                wanted.count, MAX_REPEATS.name, MAX_REPEATS.max
            )));
        }
        chosen.insert(cell.cell.clone(), MoreRepeats { from, to });
    }
    if without > 0 {
        say!("note: {without} cells were never measured, and get no more repeats");
    }
    let more = More {
        started: Timestamp::now(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        program: Program::this(),
        allowed,
        precision: wanted.precision,
        cells: chosen,
    };
    Ok(ToppedUp {
        evidence: !manifest.command.iter().any(|word| word == "--no-evidence"),
        fake: manifest.machines.iter().any(|machine| machine.machine == "fake"),
        at_once: at_once(&manifest),
        sweep,
        source: manifest.sweep,
        more,
    })
}

/// What differs between a run that is taken up again and this place; where nothing was measured yet, nothing does.
pub(super) fn taken_up(path: &Path, plan: &Plan, terms: Terms<'_>) -> Result<TakenUp, Exit> {
    let dir = RunDir::open(path).map_err(|error| complain(&error))?;
    let manifest = dir.manifest().map_err(|error| complain(&error))?;
    let loaded = dir.read().map_err(|error| complain(&error))?;
    let allowed = if loaded.records.iter().all(|record| record.warmup) {
        Vec::new()
    } else {
        mixed(path, &manifest, &summarise(&loaded.records), plan, terms)?
    };
    Ok(TakenUp { allowed, at_once: at_once(&manifest) })
}

/// Cells at once in real time, as in a run; within what `-j` takes.
pub(super) fn at_once(manifest: &Manifest) -> Option<usize> {
    manifest.at_once.and_then(|cells| usize::try_from(cells.clamp(1, MOST_AT_ONCE)).ok())
}

/// What differs between a run and this place, and is allowed; an error names what is not.
fn mixed(
    path: &Path,
    manifest: &Manifest,
    cells: &[CellSummary],
    plan: &Plan,
    Terms { allow, jobs }: Terms<'_>,
) -> Result<Vec<String>, Exit> {
    let differences = differences(manifest, cells, plan, jobs);
    let refused: Vec<String> = differences
        .iter()
        .filter(|difference| difference.aspect.is_none_or(|aspect| !allow.contains(&aspect)))
        .map(|difference| format!("  {}", difference.line()))
        .collect();
    if refused.is_empty() {
        return Ok(differences.into_iter().map(|difference| difference.text).collect());
    }
    say!(
        "error: what is measured now does not belong into `{}`:\n{}\nrun the sweep anew, or allow what bears on no figure; the run keeps a note of it",
        path.display(),
        refused.join("\n")
    );
    Err(Exit::Wrong)
}

/// How many repeats are wanted.
struct Wanted {
    /// So many more of each cell, at most.
    count: u32,
    /// When a cell has enough before that.
    precision: Option<Precision>,
}

impl Wanted {
    fn of(asked: &SweepArgs, manifest: &Manifest, sweep: &Sweep) -> Result<Self, String> {
        let last = manifest.more.iter().rev().find_map(|more| more.precision).or(sweep.run.precision);
        let share = asked.precision.as_deref().map(str::parse).transpose();
        let share = share.map_err(|error: crate::units::ParsePercentError| format!("--precision: {error}"))?;
        let precision = match (share, last) {
            (Some(share), Some(last)) => Some(Precision { share, ..last }),
            (Some(share), None) => {
                let confidence = "95%".parse().map_err(|error: crate::units::ParsePercentError| error.to_string())?;
                Some(Precision { min: 1, share, confidence })
            }
            (None, last) => last,
        };
        let count = match asked.repeat.as_deref() {
            Some(text) => match text.parse::<u32>() {
                Ok(count) if count > 0 => count,
                _ => {
                    return Err(format!(
                        "--repeat: `{text}` is not how many repeats to add: write one number, such as 10"
                    ));
                }
            },
            None if precision.is_some() => sweep.run.repeat.max(MORE),
            None => return Err(
                "say how many repeats to add with --repeat 10, or how well medians are to be known with --precision 2%"
                    .to_owned(),
            ),
        };
        Ok(Self { count, precision })
    }
}

/// At least so many repeats may be added where a precision is to be reached and nothing says how many.
const MORE: u32 = 50;

/// Whether a cell has one of the values on each axis that is named.
fn is_chosen(cell: &CellSummary, filters: &[Assignment]) -> Result<bool, String> {
    for Assignment(axis, _) in filters {
        let known = cell.axes.0.iter().any(|(name, _)| name == axis)
            || crate::settings::find(axis).is_some_and(|key| cell.axes.get(key.name()).is_some());
        if !known {
            let names: Vec<&str> = cell.axes.0.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("--filter: the run has no axis `{axis}`; its axes are {}", names.join(", ")));
        }
    }
    Ok(filters.iter().all(|Assignment(axis, values)| values.iter().any(|value| on_axis(&cell.axes, axis, value))))
}

/// Something that is not as it was in the run.
struct Difference {
    /// By which word it is allowed; `None` where it never is.
    aspect: Option<Differing>,
    text: String,
}

impl Difference {
    fn line(&self) -> String {
        match self.aspect.as_ref().and_then(ValueEnum::to_possible_value) {
            Some(word) => format!("{} (--allow {})", self.text, word.get_name()),
            None => self.text.clone(),
        }
    }
}

/// What is not as it was, as far as it bears on figures: of virtual time the host does not.
fn differences(manifest: &Manifest, cells: &[CellSummary], plan: &Plan, jobs: Option<u16>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |aspect: Option<Differing>, what: &str, was: Option<String>, is: Option<String>| {
        if was != is {
            let text = |fact: Option<String>| fact.unwrap_or_else(|| "not known".to_owned());
            found.push(Difference { aspect, text: format!("{what}: was {}, is {}", text(was), text(is)) });
        }
    };
    let (program, this) = (&manifest.program, Program::this());
    let digits = |digest: &Option<String>| digest.as_ref().map(|digest| digest.chars().take(16).collect::<String>());
    add(Some(Differing::Program), "program", digits(&program.executable_sha256), digits(&this.executable_sha256));
    for Changed { name, was, is } in changed_programs(manifest, plan) {
        add(Some(Differing::Program), &format!("`{name}` or what it needs"), digits(&was), digits(&is));
    }
    if cells.iter().any(|cell| cell.clock == Clock::Real) {
        let (was, is) = (&manifest.host, Host::gather());
        add(Some(Differing::Host), "host's name", was.hostname.clone(), is.hostname);
        add(Some(Differing::Host), "host's processor", was.cpu_model.clone(), is.cpu_model);
        let cores = |cores: Option<u64>| cores.map(|cores| cores.to_string());
        add(Some(Differing::Host), "host's processors", cores(was.cores), cores(is.cores));
        // Where it was not said, as many are run as in the run; and an earlier version did not say how many these were.
        if let (Some(was), Some(is)) = (manifest.at_once, jobs) {
            add(Some(Differing::Jobs), "cells at once (-j)", Some(was.to_string()), Some(is.to_string()));
        }
    }
    if cells.iter().any(|cell| cell.machines.iter().any(|machine| machine == "native")) {
        let (was, is) = (&manifest.host, Host::gather());
        add(None, "kernel", was.kernel_release.clone(), is.kernel_release);
        add(None, "build of the kernel", was.kernel_version.clone(), is.kernel_version);
        for (name, is) in sysctls() {
            if let Some(was) = manifest.sysctls.get(&name) {
                add(Some(Differing::Sysctl), &name, Some(was.clone()), Some(is));
            }
        }
    }
    if let (Some(was), Ok(is)) = (manifest.tools.get("qemu"), Qemu::find()) {
        add(Some(Differing::Qemu), "QEMU", Some(was.clone()), Some(is.version));
    }
    found
}
