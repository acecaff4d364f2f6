//! `sweep gate`: the verdict on a run, for CI.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::gate::{
    Aspect, Baseline, DEFAULT_ALPHA, DEFAULT_MAX_REGRESSION, Judgement, Matching, Metric, Overall, Round, Rules, TRIES,
    annotations, judgement_text, junit, load, markdown,
};
use crate::record::write_atomically;
use crate::units::Span;

use super::confirm::{Confirmation, confirm, what_is_run};
use super::exit::Exit;
use super::output::say;
use super::{complain, print, print_json, width};

/// Arguments of `sweep gate`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct GateArgs {
    /// The run: a folder below results, or results/latest.
    run: PathBuf,
    /// What to judge it against: a file that `sweep baseline` wrote, or another run.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// What to compare instead of completion (of goodput, where nothing has a completion): goodput, chunk-p50, chunk-p90,
    /// chunk-p99, chunk-p99.9, chunk-max, cpu, or a name of [[workload.metric]].
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// The share by which a median may worsen: 5%, 0.1%. In virtual time it alone decides.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    max_regression: Percent,
    /// The least change of a median that counts in real time: 20us, 5Mbit/s. Without it 10 µs, or 1 Mbit/s; none of
    /// what a program printed.
    #[arg(long, value_name = "AMOUNT")]
    floor: Option<String>,
    /// How often a gate in real time may find a change where nothing changed, over all its cells together.
    #[arg(long, value_name = "P", default_value_t = DEFAULT_ALPHA, value_parser = probability)]
    alpha: f64,
    /// Judge although these differ: kernel, clock, host, machine, seed, jobs (cells at once, -j), or cells that one side lacks.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    allow: Vec<Aspect>,
    /// How cells are matched: by id, where everything that decides them is the same; or by axes, where settings that all cells share
    /// may differ, and are what is judged.
    #[arg(long = "match", value_name = "HOW", default_value = "id", value_parser = matching)]
    matching: Matching,
    /// Run nothing again: neither a cell that looks worse, to believe it, nor the run on a machine that did not hold still. In virtual
    /// time cells would give the same figures and are never run again. Cells that run programs are run again only where the sweep's file and
    /// its programs are as they were.
    #[arg(long)]
    no_confirm: bool,
    /// Begin no further round of running cells again after so long; what is not told by then is not confirmed.
    #[arg(long, value_name = "SPAN", default_value = "5m")]
    confirm_time: Span,
    /// Write XML in the form of `JUnit` to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Show every cell, also those that did not change.
    #[arg(long)]
    all: bool,
    /// Show no progress while cells are run again.
    #[arg(short, long)]
    quiet: bool,
    /// Print the verdict as JSON.
    #[arg(long)]
    json: bool,
}

/// A share that was typed in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent(pub(super) f64);

pub(super) fn percent(text: &str) -> Result<Percent, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number.filter(|number| number.is_finite() && *number >= 0.0).map(|number| Percent(number / 100.0)).ok_or_else(
        || format!("`{text}` is not a share in percent: write {}%, or 0.1%", DEFAULT_MAX_REGRESSION * 100.0),
    )
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| format!("`{text}` is not a probability between 0 and 1, such as {DEFAULT_ALPHA}"))
}

pub(super) fn matching(text: &str) -> Result<Matching, String> {
    Matching::named(text)
        .ok_or_else(|| format!("`{text}` is not a way to match cells: {}", Matching::NAMES.join(" or ")))
}

/// The metric of that name, among the built-in ones and those of both sides.
pub(super) fn metric(name: &str, first: &Baseline, second: &Baseline) -> Result<Metric, Exit> {
    Metric::named(name, &[&second.metrics[..], &first.metrics[..]].concat()).map_err(|error| complain(&error))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    overall: Overall,
    #[serde(flatten)]
    judgement: &'a Judgement,
}

