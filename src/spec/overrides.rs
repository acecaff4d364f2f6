//! What the command line changes in a sweep: `--repeat`, `--set` and `--filter`.

use std::sync::Arc;

use miette::NamedSource;

use crate::settings::{Value, find};

use super::axis::{AxisDraft, cannot_vary, listed};
use super::check::{Draft, Setting};
use super::error::{Place, SpecError, harmless};
use super::precision::REPEAT;
use super::run::find_run;
use super::unknown;
use super::value::word;

/// What the command line changes in a sweep. Values are typed as in the file, but need no quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--repeat`: `N` or `MIN..MAX`, in place of `run.repeat`.
    pub repeat: Option<String>,
    /// `--precision`: how well a median is to be known, `2%`.
    pub precision: Option<String>,
    /// `--capture`: `run.capture` is on.
    pub capture: bool,
    /// `--set key=v1,v2`. An axis gets these values in place of its own; one that is zipped gets one for all rows, or one for each. Any other key becomes an axis where several values
    /// are given, and is fixed where there is one. An option of `[run]` takes one value.
    pub set: Vec<(String, Vec<String>)>,
    /// `--filter axis=v1,v2`: only these values of an axis, and what is zipped with them. Filters on the same axis add up.
    pub filter: Vec<(String, Vec<String>)>,
}

/// Why the text after `--set` or `--filter` is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseAssignmentError {
    /// There is no `=`, or nothing before it.
    #[error("`{0}` has no name: write it as name=value, such as rcvbuf=64KiB")]
    NoName(String),
    /// There is nothing after the `=`, or nothing between two commas.
    #[error("`{0}` lacks a value: write name=value or name=value,value")]
    NoValue(String),
}

impl Overrides {
    /// Reads `name=v1,v2`. A comma within double quotes is part of a value.
    ///
    /// # Errors
    /// When there is no name or a value is empty.
    pub fn assignment(text: &str) -> Result<(String, Vec<String>), ParseAssignmentError> {
        let (name, values) = text.split_once('=').ok_or_else(|| ParseAssignmentError::NoName(text.to_owned()))?;
        let name = name.trim().trim_matches('"');
        if name.is_empty() {
            return Err(ParseAssignmentError::NoName(text.to_owned()));
        }
        let mut quoted = false;
        let values: Vec<String> = values
            .split(|c| {
                quoted ^= c == '"';
                c == ',' && !quoted
            })
            .map(|value| value.trim().to_owned())
            .collect();
        if values.iter().any(String::is_empty) {
            return Err(ParseAssignmentError::NoValue(text.to_owned()));
        }
        Ok((name.to_owned(), values))
    }

    /// Changes the draft.
    pub(super) fn apply(&self, draft: &mut Draft) {
        let place = |option: &str, text: &Option<String>| {
            text.as_ref().map(|text| Argument::new(option, None, std::slice::from_ref(text)).whole())
        };
        let arguments = [("--repeat", &self.repeat), ("--precision", &self.precision)];
        let [repeat, precision] = arguments.map(|(option, text)| text.as_deref().zip(place(option, text)));
        draft.repeat_argument(repeat, precision);
        if self.capture {
            Argument::new("--capture", None, &["true".to_owned()]).set_run(draft, "run.capture");
        }
        let mut seen: Vec<(&str, Place)> = Vec::new();
        for (name, values) in &self.set {
            let argument = Argument::new("--set", Some(name), values);
            let path = find(name).map_or(name.as_str(), |key| key.path);
            let (twice, with_repeat) = (seen.iter().find(|(earlier, _)| *earlier == path), path == "run.repeat");
            if let Some((_, earlier)) = twice {
                let error = SpecError::new(
                    format!("`{name}` is set twice on the command line"),
                    format!("give all its values at once: --set {name}=v1,v2"),
                );
                draft.errors.push(error.at(&argument.whole(), "again here").at(earlier, "first here"));
            } else if with_repeat && (self.repeat.is_some() || self.precision.is_some()) {
                let error =
                    SpecError::new("`run.repeat` is set by --repeat or --precision too", "leave one of the two out");
                draft.errors.push(error.at(&argument.whole(), "again here"));
            } else {
                seen.push((path, argument.whole()));
                argument.set(draft, name);
            }
        }
        // What --set has put into the rows of a [[zip]] may make two of them one.
        draft.check_zips();
        draft.complete_includes();
        let mut kept: Vec<(usize, Vec<Value>)> = Vec::new();
        for (name, values) in &self.filter {
            if let Some((axis, values)) = Argument::new("--filter", Some(name), values).filter(draft, name) {
                match kept.iter_mut().find(|(earlier, _)| *earlier == axis) {
                    Some((_, earlier)) => earlier.extend(values),
                    None => kept.push((axis, values)),
                }
            }
        }
        for (index, kept) in &kept {
            draft.keep(*index, kept);
        }
    }
}

