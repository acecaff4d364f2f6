//! What became of a program of the user's at one end, and the numbers that were taken from what it printed.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::units::Better;

/// A number that a program printed, in a unit of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// The number; `None` where it was not found.
    pub value: Option<Number>,
    /// Its unit, which may be empty.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// Why there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A finite number as a program printed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Number(f64);

impl Eq for Number {}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        // Finite numbers have an order.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for Number {
    /// Exact below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "measurements, which have no 16 digits")]
    fn from(figure: u64) -> Self {
        Self(figure as f64)
    }
}

impl Serialize for Number {
    /// A whole number without a fraction, as programs print counts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and exact below 2^53")]
        if self.0.fract() == 0.0 && self.0.abs() < 9_007_199_254_740_992.0 {
            return serializer.serialize_i64(self.0 as i64);
        }
        serializer.serialize_f64(self.0)
    }
}

impl Number {
    /// The number, unless it is infinite or none.
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A program at one end: how it was started, how it ended, and what it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramFacts {
    /// The program as it was found, and its arguments as it got them.
    pub command: Vec<String>,
    /// From before it was started until it counted as ready. Of a server only.
    pub ready_ns: Option<u64>,
    /// Its exit code, where it ended with one.
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// Names of the processes that it left behind. They were ended with their namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// What it wrote to standard output.
    pub stdout: Output,
    /// What it wrote to standard error.
    pub stderr: Output,
}

impl ProgramFacts {
    /// The last lines that it printed: of standard error, or of standard output where there are none.
    pub fn last_lines(&self) -> Vec<&str> {
        let lines = self.stderr.last_lines();
        if lines.is_empty() { self.stdout.last_lines() } else { lines }
    }
}

/// What a program wrote, bounded in size: how it begins, and how it ends where that is not all of it. What is no UTF-8 is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// Bytes that it wrote in all.
    pub bytes: u64,
    /// Its begin.
    pub head: String,
    /// Bytes between the two that are not kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out_bytes: u64,
    /// Its end, where it is not part of the begin.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl Output {
    /// Most bytes of the begin that are kept.
    pub const HEAD: usize = 4 << 10;
    /// Most bytes of the end that are kept.
    pub const TAIL: usize = 12 << 10;
    /// Most lines of a failed program that a message shows.
    const LAST: usize = 5;
    /// Most characters of such a line.
    const WIDTH: usize = 200;

    /// The last lines that are not empty.
    fn last_lines(&self) -> Vec<&str> {
        let end = if self.tail.is_empty() { &self.head } else { &self.tail };
        let mut lines: Vec<&str> =
            end.lines().rev().map(str::trim_end).filter(|line| !line.trim().is_empty()).take(Self::LAST).collect();
        lines.reverse();
        for line in &mut lines {
            let cut = line.char_indices().nth(Self::WIDTH).map_or(line.len(), |(at, _)| at);
            *line = &line[..cut];
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{Number, Output, ProgramFacts};

    #[test]
    fn the_last_lines_are_those_of_errors_if_there_are_any() {
        let output = |text: &str| Output { head: text.to_owned(), ..Output::default() };
        let mut facts = ProgramFacts { stdout: output("1\n2\n3\n4\n5\n\n6\n \n"), ..ProgramFacts::default() };
        assert_eq!(facts.last_lines(), ["2", "3", "4", "5", "6"]);
        facts.stdout.tail = "7\n8".to_owned();
        assert_eq!(facts.last_lines(), ["7", "8"]);
        facts.stderr = output("no such host\n");
        assert_eq!(facts.last_lines(), ["no such host"]);
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(Number::new(f64::NAN), None);
        assert_eq!(Number::new(1.5).map(|number| number.to_string()).as_deref(), Some("1.5"));
        let json =
            [0.25, 3.0, -2.0, 1e300].map(|number| serde_json::to_string(&Number::new(number)).expect("serialises"));
        assert_eq!(json, ["0.25", "3", "-2", "1e+300"]);
        for text in json {
            let read: Number = serde_json::from_str(&text).expect("reads");
            assert_eq!(serde_json::to_string(&read).expect("serialises"), text);
        }
    }
}
