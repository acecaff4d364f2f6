//! Kinds of value: what a key accepts, and what to say when it is given something else.

use std::fmt;

use crate::units::{BitRate, Bytes, Percent, Span};

use super::Value;

/// A named bound, so that a typo cannot eat the machine. The name stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the cap, such as `MAX_CHUNK_SIZE`.
    pub name: &'static str,
    /// Largest value allowed.
    pub max: u64,
}

/// What a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; `"default"` too where the flag is set.
    Switch {
        /// Whether `"default"` is a value.
        or_default: bool,
    },
    /// A whole number.
    Count {
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        limit: Limit,
        /// Whether `"default"` is a value.
        or_default: bool,
    },
    /// A number of bytes: a whole number, or text with a unit.
    Size {
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        limit: Limit,
        /// Whether `"default"` is a value.
        or_default: bool,
    },
    /// Text with a unit of time.
    Span {
        /// Smallest value allowed, in nanoseconds.
        min: u64,
        /// Largest value allowed, in nanoseconds.
        limit: Limit,
        /// Whether `"default"` is a value.
        or_default: bool,
    },
    /// Text with a unit of rate, or `"default"`.
    Rate {
        /// Smallest value allowed, in bits per second.
        min: u64,
        /// Largest value allowed, in bits per second.
        limit: Limit,
    },
    /// Text with a percent sign, from 0 to 100.
    Percent,
    /// What a sysctl is set to: a number, several in one text, or a word; or `"default"`.
    Sysctl,
    /// One of a set of words.
    Choice(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
    /// Any switch, number or text, as it is written, or `"default"`.
    Free,
}

/// Why a value is not accepted, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// What is wrong with the value, naming it.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

impl Rejection {
    fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: message.into(), fix: fix.into() }
    }
}

impl Kind {
    /// Checks a value as typed and returns it in canonical form: sizes in bytes, spans in their exact form.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead, when the key does not take it.
    pub fn check(&self, typed: &Value) -> Result<Value, Rejection> {
        if typed.is_default() && self.takes_default() {
            return Ok(typed.clone());
        }
        match (self, typed) {
            (Self::Switch { .. }, Value::Bool(_)) | (Self::Text | Self::Free, Value::Text(_)) => match typed.text() {
                Some(text) if text.trim().is_empty() => {
                    Err(Rejection::new("this text is empty", "write something, or leave the key out"))
                }
                _ => Ok(typed.clone()),
            },
            (Self::Count { min, limit, .. }, Value::Int(number)) => {
                within(*number, *min, *limit, |n| n.to_string()).map(|()| typed.clone())
            }
            (Self::Size { min, limit, .. }, Value::Int(number)) => {
                within(*number, *min, *limit, exact_size).map(|()| typed.clone())
            }
            (Self::Size { min, limit, .. }, Value::Text(text)) => {
                let Bytes(bytes) = text.parse().map_err(|error: crate::units::ParseBytesError| {
                    Rejection::new(error.to_string(), self.expected())
                })?;
                within(bytes, *min, *limit, exact_size).map(|()| Value::Int(bytes))
            }
            (Self::Span { min, limit, .. }, Value::Text(text)) => {
                let span: Span = text.parse().map_err(|error: crate::units::ParseSpanError| {
                    Rejection::new(error.to_string(), self.expected())
                })?;
                within(span.0, *min, *limit, |ns| Span(ns).exact()).map(|()| Value::Text(span.exact()))
            }
            (Self::Span { .. }, Value::Int(number)) => Err(Rejection::new(
                format!("`{number}` has no unit of time"),
                format!("write \"{number}s\" or \"{number}ms\""),
            )),
            (Self::Rate { min, limit }, Value::Text(text)) => {
                let BitRate(rate) = text.parse().map_err(|error: crate::units::ParseRateError| {
                    Rejection::new(error.to_string(), self.expected())
                })?;
                within(rate, *min, *limit, |rate| BitRate(rate).exact()).map(|()| Value::Text(BitRate(rate).exact()))
            }
            (Self::Rate { .. }, Value::Int(number)) => Err(Rejection::new(
                format!("`{number}` has no unit of rate"),
                format!("write \"{number}bit/s\" or \"{number}Mbit/s\""),
            )),
            (Self::Percent, Value::Text(text)) => {
                let percent: Percent = text.parse().map_err(|error: crate::units::ParsePercentError| {
                    Rejection::new(error.to_string(), self.expected())
                })?;
                Ok(Value::Text(percent.to_string()))
            }
            (Self::Percent, Value::Int(number)) => {
                Err(Rejection::new(format!("`{number}` has no percent sign"), format!("write \"{number}%\"")))
            }
            (Self::Sysctl, Value::Int(_)) | (Self::Free, Value::Int(_) | Value::Bool(_)) => Ok(typed.clone()),
            (Self::Sysctl, Value::Text(text)) => sysctl(text),
            (Self::Choice(names), Value::Text(text)) if names.contains(&text.as_str()) => Ok(typed.clone()),
            (Self::Choice(names), Value::Text(text)) => Err(Rejection::new(
                format!("`{text}` is not one of {}", list(names)),
                nearest(text, names).map_or_else(|| self.expected(), |near| format!("did you mean \"{near}\"?")),
            )),
            (Self::Switch { .. }, Value::Text(text)) if text == "true" || text == "false" => {
                Err(Rejection::new(format!("`\"{text}\"` is text"), format!("write {text} without quotes")))
            }
            _ => Err(Rejection::new(format!("`{typed}` is not {}", self.noun()), self.expected())),
        }
    }

