//! Errors in a sweep file or on the command line: what, where, and what to write instead.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::units::is_obeyed;

/// The text that an error points into: the file, or one argument of the command line.
pub(super) type Source = Arc<NamedSource<String>>;

/// A place in the file or in an argument.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) source: Source,
    pub(super) span: Range<usize>,
}

impl Place {
    /// Its order among the errors: those of the file by their place in it, then those of the command line as they came.
    fn order(&self, file: &str) -> (bool, usize) {
        if self.source.name() == file { (false, self.span.start) } else { (true, 0) }
    }
}

/// One error: what is wrong, where, and the fix.
#[derive(Clone, Debug)]
pub struct SpecError {
    message: String,
    fix: String,
    places: Vec<(Place, String)>,
    /// The labels that lie in another text than the first one.
    elsewhere: Vec<SpecError>,
}

impl SpecError {
    pub(super) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { message: shown(&message.into()), fix: shown(&fix.into()), places: Vec::new(), elsewhere: Vec::new() }
    }

    /// Adds a place with its label. The first place is the one to blame.
    pub(super) fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        let label = shown(&label.into());
        match self.places.first() {
            Some((first, _)) if !Arc::ptr_eq(&first.source, &place.source) => {
                let other = Self {
                    message: label.clone(),
                    fix: String::new(),
                    places: vec![(place.clone(), String::new())],
                    elsewhere: Vec::new(),
                };
                self.elsewhere.push(other);
            }
            _ => self.places.push((place.clone(), label)),
        }
        self
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead.
    pub fn fix(&self) -> &str {
        &self.fix
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpecError {}

impl Diagnostic for SpecError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.fix.is_empty()).then(|| Box::new(&self.fix) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.places.first().map(|(place, _)| &*place.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.places.is_empty() {
            return None;
        }
        Some(Box::new(self.places.iter().enumerate().map(|(index, (place, label))| {
            let label = (!label.is_empty()).then(|| label.clone());
            let (start, length) = (place.span.start, place.span.len());
            if index == 0 {
                LabeledSpan::new_primary_with_span(label, (start, length))
            } else {
                LabeledSpan::new_with_span(label, (start, length))
            }
        })))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.elsewhere.is_empty() {
            return None;
        }
        Some(Box::new(self.elsewhere.iter().map(|error| error as &dyn Diagnostic)))
    }
}

/// Longest message that is shown whole, in characters.
const MAX_MESSAGE: usize = 1000;

/// A message as it can be shown: what the user typed may have characters that a terminal obeys, and may be as long as a file.
fn shown(message: &str) -> String {
    let characters: Vec<char> = message.chars().collect();
    let escaped = |part: &[char]| {
        let one = |&character: &char| {
            if is_obeyed(character) { character.escape_debug().to_string() } else { character.to_string() }
        };
        part.iter().map(one).collect::<String>()
    };
    if characters.len() <= MAX_MESSAGE {
        return escaped(&characters);
    }
    let half = MAX_MESSAGE / 2;
    format!("{}…{}", escaped(&characters[..half]), escaped(&characters[characters.len() - half..]))
}

/// A text without characters that a terminal obeys, as long as it was, so that places in it stay the same.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .map(|character| if is_obeyed(character) { "?".repeat(character.len_utf8()) } else { character.into() })
        .collect()
}

/// Most errors that are shown at once.
const MAX_SHOWN: usize = 100;

/// Every error of a sweep, in the order of the file, those of the command line last. Never empty.
#[derive(Clone, Debug)]
pub struct SpecErrors {
    file: String,
    errors: Vec<SpecError>,
}

impl SpecErrors {
    /// Sorts `errors` by their place.
    pub(super) fn new(file: &str, mut errors: Vec<SpecError>) -> Self {
        errors.sort_by_key(|error| error.places.first().map_or((false, 0), |(place, _)| place.order(file)));
        Self { file: file.to_owned(), errors }
    }

    /// The errors one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &SpecError> {
        self.errors.iter()
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.errors.len();
        write!(f, "{count} error{} in `{}`", if count == 1 { "" } else { "s" }, harmless(&self.file))?;
        if count > MAX_SHOWN { write!(f, ", of which these are the first {MAX_SHOWN}") } else { Ok(()) }
    }
}

impl std::error::Error for SpecErrors {}

impl Diagnostic for SpecErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.errors.iter().take(MAX_SHOWN).map(|error| error as &dyn Diagnostic)))
    }
}
