//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A size in bytes.
///
/// Written as `1024`, `"64KiB"`, `"1MiB"`, `"2GiB"` (binary) or `"64kB"`, `"1MB"`, `"1GB"` (decimal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bytes(pub u64);

/// The units a size may be written with, and their size in bytes.
const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Why a text is not a size. The message says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseBytesError {
    /// There are no digits at the start.
    #[error(
        "`{0}` is not a size: write a number of bytes, or a number with KiB, MiB, GiB, kB, MB or GB, such as \"64KiB\""
    )]
    NoNumber(String),
    /// The unit is not known; the second part is the nearest one that is.
    #[error("`{text}` ends in `{unit}`, which is not a unit of size: did you mean `{number}{near}`?")]
    Unit {
        /// The whole text.
        text: String,
        /// The number before the unit.
        number: String,
        /// The unit as typed.
        unit: String,
        /// The unit that was probably meant.
        near: &'static str,
    },
    /// The fraction does not come to a whole number of bytes.
    #[error("`{0}` is not a whole number of bytes")]
    Fraction(String),
    /// More bytes than 64 bits can count.
    #[error("`{0}` is larger than any size")]
    TooLarge(String),
}

/// The unit that was probably meant by `unit`: case and a missing `i` are the common slips.
fn nearest_unit(unit: &str) -> &'static str {
    match unit.chars().next().map(|c| c.to_ascii_lowercase()) {
        Some('k') => "KiB",
        Some('m') => "MiB",
        Some('g' | 't') => "GiB",
        _ => "B",
    }
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((number.as_str(), ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
            return Err(ParseBytesError::NoNumber(text.to_owned()));
        }
        let unit = unit.trim_start();
        let factor = if unit.is_empty() {
            1
        } else {
            UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor).ok_or_else(|| {
                ParseBytesError::Unit {
                    text: text.to_owned(),
                    number: number.clone(),
                    unit: unit.to_owned(),
                    near: nearest_unit(unit),
                }
            })?
        };
        let too_large = || ParseBytesError::TooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let mut total = whole.checked_mul(factor).ok_or_else(too_large)?;
        if !fraction.is_empty() {
            let places = u32::try_from(fraction.len()).map_err(|_| too_large())?;
            let digits: u128 = fraction.parse().map_err(|_| too_large())?;
            let scale = 10u128.checked_pow(places).ok_or_else(too_large)?;
            let part = digits * u128::from(factor);
            if !part.is_multiple_of(scale) {
                return Err(ParseBytesError::Fraction(text.to_owned()));
            }
            let part = u64::try_from(part / scale).map_err(|_| too_large())?;
            total = total.checked_add(part).ok_or_else(too_large)?;
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Bytes {
    /// Exact: the largest binary unit that divides it, else bytes. `64 KiB`, `2304 B`, `1 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = [("GiB", 30), ("MiB", 20), ("KiB", 10)]
            .into_iter()
            .find(|&(_, shift)| self.0 >= 1 << shift && self.0.trailing_zeros() >= shift)
            .map_or((self.0, "B"), |(unit, shift)| (self.0 >> shift, unit));
        f.pad(&format!("{size} {unit}"))
    }
}

impl Bytes {
    /// The units a size may be written with.
    pub fn units() -> impl Iterator<Item = &'static str> {
        UNITS.iter().map(|(name, _)| *name)
    }

    /// With three significant digits: `2.25 KiB`, `3.02 MiB`. For tables and pictures, where exactness would not fit.
    pub fn short(self) -> String {
        if self.0 < 1024 {
            return format!("{} B", self.0);
        }
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        super::scaled(self.0 as f64, &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB")])
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, ParseBytesError};
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("1024", 1024),
            ("64KiB", 65536),
            ("64 KiB", 65536),
            ("1.5MiB", 1_572_864),
            ("64kB", 64_000),
            ("0", 0),
            ("1_000", 1000),
            ("2GiB", 1 << 31),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn slips_are_named_with_the_fix() {
        let error = "64K".parse::<Bytes>().expect_err("no such unit").to_string();
        assert!(error.contains("64KiB"), "{error}");
        assert!(matches!("KiB".parse::<Bytes>(), Err(ParseBytesError::NoNumber(_))));
        assert!(matches!("-1".parse::<Bytes>(), Err(ParseBytesError::NoNumber(_))));
        assert!(matches!("1.0001KiB".parse::<Bytes>(), Err(ParseBytesError::Fraction(_))));
        assert!(matches!("99999999999GiB".parse::<Bytes>(), Err(ParseBytesError::TooLarge(_))));
        assert!(matches!("1.2.3".parse::<Bytes>(), Err(ParseBytesError::NoNumber(_))));
    }

    #[test]
    fn short_has_three_digits() {
        assert_eq!(Bytes(2304).short(), "2.25 KiB");
        assert_eq!(Bytes(512).short(), "512 B");
        assert_eq!(Bytes(3_161_895).short(), "3.02 MiB");
    }

    proptest! {
        #[test]
        fn display_is_exact(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }
}