impl Draft {
    /// Keeps only the cells that have one of these values on the axis: whole rows, where it is zipped.
    fn keep(&mut self, index: usize, kept: &[Value]) {
        let rows: Vec<bool> = self.axes[index].values.iter().map(|(value, _)| kept.contains(value)).collect();
        let zip = self.axes[index].zip;
        for (other, axis) in self.axes.iter_mut().enumerate() {
            if other == index || (zip.is_some() && axis.zip == zip) {
                let mut rows = rows.iter();
                axis.values.retain(|_| rows.next().is_none_or(|&row| row));
            }
        }
        self.includes.retain(|include| include.values.get(index).is_none_or(|value| kept.contains(value)));
    }
}

/// One argument of the command line as a text to point into.
struct Argument<'a> {
    place: Place,
    values: Vec<(&'a str, Place)>,
}

impl<'a> Argument<'a> {
    /// The argument `option name=v1,v2`, or `option v1` without a name.
    fn new(option: &str, name: Option<&str>, values: &'a [String]) -> Self {
        let mut text = format!("{option} ");
        let start = text.len();
        text.push_str(name.unwrap_or_default());
        let end = text.len();
        text.push_str(if name.is_some() { "=" } else { "" });
        let mut spans = Vec::new();
        for (index, value) in values.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            spans.push((value, text.len()..text.len() + value.len()));
            text.push_str(value);
        }
        let source = Arc::new(NamedSource::new("command line", harmless(&text)));
        let place = |span| Place { source: source.clone(), span };
        Self {
            place: place(start..end),
            values: spans.into_iter().map(|(value, span)| (value.as_str(), place(span))).collect(),
        }
    }

    /// The place of the whole argument, without the option before it.
    fn whole(&self) -> Place {
        let end = self.values.last().map_or(self.place.span.end, |(_, place)| place.span.end);
        Place { source: self.place.source.clone(), span: self.place.span.start..end }
    }

    /// Sets a key: as an axis where it was one or several values are given.
    fn set(&self, draft: &mut Draft, name: &str) {
        if find_run(name).is_some() {
            self.set_run(draft, name);
            return;
        }
        let Some(key) = find(name) else {
            let suggestion = unknown::axis(name);
            let error = SpecError::new(format!("--set: there is no key `{name}`"), suggestion.fix);
            draft.errors.push(error.at(&self.place, "unknown key"));
            return;
        };
        let was = draft.axes.iter().position(|axis| std::ptr::eq(axis.key, key));
        let zip = was.and_then(|was| draft.axes[was].zip);
        let mut axis = AxisDraft::new(key, self.place.clone(), zip);
        for (value, place) in &self.values {
            draft.element(&mut axis, name, word(&key.kind, value), place.clone());
        }
        if let Some(was) = was {
            if zip.is_some() && !self.fill_rows(draft, &mut axis, was) {
                return;
            }
            draft.fixed.retain(|setting| !std::ptr::eq(setting.key, key));
            draft.axes[was] = axis;
        } else if self.values.len() > 1 {
            draft.fixed.retain(|setting| !std::ptr::eq(setting.key, key));
            draft.axes.push(axis);
        } else if let Some((value, place)) = axis.values.pop() {
            draft.fixed.retain(|setting| !std::ptr::eq(setting.key, key));
            draft.fixed.push(Setting { key, value, place });
        }
    }

    /// Gives each row of a [[zip]] its value: the one for all of them, or one for each. False where the numbers do not fit.
    fn fill_rows(&self, draft: &mut Draft, axis: &mut AxisDraft, was: usize) -> bool {
        let rows = draft.axes[was].values.len();
        if let [only] = axis.values.as_slice() {
            axis.values = vec![only.clone(); rows];
        }
        // A value that is not taken has its own error.
        let fits = self.values.len() == rows || self.values.len() == 1;
        if !fits && !draft.broken.contains(&axis.key.path) {
            let zip = draft.axes[was].zip;
            let with = draft.axes.iter().filter(|other| other.zip == zip && !std::ptr::eq(other.key, axis.key));
            let with = unknown::list(with.map(|other| other.key.name()));
            let error = SpecError::new(
                format!(
                    "--set: `{}` moves with {with} in {}, and is given {}",
                    axis.key.name(),
                    unknown::count(rows, "row"),
                    unknown::count(self.values.len(), "value")
                ),
                format!("give {}, or one for all of them", unknown::count(rows, "value")),
            );
            let error = error.at(&self.whole(), "as many as rows, or one").at(&draft.axes[was].place, "the axis");
            draft.errors.push(error);
        }
        fits
    }

    /// Sets an option of `[run]`.
    fn set_run(&self, draft: &mut Draft, path: &str) {
        let Some(key) = find_run(path) else { return };
        let [(value, place)] = self.values.as_slice() else {
            draft.errors.extend(cannot_vary(path).map(|error| error.at(&self.whole(), "more than one value")));
            return;
        };
        match word(&key.kind, value) {
            Ok(value) => {
                draft.run.retain(|setting| !std::ptr::eq(setting.key, key));
                if path == REPEAT {
                    draft.precision = None;
                }
                draft.run.push(Setting { key, value, place: place.clone() });
            }
            Err(rejection) => {
                let error = SpecError::new(format!("`{path}`: {}", rejection.message), rejection.fix);
                draft.errors.push(error.at(place, "not taken here"));
            }
        }
    }

    /// The values of an axis that are to be kept.
    fn filter(&self, draft: &mut Draft, name: &str) -> Option<(usize, Vec<Value>)> {
        let found = find(name).and_then(|key| draft.axes.iter().position(|axis| std::ptr::eq(axis.key, key)));
        let Some(index) = found else {
            // An axis that the file gets wrong has its own error.
            if !find(name).is_some_and(|key| draft.broken.contains(&key.path)) {
                let axes = unknown::list(draft.axes.iter().map(|axis| axis.key.name()));
                let fix = if axes.is_empty() {
                    "the sweep has no axes: leave the filter out".to_owned()
                } else {
                    format!("the axes are {axes}")
                };
                let error = SpecError::new(format!("--filter: the sweep has no axis `{name}`"), fix);
                draft.errors.push(error.at(&self.place, "not an axis"));
            }
            return None;
        };
        let key = draft.axes[index].key;
        let mut on_axis: Vec<Value> = draft.axes[index].values.iter().map(|(value, _)| value.clone()).collect();
        on_axis.extend(draft.includes.iter().filter_map(|include| include.values.get(index)).cloned());
        let mut kept = Vec::new();
        for (text, place) in &self.values {
            match word(&key.kind, text) {
                Ok(value) if on_axis.contains(&value) => kept.push(value),
                Ok(_) if draft.broken.contains(&key.path) => {}
                Ok(value) => {
                    let error = SpecError::new(
                        format!("--filter: {} is not on the axis `{name}`", key.kind.show(&value)),
                        format!("its values are {}", listed(key, on_axis.iter())),
                    );
                    draft.errors.push(error.at(place, "not on the axis"));
                }
                Err(rejection) => {
                    let error = SpecError::new(format!("--filter `{name}`: {}", rejection.message), rejection.fix);
                    draft.errors.push(error.at(place, "not taken here"));
                }
            }
        }
        Some((index, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::{Overrides, ParseAssignmentError};

    #[test]
    fn assignments_as_people_type_them() {
        let parsed = |text| Overrides::assignment(text).expect("parses");
        assert_eq!(parsed("rcvbuf=1024,64KiB"), ("rcvbuf".into(), vec!["1024".into(), "64KiB".into()]));
        assert_eq!(parsed("kernel.image=\"a,b\",host").1, ["\"a,b\"", "host"]);
        assert_eq!(parsed("kernel.image=/a=b").1, ["/a=b"]);
        assert_eq!(Overrides::assignment("rcvbuf"), Err(ParseAssignmentError::NoName("rcvbuf".into())));
        assert!(matches!(Overrides::assignment("rcvbuf=1,"), Err(ParseAssignmentError::NoValue(_))));
        assert!(matches!(Overrides::assignment("=1"), Err(ParseAssignmentError::NoName(_))));
    }
}