pub(super) fn gate(arguments: &GateArgs) -> Result<Exit, Exit> {
    // Before any thread starts: an ordinary user needs a user namespace to run native cells again.
    let native_refused = if arguments.no_confirm { None } else { super::become_native() };
    let (after, run) = load(&arguments.run).map_err(|error| complain(&error))?;
    let (before, _) = load(&arguments.baseline).map_err(|error| complain(&error))?;
    let named = arguments.metric.as_deref().map(|name| metric(name, &before, &after)).transpose()?;
    let metric = named.unwrap_or_else(|| after.usual_metric());
    let floor = arguments.floor.as_deref().map(|text| metric.amount(text)).transpose();
    let rules = Rules {
        metric: Some(metric),
        max_regression: arguments.max_regression.0,
        alpha: arguments.alpha,
        floor: floor.map_err(|error| complain(&error))?,
        matching: arguments.matching,
        allow: arguments.allow.iter().copied().collect(),
    };
    let mut judgement = Judgement::new(&before, &after, &rules).map_err(|error| complain(&error))?;
    let started = Instant::now();
    let again = |round: &Round, whole: bool| match (&run, arguments.no_confirm) {
        (_, true) => Ok(Confirmation::Impossible("--no-confirm".to_owned())),
        (None, _) => Ok(Confirmation::Impossible("the run is a baseline's file, without its sweep".to_owned())),
        _ if started.elapsed() > Duration::from_nanos(arguments.confirm_time.0) => {
            Ok(Confirmation::Impossible(format!("that took longer than --confirm-time {}", arguments.confirm_time)))
        }
        (Some((dir, manifest)), false) => {
            if !arguments.quiet {
                say!("{}", what_is_run(round, whole));
            }
            confirm(dir, manifest, round, native_refused.clone(), arguments.quiet)
        }
    };
    for attempt in 1..=TRIES {
        while let Some(round) = judgement.round() {
            match again(&round, false)? {
                Confirmation::Again(again) => judgement.confirm(&before, &round, &again),
                Confirmation::Impossible(why) => judgement.unconfirmed(&why),
            }
        }
        if attempt == TRIES || !judgement.is_restless() {
            break;
        }
        let Confirmation::Again(whole) = again(&judgement.whole(), true)? else { break };
        judgement = judgement.of_another_try(&before, &whole).map_err(|error| complain(&error))?;
    }
    tell(&judgement, arguments)?;
    Ok(match judgement.overall() {
        Overall::Passed => Exit::Done,
        Overall::Regression => Exit::Regression,
        Overall::NotJudged => Exit::Wrong,
    })
}

/// Writes the verdict to everyone who reads it.
fn tell(judgement: &Judgement, arguments: &GateArgs) -> Result<(), Exit> {
    if arguments.json {
        print_json(&Report { overall: judgement.overall(), judgement })?;
    } else {
        print(&judgement_text(judgement, arguments.all, width()))?;
    }
    if let Some(path) = &arguments.junit {
        write_atomically(path, junit(judgement).as_bytes()).map_err(|error| complain(&error))?;
    }
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        append(Path::new(&path), &markdown(judgement)).map_err(|error| {
            say!(
                "error: cannot write to GITHUB_STEP_SUMMARY, `{}`: {error}; unset it, or name a file that can be written",
                path.to_string_lossy()
            );
            Exit::Wrong
        })?;
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        // A job's log is read from both streams, and standard output may be JSON.
        for line in annotations(judgement) {
            say!("{line}");
        }
    }
    Ok(())
}

/// Other steps of the job may have written to it before.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_MAX_REGRESSION, Percent, percent, probability};
    use crate::gate::Metric;

    #[test]
    fn shares_are_typed_in_percent() {
        assert_eq!(percent("5%"), Ok(Percent(DEFAULT_MAX_REGRESSION)));
        assert_eq!(percent("0.1 %"), Ok(Percent(0.001)));
        for wrong in ["0.05", "-1%", "nan%", "%", ""] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
        assert!(probability("0.01").is_ok() && probability("1").is_err() && probability("0").is_err());
    }

    #[test]
    fn metrics_are_those_of_pictures_with_the_same_sense() {
        for metric in Metric::ALL {
            let drawn: crate::plot::Metric =
                crate::plot::Metric::named(metric.name(), &[]).expect("a metric of `sweep plot`");
            let down = drawn.direction() == crate::plot::Direction::WorseDown;
            assert_eq!(metric.worse() == crate::gate::Worse::Down, down, "{metric}");
        }
    }
}
