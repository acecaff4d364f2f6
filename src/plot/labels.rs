//! Labels along an axis: all of them where there is room, upright where that helps, and otherwise some of them, always with
//! the first and the last.

use super::canvas::{count, px};
use super::text::width;

/// Size of labels.
pub(super) const SIZE: f64 = 11.0;
/// Size of the second line of a label.
pub(super) const SECOND: f64 = 9.5;
/// Longest label in pixels: three numbers of ten digits.
const MAX: f64 = 190.0;

/// The label of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) text: String,
    /// What the kernel made of it.
    pub(super) second: Option<String>,
}

impl Label {
    /// All of it in one line, for labels that run upwards.
    pub(super) fn in_one(&self) -> String {
        match &self.second {
            Some(second) => format!("{} ({second})", self.text),
            None => self.text.clone(),
        }
    }

    fn width(&self) -> f64 {
        width(&self.text, SIZE).max(self.second.as_ref().map_or(0.0, |second| width(second, SECOND))).min(MAX)
    }
}

/// How labels are written beneath a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Along {
    pub(super) upright: bool,
    /// Every how many values one is written.
    pub(super) every: usize,
    /// Room that they take, downwards.
    pub(super) height: i32,
}

/// Longest text of an upright label, in pixels.
pub(super) const UPRIGHT: f64 = MAX;
/// Between labels side by side.
const APART: f64 = 6.0;

/// The width of a column on which every label is level.
pub(super) fn level_column(labels: &[Label]) -> i32 {
    px((labels.iter().map(Label::width).fold(0.0, f64::max) + APART).ceil())
}

/// Room for a level label of a column.
pub(super) fn level_room(along: Along, column: i32) -> f64 {
    f64::from(column) * f64::from(count(along.every)) - APART
}

/// Labels beneath columns of that width.
pub(super) fn along(labels: &[Label], column: i32, numbers: bool) -> Along {
    let widest = labels.iter().map(Label::width).fold(0.0, f64::max);
    let tallest = labels.iter().map(|label| width(&label.in_one(), SIZE)).fold(0.0, f64::max).min(UPRIGHT);
    let column = f64::from(column);
    let lines = if labels.iter().any(|label| label.second.is_some()) { 2 } else { 1 };
    let level = |every: usize| Along { upright: false, every, height: 8 + 14 * lines };
    let upright = |every: usize| Along { upright: true, every, height: 10 + px(tallest) };
    let every = |room: f64| usize::try_from(px((room / column).ceil())).unwrap_or(1).max(1);
    if widest + APART <= column {
        level(1)
    } else if column >= SIZE + 3.0 && (!numbers || labels.len() <= 40) {
        upright(1)
    } else if numbers {
        level(every(widest + 8.0))
    } else {
        upright(every(SIZE + 3.0))
    }
}

/// Every how many rows of that height one is labelled.
pub(super) fn every_row(labels: &[Label], row: i32) -> usize {
    let needed = if labels.iter().any(|label| label.second.is_some()) && row >= 26 { 26.0 } else { SIZE + 2.0 };
    usize::try_from(px((needed / f64::from(row.max(1))).ceil())).unwrap_or(1).max(1)
}

/// Width of labels beside rows.
pub(super) fn beside(labels: &[Label]) -> i32 {
    px(labels.iter().map(Label::width).fold(0.0, f64::max).ceil()) + 2
}

/// The values that are written: every one of so many, and the last, which takes the place of one that is too close to it.
pub(super) fn shown(count: usize, every: usize) -> Vec<usize> {
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let mut shown: Vec<usize> =
        (0..count).step_by(every).filter(|index| index + every <= last || *index == 0).collect();
    if last > 0 {
        shown.push(last);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Label, along, shown};

    fn labels(texts: &[&str]) -> Vec<Label> {
        texts.iter().map(|text| Label { text: (*text).to_owned(), second: None }).collect()
    }

    #[test]
    fn first_and_last_are_always_there_and_nothing_collides() {
        assert_eq!(shown(5, 1), [0, 1, 2, 3, 4]);
        assert_eq!(shown(10, 4), [0, 4, 9]);
        assert_eq!(shown(1, 3), [0]);
        assert_eq!(shown(3, 9), [0, 2]);
        for (count, every) in [(200, 7), (50, 13), (13, 5)] {
            let found = shown(count, every);
            assert!(found.windows(2).all(|pair| pair[1] - pair[0] >= every), "{found:?}");
        }
    }

    #[test]
    fn long_words_stand_upright_and_many_numbers_thin_out() {
        assert_eq!(along(&labels(&["1 KiB", "64 KiB"]), 80, true).every, 1);
        assert!(along(&labels(&["6.12.117+deb13-cloud-amd64", "6.1"]), 60, false).upright);
        let many: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let thin = along(&labels(&many), 6, true);
        assert!(!thin.upright && thin.every > 3, "{thin:?}");
    }
}
