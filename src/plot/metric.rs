//! What can be shown: one row for each figure of a record, and how several repeats become one figure.

use std::fmt;
use std::str::FromStr;

use super::error::PlotError;
use super::unit::Unit;
use crate::measurement::{Buffer, Distribution, End, Measurement};
use crate::units::choice;

/// Whether more of it is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Less is better: times.
    WorseUp,
    /// More is better: rates.
    WorseDown,
    /// Neither: sizes of buffers.
    Neutral,
}

/// A figure of a record.
#[derive(Clone, Copy)]
pub struct Metric(&'static Row);

/// What is known of a metric.
struct Row {
    name: &'static str,
    title: &'static str,
    unit: Unit,
    direction: Direction,
    pick: fn(&Measurement) -> Option<u64>,
}

/// A quantile of the round trips of chunks.
fn chunk(measurement: &Measurement, pick: fn(&Distribution) -> Option<u64>) -> Option<u64> {
    measurement.chunk_latency_ns.as_ref().and_then(pick)
}

/// Processor time of one end. It is known only if both parts are.
fn cpu(end: &End) -> Option<u64> {
    end.cpu_user_ns?.checked_add(end.cpu_system_ns?)
}

/// The sum over both ends, if both are known.
fn sum(measurement: &Measurement, pick: fn(&End) -> Option<u64>) -> Option<u64> {
    pick(&measurement.client)?.checked_add(pick(&measurement.server)?)
}

const fn time(name: &'static str, title: &'static str, pick: fn(&Measurement) -> Option<u64>) -> Row {
    Row { name, title, unit: Unit::Nanoseconds, direction: Direction::WorseUp, pick }
}

const fn size(name: &'static str, title: &'static str, pick: fn(&Measurement) -> Option<u64>) -> Row {
    Row { name, title, unit: Unit::Bytes, direction: Direction::Neutral, pick }
}

/// A buffer at one moment: of the end where it is larger, of the client's, of the server's.
macro_rules! buffer_rows {
    ($buffer:ident, $name:literal, $noun:literal, $moment:ident, $word:literal, $when:literal) => {
        [
            size(concat!($name, "-", $word), concat!($noun, " buffer ", $when, ", larger of both ends"), |m| {
                let pick = |buffer: &Buffer| buffer.$moment;
                pick(&m.client.$buffer).max(pick(&m.server.$buffer))
            }),
            size(concat!("client-", $name, "-", $word), concat!("Client's ", $name, " ", $when), |m| {
                m.client.$buffer.$moment
            }),
            size(concat!("server-", $name, "-", $word), concat!("Server's ", $name, " ", $when), |m| {
                m.server.$buffer.$moment
            }),
        ]
    };
}

static FIGURES: [Row; 12] = [
    time("completion", "Completion time", |m| m.completion_ns),
    Row {
        name: "goodput",
        title: "Goodput",
        unit: Unit::BitsPerSecond,
        direction: Direction::WorseDown,
        pick: |m| m.goodput_bps,
    },
    time("chunk-min", "Round trip of a chunk, fastest", |m| chunk(m, |d| Some(d.min))),
    time("chunk-p50", "Round trip of a chunk, median", |m| chunk(m, |d| Some(d.p50))),
    time("chunk-p90", "Round trip of a chunk, 90th percentile", |m| chunk(m, |d| d.p90)),
    time("chunk-p99", "Round trip of a chunk, 99th percentile", |m| chunk(m, |d| d.p99)),
    time("chunk-p99.9", "Round trip of a chunk, 99.9th percentile", |m| chunk(m, |d| d.p99_9)),
    time("chunk-max", "Round trip of a chunk, slowest", |m| chunk(m, |d| Some(d.max))),
    time("cpu", "Processor time of both ends", |m| sum(m, cpu)),
    time("cpu-client", "Processor time of the client", |m| cpu(&m.client)),
    time("cpu-server", "Processor time of the server", |m| cpu(&m.server)),
    Row {
        name: "switches",
        title: "Context switches of both ends",
        unit: Unit::Count,
        direction: Direction::WorseUp,
        pick: |m| sum(m, |end| end.voluntary_switches?.checked_add(end.involuntary_switches?)),
    },
];
static BUFFERS: [[Row; 3]; 6] = [
    buffer_rows!(rcvbuf, "rcvbuf", "Receive", initial, "initial", "at the start"),
    buffer_rows!(rcvbuf, "rcvbuf", "Receive", end, "final", "at the end"),
    buffer_rows!(rcvbuf, "rcvbuf", "Receive", peak, "peak", "at its largest"),
    buffer_rows!(sndbuf, "sndbuf", "Send", initial, "initial", "at the start"),
    buffer_rows!(sndbuf, "sndbuf", "Send", end, "final", "at the end"),
    buffer_rows!(sndbuf, "sndbuf", "Send", peak, "peak", "at its largest"),
];

impl Metric {
    /// From before the first send to after the last echo.
    pub const COMPLETION: Self = Self(&FIGURES[0]);
    /// Application bits delivered per second.
    pub const GOODPUT: Self = Self(&FIGURES[1]);

    /// Every metric, the most used first.
    pub fn all() -> impl Iterator<Item = Self> {
        FIGURES.iter().chain(BUFFERS.iter().flatten()).map(Self)
    }

    /// The name on the command line: `chunk-p99`.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What it is called on a picture.
    pub const fn title(self) -> &'static str {
        self.0.title
    }

    /// What it is measured in.
    pub const fn unit(self) -> Unit {
        self.0.unit
    }

    /// Whether more of it is worse.
    pub const fn direction(self) -> Direction {
        self.0.direction
    }

    /// The figure of one repeat, if it has it.
    pub fn of(self, measurement: &Measurement) -> Option<u64> {
        (self.0.pick)(measurement)
    }
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Metric {}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

impl FromStr for Metric {
    type Err = PlotError;

    fn from_str(typed: &str) -> Result<Self, PlotError> {
        Self::all()
            .find(|metric| metric.name() == typed)
            .ok_or_else(|| PlotError::unknown("metric", typed, &Self::all().map(Self::name).collect::<Vec<_>>()))
    }
}

choice! {
    /// How the repeats of a cell become one figure.
    Stat {
        /// The middle one.
        #[default] Median = "median",
        /// The smallest.
        Min = "min",
        /// The largest.
        Max = "max",
        /// The mean.
        Mean = "mean",
        /// The range over the median, as a share.
        Spread = "spread",
    }
}

impl FromStr for Stat {
    type Err = PlotError;

    fn from_str(typed: &str) -> Result<Self, PlotError> {
        Self::named(typed).ok_or_else(|| PlotError::unknown("statistic", typed, Self::NAMES))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Direction, Metric};

    #[test]
    fn names_are_unique_and_read_back() {
        let names: HashSet<_> = Metric::all().map(Metric::name).collect();
        assert_eq!(names.len(), Metric::all().count());
        for metric in Metric::all() {
            assert_eq!(metric.name().parse::<Metric>().expect("its own name"), metric);
        }
        assert_eq!(Metric::COMPLETION.name(), "completion");
        assert_eq!(Metric::GOODPUT.direction(), Direction::WorseDown);
    }

    #[test]
    fn a_slip_gets_the_nearest_name_and_the_list() {
        let error = "complation".parse::<Metric>().expect_err("a slip").to_string();
        assert!(error.contains("did you mean `completion`?"), "{error}");
        let error = "xyzzy".parse::<Metric>().expect_err("unknown").to_string();
        assert!(error.contains("chunk-p99, ") && error.contains("rcvbuf-final"), "{error}");
    }
}
