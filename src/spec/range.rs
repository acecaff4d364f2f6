//! Ranges: many values from two ends and a step or a factor. Counted in whole units of the key (bytes, nanoseconds), never in
//! floating point, so that an end that can be met is met.

use std::ops::Range;

use crate::settings::{Kind, Value, nearest};

use super::check::Draft;
use super::error::SpecError;
use super::grid::MAX_CELLS;
use super::raw::{Entry, Typed};
use super::value::scalar;

/// What a range is made of.
const PARTS: [&str; 4] = ["from", "to", "step", "factor"];
/// Most digits after the point of a factor.
const MAX_PLACES: usize = 6;
/// One, in the fixed point that factors are applied in: enough digits for a long chain of fractions.
const ONE: u128 = 1_000_000_000_000_000_000;

/// How a range goes from one value to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// This many units are added.
    Step(u64),
    /// It is multiplied by the first number and divided by the second.
    Factor(u128, u128),
}

/// A range would have more values than a sweep may have cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooMany;

/// Whether a table is meant as a range.
pub(super) fn is_range(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| PARTS.contains(&entry.path.as_str()))
}

/// Whether values of this kind can be counted off.
pub(super) fn counts(kind: &Kind) -> bool {
    kind.distance().is_some()
}

/// The values from one end to the other: the first is `from`, the last is `to` if it is met and lies before it if not. Values that
/// round to the same whole unit are one.
fn values(from: u64, to: u64, growth: Growth) -> Result<Vec<u64>, TooMany> {
    match growth {
        Growth::Step(step) => {
            let gaps = to.saturating_sub(from) / step.max(1);
            if gaps >= MAX_CELLS.max {
                return Err(TooMany);
            }
            Ok((0..=gaps).map(|gap| from + gap * step).collect())
        }
        Growth::Factor(times, over) => {
            let mut found: Vec<u64> = Vec::new();
            let end = u128::from(to) * ONE;
            let mut at = u128::from(from) * ONE;
            for _ in 0..=MAX_CELLS.max {
                if at > end {
                    return Ok(found);
                }
                // Not past `to`, which is whole.
                let whole = u64::try_from((at + ONE / 2) / ONE).unwrap_or(to);
                if found.last() != Some(&whole) {
                    found.push(whole);
                }
                // What does not fit 128 bits lies beyond any end.
                let next = (at / over).checked_mul(times).and_then(|next| next.checked_add(at % over * times / over));
                let Some(next) = next else { return Ok(found) };
                at = next;
            }
            Err(TooMany)
        }
    }
}

/// A factor above one as a fraction, or why it is none.
fn factor(typed: &Typed) -> Result<Growth, &'static str> {
    let text = match typed {
        Typed::Value(Value::Int(number)) => number.to_string(),
        Typed::Float(text) => text.replace('_', ""),
        Typed::Negative(_) => return Err("it is below zero"),
        Typed::TooLarge(_) => return Err("it is too large"),
        _ => return Err("it is not a number"),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(if text.starts_with('-') { "it is below zero" } else { "it is not a plain number" });
    }
    if fraction.len() > MAX_PLACES {
        return Err("it has more than six digits after the point");
    }
    let over = (0..fraction.len()).fold(1, |over: u128, _| over * 10);
    let times: u64 = format!("{whole}{fraction}").parse().map_err(|_| "it is too large")?;
    if u128::from(times) > over { Ok(Growth::Factor(times.into(), over)) } else { Err("a range would not grow by it") }
}

