//! A value as typed against the kind that its key accepts.

use crate::settings::{Kind, Rejection, Value, find};

use super::axis::as_axis;
use super::raw::Typed;

/// Checks one value and returns it in canonical form.
pub(super) fn scalar(kind: &Kind, typed: &Typed) -> Result<Value, Rejection> {
    let reject = |message: String, fix: String| Err(Rejection { message, fix });
    match typed {
        Typed::Value(value) => kind.check(value).map_err(|rejection| match value {
            Value::Text(text) => expression(kind, text).unwrap_or(rejection),
            Value::Bool(_) | Value::Int(_) => rejection,
        }),
        // Some sysctls go below zero.
        Typed::Negative(number) if matches!(kind, Kind::Sysctl | Kind::Free) => {
            kind.check(&Value::Text(number.clone()))
        }
        Typed::Negative(number) => reject(format!("`{number}` is below zero"), kind.expected()),
        Typed::TooLarge(number) => reject(format!("`{number}` is larger than any number here"), kind.expected()),
        Typed::Float(number) => match kind {
            Kind::Free => Ok(Value::Text(number.clone())),
            Kind::Count { .. } | Kind::Sysctl => reject(format!("`{number}` is not a whole number"), kind.expected()),
            Kind::Size { .. } => reject(
                format!("`{number}` is not a whole number of bytes"),
                format!("write whole bytes, or a text with a unit such as \"{number}KiB\""),
            ),
            Kind::Span { .. } => reject(format!("`{number}` has no unit of time"), kind.expected()),
            Kind::Rate { .. } => {
                reject(format!("`{number}` has no unit of rate"), format!("write \"{number}Mbit/s\", say"))
            }
            Kind::Percent => reject(format!("`{number}` has no percent sign"), format!("write \"{number}%\"")),
            Kind::Text => reject(
                format!("`{number}` is a number, where a text belongs"),
                format!("put it in quotes: \"{number}\""),
            ),
            Kind::Switch { .. } | Kind::Choice(_) => {
                reject(format!("`{number}` is a number, where {} belongs", kind.noun()), kind.expected())
            }
        },
        Typed::Date(date) => reject(format!("`{date}` is a date, where {} belongs", kind.noun()), kind.expected()),
        Typed::List(_) => reject(format!("a list, where {} belongs", kind.noun()), kind.expected()),
        Typed::Table(_) => reject(format!("a table, where {} belongs", kind.noun()), kind.expected()),
    }
}

/// What to say of a text that would have to be computed. Sweep files have plain values: a cell is what its lines say.
fn expression(kind: &Kind, text: &str) -> Option<Rejection> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if let Some(key) = text.split(|c| !in_word(c)).find_map(find) {
        return Some(Rejection {
            message: format!("`{text}` depends on another key, and a value stands for itself"),
            fix: format!(
                "write both side by side under [[zip]]: {}, and in the same order the values that belong to them",
                as_axis(key)
            ),
        });
    }
    let operator = text.contains(['*', '/', '+', '^', '(']) || text.contains(" - ");
    (operator && text.contains(|c: char| c.is_ascii_digit())).then(|| Rejection {
        message: format!("`{text}` is an expression, and values are plain"),
        fix: format!("write the result: {}", kind.expected().trim_start_matches("write ")),
    })
}

/// Checks one word of the command line. Where a text is asked for, any word is one, `6.12` too.
pub(super) fn word(kind: &Kind, text: &str) -> Result<Value, Rejection> {
    let typed = match (kind, super::raw::word(text)) {
        (Kind::Text, Typed::Value(Value::Text(text))) => Typed::Value(Value::Text(text)),
        (Kind::Text, _) => Typed::Value(Value::Text(text.trim().to_owned())),
        (_, typed) => typed,
    };
    scalar(kind, &typed)
}

#[cfg(test)]
mod tests {
    use super::{scalar, word};
    use crate::settings::{Kind, Limit, Value, find};
    use crate::spec::raw::Typed;

    const SPAN: Kind = Kind::Span { min: 0, limit: Limit { name: "MAX", max: u64::MAX }, or_default: false };

    #[test]
    fn what_toml_has_beyond_our_values_is_refused_in_words() {
        let size = &find("rcvbuf").expect("a key").kind;
        let refused = scalar(size, &Typed::Float("1.5".into())).expect_err("a fraction");
        assert_eq!(refused.fix, "write whole bytes, or a text with a unit such as \"1.5KiB\"");
        let refused = scalar(size, &Typed::Negative("-1".into())).expect_err("negative");
        assert_eq!(refused.message, "`-1` is below zero");
        assert!(scalar(&SPAN, &Typed::Float("0.5".into())).is_err());
        assert!(scalar(&SPAN, &Typed::List(Vec::new())).is_err());
    }

    #[test]
    fn a_word_is_a_text_where_a_text_is_asked_for() {
        assert_eq!(word(&Kind::Text, "6.12"), Ok(Value::Text("6.12".into())));
        assert_eq!(word(&Kind::Text, "\"6.12\""), Ok(Value::Text("6.12".into())));
        assert_eq!(word(&find("rcvbuf").expect("a key").kind, "4KiB"), Ok(Value::Int(4096)));
    }
}