    /// Whether `"default"` is a value of this kind.
    pub const fn takes_default(&self) -> bool {
        matches!(
            self,
            Self::Switch { or_default: true }
                | Self::Count { or_default: true, .. }
                | Self::Size { or_default: true, .. }
                | Self::Span { or_default: true, .. }
                | Self::Rate { .. }
                | Self::Sysctl
                | Self::Free
        )
    }

    /// The kind of the distance between two values of this one; `None` where values are not numbers.
    pub const fn distance(&self) -> Option<Self> {
        match *self {
            Self::Count { limit, .. } => Some(Self::Count { min: 1, limit, or_default: false }),
            Self::Size { limit, .. } => Some(Self::Size { min: 1, limit, or_default: false }),
            Self::Span { limit, .. } => Some(Self::Span { min: 1, limit, or_default: false }),
            _ => None,
        }
    }

    /// A checked value in whole units: bytes, nanoseconds, or just a number. `None` where it is no number.
    pub fn quantity(&self, value: &Value) -> Option<u64> {
        match self {
            Self::Count { .. } | Self::Size { .. } => value.int(),
            Self::Span { .. } => value.text()?.parse().ok().map(|Span(ns)| ns),
            _ => None,
        }
    }

    /// The value of so many whole units, for a kind that has a [`Kind::distance`].
    pub fn of_quantity(&self, quantity: u64) -> Value {
        match self {
            Self::Span { .. } => Value::Text(Span(quantity).exact()),
            _ => Value::Int(quantity),
        }
    }

    /// What the kind is called in a message: `a size`, `a whole number`.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Switch { .. } => "a switch",
            Self::Count { .. } => "a whole number",
            Self::Size { .. } => "a size",
            Self::Span { .. } => "a span of time",
            Self::Rate { .. } => "a bit rate",
            Self::Percent => "a percentage",
            Self::Sysctl => "a value of a sysctl",
            Self::Choice(_) => "one of the words allowed here",
            Self::Text => "a text",
            Self::Free => "a value",
        }
    }

    /// What to write, as a sentence for help lines and documentation.
    pub fn expected(&self) -> String {
        let default = if self.takes_default() { ", or \"default\" to let the kernel decide" } else { "" };
        match self {
            Self::Switch { .. } => format!("write true or false{default}"),
            Self::Count { min, limit, .. } => format!("write a whole number from {min} to {}{default}", limit.max),
            Self::Size { min, limit, .. } => {
                format!(
                    "write a size from {} to {}, such as 1024 or \"64KiB\"{default}",
                    exact_size(*min),
                    exact_size(limit.max)
                )
            }
            Self::Span { limit, .. } => {
                format!("write a span of time up to {}, such as \"180s\" or \"10ms\"{default}", Span(limit.max).exact())
            }
            Self::Rate { min, limit } => format!(
                "write a rate from {} to {}, such as \"100Mbit/s\"{default}",
                BitRate(*min).exact(),
                BitRate(limit.max).exact()
            ),
            Self::Percent => "write a percentage in quotes, such as \"1%\" or \"0.05%\"".to_owned(),
            Self::Sysctl => {
                format!("write a number, or a text in quotes such as \"4096 131072 6291456\" or \"cubic\"{default}")
            }
            Self::Choice(names) => format!("write one of {}", list(names)),
            Self::Text => "write a text in quotes".to_owned(),
            Self::Free => {
                "write a text in quotes, a number, true or false; or \"default\" to leave out what it stands in"
                    .to_owned()
            }
        }
    }

    /// How a value of this kind is shown in tables: sizes with units, `true` and `false` as `on` and `off`.
    pub fn show(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Size { .. }, Value::Int(bytes)) => Bytes(*bytes).to_string(),
            (Self::Switch { .. }, Value::Bool(switch)) => if *switch { "on" } else { "off" }.to_owned(),
            _ => value.to_string(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun())
    }
}

