//! The figures that can be compared: what is worse, and what is too small a change to matter.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::measurement::{Distribution, End, Measurement, Number};
use crate::record::Record;
use crate::units::{Better, BitRate, Span, in_unit};

/// A figure of a repeat. Names are those of `sweep plot`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// From before the first send to after the last echo.
    #[default]
    Completion,
    /// Application bits delivered per second.
    Goodput,
    /// Median of the round trips of chunks within a repeat.
    ChunkP50,
    /// Their 90th percentile.
    ChunkP90,
    /// Their 99th percentile.
    ChunkP99,
    /// Their 99.9th percentile.
    ChunkP999,
    /// The slowest of them.
    ChunkMax,
    /// Processor time of both ends.
    Cpu,
    /// A number that a program printed.
    Program(ProgramMetric),
}

/// A number that a program prints, in a unit of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProgramMetric {
    /// Its name.
    pub name: String,
    /// Its unit, which may be empty.
    #[serde(default)]
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
}

impl ProgramMetric {
    /// Those of some records, by their names.
    pub fn of_all(records: &[Record]) -> Vec<Self> {
        let all = records.iter().filter(|record| !record.warmup).flat_map(|record| &record.measurement.metrics);
        let found: BTreeMap<&String, _> = all.collect();
        let of = |(name, metric): (&String, &crate::measurement::Metric)| Self {
            name: name.clone(),
            unit: metric.unit.clone(),
            better: metric.better,
        };
        found.into_iter().map(of).collect()
    }
}

/// Which way is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// More is worse: times.
    Up,
    /// Less is worse: rates.
    Down,
}

/// Why a text is not a metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a metric that can be compared: choose one of {}", known.join(", "))]
pub struct UnknownMetric {
    typed: String,
    known: Vec<String>,
}

/// Why a text is not the least change that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an amount of {metric}: write a number with its unit, such as \"{example}\"")]
pub struct ParseAmountError {
    text: String,
    metric: Metric,
    example: String,
}

impl Metric {
    /// Every metric that needs no program of the user's, the most used first.
    pub const ALL: [Self; 8] = [
        Self::Completion,
        Self::Goodput,
        Self::ChunkP50,
        Self::ChunkP90,
        Self::ChunkP99,
        Self::ChunkP999,
        Self::ChunkMax,
        Self::Cpu,
    ];

    /// The metric of that name, which may be one that the programs of a run printed.
    ///
    /// # Errors
    /// If there is none; it tells those that there are.
    pub fn named(typed: &str, printed: &[ProgramMetric]) -> Result<Self, UnknownMetric> {
        let all = || Self::ALL.into_iter().chain(printed.iter().cloned().map(Self::Program));
        all().find(|metric| metric.name() == typed).ok_or_else(|| {
            let mut known: Vec<String> = Vec::new();
            all().for_each(|metric| {
                if !known.iter().any(|name| name == metric.name()) {
                    known.push(metric.name().to_owned());
                }
            });
            UnknownMetric { typed: typed.to_owned(), known }
        })
    }

