//! `[find]`: which value of an axis is searched for, instead of measuring every cell.

use crate::settings::{Condition, Kind, ParseConditionError, Search, Settings, Wanted, Work};

use super::check::Draft;
use super::error::{Place, SpecError};
use super::raw::Entry;
use super::unknown::{list, split};
use super::value::scalar;

/// A key of `[find]`.
#[derive(Debug)]
pub(super) struct FindKey {
    /// Dotted path in a sweep file.
    pub(super) path: &'static str,
    /// What it sets, in one line.
    pub(super) about: &'static str,
    /// What it takes.
    pub(super) takes: &'static str,
}

/// All keys of `[find]`, in the order in which documentation lists them.
pub(super) static FIND_KEYS: [FindKey; 3] = [
    FindKey {
        path: "find.axis",
        about: "axis that is searched, for each combination of the others, instead of measuring all its values",
        takes: "the name of an axis whose values have an order",
    },
    FindKey {
        path: "find.smallest_where",
        about: "condition on the median of a cell; the smallest value at which it holds is searched by bisection, larger ones being taken to satisfy it too",
        takes: "a figure, <, <=, > or >=, and a bound with its unit, such as \"completion < 10ms\" or \"goodput >= 900Mbit/s\"",
    },
    FindKey {
        path: "find.largest_where",
        about: "the same for the largest value; give one of the two",
        takes: "as `smallest_where`",
    },
];

/// `[find]` as it was typed.
#[derive(Debug)]
pub(super) struct FindDraft {
    place: Place,
    axis: Option<(String, Place)>,
    conditions: Vec<(Wanted, Condition, Place)>,
    /// Whether something in it was not understood, so that nothing is concluded from what is missing.
    broken: bool,
}

impl FindDraft {
    pub(super) const fn new(place: Place) -> Self {
        Self { place, axis: None, conditions: Vec::new(), broken: false }
    }
}

/// Whether a path is of a key of `[find]`.
pub(super) fn is_find(path: &str) -> bool {
    FIND_KEYS.iter().any(|key| key.path == path)
}

impl Draft {
    /// Takes in a key of `[find]`.
    pub(super) fn find_key(&mut self, entry: &Entry) {
        let place = self.place(&entry.span);
        let name = split(&entry.path).1;
        let text = match scalar(&Kind::Text, &entry.typed) {
            Ok(text) => text.to_string(),
            Err(rejection) => {
                let error = SpecError::new(format!("`{}`: {}", entry.path, rejection.message), rejection.fix);
                self.errors.push(error.at(&place, "not taken here"));
                self.break_find();
                return;
            }
        };
        let wanted = match name {
            "axis" => {
                if let Some(find) = &mut self.find {
                    find.axis = Some((text, place));
                }
                return;
            }
            "largest_where" => Wanted::Largest,
            _ => Wanted::Smallest,
        };
        match text.parse::<Condition>() {
            Ok(condition) => {
                if let Some(find) = &mut self.find {
                    find.conditions.push((wanted, condition, place));
                }
            }
            Err(ParseConditionError { message, fix }) => {
                let error = SpecError::new(format!("`{}`: {message}", entry.path), fix);
                self.errors.push(error.at(&place, "not a condition"));
                self.break_find();
            }
        }
    }

    pub(super) fn break_find(&mut self) {
        if let Some(find) = &mut self.find {
            find.broken = true;
        }
    }