/// A sysctl's value in canonical form: one space between its parts, and a number where it is one.
fn sysctl(text: &str) -> Result<Value, Rejection> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(Rejection::new("this text is empty", "write something, or leave the key out"));
    }
    if text.chars().any(char::is_control) {
        return Err(Rejection::new("a sysctl takes one line of text", "leave control characters out"));
    }
    // Only what reads back the same is a number: `007` and `+1` stay as they are.
    Ok(text.parse().ok().filter(|number: &u64| number.to_string() == text).map_or(Value::Text(text), Value::Int))
}

/// Sizes in messages, as they would be typed: `64KiB`, `2304`.
fn exact_size(bytes: u64) -> String {
    if bytes > 0 && bytes.is_multiple_of(1024) { Bytes(bytes).to_string().replace(' ', "") } else { bytes.to_string() }
}

/// Checks a number against its bounds.
fn within(number: u64, min: u64, limit: Limit, show: impl Fn(u64) -> String) -> Result<(), Rejection> {
    if number < min {
        return Err(Rejection::new(
            format!("`{}` is too small", show(number)),
            format!("the smallest value is {}", show(min)),
        ));
    }
    if number > limit.max {
        return Err(Rejection::new(
            format!("`{}` is beyond {} ({})", show(number), limit.name, show(limit.max)),
            format!("use {} at most", show(limit.max)),
        ));
    }
    Ok(())
}

/// The names, quoted and joined.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    names
        .iter()
        .map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), name), *name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::{Kind, Limit};
    use crate::settings::Value;

    const SIZE: Kind = Kind::Size { min: 1, limit: Limit { name: "MAX_CHUNK_SIZE", max: 16 << 20 }, or_default: false };

    #[test]
    fn a_size_is_canonical() {
        assert_eq!(SIZE.check(&Value::Text("64KiB".into())), Ok(Value::Int(65536)));
        assert_eq!(SIZE.show(&Value::Int(65536)), "64 KiB");
    }

    #[test]
    fn rates_percentages_and_sysctls_are_canonical() {
        let rate = Kind::Rate { min: 8, limit: Limit { name: "MAX_RATE", max: 1_000_000_000_000 } };
        assert_eq!(rate.check(&Value::Text("0.1 Gbit/s".into())), Ok(Value::Text("100Mbit/s".into())));
        assert_eq!(rate.check(&Value::Int(5)).expect_err("bare").fix, "write \"5bit/s\" or \"5Mbit/s\"");
        assert!(rate.check(&Value::Text("1bit/s".into())).is_err());
        assert_eq!(Kind::Percent.check(&Value::Text("0.10%".into())), Ok(Value::Text("0.1%".into())));
        assert_eq!(Kind::Percent.check(&Value::Int(1)).expect_err("bare").fix, "write \"1%\"");
        for (typed, canonical) in [
            ("4096\t131072  6291456", Value::Text("4096 131072 6291456".into())),
            (" 1 ", Value::Int(1)),
            ("01", Value::Text("01".into())),
            ("-2", Value::Text("-2".into())),
            ("default", Value::kernel_default()),
        ] {
            assert_eq!(Kind::Sysctl.check(&Value::Text(typed.into())), Ok(canonical), "{typed}");
        }
        assert!(Kind::Sysctl.check(&Value::Text(" ".into())).is_err());
        assert!(Kind::Sysctl.check(&Value::Bool(true)).is_err());
    }

    #[test]
    fn bounds_name_the_cap() {
        let error = SIZE.check(&Value::Int(1 << 30)).expect_err("too large");
        assert_eq!(error.message, "`1GiB` is beyond MAX_CHUNK_SIZE (16MiB)");
        let error = SIZE.check(&Value::Int(0)).expect_err("too small");
        assert_eq!(error.fix, "the smallest value is 1");
    }

    #[test]
    fn default_only_where_it_is_taken() {
        assert!(SIZE.check(&Value::kernel_default()).is_err());
    }

    #[test]
    fn a_slip_gets_the_nearest_word() {
        let kind = Kind::Choice(&["one-to-one", "one-to-many"]);
        let error = kind.check(&Value::Text("one-to-meny".into())).expect_err("a slip");
        assert_eq!(error.fix, "did you mean \"one-to-many\"?");
        let quoted = Kind::Switch { or_default: false }.check(&Value::Text("true".into())).expect_err("quoted");
        assert_eq!(quoted.fix, "write true without quotes");
    }
}
