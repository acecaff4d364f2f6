//! How changes and probabilities are written.

/// What stands where there is no figure.
pub(super) const MISSING: &str = "–";

/// A ratio as a change: `+3.3 %`, `−0.04 %`, `×4.7`, `0 %`. Something that rounds to nothing is not shown as nothing.
pub(super) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if ratio >= 3.0 {
        return if ratio >= 99.5 { format!("×{ratio:.0}") } else { format!("×{ratio:.1}") };
    }
    let sign = if percent < 0.0 { "−" } else { "+" };
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        size if size < 0.01 => format!("{sign}<0.01 %"),
        size if size < 0.995 => format!("{sign}{size:.2} %"),
        size if size < 9.95 => format!("{sign}{size:.1} %"),
        size => format!("{sign}{size:.0} %"),
    }
}

/// A probability with two significant digits: `0.0022`, `3.8e-5`.
pub(super) fn probability(p: f64) -> String {
    if p >= 0.095 {
        format!("{p:.2}")
    } else if p >= 0.0095 {
        format!("{p:.3}")
    } else if p >= 0.000_95 {
        format!("{p:.4}")
    } else {
        format!("{p:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::{change, probability};

    #[test]
    fn changes_keep_what_matters() {
        let shown = [1.0, 1.033, 0.9694, 1.001, 1.000_01, 0.5, 2.5, 4.7, 31_200.0].map(change);
        assert_eq!(shown, ["0 %", "+3.3 %", "−3.1 %", "+0.10 %", "+<0.01 %", "−50 %", "+150 %", "×4.7", "×31200"]);
    }

    #[test]
    fn probabilities_have_two_digits() {
        let shown = [1.0, 0.1, 0.05, 0.002_16, 0.000_16, 3.76e-5].map(probability);
        assert_eq!(shown, ["1.00", "0.10", "0.050", "0.0022", "1.6e-4", "3.8e-5"]);
    }
}
