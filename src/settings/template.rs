//! Texts with placeholders in braces: `{rcvbuf}` stands for a value, `{{` and `}}` for the braces themselves.

use std::ops::Range;

/// Placeholders that are known only when a repeat runs: the two addresses, a folder that is made for the repeat and removed after it, and
/// the folder of the sweep file.
pub const AT_RUN: [&str; 4] = ["server_addr", "client_addr", "scratch", "dir"];

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as it is.
    Text(&'a str),
    /// The name of a placeholder, and where it stands in the template, braces included, in bytes.
    Name(&'a str, Range<usize>),
}

/// A brace that belongs to no placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{brace}` at character {at} {what}")]
pub struct TemplateError {
    brace: char,
    /// Counted from 1.
    at: usize,
    what: &'static str,
}

/// Takes a template apart.
///
/// # Errors
/// At a brace that opens or closes nothing.
pub fn pieces(template: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut position = 0;
    let error = |brace: char, position: usize, what| TemplateError {
        brace,
        at: template[..position].chars().count() + 1,
        what,
    };
    while let Some(found) = template[position..].find(['{', '}']) {
        let brace = position + found;
        let rest = &template[brace..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            // The first of the two is text, the second is passed over.
            pieces.push(Piece::Text(&template[begin..=brace]));
            position = brace + 2;
            begin = position;
        } else if rest.starts_with('}') {
            return Err(error('}', brace, "closes nothing: write `}}` for the brace itself"));
        } else {
            let end = rest.find('}').filter(|end| !rest[1..*end].contains('{'));
            let Some(end) = end.map(|end| brace + end) else {
                return Err(error('{', brace, "is not closed: write `{{` for the brace itself"));
            };
            if begin < brace {
                pieces.push(Piece::Text(&template[begin..brace]));
            }
            pieces.push(Piece::Name(template[brace + 1..end].trim(), brace..end + 1));
            position = end + 1;
            begin = position;
        }
    }
    if begin < template.len() {
        pieces.push(Piece::Text(&template[begin..]));
    }
    Ok(pieces)
}

/// The text of a template with values in place of those placeholders that `value` knows. The others stay as they are, and so do doubled
/// braces as long as any may be left: [`fill_all`] takes them away.
///
/// # Errors
/// As [`pieces`].
pub fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, TemplateError> {
    let mut filled = String::with_capacity(template.len());
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => filled.push_str(&escape(text)),
            Piece::Name(name, range) => match value(name) {
                Some(value) => filled.push_str(&escape(&value)),
                None => filled.push_str(&template[range]),
            },
        }
    }
    Ok(filled)
}

/// The text of a template with a value in place of every placeholder.
///
/// # Errors
/// As [`pieces`], and for a placeholder that `value` does not know.
pub fn fill_all(template: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, FillError> {
    let mut filled = String::with_capacity(template.len());
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Name(name, _) => {
                filled.push_str(&value(name).ok_or_else(|| FillError::Unknown(name.to_owned()))?);
            }
        }
    }
    Ok(filled)
}

/// Why a template cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// A brace out of place.
    #[error(transparent)]
    Brace(#[from] TemplateError),
    /// A placeholder without a value.
    #[error("nothing is known by the name `{0}`")]
    Unknown(String),
}

/// A text as a template that stands for it.
fn escape(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use super::{FillError, Piece, fill, fill_all, pieces};

    #[test]
    fn names_and_doubled_braces() {
        assert_eq!(
            pieces("-w{rcvbuf},{ port }"),
            Ok(vec![Piece::Text("-w"), Piece::Name("rcvbuf", 2..10), Piece::Text(","), Piece::Name("port", 11..19)])
        );
        let value = |name: &str| (name == "a").then(|| "{1}".to_owned());
        assert_eq!(fill_all("x{{{a}}}y{{a}}", value), Ok("x{{1}}y{a}".to_owned()));
        // What is filled in two steps is what is filled in one, braces in values included.
        let half = fill("{{{a}}} {b}", value).expect("fills");
        assert_eq!(fill_all(&half, |name| (name == "b").then(|| "2".to_owned())), Ok("{{1}} 2".to_owned()));
        assert_eq!(fill_all("{c}", value), Err(FillError::Unknown("c".to_owned())));
    }

    #[test]
    fn a_lone_brace_is_told() {
        for (template, message) in [
            ("a{b", "`{` at character 2 is not closed: write `{{` for the brace itself"),
            ("é}", "`}` at character 2 closes nothing: write `}}` for the brace itself"),
            ("{a{b}", "`{` at character 1 is not closed: write `{{` for the brace itself"),
        ] {
            assert_eq!(pieces(template).expect_err("a lone brace").to_string(), message);
        }
    }
}
