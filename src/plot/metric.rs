//! What can be shown: one row for each figure of a record, and how several repeats become one figure.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::error::PlotError;
use super::text::clean;
use super::unit::Unit;
use crate::measurement::{Buffer, Distribution, End, Measurement, Number};
use crate::record::Record;
use crate::units::{Better, choice};

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
#[derive(Clone)]
pub struct Metric(Kind);

#[derive(Clone)]
enum Kind {
    /// One that every kind of workload may have.
    BuiltIn(&'static Row),
    /// A number that a program printed.
    Program(Arc<Printed>),
}

/// What is known of a number that a program printed.
#[derive(Debug)]
struct Printed {
    name: String,
    /// With the unit that it is drawn in, unless that stands beside each figure.
    title: String,
    unit: Unit,
    /// How many of `unit` are one of its own.
    factor: f64,
    direction: Direction,
}

/// Units that figures are written in like the built-in ones, and how many of ours they are. Others stand in the title.
const KNOWN: [(&str, Unit, f64); 14] = [
    ("ns", Unit::Nanoseconds, 1.0),
    ("us", Unit::Nanoseconds, 1e3),
    ("µs", Unit::Nanoseconds, 1e3),
    ("ms", Unit::Nanoseconds, 1e6),
    ("s", Unit::Nanoseconds, 1e9),
    ("min", Unit::Nanoseconds, 60e9),
    ("bit/s", Unit::BitsPerSecond, 1.0),
    ("kbit/s", Unit::BitsPerSecond, 1e3),
    ("Mbit/s", Unit::BitsPerSecond, 1e6),
    ("Gbit/s", Unit::BitsPerSecond, 1e9),
    ("B", Unit::Bytes, 1.0),
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("GiB", Unit::Bytes, 1_073_741_824.0),
];

impl Printed {
    fn new(name: &str, metric: &crate::measurement::Metric) -> Self {
        let own = metric.unit.trim();
        let known = KNOWN.iter().find(|(unit, ..)| *unit == own);
        let &(_, unit, factor) = known.unwrap_or(&("", Unit::Number, 1.0));
        let title = if known.is_some() || own.is_empty() { clean(name) } else { clean(&format!("{name} ({own})")) };
        let direction = match metric.better {
            Better::Lower => Direction::WorseUp,
            Better::Higher => Direction::WorseDown,
        };
        Self { name: name.to_owned(), title, unit, factor, direction }
    }
}

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
    pub const COMPLETION: Self = Self(Kind::BuiltIn(&FIGURES[0]));
    /// Application bits delivered per second.
    pub const GOODPUT: Self = Self(Kind::BuiltIn(&FIGURES[1]));

    /// Every metric that needs no program of the user's, the most used first.
    pub fn all() -> impl Iterator<Item = Self> {
        FIGURES.iter().chain(BUFFERS.iter().flatten()).map(|row| Self(Kind::BuiltIn(row)))
    }

    /// The numbers that the programs of a run printed, by their names. Unit and direction are those of the last record that has one.
    pub fn printed(records: &[Record]) -> Vec<Self> {
        let all = records.iter().filter(|record| !record.warmup).flat_map(|record| &record.measurement.metrics);
        let found: BTreeMap<&String, _> = all.collect();
        found.into_iter().map(|(name, metric)| Self(Kind::Program(Arc::new(Printed::new(name, metric))))).collect()
    }

    /// The metric of that name: a built-in one, or one of those that a run's programs printed.
    ///
    /// # Errors
    /// If there is none; it tells those that there are.
    pub fn named(typed: &str, printed: &[Self]) -> Result<Self, PlotError> {
        // Those of the run first: they are few, and what its reader means.
        let known: Vec<Self> = printed.iter().cloned().chain(Self::all()).collect();
        let names: Vec<&str> = known.iter().map(Self::name).collect();
        let found = Self::all().chain(printed.iter().cloned()).find(|metric| metric.name() == typed);
        found.ok_or_else(|| PlotError::unknown("metric", typed, &names))
    }

