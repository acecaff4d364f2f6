//! `repeat` as a table, `{ min, max, precision, confidence }`: a cell is repeated until its median is known well enough. And what
//! `--repeat` and `--precision` make of it.

use std::ops::Range;

use crate::settings::{Kind, Precision, Rejection, Value, nearest};
use crate::units::Percent;

use super::check::{Draft, Setting};
use super::error::{Place, SpecError};
use super::raw::{Entry, Typed};
use super::run::{MAX_REPEATS, find_run};
use super::unknown::list;
use super::value::scalar;

/// The path of the key.
pub(super) const REPEAT: &str = "run.repeat";
/// What a table of it holds.
const FIELDS: [&str; 4] = ["min", "max", "precision", "confidence"];
/// Most repeats where `--precision` is given and nothing says how many.
const USUAL_MAX: u32 = 50;
/// How often an interval is to hold the median where nothing else is said.
const USUAL_CONFIDENCE: f64 = 0.95;
/// Bounds of it: below, an interval says next to nothing; above, it takes more than 14 repeats to have one at all.
const CONFIDENCES: Range<f64> = 0.5..0.9999;
/// How the key is written.
const EXAMPLE: &str = "repeat = { min = 6, max = 50, precision = \"2%\", confidence = 0.95 }";

/// A count of repeats.
pub(super) fn count(typed: &Typed) -> Result<u32, Rejection> {
    let value = scalar(&Kind::Count { min: 1, limit: MAX_REPEATS, or_default: false }, typed)?;
    Ok(value.int().and_then(|count| u32::try_from(count).ok()).unwrap_or_default())
}

/// How far the interval of a median may reach from it.
pub(super) fn share(typed: &Typed) -> Result<Percent, Rejection> {
    let value = scalar(&Kind::Percent, typed)?;
    let share: Percent = value.text().and_then(|text| text.parse().ok()).unwrap_or_default();
    if share == Percent::default() {
        return Err(Rejection {
            message: "`0%` is a precision that only identical repeats reach".to_owned(),
            fix: "write \"2%\", say: the interval of the median may reach so far from it".to_owned(),
        });
    }
    Ok(share)
}

/// How often an interval is to hold the median: `0.95`, or `"95%"`.
fn confidence(typed: &Typed) -> Result<Percent, Rejection> {
    let number = match typed {
        Typed::Float(text) => text.parse::<f64>().ok(),
        Typed::Value(Value::Text(text)) => text.parse::<Percent>().ok().map(Percent::share),
        Typed::Value(Value::Int(number)) => Some(if *number == 0 { 0.0 } else { 1.0 }),
        _ => None,
    };
    number.filter(|number| CONFIDENCES.contains(number)).and_then(Percent::of_share).ok_or_else(|| Rejection {
        message: format!("no confidence between {} and {}", CONFIDENCES.start, CONFIDENCES.end),
        fix: "write 0.95, say: how often such an interval is to hold the median".to_owned(),
    })
}

impl Draft {
    /// Takes in `repeat` as a table.
    pub(super) fn repeat_table(&mut self, entry: &Entry, fields: &[Entry]) {
        let whole = self.place(&entry.span);
        let before = self.errors.len();
        let (mut min, mut max, mut wanted, mut sure) = (None, None, None, None);
        for field in fields {
            let place = self.place(&field.span);
            let taken = match field.path.as_str() {
                "min" => count(&field.typed).map(|count| min = Some((count, place.clone()))),
                "max" => count(&field.typed).map(|count| max = Some((count, place.clone()))),
                "precision" => share(&field.typed).map(|share| wanted = Some(share)),
                "confidence" => confidence(&field.typed).map(|confidence| sure = Some(confidence)),
                unknown => {
                    let fix = nearest(unknown, &FIELDS)
                        .map_or_else(|| format!("it takes {}", list(FIELDS)), |near| format!("did you mean `{near}`?"));
                    let error = SpecError::new(format!("unknown key `{unknown}` in `repeat`"), fix);
                    self.errors.push(error.at(&self.place(&field.key), "unknown key"));
                    continue;
                }
            };
            if let Err(rejection) = taken {
                let message = format!("`{}` of `repeat`: {}", field.path, rejection.message);
                self.errors.push(SpecError::new(message, rejection.fix).at(&place, "not taken here"));
            }
        }
        let has = |name: &str| fields.iter().any(|field| field.path == name);
        for (name, why) in [("max", "when to give up"), ("precision", "when it is enough")] {
            if !has(name) {
                let error = SpecError::new(
                    format!("`repeat` lacks `{name}`: {why}"),
                    format!("write {EXAMPLE}, or one number"),
                );
                self.errors.push(error.at(&whole, format!("no `{name}`")));
            }
        }
        let (Some((max, max_place)), Some(share), true) = (max, wanted, self.errors.len() == before) else {
            self.broken.push(REPEAT);
            return;
        };
        let confidence = sure.or_else(|| Percent::of_share(USUAL_CONFIDENCE)).unwrap_or(Percent::ALL);
        let (min, min_place) = min.unzip();
        let mut precision = Precision { min: 1, share, confidence };
        precision.min = min.unwrap_or_else(|| precision.fewest().min(max));
        self.repeats(max, precision, &whole, (min_place.as_ref(), &max_place));
    }

