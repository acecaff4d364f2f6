//! A baseline: what a run measured, in a file that is small, sorted and good to read in a diff.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::error::GateError;
use super::judged::rank;
use super::metric::{Metric, ProgramMetric};
use crate::measurement::{Number, Outcome};
use crate::record::{Manifest, Record, RunDir};
use crate::settings::{Axes, Clock};
use crate::stats::summarise;

/// The format that this program writes.
pub const BASELINE_FORMAT: u32 = 1;

/// What a run measured. The same run always gives the same file, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`BASELINE_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// The sweep's name.
    pub sweep: String,
    /// When the run started (UTC).
    pub started: Timestamp,
    /// Changes that were accepted, the oldest first.
    #[serde(default)]
    pub accepted: Vec<Accepted>,
    /// Where the figures come from.
    pub environment: Environment,
    /// Settings that all cells share, as the sweep set them, by their path.
    #[serde(default)]
    pub fixed: BTreeMap<String, serde_json::Value>,
    /// What programs printed and cells have among their [`BaselineCell::metrics`], by name. None in the files of earlier versions, which
    /// pass over it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ProgramMetric>,
    /// The cells, in the order of their values on the axes.
    pub cells: Vec<BaselineCell>,
}

/// A change that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// When the run started whose figures were accepted (UTC).
    pub run: Timestamp,
    /// Why.
    pub reason: String,
}

/// A cell of a baseline: one line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineCell {
    /// Its id.
    pub cell: String,
    /// Where it lies on the axes.
    pub axes: Axes,
    /// The worst outcome among its repeats.
    pub outcome: Outcome,
    /// Why, for every outcome but `measured`: the most frequent reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The kernel's image, as resolved.
    pub image: String,
    /// As `uname -r` says; `None` where no machine came up.
    pub kernel: Option<String>,
    /// The clock that measured.
    pub clock: Clock,
    /// What ran it: `native`, `guest:tcg`, `guest:kvm` or `fake`; joined by a comma if there are several.
    pub machine: String,
    /// The figures of each repeat, by the field of their metric, in the order of the repeats' numbers, which is that of the run.
    /// `None` where a repeat has none.
    pub figures: BTreeMap<String, Vec<Option<u64>>>,
    /// The same of what programs printed, by the name of the metric, in its own unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Vec<Option<Number>>>,
}

impl BaselineCell {
    /// The figures of a metric by the number of the repeat.
    pub fn repeats(&self, metric: &Metric) -> Vec<Option<Number>> {
        if let Metric::Program(metric) = metric {
            return self.metrics.get(&metric.name).cloned().unwrap_or_default();
        }
        let figures = self.figures.get(metric.field()).map_or(&[][..], Vec::as_slice);
        figures.iter().map(|figure| figure.map(Number::from)).collect()
    }

    /// Whether it has figures of a metric.
    pub fn has(&self, metric: &Metric) -> bool {
        match metric {
            Metric::Program(metric) => self.metrics.contains_key(&metric.name),
            _ => self.figures.contains_key(metric.field()),
        }
    }

    /// Takes in more repeats of the same cell, measured in real time.
    pub(super) fn add(&mut self, more: &Self) {
        if rank(more.outcome) > rank(self.outcome) {
            self.outcome = more.outcome;
            self.reason.clone_from(&more.reason);
        }
        for (field, figures) in &more.figures {
            self.figures.entry(field.clone()).or_default().extend(figures);
        }
        for (name, figures) in &more.metrics {
            self.metrics.entry(name.clone()).or_default().extend(figures);
        }
    }

    /// Whether it has no figures at all.
    pub fn is_without_figures(&self) -> bool {
        self.figures.is_empty() && self.metrics.is_empty()
    }
}