impl Draft {
    /// The values of a range on the axis `name`, or its errors.
    pub(super) fn range(
        &mut self,
        name: &str,
        kind: &Kind,
        entries: &[Entry],
        span: &Range<usize>,
    ) -> Option<Vec<Value>> {
        let place = self.place(span);
        let Some(distance) = kind.distance() else {
            let error = SpecError::new(
                format!("`{name}`: a range, where {} belongs", kind.noun()),
                format!("list its values: {}", kind.expected()),
            );
            self.errors.push(error.at(&place, "a range is for numbers"));
            return None;
        };
        let before = self.errors.len();
        for entry in entries.iter().filter(|entry| !PARTS.contains(&entry.path.as_str())) {
            let fix = match nearest(&entry.path, &PARTS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a range has `from`, `to`, and either `step` or `factor`".to_owned(),
            };
            let error = SpecError::new(format!("`{name}`: unknown key `{}` in a range", entry.path), fix);
            self.errors.push(error.at(&self.place(&entry.key), "unknown key"));
        }
        let part = |part: &str| entries.iter().find(|entry| entry.path == part);
        let [from, to] = ["from", "to"].map(|end| {
            if let Some(entry) = part(end) {
                return self.end(name, end, kind, entry);
            }
            let fix = format!("add {end} = …; {}", kind.expected());
            let error = SpecError::new(format!("`{name}`: the range has no `{end}`"), fix);
            self.errors.push(error.at(&place, format!("no `{end}`")));
            None
        });
        let growth = match (part("step"), part("factor")) {
            (Some(step), None) => self.end(name, "step", &distance, step).map(Growth::Step),
            (None, Some(entry)) => match factor(&entry.typed) {
                Ok(growth) => Some(growth),
                Err(why) => {
                    let error = SpecError::new(
                        format!("`{name}`: `factor` does not fit: {why}"),
                        "write a number above 1, such as 2, 10 or 1.5",
                    );
                    self.errors.push(error.at(&self.place(&entry.span), why));
                    None
                }
            },
            (None, None) => {
                let error = SpecError::new(
                    format!("`{name}`: the range has neither `step` nor `factor`"),
                    "add factor = 2 to double from value to value, or step = … to add",
                );
                self.errors.push(error.at(&place, "how does it go on?"));
                None
            }
            (Some(step), Some(factor)) => {
                let error = SpecError::new(
                    format!("`{name}`: the range has `step` and `factor`"),
                    "leave one of them out: a step adds, a factor multiplies",
                );
                let (step, factor) = (self.place(&step.key), self.place(&factor.key));
                self.errors.push(error.at(&step, "adds").at(&factor, "multiplies"));
                None
            }
        };
        if self.errors.len() > before {
            return None;
        }
        let (from, to, growth) = (from?, to?, growth?);
        let show = |quantity: u64| kind.show(&kind.of_quantity(quantity));
        let wrong = if from > to {
            Some((
                format!("`{name}`: the range runs from {} down to {}", show(from), show(to)),
                "write the smaller end as `from`: the order of values does not matter to a cell".to_owned(),
            ))
        } else if from == 0 && matches!(growth, Growth::Factor(..)) {
            Some((
                format!("`{name}`: no factor leads away from {}", show(0)),
                "start above it and list it beside the range, as in [0, { from = 1, to = 8, factor = 2 }], or use `step`"
                    .to_owned(),
            ))
        } else {
            None
        };
        let found = match wrong {
            Some(wrong) => Err(wrong),
            None => values(from, to, growth).map_err(|TooMany| {
                (
                    format!("`{name}`: the range has more values than {} ({})", MAX_CELLS.name, MAX_CELLS.max),
                    "take a larger step or factor, or ends that are nearer".to_owned(),
                )
            }),
        };
        match found {
            Ok(found) => Some(found.into_iter().map(|quantity| kind.of_quantity(quantity)).collect()),
            Err((message, fix)) => {
                self.errors.push(SpecError::new(message, fix).at(&place, "this range"));
                None
            }
        }
    }

