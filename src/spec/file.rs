//! From a path or a text to a sweep.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use miette::NamedSource;

use crate::settings::Limit;

use super::check::Draft;
use super::error::{Place, Source, SpecError, SpecErrors, harmless};
use super::overrides::Overrides;
use super::raw::{Slip, entries};
use super::sweep::Sweep;

/// Largest sweep file, in bytes.
pub const MAX_FILE: Limit = Limit { name: "MAX_FILE", max: 1 << 20 };

impl Sweep {
    /// Reads and checks a sweep file.
    ///
    /// # Errors
    /// Everything that is wrong with the file and the overrides.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, SpecErrors> {
        Self::load_with_text(path, overrides).map(|(sweep, _)| sweep)
    }

    /// The same, with the text of the file: what can be read once only, such as a pipe, is read once.
    ///
    /// # Errors
    /// As [`Sweep::load`].
    pub fn load_with_text(path: &Path, overrides: &Overrides) -> Result<(Self, String), SpecErrors> {
        let name = path.display().to_string();
        let refuse =
            |message: &str, fix: &str| SpecErrors::new(&name, vec![SpecError::new(format!("`{name}` {message}"), fix)]);
        let bytes = read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refuse(
                "does not exist",
                "name a sweep file, such as sweeps/smoke.toml; paths are relative to this folder",
            ),
            io::ErrorKind::IsADirectory => refuse("is a folder", "name a sweep file in it, such as smoke.toml"),
            io::ErrorKind::PermissionDenied => {
                refuse("cannot be read: permission denied", "make it readable for this user")
            }
            io::ErrorKind::FileTooLarge => refuse(
                &format!("is larger than any sweep file: beyond {} ({} bytes)", MAX_FILE.name, MAX_FILE.max),
                "name a sweep file: TOML, with a `name` and [axes]",
            ),
            _ => refuse(&format!("cannot be read: {error}"), "name a sweep file that can be read"),
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&name, &text, overrides).map(|sweep| (sweep, text)),
            Err(error) => {
                let start = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let end = start + text[start..].chars().next().map_or(0, char::len_utf8);
                let place = Place { source: source(&name, &text), span: start..end };
                let error = SpecError::new("the file is not UTF-8", "save it as UTF-8, or take this character away");
                Err(SpecErrors::new(&name, vec![error.at(&place, "not UTF-8 from here")]))
            }
        }
    }

    /// Checks the text of a sweep file. `file_name` stands in messages.
    ///
    /// # Errors
    /// Everything that is wrong with the text and the overrides.
    pub fn parse(file_name: &str, text: &str, overrides: &Overrides) -> Result<Self, SpecErrors> {
        let source = source(file_name, text);
        let entries = entries(text).map_err(|slips| {
            let errors = slips.into_iter().map(|slip| syntax(&source, slip)).collect();
            SpecErrors::new(file_name, errors)
        })?;
        let mut draft = Draft::new(source);
        draft.read(entries);
        overrides.apply(&mut draft);
        draft.finish().map_err(|errors| SpecErrors::new(file_name, errors))
    }
}

/// The bytes of a file of sensible size.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE.max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE.max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn source(name: &str, text: &str) -> Source {
    Arc::new(NamedSource::new(harmless(name), harmless(text)))
}

/// A slip in the syntax as an error with a fix.
fn syntax(source: &Source, slip: Slip) -> SpecError {
    let fix = if slip.message.contains("duplicate key") {
        "leave one of the two out: a key or a table stands once in a file"
    } else if slip.message.contains("must be quoted") {
        "put texts in double quotes: \"64KiB\""
    } else {
        "write lines of key = value below [table] lines, texts in double quotes, lists in [brackets]"
    };
    let end = source.inner().len();
    let span = slip.span.map_or(end..end, |span| span.start.min(end)..span.end.min(end));
    SpecError::new(format!("not TOML: {}", slip.message), fix).at(&Place { source: source.clone(), span }, "here")
}
