//! What some cells of a sweep have in common and no others have.

use std::collections::BTreeSet;

use crate::settings::{Axes, Value, find};

/// Most axes that a group of cells is told apart by.
const MOST_AXES: usize = 3;

/// For how many cells of a group one other may be told with it.
const FOR_ONE_OTHER: usize = 4;

/// What cells have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Common {
    /// In words, as `rcvbuf ≤ 4 KiB and nodelay off`. `None` if they cannot be told from the others.
    pub(super) rule: Option<String>,
    /// How many others that holds for.
    pub(super) others: usize,
}

/// A condition on one axis: the values that satisfy it.
struct Condition<'a> {
    axis: &'a str,
    values: BTreeSet<&'a Value>,
}

impl Condition<'_> {
    fn holds(&self, axes: &Axes) -> bool {
        axes.get(self.axis).is_some_and(|value| self.values.contains(value))
    }
}

/// The values that cells have on each axis.
fn conditions<'a>(cells: &[&'a Axes]) -> Vec<Condition<'a>> {
    let Some(first) = cells.first() else { return Vec::new() };
    let condition =
        |axis: &'a str| Condition { axis, values: cells.iter().filter_map(|axes| axes.get(axis)).collect() };
    first.0.iter().map(|(axis, _)| condition(axis)).collect()
}

/// What all of `inside` and none of `outside`, or few of them, have in common, on as few axes as can be.
pub(super) fn common(inside: &[&Axes], outside: &[&Axes]) -> Common {
    if outside.is_empty() {
        return Common { rule: Some("every cell".to_owned()), others: 0 };
    }
    let conditions = conditions(inside);
    let all: Vec<&Axes> = inside.iter().chain(outside).copied().collect();
    let others = |chosen: &[&Condition<'_>]| {
        outside.iter().filter(|axes| chosen.iter().all(|condition| condition.holds(axes))).count()
    };
    // The fewest axes that leave the fewest others.
    let best = (1..=MOST_AXES.min(conditions.len()))
        .flat_map(|number| chosen(&conditions, number))
        .map(|chosen| (others(&chosen), chosen))
        .min_by_key(|(others, chosen)| (*others, chosen.len()));
    let exact = |rule| Common { rule: Some(rule), others: 0 };
    match best {
        Some((0, chosen)) => exact(all_of(&chosen, &all)),
        best => {
            let names = conditions.iter().map(|condition| condition.axis);
            one_of(inside, outside, &all)
                .or_else(|| names.into_iter().find_map(|axis| in_two_parts(axis, inside, outside, &all)))
                .map(exact)
                .or_else(|| {
                    let (others, chosen) = best?;
                    let few = others * FOR_ONE_OTHER <= inside.len();
                    few.then(|| Common { rule: Some(all_of(&chosen, &all)), others })
                })
                .unwrap_or_default()
        }
    }
}

