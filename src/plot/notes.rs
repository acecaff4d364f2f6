//! Lines at the foot of a picture: what letters in cells advise, and why cells were not measured.

use super::sheet::Mark;
use super::text::clean;
use super::tile::word;
use crate::explain::RULES;
use crate::measurement::Outcome;
use crate::stats::CellSummary;

/// Most reasons that are written out beneath a picture.
const MAX_REASONS: usize = 5;
/// Most reasons that are told apart: thousands of cells with a text of their own each are not listed, nor looked through.
const MAX_KINDS: usize = 64;
/// Most letters whose advice is written out.
const MAX_LETTERS: usize = 5;

/// What to try where a cell has that letter.
pub(super) fn letters(marks: &[Mark]) -> Vec<String> {
    let advised = marks.iter().filter_map(|mark| {
        let (Mark::Finding(_, name), (letter, words)) = (mark, mark.finding()?) else { return None };
        let rule = RULES.iter().find(|rule| rule.name == *name)?;
        Some(format!("{letter}, {words}; what to try: {}", rule.advice))
    });
    let mut notes: Vec<String> = advised.collect();
    let more = notes.len().saturating_sub(MAX_LETTERS);
    if more > 0 {
        notes.truncate(MAX_LETTERS);
        notes.push(format!("and {more} more letters: `sweep explain` tells what to try"));
    }
    notes
}

/// Reasons that differ in their figures only.
struct Kind<'a> {
    outcome: Outcome,
    /// The reason without figures.
    words: String,
    /// The first of them, by its letters.
    example: &'a str,
    cells: usize,
    differ: bool,
}

/// The text with every number made the same.
fn without_figures(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_digit() {
            words.push(c);
        } else if !words.ends_with('0') {
            words.push('0');
        }
    }
    words
}

/// Why cells were not measured, each kind of reason once, the most frequent first.
pub(super) fn reasons(cells: &[CellSummary]) -> Vec<String> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for cell in cells {
        let mut counted: Vec<usize> = Vec::new();
        for reason in &cell.reasons {
            let words = without_figures(&reason.text);
            let same = kinds.iter().position(|kind| (kind.outcome, &kind.words) == (reason.outcome, &words));
            if let Some((place, kind)) = same.and_then(|place| Some((place, kinds.get_mut(place)?))) {
                kind.cells += usize::from(!counted.contains(&place));
                kind.differ |= kind.example != reason.text;
                kind.example = kind.example.min(&reason.text);
                counted.push(place);
            } else if kinds.len() < MAX_KINDS {
                counted.push(kinds.len());
                kinds.push(Kind { outcome: reason.outcome, words, example: &reason.text, cells: 1, differ: false });
            }
        }
    }
    kinds.sort_by(|a, b| b.cells.cmp(&a.cells).then(a.outcome.cmp(&b.outcome)).then(a.example.cmp(b.example)));
    let more = kinds.len().saturating_sub(MAX_REASONS);
    let mut notes: Vec<String> = kinds
        .into_iter()
        .take(MAX_REASONS)
        .map(|kind| {
            let cells = if kind.cells == 1 { "1 cell".to_owned() } else { format!("{} cells", kind.cells) };
            let example = if kind.differ { ", for example" } else { "" };
            format!("{} ({cells}){example}: {}", word(kind.outcome), clean(kind.example))
        })
        .collect();
    if more > 0 {
        notes.push(format!("and {more} more: the page of this run shows them"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::without_figures;

    #[test]
    fn numbers_do_not_tell_reasons_apart() {
        assert_eq!(without_figures("187 of 256 chunks"), without_figures("29 of 256 chunks"));
        assert_ne!(without_figures("EMSGSIZE"), without_figures("ENOBUFS"));
    }
}