impl Baseline {
    /// What a run measured, with the figures of these metrics. Warm-ups are left out.
    ///
    /// # Errors
    /// If a cell ran on several kernels or clocks.
    pub fn of(manifest: &Manifest, records: &[Record], metrics: &[Metric]) -> Result<Self, GateError> {
        let mut repeats: HashMap<&str, Vec<&Record>> = HashMap::new();
        for record in records.iter().filter(|record| !record.warmup) {
            repeats.entry(&record.cell).or_default().push(record);
        }
        let summaries = summarise(records);
        let mut seen: HashMap<&str, String> = HashMap::new();
        let mut cells = Vec::with_capacity(summaries.len());
        for summary in &summaries {
            let place =
                format!("{} ({})", summary.kernel.release.as_deref().unwrap_or(&summary.kernel.image), summary.clock);
            if let Some(other) = seen.insert(&summary.cell, place.clone()) {
                let (cell, axes) = (summary.cell.clone(), summary.axes.to_string());
                return Err(GateError::Ambiguous { cell, axes, where_: format!("{other} and {place}") });
            }
            let of_cell = repeats.get(summary.cell.as_str()).map_or(&[][..], Vec::as_slice);
            let count = of_cell.iter().map(|record| record.repeat as usize + 1).max().unwrap_or(0);
            let (mut figures, mut printed) = (BTreeMap::new(), BTreeMap::new());
            for metric in metrics {
                let mut of_metric: Vec<Option<Number>> = vec![None; count];
                for record in of_cell.iter().filter(|record| record.measurement.outcome == Outcome::Measured) {
                    of_metric[record.repeat as usize] = metric.of(&record.measurement);
                }
                if of_metric.iter().all(Option::is_none) {
                    continue;
                }
                if matches!(metric, Metric::Program(_)) {
                    printed.insert(metric.field().to_owned(), of_metric);
                } else {
                    let whole = of_metric.into_iter().map(|figure| figure.map(whole)).collect();
                    figures.insert(metric.field().to_owned(), whole);
                }
            }
            cells.push(BaselineCell {
                cell: summary.cell.clone(),
                axes: summary.axes.clone(),
                outcome: summary.outcome.worst,
                reason: summary
                    .reasons
                    .iter()
                    .find(|reason| reason.outcome == summary.outcome.worst)
                    .map(|reason| reason.text.clone()),
                image: summary.kernel.image.clone(),
                kernel: summary.kernel.release.clone(),
                clock: summary.clock,
                machine: summary.machines.join(", "),
                figures,
                metrics: printed,
            });
        }
        let fixed = manifest.sweep.resolved.get("fixed").and_then(serde_json::Value::as_object);
        Ok(Self {
            format: BASELINE_FORMAT,
            sweep: manifest.sweep.name.clone(),
            started: manifest.started,
            accepted: Vec::new(),
            environment: Environment::of(manifest),
            fixed: fixed.into_iter().flatten().map(|(path, value)| (path.clone(), value.clone())).collect(),
            metrics: program_metrics(metrics)
                .filter(|metric| cells.iter().any(|cell| cell.metrics.contains_key(&metric.name)))
                .cloned()
                .collect(),
            cells,
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is no baseline, or was written by a newer program.
    pub fn read(path: &Path) -> Result<Self, GateError> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let wrong = |why: String| GateError::NotABaseline { path: path.to_owned(), why };
        let text = std::fs::read(path).map_err(|source| GateError::Read { path: path.to_owned(), source })?;
        let versioned: Versioned = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        match versioned.format {
            BASELINE_FORMAT => {
                let baseline: Self = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
                // As a merge of two branches leaves it: which of the two counts nobody knows.
                let mut seen = HashSet::new();
                match baseline.cells.iter().find(|cell| !seen.insert(cell.cell.as_str())) {
                    Some(twice) => Err(wrong(format!("cell `{}` ({}) stands in it twice", twice.cell, twice.axes))),
                    None => Ok(baseline),
                }
            }
            0 => Err(wrong("there is no format 0".to_owned())),
            found => Err(GateError::NewerFormat { path: path.to_owned(), found }),
        }
    }

    /// The file: what all cells share with a line each, then a line for each cell, so that a diff shows which cells changed.
    ///
    /// # Errors
    /// If a value cannot be written as JSON, which is a fault of the program.
    pub fn text(&self) -> Result<String, GateError> {
        let head = serde_json::to_value(Self { cells: Vec::new(), ..self.clone() })?;
        let mut head = head.as_object().cloned().unwrap_or_default();
        head.remove("cells");
        let head = serde_json::to_string_pretty(&head)?;
        let cells: Result<Vec<String>, _> = self.cells.iter().map(serde_json::to_string).collect();
        let lines: Vec<String> = cells?.into_iter().map(|cell| format!("    {cell}")).collect();
        let head = head.trim_end_matches('}').trim_end();
        Ok(format!("{head},\n  \"cells\": [\n{}\n  ]\n}}\n", lines.join(",\n")))
    }

    /// Takes over the reasons of the baseline that this one replaces, and adds one.
    ///
    /// # Errors
    /// If the figures change and no reason is given.
    pub fn replacing(mut self, old: Self, reason: Option<&str>, path: &Path) -> Result<Self, GateError> {
        if reason.is_none() && old.cells != self.cells {
            return Err(GateError::NoReason { path: path.to_owned() });
        }
        self.accepted = old.accepted;
        Ok(self.accepting(reason))
    }

    /// Adds a reason, unless it stands there for this run already.
    #[must_use]
    pub fn accepting(mut self, reason: Option<&str>) -> Self {
        if let Some(reason) = reason {
            let accepted = Accepted { run: self.started, reason: reason.to_owned() };
            if !self.accepted.contains(&accepted) {
                self.accepted.push(accepted);
            }
        }
        self
    }

    /// The cells' metric where none is named: completion, or goodput where no cell has a completion.
    pub fn usual_metric(&self) -> Metric {
        let has = |metric: &Metric| self.cells.iter().any(|cell| cell.repeats(metric).iter().any(Option::is_some));
        if !has(&Metric::Completion) && has(&Metric::Goodput) { Metric::Goodput } else { Metric::Completion }
    }
}

/// Those of metrics that programs print.
fn program_metrics(metrics: &[Metric]) -> impl Iterator<Item = &ProgramMetric> {
    metrics.iter().filter_map(|metric| match metric {
        Metric::Program(metric) => Some(metric),
        _ => None,
    })
}

/// A built-in figure, which is whole and not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and not negative")]
fn whole(figure: Number) -> u64 {
    figure.get() as u64
}

/// All that records hold: every built-in metric, and what programs printed.
pub fn all_metrics(records: &[Record]) -> Vec<Metric> {
    Metric::ALL.into_iter().chain(ProgramMetric::of_all(records).into_iter().map(Metric::Program)).collect()
}

/// What lies at a path: the folder of a run, which has come to its end, or a baseline. With the run's manifest.
///
/// # Errors
/// If it is neither, cannot be read, or the run has not come to its end.
pub fn load(path: &Path) -> Result<(Baseline, Option<(RunDir, Manifest)>), GateError> {
    if path.is_file() {
        return Ok((Baseline::read(path)?, None));
    }
    let dir = RunDir::open(path)?;
    let manifest = dir.manifest()?;
    if manifest.finished.is_none() {
        return Err(GateError::Unfinished { path: path.to_owned() });
    }
    let loaded = dir.read()?;
    if loaded.records.iter().all(|record| record.warmup) {
        return Err(GateError::Empty { path: path.to_owned() });
    }
    let baseline = Baseline::of(&manifest, &loaded.records, &all_metrics(&loaded.records))?;
    Ok((baseline, Some((dir, manifest))))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{Baseline, GateError, Metric, all_metrics};
    use crate::measurement::{Measurement, Number, Outcome};
    use crate::record::{Record, example, example_manifest};
    use crate::settings::{Axes, Clock, Value};

    /// A baseline of cells on the axis `chunk_count`, each with its repeats of the completion.
    pub(crate) fn of_completions(clock: Clock, cells: &[Vec<u64>]) -> Baseline {
        let mut records: Vec<Record> = Vec::new();
        for (cell, completions) in cells.iter().enumerate() {
            for (repeat, &completion) in completions.iter().enumerate() {
                let mut record =
                    example(&format!("{cell:016x}"), u32::try_from(repeat).expect("few"), completion.max(1));
                record.measurement.completion_ns = Some(completion);
                record.axes = Axes(vec![("chunk_count".into(), Value::Int(cell as u64 + 1))]);
                record.clock = clock;
                record.machine = if clock == Clock::Virtual { "guest:tcg" } else { "native" }.to_owned();
                records.push(record);
            }
        }
        Baseline::of(&example_manifest("made_up"), &records, &[Metric::Completion, Metric::Goodput])
            .expect("a baseline")
    }

    #[test]
    fn the_file_is_the_same_whatever_the_order_of_the_run_and_survives_reading() {
        let mut records: Vec<Record> = (0..6)
            .map(|index| {
                let mut record = example(&format!("{}", index / 3), index % 3, 1000 + u64::from(index));
                record.axes = Axes(vec![("chunk_count".into(), Value::Int(u64::from(index / 3)))]);
                record
            })
            .collect();
        let mut failed = example("0", 3, 1);
        failed.axes = records[0].axes.clone();
        failed.measurement = Measurement::without_figures(Outcome::TimedOut, "no echo");
        records.push(failed);
        let manifest = example_manifest("smoke");
        let text = Baseline::of(&manifest, &records, &[Metric::Completion]).expect("made").text().expect("written");
        records[..6].reverse();
        let again = Baseline::of(&manifest, &records, &[Metric::Completion]).expect("made");
        assert_eq!(again.text().expect("written"), text);

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("baseline.json");
        std::fs::write(&path, &text).expect("written");
        let read = Baseline::read(&path).expect("read");
        assert_eq!(read, again);
        assert_eq!(read.cells[0].figures["completion_ns"], [Some(1000), Some(1001), Some(1002), None]);
        assert_eq!((read.cells[0].outcome, read.cells[0].reason.as_deref()), (Outcome::TimedOut, Some("no echo")));
        assert_eq!(
            text.lines().filter(|line| line.contains("completion_ns")).count(),
            2,
            "a line for each cell:\n{text}"
        );
    }

    #[test]
    fn a_newer_format_and_other_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("baseline.json");
        let mut baseline = of_completions(Clock::Virtual, &[vec![1]]);
        baseline.format = 2;
        std::fs::write(&path, baseline.text().expect("written")).expect("written");
        assert!(matches!(Baseline::read(&path), Err(GateError::NewerFormat { found: 2, .. })));
        for text in ["", "{}", r#"{"format": 1}"#, r#"{"format": 0}"#] {
            std::fs::write(&path, text).expect("written");
            assert!(matches!(Baseline::read(&path), Err(GateError::NotABaseline { .. })), "{text}");
        }
        // As a merge may leave it.
        let mut twice = of_completions(Clock::Virtual, &[vec![1], vec![2]]);
        twice.cells.push(twice.cells[0].clone());
        std::fs::write(&path, twice.text().expect("written")).expect("written");
        let error = Baseline::read(&path).expect_err("one cell twice");
        assert!(error.to_string().contains("cell `0000000000000000` (chunk_count=1) stands in it twice"), "{error}");
        assert!(matches!(Baseline::read(Path::new("/nowhere")), Err(GateError::Read { .. })));
    }

    #[test]
    fn reasons_are_kept_and_one_is_wanted_for_other_figures() {
        let old = of_completions(Clock::Virtual, &[vec![1]]).accepting(Some("first"));
        let same = of_completions(Clock::Virtual, &[vec![1]]);
        let path = Path::new("b.json");
        assert_eq!(same.clone().replacing(old.clone(), None, path).expect("nothing changes").accepted.len(), 1);
        let other = of_completions(Clock::Virtual, &[vec![2]]);
        assert!(matches!(other.clone().replacing(old.clone(), None, path), Err(GateError::NoReason { .. })));
        let renewed = other.replacing(old, Some("a faster kernel"), path).expect("a reason");
        let reasons: Vec<_> = renewed.accepted.iter().map(|accepted| accepted.reason.as_str()).collect();
        assert_eq!(reasons, ["first", "a faster kernel"]);
        assert_eq!(renewed.clone().accepting(Some("a faster kernel")), renewed, "once is enough");
    }

    /// A record with a number that a program printed.
    fn printed(cell: &str, repeat: u32, unit: &str, value: f64) -> Record {
        let mut record = example(cell, repeat, 1000);
        let number = crate::measurement::Metric {
            value: Number::new(value),
            unit: unit.into(),
            better: crate::units::Better::Higher,
            reason: None,
        };
        record.measurement.metrics.insert("level".into(), number);
        record
    }

    #[test]
    fn numbers_of_programs_are_kept_with_their_unit_beside_the_figures() {
        let records: Vec<Record> =
            [12.5, 12.0, -0.25].into_iter().zip(0..).map(|(value, repeat)| printed("a", repeat, "dB", value)).collect();
        let baseline = Baseline::of(&example_manifest("x"), &records, &all_metrics(&records)).expect("made");
        let text = baseline.text().expect("written");
        assert!(text.contains(r#""metrics":{"level":[12.5,12,-0.25]}"#), "{text}");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(file["format"], 1, "earlier versions read it, and pass over it");
        assert_eq!(file["metrics"], json!([{"name": "level", "unit": "dB", "better": "higher"}]));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("baseline.json");
        std::fs::write(&path, &text).expect("written");
        assert_eq!(Baseline::read(&path).expect("read"), baseline);
        let without = Baseline::of(&example_manifest("x"), &records, &[Metric::Completion]).expect("made");
        assert!(!without.text().expect("written").contains("metrics"), "as before where nothing was printed");
    }

    #[test]
    fn a_number_in_another_unit_is_not_compared() {
        let of = |unit| {
            let records = [printed("a", 0, unit, 1.0)];
            Baseline::of(&example_manifest("x"), &records, &all_metrics(&records)).expect("made")
        };
        let level = Metric::named("level", &of("dB").metrics).expect("printed");
        let compare = |first: &Baseline, second: &Baseline| {
            crate::gate::Comparison::new(first, second, Some(&level), crate::gate::Matching::Id, 0.0)
        };
        assert!(compare(&of("dB"), &of("dB")).is_ok());
        let error = compare(&of("dB"), &of("W")).expect_err("another unit");
        assert!(matches!(error, GateError::NotTheSame { .. }), "{error}");
        assert!(error.to_string().contains("level is in `dB`, where higher is better"), "{error}");
    }

    #[test]
    fn a_cell_on_two_kernels_is_refused() {
        let mut records = vec![example("a", 0, 1), example("a", 1, 2)];
        records[1].kernel.release = Some("7.0".into());
        let error = Baseline::of(&example_manifest("x"), &records, &[Metric::Completion]).expect_err("two kernels");
        assert!(error.to_string().contains("7.0 (virtual)"), "{error}");
    }

    #[test]
    fn a_stream_without_completion_is_compared_by_its_goodput() {
        let mut record = example("a", 0, 1);
        record.measurement.completion_ns = None;
        let mut manifest = example_manifest("x");
        manifest.sweep.resolved["fixed"] = json!({"socket.rcvbuf": 1024});
        let baseline = Baseline::of(&manifest, &[record], &Metric::ALL).expect("made");
        assert_eq!(baseline.usual_metric(), Metric::Goodput);
        assert_eq!(baseline.fixed["socket.rcvbuf"], json!(1024));
        assert_eq!(of_completions(Clock::Real, &[vec![1]]).usual_metric(), Metric::Completion);
    }
}
