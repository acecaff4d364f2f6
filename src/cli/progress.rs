//! How a run shows that it goes on: a bar on a terminal, plain lines elsewhere, nothing with `--quiet`. Nothing is drawn while
//! a native repeat is measured: the bar moves between repeats, and no thread makes it tick.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::measurement::Outcome;
use crate::record::Record;
use crate::run::Progress;
use crate::settings::Clock;
use crate::units::Span;

use super::output::say;

/// How often a line is printed where there is no bar.
const LINE_PERIOD: Duration = Duration::from_secs(2);

/// What shows progress.
pub(super) struct Reporter {
    bar: Option<ProgressBar>,
    quiet: bool,
    last_line: Option<Instant>,
    begun: Instant,
}

impl Reporter {
    /// `quiet` shows nothing but notes of trouble.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = "{bar:24} {pos}/{len}  {elapsed} gone, {eta} to go  {wide_msg}";
            // The template is fixed; without it the bar would show in its default form.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, quiet, last_line: None, begun: Instant::now() }
    }

    /// Shows what the loop tells.
    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Opened { dir, done, total } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*total as u64);
                    bar.set_position(*done as u64);
                    bar.reset_eta();
                }
                let so_far =
                    if *done > 0 { format!(", {done} of {total} repeats are there already") } else { String::new() };
                self.line(&format!("results in {}{so_far}", dir.path().display()));
            }
            Progress::Placed(placement) => {
                self.line(super::check::describe(&[(*placement).clone()]).trim_end());
            }
            Progress::Machine(machine) => {
                let clock = match machine.clock {
                    Clock::Virtual => "virtual time (1 ns per instruction)",
                    Clock::Real | Clock::Auto => "real time",
                };
                self.line(&format!("kernel  {} ({}), {clock}", machine.release, machine.name));
            }
            Progress::Started { cell, run } => {
                if let Some(bar) = &self.bar {
                    let kind = if run.warmup { "warm-up" } else { "repeat" };
                    bar.set_message(format!("{} {kind} {}", cell.axes, run.repeat + 1));
                }
            }
            Progress::Ended { record, done, total } => self.ended(record, *done, *total),
            Progress::Note(note) => self.note(note),
        }
    }

    fn ended(&mut self, record: &Record, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            // Where cells are repeated until they are precise enough, fewer may be left than there might have been.
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        } else if !self.quiet && (done == total || self.last_line.is_none_or(|last| last.elapsed() >= LINE_PERIOD)) {
            self.last_line = Some(Instant::now());
            let elapsed = Span::from(self.begun.elapsed());
            say!("{done}/{total} after {elapsed}: {} {}", record.axes, result(record));
        }
    }

    /// A note is worth a line even where progress is not shown.
    fn note(&self, note: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("note: {note}")),
            None => say!("note: {note}"),
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None if !self.quiet => say!("{text}"),
            None => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The result of a repeat in a few words.
fn result(record: &Record) -> String {
    let measured = &record.measurement;
    match (measured.outcome, measured.completion_ns, measured.goodput_bps) {
        (Outcome::Measured, Some(completion), _) => Span(completion).to_string(),
        (Outcome::Measured, None, Some(goodput)) => crate::units::BitRate(goodput).to_string(),
        (outcome, ..) => {
            let reason = measured.reason.as_deref().unwrap_or_default();
            format!("{outcome}: {}", reason.lines().next().unwrap_or_default())
        }
    }
}
