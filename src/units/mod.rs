//! Quantities as people write and read them: bytes, spans of time, bit rates, percentages. Imports no other room.

mod better;
mod bytes;
mod choice;
mod number;
mod percent;
mod rate;
mod span;
mod terminal;

pub(crate) use choice::choice;

pub use better::Better;
pub use bytes::{Bytes, ParseBytesError};
pub use number::in_unit;
pub use percent::{ParsePercentError, Percent};
pub use rate::{BitRate, ParseRateError};
pub use span::{ParseSpanError, Span};
pub use terminal::is_obeyed;

/// A command as it would be typed in a shell: words that a shell would take for something else are in quotes.
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%{}".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Bytes in hexadecimal, as digests are written.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes `value` with three significant digits and no trailing noise: `4.67`, `31.3`, `202`, `1.00`.
fn three_digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// Divides `value` by the largest unit that it reaches and writes it with three significant digits.
///
/// Rounding may reach the next unit (`999.9 µs` is `1.00 ms`, never `1000 µs`).
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    for (index, &(size, name)) in units.iter().enumerate() {
        if value >= size || index + 1 == units.len() {
            let text = three_digits(value / size);
            if index > 0 {
                let (larger, larger_name) = units[index - 1];
                if value / size >= 999.5 && (larger / size - 1000.0).abs() < f64::EPSILON {
                    return format!("{} {larger_name}", three_digits(value / larger));
                }
            }
            return format!("{text} {name}");
        }
    }
    three_digits(value)
}