fn all_of(chosen: &[&Condition<'_>], all: &[&Axes]) -> String {
    chosen.iter().map(|condition| describe(condition, all)).collect::<Vec<_>>().join(" and ")
}

/// Every choice of so many, in order.
fn chosen<T>(from: &[T], number: usize) -> Vec<Vec<&T>> {
    if number == 0 {
        return vec![Vec::new()];
    }
    from.iter()
        .enumerate()
        .flat_map(|(index, first)| {
            chosen(&from[index + 1..], number - 1).into_iter().map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}

/// On each axis, the values of which every cell is inside.
fn full<'a>(inside: &[&'a Axes], outside: &[&'a Axes]) -> Vec<Condition<'a>> {
    let without = conditions(outside);
    let mut within = conditions(inside);
    for condition in &mut within {
        if let Some(other) = without.iter().find(|other| other.axis == condition.axis) {
            condition.values.retain(|value| !other.values.contains(value));
        }
    }
    within.retain(|condition| !condition.values.is_empty());
    within
}

/// Conditions of which each cell satisfies at least one: `sndbuf ≥ 128 KiB or rcvbuf ≥ 128 KiB`.
fn one_of(inside: &[&Axes], outside: &[&Axes], all: &[&Axes]) -> Option<String> {
    let full = full(inside, outside);
    let covers = |chosen: &Vec<&Condition<'_>>| inside.iter().all(|axes| chosen.iter().any(|one| one.holds(axes)));
    let chosen = (2..=MOST_AXES.min(full.len())).flat_map(|number| chosen(&full, number)).find(covers)?;
    Some(chosen.iter().map(|condition| describe(condition, all)).collect::<Vec<_>>().join(" or "))
}

/// Two parts: all cells with some values of an axis, and of the rest those that two axes tell apart.
fn in_two_parts(axis: &str, inside: &[&Axes], outside: &[&Axes], all: &[&Axes]) -> Option<String> {
    let whole = full(inside, outside).into_iter().find(|condition| condition.axis == axis)?;
    let rest: Vec<&Axes> = inside.iter().filter(|axes| !whole.holds(axes)).copied().collect();
    let conditions = conditions(&rest);
    let telling = |chosen: &[&Condition<'_>]| {
        outside.iter().all(|axes| chosen.iter().any(|condition| !condition.holds(axes)))
            && inside.iter().all(|axes| chosen.iter().all(|condition| condition.holds(axes)) == rest.contains(axes))
    };
    let chosen = chosen(&conditions, 2).into_iter().find(|chosen| telling(chosen))?;
    Some(format!("{}, or {}", describe(&whole, all), all_of(&chosen, all)))
}

/// A condition as a person reads it: `rcvbuf ≤ 4 KiB` where its sizes are the smallest ones, else the values.
fn describe(condition: &Condition<'_>, all: &[&Axes]) -> String {
    let Condition { axis, values } = condition;
    let show = |value: &Value| find(axis).map_or_else(|| value.to_string(), |key| key.kind.show(value));
    let every: BTreeSet<&Value> =
        all.iter().filter_map(|axes| axes.get(axis)).filter(|value| value.has_size()).collect();
    let (sizes, words): (Vec<&Value>, Vec<&Value>) = values.iter().partition(|value| value.has_size());
    let mut parts = Vec::new();
    match (sizes.first(), sizes.last()) {
        (Some(smallest), Some(largest)) if sizes.len() > 1 && every.len() > sizes.len() => {
            let below = every.iter().filter(|value| *value < smallest).count();
            let above = every.iter().filter(|value| *value > largest).count();
            if below == 0 && sizes.len() + above == every.len() {
                parts.push(format!("≤ {}", show(largest)));
            } else if above == 0 && sizes.len() + below == every.len() {
                parts.push(format!("≥ {}", show(smallest)));
            } else {
                parts.extend(sizes.iter().map(|value| show(value)));
            }
        }
        // Each size that there is.
        (Some(smallest), Some(_)) if sizes.len() > 2 => parts.push(format!("≥ {}", show(smallest))),
        _ => parts.extend(sizes.iter().map(|value| show(value))),
    }
    parts.extend(words.into_iter().map(show));
    format!("{axis} {}", parts.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::{Common, common};
    use crate::settings::{Axes, Value};

    fn grid() -> Vec<Axes> {
        let sizes = [Value::Int(32 << 10), Value::Int(64 << 10), Value::Int(128 << 10), Value::kernel_default()];
        let pair = |rcvbuf: &Value, sndbuf: &Value| {
            Axes(vec![("rcvbuf".to_owned(), rcvbuf.clone()), ("sndbuf".to_owned(), sndbuf.clone())])
        };
        sizes.iter().flat_map(|rcvbuf| sizes.iter().map(move |sndbuf| pair(rcvbuf, sndbuf))).collect()
    }

    fn of(is_inside: impl Fn(&Value, &Value) -> bool) -> Common {
        let cells = grid();
        let (inside, outside): (Vec<&Axes>, Vec<&Axes>) = cells.iter().partition(|axes| {
            let value = |name| axes.get(name).expect("on the axis");
            is_inside(value("rcvbuf"), value("sndbuf"))
        });
        common(&inside, &outside)
    }

    #[track_caller]
    fn rule(expected: &str, is_inside: impl Fn(&Value, &Value) -> bool) {
        assert_eq!(of(is_inside), Common { rule: Some(expected.to_owned()), others: 0 });
    }

    #[test]
    fn sizes_are_told_by_where_they_end_and_words_beside_them() {
        let large = |value: &Value| value.int().is_some_and(|size| size >= 64 << 10);
        rule("rcvbuf ≥ 64 KiB", |rcvbuf, _| large(rcvbuf));
        rule("rcvbuf ≥ 64 KiB or default", |rcvbuf, _| large(rcvbuf) || rcvbuf.is_default());
        rule("rcvbuf ≥ 32 KiB", |rcvbuf, _| !rcvbuf.is_default());
        rule("rcvbuf default", |rcvbuf, _| rcvbuf.is_default());
        rule("every cell", |_, _| true);
    }

    #[test]
    fn either_of_two_axes_may_do() {
        let clamped = |value: &Value| value.int() == Some(128 << 10);
        rule("rcvbuf 128 KiB or sndbuf 128 KiB", |rcvbuf, sndbuf| clamped(rcvbuf) || clamped(sndbuf));
    }

    #[test]
    fn a_few_others_are_told_and_many_leave_nothing_in_common() {
        let few = |rcvbuf: &Value, sndbuf: &Value| {
            let pair = (rcvbuf.int(), sndbuf.int());
            !rcvbuf.is_default() && pair != (Some(32 << 10), Some(64 << 10)) && pair != (Some(64 << 10), Some(32 << 10))
        };
        assert_eq!(of(few), Common { rule: Some("rcvbuf ≥ 32 KiB".to_owned()), others: 2 });
        assert_eq!(of(|rcvbuf, sndbuf| rcvbuf == sndbuf), Common::default());
    }
}
