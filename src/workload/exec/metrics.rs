//! Numbers that are taken from what a program printed.

use regex::Regex;
use serde_json::Value as Json;

use crate::measurement::{Metric, Number};
use crate::settings::{Exec, MetricSpec, Side, Source, Stands};

use super::running::Running;
use super::{Failure, Report};

/// Takes the numbers of one end's program. The first that is not there is a failure; the others are told all the same.
pub(super) fn take(exec: &Exec, side: Side, running: &Running, report: &mut Report) -> Result<(), Failure> {
    let own: Vec<&MetricSpec> = exec.metrics.iter().filter(|spec| spec.from == side).collect();
    if own.is_empty() {
        return Ok(());
    }
    let (stdout, whole) = running.stdout.text();
    let (stderr, _) = running.stderr.text();
    let printed = Printed { stdout: &stdout, stderr: &stderr, whole, bytes: running.stdout.bytes() };
    let mut first_missing = None;
    for spec in own {
        let found = printed.find(&spec.source).and_then(|number| tell(spec, number, report));
        if let Err(reason) = &found {
            first_missing.get_or_insert_with(|| format!("no metric `{}`: {reason}", spec.name));
        }
        if spec.is == Stands::ForItself {
            let metric = Metric {
                value: found.as_ref().ok().copied(),
                unit: spec.unit.clone(),
                better: spec.better,
                reason: found.err(),
            };
            report.metrics.insert(spec.name.clone(), metric);
        }
    }
    match first_missing {
        Some(missing) => Err(Failure::Program(running.with_last_lines(&missing))),
        None => Ok(()),
    }
}

/// Puts a number where it belongs.
fn tell(spec: &MetricSpec, number: Number, report: &mut Report) -> Result<Number, String> {
    let whole = |scale: Option<f64>| {
        let unit = scale.ok_or_else(|| format!("`{}` is no unit of a {}", spec.unit, spec.is))?;
        let scaled = (number.get() * unit).round();
        if !(0.0..9e18).contains(&scaled) {
            return Err(format!("{number} {} is no {}", spec.unit, spec.is));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range just checked")]
        Ok(scaled as u64)
    };
    match spec.is {
        Stands::ForItself => {}
        Stands::Completion => report.completion_ns = Some(whole(MetricSpec::time_unit(&spec.unit))?),
        Stands::Goodput => report.goodput_bps = Some(whole(MetricSpec::rate_unit(&spec.unit))?),
    }
    Ok(number)
}

/// What a program printed, as far as it is kept.
struct Printed<'a> {
    stdout: &'a str,
    stderr: &'a str,
    /// Whether that is all of standard output.
    whole: bool,
    /// How much it wrote there.
    bytes: u64,
}

impl Printed<'_> {
    fn find(&self, source: &Source) -> Result<Number, String> {
        match source {
            Source::Regex(pattern) => self.match_of(pattern),
            Source::Json(pointer) => self.pointed_at(pointer),
        }
    }

    fn match_of(&self, pattern: &str) -> Result<Number, String> {
        // Each line begins and ends for `^` and `$`.
        let regex = Regex::new(&format!("(?m:{pattern})")).map_err(|error| error.to_string())?;
        let last = |text: &str| {
            let group = regex.captures_iter(text).filter_map(|captures| captures.get(1)).last()?;
            Some(group.as_str().to_owned())
        };
        let found = last(self.stdout).or_else(|| last(self.stderr));
        number(&found.ok_or_else(|| format!("nothing that was printed matches `{pattern}`"))?)
    }

    fn pointed_at(&self, pointer: &str) -> Result<Number, String> {
        if !self.whole {
            return Err(format!(
                "standard output has {} bytes, which are more than are kept to be read as JSON",
                self.bytes
            ));
        }
        let json: Json =
            serde_json::from_str(self.stdout).map_err(|error| format!("standard output is no JSON: {error}"))?;
        let value =
            json.pointer(pointer).ok_or_else(|| format!("the JSON on standard output has nothing at `{pointer}`"))?;
        match value {
            Json::Number(_) | Json::String(_) => number(value.as_str().unwrap_or(&value.to_string())),
            _ => Err(format!("`{pointer}` points to {value}, which is no number")),
        }
    }
}

fn number(text: &str) -> Result<Number, String> {
    text.trim().parse().ok().and_then(Number::new).ok_or_else(|| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::{Number, Printed};
    use crate::settings::Source;

    #[test]
    fn the_last_match_counts_and_errors_say_what_was_looked_for() {
        let printed =
            Printed { stdout: "[1] 10.5 ms\n[2] 11 ms\n", stderr: "rate 7\n[3] 99 ms\n", whole: true, bytes: 0 };
        let regex = |pattern: &str| printed.find(&Source::Regex(pattern.to_owned())).map(Number::get);
        assert_eq!(regex(r"^\[\d\] ([\d.]+) ms$"), Ok(11.0), "standard output comes first");
        assert_eq!(regex(r"rate (\d+)"), Ok(7.0));
        assert_eq!(regex("rtt (.*)"), Err("nothing that was printed matches `rtt (.*)`".to_owned()));
        assert_eq!(regex(r"rate|(x)"), Err("nothing that was printed matches `rate|(x)`".to_owned()));
        assert_eq!(regex(r"(\[)"), Err("`[` is no number".to_owned()));
    }

    #[test]
    fn json_is_pointed_into() {
        let text = r#"{"end": {"sum": [{"bps": 1.5e9}], "text": "7", "all": {}}}"#;
        let printed = Printed { stdout: text, stderr: "", whole: true, bytes: 0 };
        let json = |pointer: &str| printed.find(&Source::Json(pointer.to_owned())).map(Number::get);
        assert_eq!(json("/end/sum/0/bps"), Ok(1.5e9));
        assert_eq!(json("/end/text"), Ok(7.0));
        assert!(json("/end/sum/1").expect_err("nothing").contains("has nothing at `/end/sum/1`"));
        assert!(json("/end/all").expect_err("a table").contains("which is no number"));
        let cut = Printed { whole: false, bytes: 1 << 30, ..printed };
        assert!(cut.find(&Source::Json("/end".into())).expect_err("cut").contains("1073741824 bytes"));
        let none = Printed { stdout: "x", stderr: "", whole: true, bytes: 1 };
        assert!(
            none.find(&Source::Json(String::new())).expect_err("no JSON").starts_with("standard output is no JSON")
        );
    }
}
