//! Spans of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A span of time in nanoseconds. Written as `"180s"`, `"10ms"`, `"1m 30s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(pub u64);

/// Why a text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a span of time: write a number with its unit, such as \"180s\", \"10ms\" or \"1m 30s\"")]
pub struct ParseSpanError(String);

impl Span {
    /// The span as the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_duration(text.trim())
            .ok()
            .and_then(|duration| u64::try_from(duration.as_nanos()).ok())
            .map(Self)
            .ok_or_else(|| ParseSpanError(text.to_owned()))
    }
}

impl Span {
    /// Exact, in the form that sweep files use: `180s` is `3m`, `1500ms` is `1s 500ms`.
    pub fn exact(self) -> String {
        humantime::format_duration(self.duration()).to_string()
    }
}

impl fmt::Display for Span {
    /// With three significant digits: `4.67 s`, `202 ms`, `1.39 ms`, `24.1 µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return f.pad(&format!("{} ns", self.0));
        }
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let text = super::scaled(self.0 as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")]);
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;
    use proptest::prelude::*;

    #[test]
    fn spans_as_people_write_and_read_them() {
        assert_eq!("180s".parse(), Ok(Span(180_000_000_000)));
        assert_eq!("1m 30s".parse(), Ok(Span(90_000_000_000)));
        assert!("180".parse::<Span>().is_err(), "a bare number has no unit");
        assert_eq!(Span(4_670_470_000).to_string(), "4.67 s");
        assert_eq!(Span(999_900).to_string(), "1.00 ms");
        assert_eq!(Span(202_346_000).to_string(), "202 ms");
        assert_eq!(Span(12).to_string(), "12 ns");
    }

    proptest! {
        #[test]
        fn exact_is_exact(ns in 0..u64::MAX / 4) {
            prop_assert_eq!(Span(ns).exact().parse(), Ok(Span(ns)));
        }
    }
}
