//! When a cell has been repeated often enough. It is no part of what decides a cell.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Percent;

/// A cell is repeated until its median is known this well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precision {
    /// Repeats before the first look.
    pub min: u32,
    /// How far the interval of the median may reach from it, either way, as a share of the median.
    #[serde(with = "text")]
    pub share: Percent,
    /// How often such an interval is to hold the median.
    #[serde(with = "text")]
    pub confidence: Percent,
}

impl Precision {
    /// The fewest repeats that give an interval of a median at this confidence: of `n` figures the lowest and the highest hold the
    /// median between them in all but 2 of 2^n orders of heads and tails. 6 at 95 %, 8 at 99 %.
    pub fn fewest(&self) -> u32 {
        (2..u32::from(u8::MAX))
            .find(|&count| {
                1.0 - 2.0 * 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX)) >= self.confidence.share()
            })
            .unwrap_or(u32::MAX)
    }

    /// When the cell is looked at again that was found wanting after so many repeats: after an eighth more of them. Each look is another
    /// chance to stop by luck, and in real time a guest boots for it.
    pub const fn next_look(&self, repeats: u32) -> u32 {
        let next = repeats + if repeats < 16 { 1 } else { repeats / 8 };
        if next < self.min { self.min } else { next }
    }
}

impl fmt::Display for Precision {
    /// `±2% at 95% confidence`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "±{} at {} confidence", self.share, self.confidence)
    }
}

/// Shares as texts, `"2%"`, as sweep files have them.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::units::Percent;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(share: &Percent, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(share)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Percent, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Precision;

    fn at(confidence: &str) -> Precision {
        let share = "2%".parse().expect("a share");
        Precision { min: 5, share, confidence: confidence.parse().expect("a share") }
    }

    #[test]
    fn an_interval_takes_more_repeats_the_surer_it_is() {
        let fewest = ["50%", "90%", "95%", "99%", "99.9%"].map(|confidence| at(confidence).fewest());
        assert_eq!(fewest, [2, 5, 6, 8, 11]);
    }

    #[test]
    fn looks_grow_rarer() {
        let mut looks = vec![at("95%").next_look(0)];
        while let Some(&last) = looks.last().filter(|&&last| last < 50) {
            looks.push(at("95%").next_look(last));
        }
        assert_eq!(looks, [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30, 33, 37, 41, 46, 51]);
    }

    #[test]
    fn it_is_stored_as_it_is_written() {
        let precision = at("95%");
        let text = serde_json::to_string(&precision).expect("serialises");
        assert_eq!(text, r#"{"min":5,"share":"2%","confidence":"95%"}"#);
        assert_eq!(serde_json::from_str::<Precision>(&text).expect("a precision"), precision);
    }
}
