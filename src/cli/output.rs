//! What the program says on its two streams. A reader that has gone away (`| head`) is no error, and a message that nobody can read ends no
//! run and loses no measurement.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use super::exit::Exit;
use crate::units::is_obeyed;

/// As `eprintln!`, by [`line`].
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::output::line(format_args!($($text)*)) };
}
pub(super) use say;

/// Prints to standard output. A reader that has gone away (`| head`) is no error; a full disk is.
pub(super) fn print(text: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    match out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say!("error: what was to be printed could not be written to standard output: {error}");
            Err(Exit::Wrong)
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A line on standard error. `eprintln!` would end the program where that stream is closed or full, in the middle of a run.
pub(super) fn line(text: fmt::Arguments<'_>) {
    coloured(&harmless(&text.to_string()));
}

/// A line on standard error with the characters by which a terminal is told colours.
pub(super) fn coloured(text: &str) {
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// A text without characters that a terminal obeys: names of files, records and what programs printed may have them.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "\u{fffd}").into() } else { text.into() }
}
