//! Units: how figures are written in cells, beside ticks and in sentences.

use crate::units::{BitRate, Bytes, Span, in_unit};

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
    /// A number of a program's, in a unit that its title tells.
    Number,
    /// A share: 0.02 is 2 %.
    Share,
    /// A figure over another: 1 is the same.
    Ratio,
}

/// Sizes of units and their names, the largest first.
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const RATES: [(f64, &str); 4] = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const SIZES: [(f64, &str); 4] = [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
const COUNTS: [(f64, &str); 1] = [(1.0, "")];
const SHARES: [(f64, &str); 1] = [(0.01, "%")];

/// The nearest whole number that is not negative.
pub(crate) fn whole(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as is wanted")]
    let whole = value.round() as u64;
    whole
}

impl Unit {
    /// A name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::BitsPerSecond => "bps",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Number => "number",
            Self::Share => "share",
            Self::Ratio => "ratio",
        }
    }

    /// Sizes of units and their names, the largest first.
    pub(crate) fn sizes(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Nanoseconds => &TIMES,
            Self::BitsPerSecond => &RATES,
            Self::Bytes => &SIZES,
            Self::Count | Self::Number | Self::Ratio => &COUNTS,
            Self::Share => &SHARES,
        }
    }

    /// With three significant digits: `202 ms`, `941 Mbit/s`, `2.25 KiB`.
    pub fn show(self, value: f64) -> String {
        if value < 0.0 && !matches!(self, Self::Ratio | Self::Number) {
            return format!("−{}", self.show(-value));
        }
        match self {
            // Only a program's number has a fraction of the smallest unit.
            Self::Nanoseconds if value < 1000.0 && value.fract() != 0.0 => in_unit(value, "ns"),
            Self::BitsPerSecond if value < 1000.0 && value.fract() != 0.0 => in_unit(value, "bit/s"),
            Self::Number => in_unit(value, "").replace('-', "−"),
            Self::Nanoseconds => Span(whole(value)).to_string(),
            Self::BitsPerSecond => BitRate(whole(value)).to_string(),
            Self::Bytes => {
                let bytes = Bytes(whole(value));
                let exact = bytes.to_string();
                if bytes.0 >= 1024 && exact.ends_with(" B") { bytes.short() } else { exact }
            }
            Self::Count => whole(value).to_string(),
            Self::Share => format!("{} %", digits(value * 100.0)),
            Self::Ratio if (0.5..=2.0).contains(&value) => {
                let percent = (value - 1.0) * 100.0;
                if percent.abs() < 0.05 {
                    "±0 %".to_owned()
                } else {
                    let sign = if percent < 0.0 { "−" } else { "+" };
                    let decimals = usize::from(percent.abs() < 9.95);
                    format!("{sign}{:.decimals$} %", percent.abs())
                }
            }
            Self::Ratio => format!("×{}", digits(value)),
        }
    }

    /// The end of a scale: as a figure, or for ratios as a factor.
    pub(super) fn end(self, value: f64) -> String {
        if self == Self::Ratio { self.tick(value, None) } else { self.show(value) }
    }

    /// Shorter and shorter forms, for cells with little room.
    pub(super) fn forms(self, value: f64) -> Vec<String> {
        let full = self.show(value);
        let Some((number, unit)) = full.split_once(' ') else { return vec![full] };
        let short = match self {
            Self::BitsPerSecond => unit.chars().take(1).filter(|c| *c != 'b').collect::<String>(),
            Self::Bytes => unit.chars().take(1).collect(),
            _ => unit.to_owned(),
        };
        vec![full.clone(), format!("{number}{short}")]
    }

    /// A round value beside a tick: `10 ms`, `1 s`, `2.5 %`. `step` is the distance to the next tick on a scale with even steps.
    pub(super) fn tick(self, value: f64, step: Option<f64>) -> String {
        if self == Self::Ratio {
            return format!("×{}", trimmed(value, if value < 0.1 { 3 } else { 2 }));
        }
        if value == 0.0 {
            return "0".to_owned();
        }
        let (size, name) = self
            .sizes()
            .iter()
            .find(|(size, _)| value.abs() >= size * 0.999_999)
            .or_else(|| self.sizes().last())
            .copied()
            .unwrap_or((1.0, ""));
        let decimals = step.map_or(2.0, |step: f64| {
            (-(step / size).log10()).ceil().clamp(0.0, if self == Self::Number { 12.0 } else { 4.0 })
        });
        if self == Self::Number && step.is_none() {
            let shown = self.show(value);
            let digits = if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.') } else { &shown };
            return digits.to_owned();
        }
        let text = trimmed(value / size, usize::try_from(whole(decimals)).unwrap_or(0)).replacen('-', "−", 1);
        if name.is_empty() { text } else { format!("{text} {name}") }
    }

    /// The size of the unit that a value is written in.
    pub(super) fn size_at(self, value: f64) -> f64 {
        self.sizes()
            .iter()
            .find(|(size, _)| value.abs() >= *size)
            .or_else(|| self.sizes().last())
            .map_or(1.0, |found| found.0)
    }

    /// Whether it goes by powers of two.
    pub(super) const fn is_binary(self) -> bool {
        matches!(self, Self::Bytes)
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// With at most that many decimals and without zeros at its end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn ticks_are_round() {
        let ticks = [1e3, 1e6, 1e7, 1e8, 1e9, 2.5e9].map(|ns| Unit::Nanoseconds.tick(ns, None));
        assert_eq!(ticks, ["1 µs", "1 ms", "10 ms", "100 ms", "1 s", "2.5 s"]);
        assert_eq!(Unit::BitsPerSecond.tick(940_500_000.0, Some(500_000.0)), "940.5 Mbit/s");
        assert_eq!(Unit::Bytes.tick(65536.0, None), "64 KiB");
        assert_eq!(Unit::Share.tick(0.025, None), "2.5 %");
        assert_eq!(Unit::Ratio.tick(0.5, None), "×0.5");
    }

    #[test]
    fn cells_get_shorter_forms() {
        assert_eq!(Unit::Nanoseconds.forms(4_670_470_000.0), ["4.67 s", "4.67s"]);
        assert_eq!(Unit::BitsPerSecond.forms(941_380_000.0), ["941 Mbit/s", "941M"]);
        assert_eq!(Unit::Bytes.forms(2304.0), ["2.25 KiB", "2.25K"]);
        assert_eq!(Unit::Bytes.show(65536.0), "64 KiB");
        assert_eq!(Unit::Count.forms(40.0), ["40"]);
    }

    #[test]
    fn a_programs_numbers_keep_their_sign_and_their_fraction() {
        let shown = [0.0, 12.5, 40.0, 0.001_234, 1e-9, -3.25, 123_456.0].map(|number| Unit::Number.show(number));
        assert_eq!(shown, ["0", "12.50", "40", "0.001234", "1e−9", "−3.250", "123456"]);
        assert_eq!(Unit::Number.tick(0.002, Some(0.001)), "0.002");
        assert_eq!([0.001, 1.0, 1e-9].map(|number| Unit::Number.tick(number, None)), ["0.001", "1", "1e−9"]);
        assert_eq!(Unit::Number.tick(0.000_002, Some(0.000_001)), "0.000002");
        assert_eq!([12.5, 0.25, -2e6].map(|ns| Unit::Nanoseconds.show(ns)), ["12.50 ns", "0.2500 ns", "−2.00 ms"]);
    }

    #[test]
    fn ratios_are_percent_near_one_and_factors_beyond() {
        let shown = [1.0, 1.12, 0.969, 4.62, 0.216].map(|ratio| Unit::Ratio.show(ratio));
        assert_eq!(shown, ["±0 %", "+12 %", "−3.1 %", "×4.62", "×0.22"]);
    }
}
