//! From figures to places between 0 and 1: logarithmic where they span more than a decade, and never so fine that equal
//! figures look different.

use super::unit::Unit;

/// A scale with its two ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
}

/// Moves an end of a logarithmic scale outwards to the next round figure, if that is near.
fn round(end: f64, up: bool) -> f64 {
    let power = 10_f64.powf(end.log10().floor());
    let steps = [1.0, 2.0, 3.0, 5.0, 10.0].map(|step| step * power);
    let next = if up {
        steps.into_iter().find(|step| *step >= end)
    } else {
        steps.into_iter().rev().find(|step| *step <= end)
    };
    next.filter(|next| (next / end).ln().abs() < 0.3).unwrap_or(end)
}

/// A scale with even steps spans at least this share of its middle: figures within a few percent of each other look alike.
const MIN_SPAN: f64 = 0.1;

impl Scale {
    /// The scale of those figures. `None` where there are none.
    pub(crate) fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = figures.fold(None, |range: Option<(f64, f64)>, figure| {
            Some(range.map_or((figure, figure), |(low, high)| (low.min(figure), high.max(figure))))
        })?;
        if low > 0.0 && high / low > 10.0 {
            return Some(Self { low: round(low, false), high: round(high, true), log: true });
        }
        let middle = f64::midpoint(low, high);
        let half = ((high - low) / 2.0).max(middle.abs() * MIN_SPAN / 2.0);
        let half = if half > 0.0 { half } else { 0.5 };
        // What is never below 0 has a scale that is not; only a program's number may be.
        let least = if low < 0.0 { f64::NEG_INFINITY } else { 0.0 };
        Some(Self { low: (middle - half).max(least), high: middle + half, log: false })
    }

    /// The scale of those ratios: the same way up and down, and at least to a tenth.
    pub(crate) fn of_ratios(ratios: impl Iterator<Item = f64>) -> Self {
        let widest = ratios.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs()).fold(0.0, f64::max);
        let high = widest.exp().max(1.1);
        Self { low: 1.0 / high, high, log: true }
    }

    /// Both ends moved out, so that what lies on them is clear of the edge.
    pub(crate) fn widened(self) -> Self {
        if self.log {
            let margin = (self.high / self.low).powf(0.09);
            return Self { low: self.low / margin, high: self.high * margin, ..self };
        }
        let margin = (self.high - self.low) * 0.12;
        let least = if self.low < 0.0 { f64::NEG_INFINITY } else { 0.0 };
        Self { low: (self.low - margin).max(least), high: self.high + margin, ..self }
    }

    /// The scale of a line: clear of both edges, and from zero on where it has even steps and would else begin near it. A
    /// line that begins higher says so by its ticks.
    pub(crate) fn of_a_line(self) -> Self {
        let wide = self.widened();
        let near = !wide.log && wide.low > 0.0 && wide.low < wide.high / 2.0;
        if near { Self { low: 0.0, ..wide } } else { wide }
    }

    /// How its steps go, for a legend.
    pub(crate) const fn steps(&self) -> &'static str {
        if self.log { "logarithmic scale" } else { "linear scale" }
    }

    /// The place of a figure.
    pub(crate) fn place(&self, figure: f64) -> f64 {
        let place = if self.log {
            (figure / self.low).ln() / (self.high / self.low).ln()
        } else {
            (figure - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round figures on the scale, about `wanted` of them.
    pub(crate) fn ticks(&self, unit: Unit, wanted: u32) -> Vec<(f64, String)> {
        match (unit, self.log) {
            (Unit::Ratio, true) => self.ratio_ticks(),
            (_, true) => self.log_ticks(unit, wanted),
            (_, false) => self.even_ticks(unit, wanted),
        }
    }

    /// Ratios on both sides of 1. The scale may be turned round.
    fn ratio_ticks(&self) -> Vec<(f64, String)> {
        let widest = self.low.max(self.high);
        let above: &[f64] = match widest {
            ..1.2 => &[1.05, 1.1],
            ..1.6 => &[1.1, 1.25, 1.5],
            ..4.0 => &[1.5, 2.0, 3.0],
            ..15.0 => &[2.0, 5.0, 10.0],
            ..150.0 => &[10.0, 100.0],
            _ => &[10.0, 1000.0, 100_000.0],
        };
        let shown = above.iter().copied().filter(|ratio| *ratio <= widest * 1.001);
        let both = shown.flat_map(|ratio| [1.0 / ratio, ratio]).chain([1.0]);
        let mut ticks: Vec<(f64, String)> = both.map(|ratio| (ratio, Unit::Ratio.tick(ratio, None))).collect();
        ticks.sort_by(|a, b| self.place(a.0).total_cmp(&self.place(b.0)));
        ticks
    }

    fn log_ticks(&self, unit: Unit, wanted: u32) -> Vec<(f64, String)> {
        // Sizes go by powers of two, all else by powers of ten: the finest grid that is not too full.
        let grids: &[(f64, &[f64])] = if unit.is_binary() {
            &[(2.0, &[1.0]), (4.0, &[1.0]), (16.0, &[1.0]), (256.0, &[1.0]), (65536.0, &[1.0])]
        } else {
            &[
                (10.0, &[1.0, 2.0, 5.0]),
                (10.0, &[1.0, 3.0]),
                (10.0, &[1.0]),
                (100.0, &[1.0]),
                (1000.0, &[1.0]),
                (1e6, &[1.0]),
            ]
        };
        let on = |&(base, steps): &(f64, &[f64])| -> Vec<f64> {
            let first = self.low.log(base).floor() - 1.0;
            let last = self.high.log(base).ceil();
            let powers = std::iter::successors(Some(first), |power| Some(power + 1.0)).take_while(move |p| *p <= last);
            powers
                .flat_map(|power| steps.iter().map(move |step| step * base.powf(power)))
                .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
                .collect()
        };
        let fits = |ticks: &Vec<f64>| ticks.len() <= wanted as usize;
        let ticks = grids.iter().map(on).find(fits).unwrap_or_else(|| vec![self.low, self.high]);
        let ticks = if ticks.is_empty() { vec![self.low, self.high] } else { ticks };
        ticks.into_iter().map(|tick| (tick, unit.tick(tick, None))).collect()
    }

    fn even_ticks(&self, unit: Unit, wanted: u32) -> Vec<(f64, String)> {
        let size = unit.size_at(self.high.abs().max(self.low.abs()));
        let rough = (self.high - self.low) / size / f64::from(wanted.max(1));
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(power) * size;
        let step = if unit == Unit::Count { step.max(1.0) } else { step };
        let first = (self.low / step - 1e-9).ceil();
        std::iter::successors(Some(first), |number| Some(number + 1.0))
            .map(|number| number * step)
            .take_while(|tick| *tick <= self.high + step * 1e-6)
            .take(64)
            .map(|tick| (tick, unit.tick(tick, Some(step))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;
    use crate::plot::unit::Unit;
    use proptest::prelude::*;

    fn labels(scale: Scale, unit: Unit) -> Vec<String> {
        scale.ticks(unit, 6).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn beyond_a_decade_the_scale_is_logarithmic() {
        let scale = Scale::of([1_011_000.0, 4_316_000_000.0].into_iter()).expect("a scale");
        assert!(scale.log);
        assert_eq!(labels(scale, Unit::Nanoseconds), ["1 ms", "10 ms", "100 ms", "1 s"]);
        let decades = Scale::of([1e6, 1e9].into_iter()).expect("a scale");
        assert_eq!(labels(decades, Unit::Nanoseconds), ["1 ms", "10 ms", "100 ms", "1 s"].map(str::to_owned));
        let sizes = Scale::of([2304.0, 4_194_304.0].into_iter()).expect("a scale");
        assert_eq!(labels(sizes, Unit::Bytes), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"]);
    }

    #[test]
    fn nearly_equal_figures_look_alike() {
        let scale = Scale::of([939_290_000.0, 941_380_000.0].into_iter()).expect("a scale");
        assert!(!scale.log && (scale.place(939_290_000.0) - scale.place(941_380_000.0)).abs() < 0.03);
        assert_eq!(
            labels(scale, Unit::BitsPerSecond),
            ["900 Mbit/s", "920 Mbit/s", "940 Mbit/s", "960 Mbit/s", "980 Mbit/s"]
        );
        let one = Scale::of([0.0].into_iter()).expect("a scale");
        assert!(one.high > one.low);
        assert_eq!(Scale::of(std::iter::empty()), None);
    }

    #[test]
    fn a_line_that_would_begin_near_zero_begins_there() {
        let line = |low, high| Scale::of([low, high].into_iter()).map(Scale::of_a_line).expect("a scale");
        assert!(line(2e6, 6e6).low.abs() < 1e-9);
        assert!(line(5e6, 6e6).low > 4e6, "what differs little is shown large");
        assert!(line(1e6, 1e9).log && line(-2.0, 6.0).low < -2.0);
    }

    #[test]
    fn ratios_are_centred() {
        let scale = Scale::of_ratios([0.25, 1.5].into_iter());
        assert!((scale.place(1.0) - 0.5).abs() < 1e-9);
        assert_eq!(labels(scale, Unit::Ratio), ["×0.5", "×1", "×2"]);
        assert_eq!(
            labels(Scale::of_ratios(std::iter::empty()), Unit::Ratio),
            ["×0.91", "×0.95", "×1", "×1.05", "×1.1"]
        );
    }

    #[test]
    fn numbers_below_zero_have_a_scale_that_reaches_there() {
        let scale = Scale::of([-2.5, 1.5].into_iter()).expect("a scale");
        assert!(!scale.log && scale.place(-2.5) < 0.01 && scale.place(1.5) > 0.99, "{scale:?}");
        assert_eq!(labels(scale, Unit::Number), ["−2", "−1", "0", "1"]);
        let small = Scale::of([0.0012, 0.0031].into_iter()).expect("a scale");
        assert_eq!(labels(small, Unit::Number), ["0.0015", "0.002", "0.0025", "0.003"]);
    }

    proptest! {
        #[test]
        fn places_and_ticks_lie_within(figures in prop::collection::vec(0.0..1e15_f64, 1..10)) {
            let scale = Scale::of(figures.iter().copied()).expect("a scale");
            for figure in figures {
                prop_assert!((0.0..=1.0).contains(&scale.place(figure)));
            }
            let ticks = scale.ticks(Unit::Nanoseconds, 6);
            prop_assert!(ticks.len() <= 12, "{:?}", ticks);
        }
    }
}