    /// One end of a range, or its step, in whole units.
    fn end(&mut self, name: &str, part: &str, kind: &Kind, entry: &Entry) -> Option<u64> {
        let rejected = match scalar(kind, &entry.typed) {
            Ok(value) => match kind.quantity(&value) {
                Some(quantity) => return Some(quantity),
                None => (
                    format!("`{value}` is no end of a range"),
                    format!("list it beside the range, as in [{{ from = …, to = …, factor = 2 }}, \"{value}\"]"),
                ),
            },
            Err(rejection) => (rejection.message, rejection.fix),
        };
        let error = SpecError::new(format!("`{name}`, `{part}`: {}", rejected.0), rejected.1);
        self.errors.push(error.at(&self.place(&entry.span), "not taken here"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Growth, ONE, TooMany, factor, values};
    use crate::settings::Value;
    use crate::spec::grid::MAX_CELLS;
    use crate::spec::raw::Typed;
    use proptest::prelude::*;

    #[test]
    fn ends_are_met_and_never_passed() {
        assert_eq!(values(1, 20, Growth::Step(7)), Ok(vec![1, 8, 15]));
        // 0 to 1 by 0.1, in nanoseconds of a second.
        let tenths = values(0, 1_000_000_000, Growth::Step(100_000_000)).expect("eleven");
        assert_eq!((tenths.len(), tenths.last()), (11, Some(&1_000_000_000)));
        let doubled = values(1 << 10, 4 << 20, Growth::Factor(2, 1)).expect("thirteen");
        assert_eq!((doubled.len(), doubled.last()), (13, Some(&(4 << 20))));
        assert_eq!(values(1024, 2303, Growth::Factor(15, 10)), Ok(vec![1024, 1536]));
        assert_eq!(values(1024, 2304, Growth::Factor(15, 10)), Ok(vec![1024, 1536, 2304]));
        assert_eq!(values(1, 3, Growth::Factor(11, 10)), Ok(vec![1, 2, 3]), "values that round to the same are one");
        assert_eq!(values(7, 7, Growth::Step(1)), Ok(vec![7]));
        let most = values(u64::MAX - 1, u64::MAX, Growth::Step(1)).expect("two");
        assert_eq!(most, [u64::MAX - 1, u64::MAX]);
        assert_eq!(values(u64::MAX, u64::MAX, Growth::Factor(1_000_001, 1_000_000)), Ok(vec![u64::MAX]));
    }

    #[test]
    fn a_range_beyond_the_cap_is_not_made() {
        assert_eq!(values(0, u64::MAX, Growth::Step(1)), Err(TooMany));
        assert_eq!(values(1, MAX_CELLS.max, Growth::Step(1)).map(|all| all.len()), Ok(100_000));
        assert_eq!(values(0, MAX_CELLS.max, Growth::Step(1)), Err(TooMany));
        assert_eq!(values(1, u64::MAX, Growth::Factor(1_000_001, 1_000_000)), Err(TooMany));
    }

    #[test]
    fn factors_are_exact() {
        let float = |text: &str| factor(&Typed::Float(text.into()));
        assert_eq!(factor(&Typed::Value(Value::Int(2))), Ok(Growth::Factor(2, 1)));
        assert_eq!(float("1.50"), Ok(Growth::Factor(15, 10)));
        assert_eq!(float("2.0"), Ok(Growth::Factor(2, 1)));
        for wrong in ["1.0", "0.5", "-2.0", "inf", "nan", "1e3", "1.0000001", "1"] {
            assert!(float(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn steps_are_even(from in 0u64..1_000_000, length in 0u64..1_000_000, step in 1u64..100_000) {
            let to = from + length;
            let Ok(all) = values(from, to, Growth::Step(step)) else {
                prop_assert!(length / step >= MAX_CELLS.max);
                return Ok(());
            };
            prop_assert_eq!(all.len() as u64, length / step + 1);
            prop_assert_eq!(all[0], from);
            prop_assert!(all.windows(2).all(|pair| pair[1] - pair[0] == step));
            let last = *all.last().expect("at least one");
            prop_assert!(last <= to && to - last < step);
        }

        #[test]
        fn factors_grow_to_the_end(from in 1u64..1 << 40, length in 0u64..1 << 40, times in 11u64..1000) {
            let to = from + length;
            let growth = Growth::Factor(times.into(), 10);
            let all = values(from, to, growth).expect("a factor of 1.1 and more is quick");
            prop_assert_eq!(all[0], from);
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "none twice");
            let last = *all.last().expect("at least one");
            // The next would lie beyond, but for the rounding of the last to whole units.
            prop_assert!(last <= to && u128::from(last) * u128::from(times) * 10 + 10 * u128::from(times) > u128::from(to) * 100);
        }

        #[test]
        fn an_end_that_is_met_is_there(from in 1u64..1 << 20, times in 2u64..9, steps in 0u32..12) {
            let Some(to) = times.checked_pow(steps).and_then(|power| from.checked_mul(power)) else { return Ok(()) };
            let all = values(from, to, Growth::Factor(times.into(), 1)).expect("few");
            prop_assert_eq!(all.len(), steps as usize + 1);
            prop_assert_eq!(all.last(), Some(&to));
        }
    }

    #[test]
    fn the_fixed_point_holds_every_number() {
        assert!(u128::from(u64::MAX).checked_mul(ONE).and_then(|end| end.checked_add(ONE)).is_some());
    }
}
