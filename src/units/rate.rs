//! Bit rates.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Span;

/// A rate in bits per second. Written as `"1Gbit/s"`, `"100Mbit/s"`, `"9.6kbit/s"`; shown in decimal units (1 Mbit/s is 10^6
/// bit/s), as link rates are.
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

/// The units that a rate is written with, the largest first.
const UNITS: [(&str, u64); 4] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000), ("bit/s", 1)];

/// Why a text is not a bit rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRateError {
    /// It is no number with a unit of rate.
    #[error("`{0}` is not a bit rate: write a number with bit/s, kbit/s, Mbit/s or Gbit/s, such as \"100Mbit/s\"")]
    NoRate(String),
    /// It does not come to whole bits a second.
    #[error("`{0}` is not a whole number of bits per second")]
    Fraction(String),
    /// More than 64 bits can count.
    #[error("`{0}` is larger than any rate")]
    TooLarge(String),
}

impl FromStr for BitRate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let none = || ParseRateError::NoRate(text.to_owned());
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim_start();
        let &(_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(none)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(none());
        }
        let too_large = || ParseRateError::TooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let mut rate = whole.checked_mul(factor).ok_or_else(too_large)?;
        let mut place = factor;
        for digit in fraction.trim_end_matches('0').bytes() {
            if !place.is_multiple_of(10) {
                return Err(ParseRateError::Fraction(text.to_owned()));
            }
            place /= 10;
            rate = rate.checked_add(u64::from(digit - b'0') * place).ok_or_else(too_large)?;
        }
        Ok(Self(rate))
    }
}

impl BitRate {
    /// Exact, in the form that sweep files use: `1Gbit/s`, `1500kbit/s`.
    pub fn exact(self) -> String {
        let fits = |unit: u64| self.0 > 0 && self.0.is_multiple_of(unit);
        let (name, unit) = UNITS.into_iter().find(|&(_, unit)| fits(unit)).unwrap_or(("bit/s", 1));
        format!("{}{name}", self.0 / unit)
    }

    /// How long so many bytes take at this rate, rounded up; `None` at no rate at all.
    pub fn time_for(self, bytes: u64) -> Option<Span> {
        let bits = u128::from(bytes) * 8 * 1_000_000_000;
        (self.0 > 0).then(|| Span(u64::try_from(bits.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)))
    }

    /// How many bytes pass within `span`, rounded up.
    pub fn bytes_in(self, span: Span) -> u64 {
        let bits = u128::from(self.0) * u128::from(span.0);
        u64::try_from(bits.div_ceil(8 * 1_000_000_000)).unwrap_or(u64::MAX)
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
    use super::{BitRate, ParseRateError, Span};
    use proptest::prelude::*;

    #[test]
    fn rates_as_people_write_them() {
        for (text, rate) in [("1Gbit/s", 1_000_000_000), ("1.5 Mbit/s", 1_500_000), ("9.6kbit/s", 9600), ("8bit/s", 8)]
        {
            assert_eq!(text.parse(), Ok(BitRate(rate)), "{text}");
        }
        for wrong in ["1000", "1Gbps", "1MB/s", "Mbit/s", "1.Mbit/s", "-1bit/s", "1mbit"] {
            assert!(matches!(wrong.parse::<BitRate>(), Err(ParseRateError::NoRate(_))), "{wrong}");
        }
        assert!(matches!("0.5bit/s".parse::<BitRate>(), Err(ParseRateError::Fraction(_))));
        assert!(matches!("99999999999Gbit/s".parse::<BitRate>(), Err(ParseRateError::TooLarge(_))));
        assert_eq!(BitRate(1_000_000_000).time_for(1514), Some(Span(12_112)));
        assert_eq!(BitRate(1_000_000_000).bytes_in(Span(1_000_000)), 125_000);
    }

    proptest! {
        #[test]
        fn exact_is_exact(rate in any::<u64>()) {
            prop_assert_eq!(BitRate(rate).exact().parse(), Ok(BitRate(rate)));
        }
    }

    #[test]
    fn the_rate_of_the_first_report() {
        assert_eq!(BitRate::of(32 * 64, Span(4_670_470_000)), Some(BitRate(3508)));
        assert_eq!(BitRate::of(1, Span(0)), None);
        assert_eq!(BitRate(3508).to_string(), "3.51 kbit/s");
        assert_eq!(BitRate(941_380_000).to_string(), "941 Mbit/s");
    }
}
