//! How much room a text takes, without a font: pictures name `sans-serif` and nobody knows which one that will be. The
//! widths are those of `DejaVu` Sans, one of the widest, so that what fits here fits anywhere.

/// Advance of each printable ASCII character, in hundredths of the size.
const WIDTHS: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84,
    84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69,
    61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63,
    59, 82, 59, 59, 52, 64, 34, 64, 84,
];
/// What stands for characters that would break the file or the lines around them.
const REPLACEMENT: char = '\u{fffd}';
/// Longest text that is looked at. No picture has room for more.
const MAX_CHARS: usize = 400;

/// The width of a character, in hundredths of the size.
fn advance(c: char) -> u32 {
    match c {
        ' '..='~' => WIDTHS.get(c as usize - 0x20).map_or(64, |&width| width.into()),
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' => 0,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{ffdc}' | '\u{1f000}'..='\u{3ffff}' => 105,
        '–' | '·' | '…' => 60,
        _ => 72,
    }
}

/// The width of a text in pixels, at that size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    f64::from(text.chars().map(advance).sum::<u32>()) * size / 100.0
}

/// The same for a bold text.
pub(super) fn bold_width(text: &str, size: f64) -> f64 {
    width(text, size) * 1.12
}

/// The text, cut short with an ellipsis where it is wider than `max` pixels.
pub(super) fn fit(text: &str, size: f64, max: f64) -> String {
    if width(text, size) <= max {
        return text.to_owned();
    }
    let room = max - width("…", size);
    let mut used = 0.0;
    let cut: String = text
        .chars()
        .take_while(|&c| {
            used += f64::from(advance(c)) * size / 100.0;
            used <= room
        })
        .collect();
    format!("{}…", cut.trim_end())
}

/// The text without characters that XML forbids or that reorder what stands around them, and of a length that can be shown.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned: String = text
        .chars()
        .take(MAX_CHARS)
        .map(|c| match c {
            '\t' | '\n' | '\r' => ' ',
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{61c}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fff0}'..='\u{fffc}'
            | '\u{fffe}'
            | '\u{ffff}' => REPLACEMENT,
            c => c,
        })
        .collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// Items in lines of at most `max` pixels, joined by a middle dot. An item that is wider by itself is cut.
pub(super) fn lines(items: &[String], size: f64, max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let item = fit(item, size, max);
        match lines.last_mut() {
            Some(line) if width(&format!("{line}  ·  {item}"), size) <= max => {
                line.push_str("  ·  ");
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    lines
}

/// A sentence in at most `most` lines, broken at spaces. What is left over is cut.
pub(super) fn wrap(text: &str, size: f64, max: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let full = lines.len() >= most;
        match lines.last_mut() {
            Some(line) if full || width(line, size) + width(" ", size) + width(word, size) <= max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| fit(&line, size, max)).collect()
}

#[cfg(test)]
mod tests {
    use super::{clean, fit, lines, width, wrap};
    use proptest::prelude::*;

    #[test]
    fn hostile_names_are_made_harmless() {
        assert_eq!(clean("a\u{0}b\u{202e}c\nd"), "a\u{fffd}b\u{fffd}c d");
        assert_eq!(clean(&"x".repeat(10_000)).chars().count(), 401);
    }

    #[test]
    fn items_are_broken_between_each_other() {
        let items: Vec<String> = ["one", "two", "three"].map(str::to_owned).into();
        assert_eq!(lines(&items, 10.0, 1000.0), ["one  ·  two  ·  three"]);
        assert_eq!(lines(&items, 10.0, 60.0), ["one  ·  two", "three"]);
    }

    #[test]
    fn sentences_are_broken_at_spaces() {
        assert_eq!(wrap("one two three four", 10.0, 60.0, 3), ["one two", "three four"]);
        assert_eq!(wrap("one two three four", 10.0, 60.0, 1), ["one two th…"]);
    }

    proptest! {
        #[test]
        fn what_is_fitted_fits(text in "\\PC*", max in 20.0..500.0_f64) {
            prop_assert!(width(&fit(&text, 12.0, max), 12.0) <= max);
        }
    }
}
