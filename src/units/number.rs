/// A number in a unit of its own, which may be empty: `12.50 ms`, `40`. Whole numbers as they are, others with four digits that count, below 1 with six decimals.
pub fn in_unit(number: f64, unit: &str) -> String {
    let gap = if unit.is_empty() { "" } else { " " };
    let digits = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    let shown = if number.fract() == 0.0 && digits < 15.0 {
        format!("{number:.0}")
    } else if (-4.0..15.0).contains(&digits) {
        let decimals = [3usize, 2, 1, 0];
        let whole = [0.0, 1.0, 2.0, 3.0].iter().rposition(|least| digits >= *least);
        let decimals = whole.map_or(6, |place| decimals[place]);
        format!("{number:.decimals$}")
    } else {
        format!("{number:e}")
    };
    format!("{shown}{gap}{unit}")
}
