//! Bit rates.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Span;

/// A rate in bits per second. Shown in decimal units (1 Mbit/s is 10^6 bit/s), as link rates are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The rate at which `bytes` pass within `span`, to the nearest bit per second, or `None` for an empty span, which has no rate.
    pub fn of(bytes: u64, span: Span) -> Option<Self> {
        if span.0 == 0 {
            return None;
        }
        let bits = u128::from(bytes) * 8 * 1_000_000_000;
        let span = u128::from(span.0);
        u64::try_from((bits + span / 2) / span).ok().map(Self)
    }
}

impl fmt::Display for BitRate {
    /// With three significant digits: `941 Mbit/s`, `3.51 kbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return f.pad(&format!("{} bit/s", self.0));
        }
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let text = super::scaled(self.0 as f64, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")]);
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::{BitRate, Span};

    #[test]
    fn the_rate_of_the_first_report() {
        assert_eq!(BitRate::of(32 * 64, Span(4_670_470_000)), Some(BitRate(3508)));
        assert_eq!(BitRate::of(1, Span(0)), None);
        assert_eq!(BitRate(3508).to_string(), "3.51 kbit/s");
        assert_eq!(BitRate(941_380_000).to_string(), "941 Mbit/s");
    }
}
