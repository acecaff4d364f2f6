//! Shares of a whole, such as the probability that a packet is lost.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share of a whole, in billionths. Written as `"1%"`, `"0.05%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Percent(u32);

/// Why a text is not a share of a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePercentError {
    /// It is no number with a percent sign.
    #[error("`{0}` is not a percentage: write a number with its sign, such as \"1%\" or \"0.05%\"")]
    NoNumber(String),
    /// It is more than the whole.
    #[error("`{0}` is more than 100%")]
    TooLarge(String),
    /// It has more digits than can be told apart.
    #[error("`{0}` has more than seven digits after the point")]
    TooFine(String),
}

impl Percent {
    /// Billionths in a whole.
    const WHOLE: u32 = 1_000_000_000;
    /// Billionths in one percent.
    const ONE: u32 = Self::WHOLE / 100;
    /// All of it.
    pub const ALL: Self = Self(Self::WHOLE);

    /// The share as the kernel's traffic control has it: 0 is never and all bits set is always.
    pub fn scaled(self) -> u32 {
        let scaled = (u64::from(self.0) * u64::from(u32::MAX) + u64::from(Self::WHOLE / 2)) / u64::from(Self::WHOLE);
        u32::try_from(scaled).unwrap_or(u32::MAX)
    }

    /// The share that [`Percent::scaled`] gave. Exact, since a billionth is coarser than the kernel's unit.
    pub fn of_scaled(scaled: u32) -> Self {
        let share = (u64::from(scaled) * u64::from(Self::WHOLE) + u64::from(u32::MAX / 2)) / u64::from(u32::MAX);
        Self(u32::try_from(share).unwrap_or(Self::WHOLE))
    }

    /// The share as a number from 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// The share of a number from 0 to 1, to the nearest billionth; `None` for any other number.
    pub fn of_share(share: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1 by what is asked")]
        (0.0..=1.0).contains(&share).then(|| Self((share * f64::from(Self::WHOLE)).round() as u32))
    }

    /// What is left of the whole.
    #[must_use]
    pub const fn rest(self) -> Self {
        Self(Self::WHOLE.saturating_sub(self.0))
    }
}

impl FromStr for Percent {
    type Err = ParsePercentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let none = || ParsePercentError::NoNumber(text.to_owned());
        let number = text.trim().strip_suffix('%').ok_or_else(none)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(none());
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 7 {
            return Err(ParsePercentError::TooFine(text.to_owned()));
        }
        let too_large = || ParsePercentError::TooLarge(text.to_owned());
        let whole: u32 = whole.parse().map_err(|_| too_large())?;
        let fraction: u32 = format!("{fraction:0<7}").parse().map_err(|_| none())?;
        let share = whole.checked_mul(Self::ONE).and_then(|whole| whole.checked_add(fraction));
        share.filter(|&share| share <= Self::WHOLE).map(Self).ok_or_else(too_large)
    }
}

impl fmt::Display for Percent {
    /// Exact, in the form that sweep files use: `1%`, `0.05%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / Self::ONE, self.0 % Self::ONE);
        let fraction = format!("{fraction:07}");
        match fraction.trim_end_matches('0') {
            "" => f.pad(&format!("{whole}%")),
            fraction => f.pad(&format!("{whole}.{fraction}%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ParsePercentError, Percent};
    use proptest::prelude::*;

    #[test]
    fn percentages_as_people_write_and_read_them() {
        assert_eq!("1%".parse::<Percent>().map(Percent::scaled), Ok(42_949_673));
        assert_eq!("100%".parse(), Ok(Percent::ALL));
        assert_eq!(Percent::ALL.scaled(), u32::MAX);
        assert_eq!(" 0.050 % ".parse::<Percent>().map(|share| share.to_string()), Ok("0.05%".into()));
        for wrong in ["1", "%", "-1%", "1.%", ".5%", "1e-3%"] {
            assert!(matches!(wrong.parse::<Percent>(), Err(ParsePercentError::NoNumber(_))), "{wrong}");
        }
        assert!(matches!("100.1%".parse::<Percent>(), Err(ParsePercentError::TooLarge(_))));
        assert!(matches!("0.00000001%".parse::<Percent>(), Err(ParsePercentError::TooFine(_))));
    }

    proptest! {
        #[test]
        fn neither_text_nor_kernel_loses_anything(share in 0..=Percent::WHOLE) {
            prop_assert_eq!(Percent(share).to_string().parse(), Ok(Percent(share)));
            prop_assert_eq!(Percent::of_scaled(Percent(share).scaled()), Percent(share));
            prop_assert_eq!(Percent::of_share(Percent(share).share()), Some(Percent(share)));
        }
    }
}