    /// Takes in how often cells are repeated, if that makes sense.
    fn repeats(&mut self, max: u32, precision: Precision, whole: &Place, (min_at, max_at): (Option<&Place>, &Place)) {
        let Precision { min, confidence, .. } = precision;
        let fewest = precision.fewest();
        if min > max {
            let error = SpecError::new(format!("at least {min} repeats and at most {max} are none"), "swap the two");
            let error = error.at(min_at.unwrap_or(whole), "at least").at(max_at, "at most");
            self.errors.push(error);
        } else if max < fewest {
            let error = SpecError::new(
                format!(
                    "at most {max} repeats never tell how well a median is known: at {confidence} confidence it takes {fewest}"
                ),
                format!("allow at least {fewest}, or ask for less confidence; or write repeat = {max}, one number"),
            );
            self.errors.push(error.at(max_at, format!("fewer than {fewest}")));
        } else if let Some(key) = find_run(REPEAT) {
            self.run.retain(|setting| !std::ptr::eq(setting.key, key));
            self.run.push(Setting { key, value: Value::Int(max.into()), place: whole.clone() });
            self.precision = Some(precision);
            return;
        }
        self.broken.push(REPEAT);
    }

    /// What `--repeat N`, `--repeat MIN..MAX` and `--precision SHARE` make of it. Each comes with its place.
    pub(super) fn repeat_argument(&mut self, repeat: Option<(&str, Place)>, precision: Option<(&str, Place)>) {
        let mut reject = |option: &str, rejection: Rejection, place: &Place| {
            let error = SpecError::new(format!("{option}: {}", rejection.message), rejection.fix);
            self.errors.push(error.at(place, "not taken here"));
        };
        let ends = match repeat
            .as_ref()
            .map(|(text, place)| (range(text), place))
            .map(|(ends, place)| ends.map_err(|error| (error, place)))
        {
            Some(Err((rejection, place))) => return reject("--repeat", rejection, place),
            Some(Ok(ends)) => Some(ends),
            None => None,
        };
        let wanted = match precision.as_ref().map(|(text, place)| (share(&super::raw::word(text)), place)) {
            Some((Err(rejection), place)) => return reject("--precision", rejection, place),
            Some((Ok(share), _)) => Some(share),
            None => None,
        };
        let Some(place) = repeat.or(precision).map(|(_, place)| place) else { return };
        let known = self.precision.take();
        let ends = match (ends, wanted) {
            (Some((None, count)), None) => {
                // One number: so many, whatever the file says.
                if let Some(key) = find_run(REPEAT) {
                    self.run.retain(|setting| !std::ptr::eq(setting.key, key));
                    self.run.push(Setting { key, value: Value::Int(count.into()), place });
                }
                return;
            }
            (Some((Some(min), max)), None) if known.is_none() => {
                let error = SpecError::new(
                    format!("from {min} to {max} repeats, and nothing says when it is enough"),
                    "add --precision 2%, say, or give one number",
                );
                self.errors.push(error.at(&place, "how many of these"));
                return;
            }
            (ends, _) => ends,
        };
        let confidence = Percent::of_share(USUAL_CONFIDENCE).unwrap_or(Percent::ALL);
        let mut precision = known.unwrap_or(Precision { min: 1, share: Percent::ALL, confidence });
        precision.share = wanted.unwrap_or(precision.share);
        let known_max = self.run.iter().find(|setting| setting.key.path == REPEAT).filter(|_| known.is_some());
        let known_max = known_max.and_then(|setting| setting.value.int()).and_then(|max| u32::try_from(max).ok());
        let max = ends.map_or(known_max.unwrap_or(USUAL_MAX), |(_, max)| max);
        precision.min = match ends {
            Some((Some(min), _)) => min,
            _ if known.is_some() => precision.min.min(max),
            _ => precision.fewest().min(max),
        };
        self.repeats(max, precision, &place, (None, &place));
    }
}

/// Reads `N` or `MIN..MAX`.
fn range(text: &str) -> Result<(Option<u32>, u32), Rejection> {
    let one = |text: &str| count(&super::raw::word(text));
    match text.split_once("..") {
        Some((min, max)) => Ok((Some(one(min)?), one(max.trim_start_matches('='))?)),
        None => Ok((None, one(text)?)),
    }
}