    /// The name on the command line: `chunk-p99`.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::BuiltIn(row) => row.name,
            Kind::Program(printed) => &printed.name,
        }
    }

    /// What it is called on a picture.
    pub fn title(&self) -> &str {
        match &self.0 {
            Kind::BuiltIn(row) => row.title,
            Kind::Program(printed) => &printed.title,
        }
    }

    /// What it is drawn in.
    pub fn unit(&self) -> Unit {
        match &self.0 {
            Kind::BuiltIn(row) => row.unit,
            Kind::Program(printed) => printed.unit,
        }
    }

    /// Whether more of it is worse.
    pub fn direction(&self) -> Direction {
        match &self.0 {
            Kind::BuiltIn(row) => row.direction,
            Kind::Program(printed) => printed.direction,
        }
    }

    /// Whether a program printed it, and so named it and chose its unit.
    pub fn is_printed(&self) -> bool {
        matches!(self.0, Kind::Program(_))
    }

    /// The figure of one repeat in [`Metric::unit`], if it has it. Built-in ones are whole.
    pub fn of(&self, measurement: &Measurement) -> Option<Number> {
        match &self.0 {
            Kind::BuiltIn(row) => (row.pick)(measurement).map(Number::from),
            Kind::Program(printed) => {
                let number = measurement.metrics.get(&printed.name)?.value?;
                Number::new(number.get() * printed.factor)
            }
        }
    }
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.is_printed() == other.is_printed()
    }
}

impl Eq for Metric {}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
    use crate::measurement::Number;
    use crate::plot::Unit;
    use crate::record::example;
    use crate::units::Better;

    #[test]
    fn names_are_unique_and_read_back() {
        let names: HashSet<_> = Metric::all().map(|metric| metric.name().to_owned()).collect();
        assert_eq!(names.len(), Metric::all().count());
        for metric in Metric::all() {
            assert_eq!(Metric::named(metric.name(), &[]).expect("its own name"), metric);
        }
        assert_eq!(Metric::COMPLETION.name(), "completion");
        assert_eq!(Metric::GOODPUT.direction(), Direction::WorseDown);
    }

    #[test]
    fn a_slip_gets_the_nearest_name_and_the_list() {
        let error = Metric::named("complation", &[]).expect_err("a slip").to_string();
        assert!(error.contains("did you mean `completion`?"), "{error}");
        let error = Metric::named("xyzzy", &[]).expect_err("unknown").to_string();
        assert!(error.contains("chunk-p99, ") && error.contains("rcvbuf-final"), "{error}");
    }

    #[test]
    fn what_a_program_printed_has_its_own_unit_and_direction() {
        let mut record = example("a", 0, 1);
        for (name, unit, better, value) in
            [("rtt_avg", "ms", Better::Lower, 0.25), ("rate", "msg/s", Better::Higher, 12.5)]
        {
            let value = Number::new(value);
            let metric = crate::measurement::Metric { value, unit: unit.into(), better, reason: None };
            record.measurement.metrics.insert(name.into(), metric);
        }
        let printed = Metric::printed(&[record.clone()]);
        let [rate, rtt] = &printed[..] else { panic!("two: {printed:?}") };
        assert_eq!((rate.title(), rate.unit(), rate.direction()), ("rate (msg/s)", Unit::Number, Direction::WorseDown));
        assert_eq!((rtt.title(), rtt.unit(), rtt.direction()), ("rtt_avg", Unit::Nanoseconds, Direction::WorseUp));
        assert_eq!(rtt.of(&record.measurement), Number::new(250_000.0));
        assert_eq!(rate.of(&record.measurement), Number::new(12.5));
        assert_eq!(&Metric::named("rtt_avg", &printed).expect("one of the run"), rtt);
        let error = Metric::named("xyzzy", &printed).expect_err("unknown").to_string();
        assert!(error.contains("it is one of rate, rtt_avg, completion"), "{error}");
        record.warmup = true;
        assert_eq!(Metric::printed(&[record]), []);
    }
}
