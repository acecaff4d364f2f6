//! The figures that can be compared: what is worse, and what is too small a change to matter.

use std::str::FromStr;

use crate::measurement::{Distribution, End, Measurement};
use crate::units::{BitRate, Span, choice};

choice! {
    /// A figure of a repeat. Names are those of `sweep plot`.
    Metric {
        /// From before the first send to after the last echo.
        #[default] Completion = "completion",
        /// Application bits delivered per second.
        Goodput = "goodput",
        /// Median of the round trips of chunks within a repeat.
        ChunkP50 = "chunk-p50",
        /// Their 90th percentile.
        ChunkP90 = "chunk-p90",
        /// Their 99th percentile.
        ChunkP99 = "chunk-p99",
        /// Their 99.9th percentile.
        ChunkP999 = "chunk-p99.9",
        /// The slowest of them.
        ChunkMax = "chunk-max",
        /// Processor time of both ends.
        Cpu = "cpu",
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
#[error("`{0}` is not a metric that can be compared: choose one of {names}", names = Metric::NAMES.join(", "))]
pub struct ParseMetricError(String);

/// Why a text is not the least change that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an amount of {metric}: write a number with its unit, such as \"{example}\"")]
pub struct ParseAmountError {
    text: String,
    metric: Metric,
    example: &'static str,
}

impl FromStr for Metric {
    type Err = ParseMetricError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::named(text).ok_or_else(|| ParseMetricError(text.to_owned()))
    }
}

impl Metric {
    /// Every metric, the most used first.
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

    /// The name of its figures in a baseline, with their unit.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Completion => "completion_ns",
            Self::Goodput => "goodput_bps",
            Self::ChunkP50 => "chunk_p50_ns",
            Self::ChunkP90 => "chunk_p90_ns",
            Self::ChunkP99 => "chunk_p99_ns",
            Self::ChunkP999 => "chunk_p99_9_ns",
            Self::ChunkMax => "chunk_max_ns",
            Self::Cpu => "cpu_ns",
        }
    }

    /// Which way is worse.
    pub const fn worse(self) -> Worse {
        match self {
            Self::Goodput => Worse::Down,
            _ => Worse::Up,
        }
    }

    /// The least change of a median that counts in real time, unless another is named: 10 µs, or 1 Mbit/s. Below it lie the scheduler's
    /// choices and the timer's interrupts, whatever share of a tiny figure they are. In virtual time there is none of that, and no floor.
    pub const fn floor(self) -> u64 {
        match self {
            Self::Goodput => 1_000_000,
            _ => 10_000,
        }
    }

    /// The figure of a repeat, if it has it.
    pub fn of(self, measurement: &Measurement) -> Option<u64> {
        let chunk = |pick: fn(&Distribution) -> Option<u64>| measurement.chunk_latency_ns.as_ref().and_then(pick);
        let cpu = |end: &End| end.cpu_user_ns?.checked_add(end.cpu_system_ns?);
        match self {
            Self::Completion => measurement.completion_ns,
            Self::Goodput => measurement.goodput_bps,
            Self::ChunkP50 => chunk(|chunks| Some(chunks.p50)),
            Self::ChunkP90 => chunk(|chunks| chunks.p90),
            Self::ChunkP99 => chunk(|chunks| chunks.p99),
            Self::ChunkP999 => chunk(|chunks| chunks.p99_9),
            Self::ChunkMax => chunk(|chunks| Some(chunks.max)),
            Self::Cpu => cpu(&measurement.client)?.checked_add(cpu(&measurement.server)?),
        }
    }

    /// A figure as a person reads it.
    pub fn show(self, figure: u64) -> String {
        match self {
            Self::Goodput => BitRate(figure).to_string(),
            _ => Span(figure).to_string(),
        }
    }

    /// Reads an amount of it: `20us`, `2Mbit/s`.
    ///
    /// # Errors
    /// If it is no number with a unit of this metric.
    pub fn amount(self, text: &str) -> Result<u64, ParseAmountError> {
        let (read, example) = match self {
            Self::Goodput => (rate(text), "2Mbit/s"),
            _ => (text.parse().ok().map(|Span(ns)| ns), "20us"),
        };
        read.ok_or_else(|| ParseAmountError { text: text.to_owned(), metric: self, example })
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
    use super::{Metric, Worse};

    #[test]
    fn every_metric_has_a_name_and_a_field_of_its_own() {
        assert_eq!(Metric::ALL.map(Metric::name).to_vec(), Metric::NAMES);
        let fields: std::collections::BTreeSet<_> = Metric::ALL.map(Metric::field).into_iter().collect();
        assert_eq!(fields.len(), Metric::ALL.len());
        assert!("complation".parse::<Metric>().expect_err("a slip").to_string().contains("completion, goodput"));
    }

    #[test]
    fn latency_is_worse_upwards_and_throughput_downwards() {
        assert_eq!((Metric::Completion.worse(), Metric::Goodput.worse()), (Worse::Up, Worse::Down));
    }

    #[test]
    fn amounts_have_the_unit_of_their_metric() {
        assert_eq!(Metric::Completion.amount("20us"), Ok(20_000));
        assert_eq!(Metric::Goodput.amount("1.5 Mbit/s"), Ok(1_500_000));
        for (metric, text) in [(Metric::Completion, "20"), (Metric::Goodput, "20us"), (Metric::Goodput, "-1bit/s")] {
            assert!(metric.amount(text).expect_err("no amount").to_string().contains(metric.name()), "{text}");
        }
    }
}
