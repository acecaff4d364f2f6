//! What a `[find]` looks for: the smallest or the largest value of an axis at which a condition on a figure holds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Value;
use super::kind::nearest;
use crate::units::{BitRate, ParseRateError, ParseSpanError, Percent, Span, choice};

choice! {
    /// Which end of the values at which the condition holds.
    Wanted {
        /// The smallest: larger values are taken to satisfy it too.
        #[default] Smallest = "smallest",
        /// The largest: smaller values are taken to satisfy it too.
        Largest = "largest",
    }
}

choice! {
    /// A figure of a repeat that a condition is about, named as pictures name it.
    Figure {
        /// From before the first send to after the last arrival, in nanoseconds.
        #[default] Completion = "completion",
        /// Application bits delivered per second.
        Goodput = "goodput",
        /// Round trip of a chunk in nanoseconds: the median of a repeat's.
        ChunkP50 = "chunk-p50",
        /// Its 90th percentile.
        ChunkP90 = "chunk-p90",
        /// Its 99th percentile.
        ChunkP99 = "chunk-p99",
        /// Its 99.9th percentile.
        ChunkP999 = "chunk-p99.9",
        /// The slowest.
        ChunkMax = "chunk-max",
    }
}

choice! {
    /// How a figure is held against its bound.
    Comparison {
        /// The figure is smaller.
        #[default] Below = "<",
        /// The figure is smaller or the same.
        AtMost = "<=",
        /// The figure is larger.
        Above = ">",
        /// The figure is larger or the same.
        AtLeast = ">=",
    }
}

impl Figure {
    /// Whether it is a rate; else it is a time.
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Goodput)
    }

    /// Whether only an echo has it.
    pub const fn is_of_chunks(self) -> bool {
        !matches!(self, Self::Completion | Self::Goodput)
    }

    /// A figure with its unit: `1.52 ms`, `930 Mbit/s`.
    pub fn show(self, figure: u64) -> String {
        if self.is_rate() { BitRate(figure).to_string() } else { Span(figure).to_string() }
    }
}

/// A condition on the median of a cell's repeats, such as `completion < 10ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// The figure that it is about.
    pub figure: Figure,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what: nanoseconds, or bits per second.
    pub bound: u64,
}

/// Why a text is no condition, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseConditionError {
    /// What is wrong.
    pub message: String,
    /// What to write.
    pub fix: String,
}

/// What a condition looks like.
const EXAMPLES: &str =
    "write a figure, <, <=, > or >=, and a bound with its unit: \"completion < 10ms\", \"goodput >= 900Mbit/s\"";

impl Condition {
    /// Whether a figure, in nanoseconds or bits per second, satisfies it.
    pub const fn holds(&self, figure: u64) -> bool {
        match self.comparison {
            Comparison::Below => figure < self.bound,
            Comparison::AtMost => figure <= self.bound,
            Comparison::Above => figure > self.bound,
            Comparison::AtLeast => figure >= self.bound,
        }
    }
}