    /// The search, if there is one and nothing is wrong with it.
    pub(super) fn search(&mut self) -> Option<Search> {
        let find = self.find.take()?;
        let before = self.errors.len();
        let axis = match &find.axis {
            Some((name, place)) => self.searched(name, place),
            None if find.broken => None,
            None => {
                let axes = list(self.axes.iter().map(|axis| axis.key.name()));
                let fix = if axes.is_empty() {
                    "write axis = \"rcvbuf\", say, and its values under [axes]".to_owned()
                } else {
                    format!("add axis = \"…\"; the axes are {axes}")
                };
                self.errors.push(SpecError::new("[find] names no `axis`", fix).at(&find.place, "which axis?"));
                None
            }
        };
        let condition = match find.conditions.as_slice() {
            [only] => Some(only),
            [] if find.broken => None,
            [] => {
                let error = SpecError::new(
                    "[find] has neither `smallest_where` nor `largest_where`",
                    "add smallest_where = \"completion < 10ms\", say",
                );
                self.errors.push(error.at(&find.place, "what is looked for?"));
                None
            }
            [first, second, ..] => {
                let error = SpecError::new(
                    "[find] has `smallest_where` and `largest_where`",
                    "leave one of them out: one sweep searches one end",
                );
                self.errors.push(error.at(&second.2, "again here").at(&first.2, "first here"));
                None
            }
        };
        let (index, (wanted, condition, place)) = (axis?, condition?);
        self.condition_place = Some(place.clone());
        let searched = &self.axes[index];
        let with = self
            .axes
            .iter()
            .enumerate()
            .filter(|(other, axis)| *other != index && axis.zip.is_some() && axis.zip == searched.zip);
        let search = Search {
            axis: searched.key.name().to_owned(),
            path: searched.key.path.to_owned(),
            with: with.map(|(_, axis)| axis.key.name().to_owned()).collect(),
            wanted: *wanted,
            condition: *condition,
        };
        (self.errors.len() == before).then_some(search)
    }

    /// The axis that is searched, by its index. The error, if there is none or it has no order.
    fn searched(&mut self, name: &str, place: &Place) -> Option<usize> {
        let key = self.axis_key(name, place)?;
        let Some(index) = self.axes.iter().position(|axis| std::ptr::eq(axis.key, key)) else {
            if !self.broken.contains(&key.path) {
                let axes = list(self.axes.iter().map(|axis| axis.key.name()));
                let known = if axes.is_empty() { "the sweep has none".to_owned() } else { format!("they are {axes}") };
                let error = SpecError::new(
                    format!("`{name}` is no axis of this sweep, and [find] searches an axis"),
                    format!("write its values under [axes], or name another axis: {known}"),
                );
                self.errors.push(error.at(place, "not an axis"));
            }
            return None;
        };
        let axis = &self.axes[index];
        let mut ordered: Vec<_> = axis.values.iter().filter(|(value, _)| Search::has_order(value)).collect();
        if !axis.values.is_empty() && (ordered.is_empty() || !may_have_order(&key.kind)) {
            let error = SpecError::new(
                format!("the values of `{name}` have no order, and a search goes by order"),
                "name an axis of numbers, sizes, times, rates or percentages; to try each of these values, leave [find] out",
            );
            self.errors.push(error.at(place, "has no order").at(&axis.place, "this axis"));
            return None;
        }
        ordered.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some([one, other]) = ordered.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let error = SpecError::new(
                format!("`{name}` has {} in two rows of its [[zip]], so its rows have no order", key.kind.show(&one.0)),
                "search another axis, or give each row a value of its own",
            );
            self.errors.push(error.at(place, "has no order").at(&one.1, "one").at(&other.1, "the other"));
            return None;
        }
        Some(index)
    }

    /// Says so where no cell has the figure that the search goes by.
    pub(super) fn searchable<'a>(&mut self, search: &Search, mut cells: impl Iterator<Item = &'a Settings>) {
        let figure = search.condition.figure;
        let lacks = |settings: &Settings| {
            let work = &settings.workload;
            work.kind == Work::Stream && (figure.is_of_chunks() || !figure.is_rate() && work.bytes.is_none())
        };
        let Some(place) = self.condition_place.clone() else { return };
        if cells.all(lacks) {
            let what = if figure.is_of_chunks() {
                "a stream has no round trips of chunks"
            } else {
                "a stream for a time has no completion"
            };
            let error = SpecError::new(
                format!("`{figure}` is in no cell of this sweep: {what}"),
                "search by `goodput`, as in \"goodput >= 900Mbit/s\"",
            );
            self.errors.push(error.at(&place, "never measured"));
        }
    }
}

/// Whether values of a kind can lie in an order.
const fn may_have_order(kind: &Kind) -> bool {
    !matches!(kind, Kind::Switch { .. } | Kind::Choice(_) | Kind::Text)
}
