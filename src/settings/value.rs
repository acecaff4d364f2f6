//! A checked value, in the form that records and tables show it.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Percent, Span};

/// A value of a key: a switch, a number (of bytes where the key is a size), or a word.
///
/// `"default"` is a word wherever a key takes it. Spans of time are words in their exact form (`"10ms"`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A number, in bytes where the key is a size.
    Int(u64),
    /// A word.
    Text(String),
}

impl Value {
    /// The word that means "the option is not set and the kernel decides".
    pub const DEFAULT: &'static str = "default";

    /// The value `"default"`.
    pub fn kernel_default() -> Self {
        Self::Text(Self::DEFAULT.to_owned())
    }

    /// Whether this is `"default"`.
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Text(text) if text == Self::DEFAULT)
    }

    /// Whether it is a size among others of its key: a number, a span, a rate or a percentage.
    pub fn has_size(&self) -> bool {
        match self {
            Self::Bool(_) => false,
            Self::Int(_) => true,
            Self::Text(text) => {
                text.parse::<Span>().is_ok() || text.parse::<BitRate>().is_ok() || text.parse::<Percent>().is_ok()
            }
        }
    }

    /// The number, if it is one.
    pub const fn int(&self) -> Option<u64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }

    /// The switch, if it is one.
    pub const fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(switch) => Some(*switch),
            Self::Int(_) | Self::Text(_) => None,
        }
    }

    /// The word, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(_) | Self::Int(_) => None,
        }
    }
}

impl Ord for Value {
    /// Numbers, spans, rates and percentages by size, switches off before on, `"default"` last, other words by their letters.
    fn cmp(&self, other: &Self) -> Ordering {
        fn rank(value: &Value) -> (u8, u64, &str) {
            match value {
                Value::Bool(switch) => (0, u64::from(*switch), ""),
                Value::Int(number) => (1, *number, ""),
                Value::Text(text) if text == Value::DEFAULT => (9, 0, ""),
                Value::Text(text) => {
                    let span = || text.parse().map(|Span(ns)| (2, ns)).ok();
                    let rate = || text.parse().map(|BitRate(rate)| (3, rate)).ok();
                    let share = || text.parse().map(|share: Percent| (4, share.scaled().into())).ok();
                    let (rank, size) = span().or_else(rate).or_else(share).unwrap_or((5, 0));
                    (rank, size, if rank == 5 { text } else { "" })
                }
            }
        }
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(switch) => f.pad(if *switch { "true" } else { "false" }),
            Self::Int(number) => f.pad(&number.to_string()),
            Self::Text(text) => f.pad(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn rates_and_percentages_are_sorted_by_size() {
        for sorted in [["9.6kbit/s", "1Mbit/s", "10Gbit/s"], ["0.5%", "2%", "10%"]] {
            let mut values = sorted.map(|text| Value::Text(text.into()));
            values.reverse();
            values.sort();
            assert!(values.iter().all(Value::has_size));
            assert_eq!(values.map(|value| value.to_string()), sorted);
        }
    }

    #[test]
    fn order_is_by_size_with_default_last() {
        let mut values = [
            Value::kernel_default(),
            Value::Int(65536),
            Value::Int(1024),
            Value::Text("1s".into()),
            Value::Text("10ms".into()),
        ];
        values.sort();
        let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1024", "65536", "10ms", "1s", "default"]);
        assert_eq!(values.map(|value| value.has_size()), [true, true, true, true, false]);
    }
}