impl FromStr for Condition {
    type Err = ParseConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |message: String, fix: &str| Err(ParseConditionError { message, fix: fix.to_owned() });
        let Some(at) = text.find(['<', '>', '=', '!']) else {
            return wrong(format!("`{text}` compares nothing"), EXAMPLES);
        };
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let end = rest.find(|c| !matches!(c, '<' | '>' | '=' | '!')).unwrap_or(rest.len());
        let (sign, bound) = (&rest[..end], rest[end..].trim());
        let Some(figure) = Figure::named(name) else {
            let fix = nearest(name, Figure::NAMES).map_or_else(
                || format!("the figures are {}", Figure::NAMES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return wrong(format!("`{name}` is no figure that can be searched by"), &fix);
        };
        let Some(comparison) = Comparison::named(sign) else {
            return wrong(format!("`{sign}` is no comparison that can be searched by"), "write <, <=, > or >=");
        };
        let (bound, wants) = if figure.is_rate() {
            let rate: Result<BitRate, ParseRateError> = bound.parse();
            (rate.map(|rate| rate.0).map_err(|error| error.to_string()), "a rate such as \"900Mbit/s\"")
        } else {
            let span: Result<Span, ParseSpanError> = bound.parse();
            (span.map(|span| span.0).map_err(|error| error.to_string()), "a time such as \"10ms\"")
        };
        match bound {
            Ok(bound) => Ok(Self { figure, comparison, bound }),
            Err(message) => wrong(message, &format!("`{figure}` is compared with {wants}")),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound =
            if self.figure.is_rate() { BitRate(self.bound).exact() } else { Span(self.bound).exact().replace(' ', "") };
        write!(f, "{} {} {bound}", self.figure, self.comparison)
    }
}

impl TryFrom<String> for Condition {
    type Error = ParseConditionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

/// A search over the values of one axis, for each combination of the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The name of the axis, as in records.
    pub axis: String,
    /// The path of its key.
    pub path: String,
    /// The names of the axes that move with it in a `[[zip]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Which value is looked for.
    pub wanted: Wanted,
    /// At which values.
    pub condition: Condition,
}

impl Search {
    /// Whether a value can be searched: whether it lies in an order with others. `"default"` and words do not.
    pub fn has_order(value: &Value) -> bool {
        match value {
            Value::Int(_) => true,
            Value::Bool(_) => false,
            Value::Text(text) => {
                text.parse::<Span>().is_ok() || text.parse::<BitRate>().is_ok() || text.parse::<Percent>().is_ok()
            }
        }
    }

    /// Whether an axis is neither the one that is searched nor one that moves with it.
    pub fn is_other(&self, axis: &str) -> bool {
        axis != self.axis && !self.with.iter().any(|with| with == axis)
    }
}

impl fmt::Display for Search {
    /// As a person reads it: `the smallest rcvbuf where completion < 10ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {} where {}", self.wanted, self.axis, self.condition)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Condition, Figure, Search, Value};

    #[test]
    fn conditions_are_read_and_written() {
        let condition: Condition = " completion<10 ms".parse().expect("a condition");
        assert_eq!(
            condition,
            Condition { figure: Figure::Completion, comparison: Comparison::Below, bound: 10_000_000 }
        );
        assert_eq!(condition.to_string(), "completion < 10ms");
        for text in ["goodput >= 900Mbit/s", "chunk-p99.9 > 1s500ms", "goodput <= 1bit/s", "chunk-max < 3us"] {
            let condition: Condition = text.parse().expect(text);
            assert_eq!(condition.to_string(), text);
            let json = serde_json::to_string(&condition).expect("serialises");
            assert_eq!(serde_json::from_str::<Condition>(&json).expect("parses"), condition);
        }
        let at_most: Condition = "goodput <= 5bit/s".parse().expect("a condition");
        assert_eq!([4, 5, 6].map(|figure| at_most.holds(figure)), [true, true, false]);
        assert_eq!([9, 10].map(|ms| condition.holds(ms * 1_000_000)), [true, false]);
    }

    #[test]
    fn what_is_wrong_with_a_condition_is_said() {
        let refused = |text: &str| text.parse::<Condition>().expect_err(text);
        assert_eq!(refused("completion 10ms").message, "`completion 10ms` compares nothing");
        assert_eq!(refused("compleiton < 10ms").fix, "did you mean `completion`?");
        assert!(refused("jitter < 10ms").fix.starts_with("the figures are completion, goodput"));
        assert_eq!(refused("completion == 10ms").message, "`==` is no comparison that can be searched by");
        assert_eq!(refused("completion < 10Mbit/s").fix, "`completion` is compared with a time such as \"10ms\"");
        assert_eq!(refused("goodput > 10").fix, "`goodput` is compared with a rate such as \"900Mbit/s\"");
    }

    #[test]
    fn words_have_no_order() {
        let ordered = |text: &str| Search::has_order(&Value::Text(text.to_owned()));
        assert!(ordered("10ms") && ordered("1Gbit/s") && ordered("0.5%") && Search::has_order(&Value::Int(7)));
        assert!(!ordered("default") && !ordered("cubic") && !Search::has_order(&Value::Bool(true)));
    }
}
