//! Which cells a `[find]` measures next: both ends of each combination's values, then the middle of what is left, then the two
//! cells beside the answer.
//!
//! Bisection takes for granted that a condition which holds at one value holds at all beyond it. So nothing is taken from
//! one cell alone: the ends are measured first, and the cells beside the answer last, and where two cells contradict each other
//! the search ends there and says so.

use std::collections::HashMap;

use crate::settings::{Search, Value, Wanted};

use super::Cell;

/// The cells that differ on the searched axis alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// Cells by their index in the plan: where the condition holds at any, it is taken to hold at all after it.
    cells: Vec<usize>,
}

/// A search over all cells of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searching {
    lines: Vec<Line>,
    /// Cells whose value lies in no order, such as `"default"`: they are measured beside the search.
    aside: Vec<usize>,
}

impl Searching {
    /// The search over these cells.
    pub fn new(search: &Search, cells: &[Cell]) -> Self {
        let mut lines: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<Vec<&Value>, usize> = HashMap::new();
        let mut aside = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if !cell.axes.get(&search.axis).is_some_and(Search::has_order) {
                aside.push(index);
                continue;
            }
            let others: Vec<&Value> =
                cell.axes.0.iter().filter(|(axis, _)| search.is_other(axis)).map(|(_, value)| value).collect();
            let line = *known.entry(others).or_insert(lines.len());
            if line == lines.len() {
                lines.push(Vec::new());
            }
            lines[line].push(index);
        }
        let sorted = |mut line: Vec<usize>| {
            line.sort_by(|&a, &b| cells[a].axes.get(&search.axis).cmp(&cells[b].axes.get(&search.axis)));
            if search.wanted == Wanted::Largest {
                line.reverse();
            }
            Line { cells: line }
        };
        Self { lines: lines.into_iter().map(sorted).collect(), aside }
    }

    /// Cells to be measured next, by their index in the plan; none when the search is over. `verdict` tells of a cell whether the
    /// condition holds there, once it is measured.
    pub fn next(&self, verdict: impl Fn(usize) -> Option<bool>) -> Vec<usize> {
        let aside = self.aside.iter().copied().filter(|&cell| verdict(cell).is_none());
        let lines = self.lines.iter().flat_map(|line| {
            let known: Vec<Option<bool>> = line.cells.iter().map(|&cell| verdict(cell)).collect();
            step(&known).into_iter().map(|place| line.cells[place])
        });
        let mut next: Vec<usize> = aside.chain(lines).collect();
        next.sort_unstable();
        next
    }

    /// How many combinations of the other axes are searched.
    pub const fn combinations(&self) -> usize {
        self.lines.len()
    }

    /// How many values the longest of them has.
    pub fn longest(&self) -> usize {
        self.lines.iter().map(|line| line.cells.len()).max().unwrap_or(0)
    }

    /// How many cells are measured at most in one combination.
    pub fn most_of_one(&self) -> usize {
        self.lines.iter().map(|line| most(line.cells.len())).max().unwrap_or(0)
    }

    /// How many cells are measured at most.
    pub fn most(&self) -> usize {
        self.aside.len() + self.lines.iter().map(|line| most(line.cells.len())).sum::<usize>()
    }
}

/// How many of so many cells of a line are measured at most: the ends, the bisection between them, and one on each side.
fn most(cells: usize) -> usize {
    let between = cells.saturating_sub(1);
    let halvings = usize::try_from(usize::BITS - between.saturating_sub(1).leading_zeros()).unwrap_or(0);
    cells.min(2 + halvings + 2)
}

/// What to measure next of a line, by its place on it.
fn step(known: &[Option<bool>]) -> Vec<usize> {
    let Some(last) = known.len().checked_sub(1) else { return Vec::new() };
    let mut ends = vec![0, last];
    ends.dedup();
    ends.retain(|&end| known[end].is_none());
    if !ends.is_empty() {
        return ends;
    }
    let Some(holds) = known.iter().position(|verdict| *verdict == Some(true)) else { return Vec::new() };
    if known[holds..].contains(&Some(false)) {
        return Vec::new();
    }
    let Some(fails) = known[..holds].iter().rposition(|verdict| *verdict == Some(false)) else { return Vec::new() };
    if holds - fails > 1 {
        return vec![fails.midpoint(holds)];
    }
    let beside = [fails.checked_sub(1), Some(holds + 1)];
    beside.into_iter().flatten().filter(|&place| known.get(place).is_some_and(Option::is_none)).collect()
}

#[cfg(test)]
mod tests {
    use super::{most, step};
    use proptest::prelude::*;

    /// Runs a search on a line; what was measured.
    fn run(truth: &[bool]) -> Vec<Option<bool>> {
        let mut known = vec![None; truth.len()];
        loop {
            let next = step(&known);
            if next.is_empty() {
                return known;
            }
            for place in next {
                assert_eq!(known[place], None, "nothing is measured twice");
                known[place] = Some(truth[place]);
            }
        }
    }

    #[test]
    fn every_threshold_is_found_with_no_more_cells_than_promised() {
        for cells in 1usize..70 {
            let mut worst = 0;
            for from in 0..=cells {
                let truth: Vec<bool> = (0..cells).map(|place| place >= from).collect();
                let known = run(&truth);
                worst = worst.max(known.iter().flatten().count());
                assert_eq!(known.iter().position(|verdict| *verdict == Some(true)), (from < cells).then_some(from));
                if (1..cells).contains(&from) {
                    assert_eq!(known[from - 1], Some(false), "the neighbour is measured too");
                }
            }
            assert!(worst <= most(cells), "{cells}: {worst}");
            assert!(cells > 6 || worst == cells.min(most(cells)), "{cells}: {worst} of {}", most(cells));
        }
        assert_eq!((most(13), most(4096)), (8, 16));
    }

    #[test]
    fn ends_decide_alone_where_they_can() {
        assert_eq!(step(&[]), [0; 0]);
        assert_eq!(step(&[None]), [0]);
        assert_eq!(step(&[None; 5]), [0, 4], "both ends at once");
        assert_eq!(step(&[Some(false), None, None, Some(false)]), [0; 0], "nowhere");
        assert_eq!(step(&[Some(true), None, None, Some(true)]), [0; 0], "everywhere");
        assert_eq!(step(&[Some(true), None, None, Some(false)]), [0; 0], "the other way round");
    }

    #[test]
    fn a_contradiction_ends_the_search() {
        // Bisection ends at the third; the one after it does not hold.
        let truth = [false, false, true, false, true, true, true, true, true];
        let known = run(&truth);
        assert_eq!(
            known,
            [Some(false), Some(false), Some(true), Some(false), Some(true), None, None, None, Some(true)]
        );
    }

    proptest! {
        #[test]
        fn whatever_the_cells_say_the_search_ends_as_promised(truth in proptest::collection::vec(any::<bool>(), 0..200)) {
            prop_assert!(run(&truth).iter().flatten().count() <= most(truth.len()));
        }
    }
}
