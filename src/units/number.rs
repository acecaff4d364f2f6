/// A number in a unit of its own, which may be empty: `12.50 ms`, `40`, `0.1235`. Whole numbers as they are, others with four
/// digits that count: what is committed and compared must show a change of 0.1 %.
pub fn in_unit(number: f64, unit: &str) -> String {
    let gap = if unit.is_empty() { "" } else { " " };
    format!("{}{gap}{unit}", four_digits(number))
}

fn four_digits(number: f64) -> String {
    // The digits decide where the point is: 9.9996 is 10.00.
    let scientific = format!("{number:.3e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number.fract() == 0.0 && exponent < 15 {
        format!("{number:.0}")
    } else if (-4..15).contains(&exponent) {
        let decimals = usize::try_from(3 - exponent).unwrap_or(0);
        format!("{number:.decimals$}")
    } else {
        format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::in_unit;

    #[test]
    fn fractions_have_four_digits_that_count() {
        let shown = [0.123_456, 0.001_234_6, 0.000_1, 0.5, 9.999_6, 99.999, 1234.56, 40.0, 0.0, -0.513_204]
            .map(|number| in_unit(number, "dB"));
        assert_eq!(
            shown,
            [
                "0.1235 dB",
                "0.001235 dB",
                "0.0001000 dB",
                "0.5000 dB",
                "10.00 dB",
                "100.0 dB",
                "1235 dB",
                "40 dB",
                "0 dB",
                "-0.5132 dB"
            ]
        );
        let extreme = [1e-9, 1.234_56e-7, 2.5e20, f64::NAN].map(|number| in_unit(number, ""));
        assert_eq!(extreme, ["1e-9", "1.235e-7", "2.5e20", "NaN"]);
    }
}