    /// The name on the command line and in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::Completion => "completion",
            Self::Goodput => "goodput",
            Self::ChunkP50 => "chunk-p50",
            Self::ChunkP90 => "chunk-p90",
            Self::ChunkP99 => "chunk-p99",
            Self::ChunkP999 => "chunk-p99.9",
            Self::ChunkMax => "chunk-max",
            Self::Cpu => "cpu",
            Self::Program(metric) => &metric.name,
        }
    }

    /// The name of its figures in a baseline, with their unit; for a program's number its own name, which stands among the others of
    /// its kind.
    pub fn field(&self) -> &str {
        match self {
            Self::Completion => "completion_ns",
            Self::Goodput => "goodput_bps",
            Self::ChunkP50 => "chunk_p50_ns",
            Self::ChunkP90 => "chunk_p90_ns",
            Self::ChunkP99 => "chunk_p99_ns",
            Self::ChunkP999 => "chunk_p99_9_ns",
            Self::ChunkMax => "chunk_max_ns",
            Self::Cpu => "cpu_ns",
            Self::Program(metric) => &metric.name,
        }
    }

    /// The unit of its figures as they are stored and printed as JSON; empty for a program's number that has none.
    pub fn unit(&self) -> &str {
        match self {
            Self::Goodput => "bit/s",
            Self::Program(metric) => &metric.unit,
            _ => "ns",
        }
    }

    /// Which way is better.
    pub fn better(&self) -> Better {
        match self.worse() {
            Worse::Up => Better::Lower,
            Worse::Down => Better::Higher,
        }
    }

    /// Which way is worse.
    pub fn worse(&self) -> Worse {
        match self {
            Self::Goodput | Self::Program(ProgramMetric { better: Better::Higher, .. }) => Worse::Down,
            _ => Worse::Up,
        }
    }

    /// The least change of a median that counts in real time, unless another is named: 10 µs, or 1 Mbit/s. Below it lie the scheduler's
    /// choices and the timer's interrupts, whatever share of a tiny figure they are. In virtual time there is none of that, and no floor.
    /// A program's number has none: nobody but the user knows how much of it is little.
    pub fn floor(&self) -> Number {
        match self {
            Self::Goodput => 1_000_000.into(),
            Self::Program(_) => Number::default(),
            _ => 10_000.into(),
        }
    }

    /// The figure of a repeat, if it has it.
    pub fn of(&self, measurement: &Measurement) -> Option<Number> {
        let chunk = |pick: fn(&Distribution) -> Option<u64>| measurement.chunk_latency_ns.as_ref().and_then(pick);
        let cpu = |end: &End| end.cpu_user_ns?.checked_add(end.cpu_system_ns?);
        let whole = match self {
            Self::Completion => measurement.completion_ns,
            Self::Goodput => measurement.goodput_bps,
            Self::ChunkP50 => chunk(|chunks| Some(chunks.p50)),
            Self::ChunkP90 => chunk(|chunks| chunks.p90),
            Self::ChunkP99 => chunk(|chunks| chunks.p99),
            Self::ChunkP999 => chunk(|chunks| chunks.p99_9),
            Self::ChunkMax => chunk(|chunks| Some(chunks.max)),
            Self::Cpu => cpu(&measurement.client)?.checked_add(cpu(&measurement.server)?),
            Self::Program(metric) => return measurement.metrics.get(&metric.name)?.value,
        };
        whole.map(Number::from)
    }

    /// A figure as a person reads it.
    pub fn show(&self, figure: Number) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "of built-in figures, which are no less than 0"
        )]
        let whole = figure.get().round() as u64;
        match self {
            Self::Goodput => BitRate(whole).to_string(),
            Self::Program(metric) => in_unit(figure.get(), &metric.unit),
            _ => Span(whole).to_string(),
        }
    }

    /// Reads an amount of it: `20us`, `2Mbit/s`; of a program's number one in its own unit, which may be left out.
    ///
    /// # Errors
    /// If it is no number with a unit of this metric.
    pub fn amount(&self, text: &str) -> Result<Number, ParseAmountError> {
        let (read, example) = match self {
            Self::Goodput => (rate(text).map(Number::from), "2Mbit/s".to_owned()),
            Self::Program(metric) => {
                let bare = text.trim().strip_suffix(metric.unit.as_str()).unwrap_or(text).trim();
                let number = bare.parse().ok().filter(|number| *number >= 0.0);
                (number.and_then(Number::new), in_unit(2.0, &metric.unit))
            }
            _ => (text.parse().ok().map(|Span(ns)| ns.into()), "20us".to_owned()),
        };
        read.ok_or_else(|| ParseAmountError { text: text.to_owned(), metric: self.clone(), example })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Metric {
    /// Its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A rate in bits per second.
fn rate(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, scale) = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)]
        .into_iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let bits = number.trim().parse::<f64>().ok().filter(|number| *number >= 0.0)? * scale;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and bounded")]
    (bits <= 1e18).then_some(bits.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{Metric, ProgramMetric, Worse};
    use crate::measurement::Number;
    use crate::units::Better;

    fn level() -> ProgramMetric {
        ProgramMetric { name: "level".into(), unit: "dB".into(), better: Better::Higher }
    }

    #[test]
    fn every_metric_has_a_name_and_a_field_of_its_own() {
        let fields: std::collections::BTreeSet<_> = Metric::ALL.iter().map(Metric::field).collect();
        assert_eq!(fields.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            let suffix = if metric.unit() == "ns" { "_ns" } else { "_bps" };
            assert!(metric.field().ends_with(suffix), "{metric}");
            assert_eq!(Metric::named(metric.name(), &[level()]), Ok(metric));
        }
        assert_eq!(Metric::named("level", &[level()]), Ok(Metric::Program(level())));
        let error = Metric::named("complation", &[level()]).expect_err("a slip").to_string();
        assert!(error.contains("completion, goodput") && error.ends_with("cpu, level"), "{error}");
    }

    #[test]
    fn latency_is_worse_upwards_and_throughput_downwards() {
        assert_eq!((Metric::Completion.worse(), Metric::Goodput.worse()), (Worse::Up, Worse::Down));
        let lower = ProgramMetric { better: Better::Lower, ..level() };
        assert_eq!((Metric::Goodput.better(), Metric::Cpu.better()), (Better::Higher, Better::Lower));
        assert_eq!((Metric::Program(lower).worse(), Metric::Program(level()).worse()), (Worse::Up, Worse::Down));
    }

    #[test]
    fn amounts_have_the_unit_of_their_metric() {
        let level = Metric::Program(level());
        assert_eq!(Metric::Completion.amount("20us"), Ok(20_000.into()));
        assert_eq!(Metric::Goodput.amount("1.5 Mbit/s"), Ok(1_500_000.into()));
        for text in ["0.5 dB", "0.5dB", "0.5"] {
            assert_eq!(level.amount(text).ok(), Number::new(0.5), "{text}");
        }
        assert_eq!(level.show(level.amount("0.5").expect("an amount")), "0.5000 dB");
        for (metric, text) in [
            (&Metric::Completion, "20"),
            (&Metric::Goodput, "20us"),
            (&Metric::Goodput, "-1bit/s"),
            (&level, "-1 dB"),
            (&level, "1 ms"),
            (&level, "inf"),
        ] {
            assert!(metric.amount(text).expect_err("no amount").to_string().contains(metric.name()), "{text}");
        }
    }
}
