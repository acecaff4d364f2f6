//! What was typed: the file as dotted paths and values, each with its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::Value;

/// One key of the file, or one table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Dotted path, such as `link.mtu`.
    pub(super) path: String,
    /// Where the last part of the path stands.
    pub(super) key: Range<usize>,
    /// What it is given.
    pub(super) typed: Typed,
    /// Where that stands.
    pub(super) span: Range<usize>,
}

/// A value as TOML has it. Whether a key takes it is for `check` to say.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typed {
    /// A switch, a number or a text.
    Value(Value),
    /// A number below zero.
    Negative(String),
    /// A whole number beyond 64 bits.
    TooLarge(String),
    /// A number with a fraction or an exponent, `inf` or `nan`.
    Float(String),
    /// A date or a time.
    Date(String),
    /// A list, each element with its place.
    List(Vec<(Typed, Range<usize>)>),
    /// A table, with all that it holds: paths are relative to it. In a file the same entries follow it, with their whole paths.
    Table(Vec<Entry>),
}

impl Typed {
    /// Whether this is a table.
    pub(super) const fn is_table(&self) -> bool {
        matches!(self, Self::Table(_))
    }
}

/// A slip in the file's syntax.
#[derive(Debug)]
pub(super) struct Slip {
    /// What the parser says.
    pub(super) message: String,
    /// Where, if it says so.
    pub(super) span: Option<Range<usize>>,
}

/// Reads a file: each table, and after it what it holds.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Vec<Slip>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| Slip { message: error.message().to_owned(), span: error.span() })
            .collect());
    }
    let mut entries = Vec::new();
    flatten("", table.get_ref(), &mut entries);
    Ok(entries)
}

/// Appends what `table` holds, tables before their entries.
fn flatten(prefix: &str, table: &DeTable<'_>, entries: &mut Vec<Entry>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        entries.push(Entry { path: path.clone(), key: key.span(), typed: typed(value.get_ref()), span: value.span() });
        if let DeValue::Table(inner) = value.get_ref() {
            flatten(&path, inner, entries);
        }
    }
}

/// A value of the parser as ours.
fn typed(value: &DeValue<'_>) -> Typed {
    match value {
        DeValue::String(text) => Typed::Value(Value::Text(text.to_string())),
        DeValue::Boolean(switch) => Typed::Value(Value::Bool(*switch)),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Typed::Value(Value::Int(number)),
            Err(_) if number.as_str().starts_with('-') => Typed::Negative(number.to_string()),
            Err(_) => Typed::TooLarge(number.to_string()),
        },
        DeValue::Float(number) => Typed::Float(number.to_string()),
        DeValue::Datetime(date) => Typed::Date(date.to_string()),
        DeValue::Array(list) => {
            let list = list.iter().map(|element: &Spanned<_>| (typed(element.get_ref()), element.span()));
            Typed::List(list.collect())
        }
        DeValue::Table(table) => {
            let mut entries = Vec::new();
            flatten("", table, &mut entries);
            Typed::Table(entries)
        }
    }
}

/// A value of the command line: as in TOML, but texts need no quotes.
pub(super) fn word(text: &str) -> Typed {
    let text = text.trim();
    match DeValue::parse(text).as_ref().map(|value| typed(value.get_ref())) {
        Ok(known @ (Typed::Value(_) | Typed::Negative(_) | Typed::TooLarge(_) | Typed::Float(_))) => known,
        _ => Typed::Value(Value::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Typed, entries, word};
    use crate::settings::Value;

    #[test]
    fn entries_have_their_places() {
        let text = "name = \"a\"\n[axes]\n\"link.mtu\" = [1_500, -1]\nlink.family = 1.5\n";
        let entries = entries(text).expect("parses");
        let paths: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), &text[entry.key.clone()])).collect();
        assert!(paths.contains(&("axes.link.mtu", "\"link.mtu\"")), "{paths:?}");
        assert!(paths.contains(&("axes.link.family", "family")), "{paths:?}");
        let mtu = entries.iter().find(|entry| entry.path == "axes.link.mtu").expect("an entry");
        assert_eq!(&text[mtu.span.clone()], "[1_500, -1]");
        let Typed::List(list) = &mtu.typed else { panic!("a list") };
        assert_eq!(list[0].0, Typed::Value(Value::Int(1500)));
        assert_eq!(list[1].0, Typed::Negative("-1".into()));
        assert_eq!(&text[list[1].1.clone()], "-1");
    }

    #[test]
    fn words_need_no_quotes() {
        for (text, value) in [
            ("64KiB", Value::Text("64KiB".into())),
            ("\"64KiB\"", Value::Text("64KiB".into())),
            ("1024", Value::Int(1024)),
            ("0x10", Value::Int(16)),
            ("true", Value::Bool(true)),
            ("10ms", Value::Text("10ms".into())),
            ("2024-01-01", Value::Text("2024-01-01".into())),
            ("64 KiB", Value::Text("64 KiB".into())),
            ("1 # 2", Value::Text("1 # 2".into())),
            ("[1]", Value::Text("[1]".into())),
            ("/boot/vmlinuz", Value::Text("/boot/vmlinuz".into())),
        ] {
            assert_eq!(word(text), Typed::Value(value), "{text}");
        }
    }
}
