//! How figures are written in tables. What is missing is a dash, never a 0.

use crate::measurement::{Buffer, ProgramFacts, Verdict};
use crate::settings::{Clock, Value, find};
use crate::stats::{BufferSummary, CellSummary, Reached};
use crate::units::{BitRate, Bytes, Span, in_unit};

/// What stands where there is no figure.
pub(super) const MISSING: &str = "–";

/// A figure, or a dash.
pub(super) fn or_dash<T>(figure: Option<T>, show: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| MISSING.to_owned(), show)
}

/// A span of time: `4.67 s`.
pub(super) fn span(ns: Option<u64>) -> String {
    or_dash(ns, |ns| Span(ns).to_string())
}

/// A rate: `3.51 kbit/s`.
pub(super) fn rate(bps: Option<u64>) -> String {
    or_dash(bps, |bps| BitRate(bps).to_string())
}

/// A ratio in percent: `1.9 %`, `0.03 %`. Something that rounds to nothing is not shown as nothing.
pub(super) fn percent(ratio: Option<f64>) -> String {
    or_dash(ratio, |ratio| {
        let percent = ratio * 100.0;
        if percent > 0.0 && percent < 0.01 {
            return "<0.01 %".to_owned();
        }
        let decimals = if percent >= 9.95 || percent == 0.0 {
            0
        } else if percent >= 0.095 {
            1
        } else {
            2
        };
        format!("{percent:.decimals$} %")
    })
}

/// How a program of the user's ended.
pub(super) fn ended(program: &ProgramFacts) -> String {
    match (program.exit_code, program.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "not known how it ended".to_owned(),
    }
}

/// A number in a unit of its own: `12.5 ms`.
pub(super) fn number(number: Option<f64>, unit: &str) -> String {
    or_dash(number, |number| in_unit(number, unit))
}

/// A size: exact, but for large ones that no unit divides, which autotuning makes.
pub(super) fn size(bytes: Option<u64>) -> String {
    or_dash(bytes.map(Bytes), |bytes| {
        let exact = bytes.to_string();
        if bytes.0 >= 1 << 20 && exact.ends_with(" B") { bytes.short() } else { exact }
    })
}

/// A value on an axis, as its key shows it.
pub(super) fn value(axis: &str, value: &Value) -> String {
    find(axis).map_or_else(|| value.to_string(), |key| key.kind.show(value))
}

/// A buffer: `1 KiB → 2304 B → 2304 B, raised to the minimum`: asked, initial, final and, where it was larger between, peak. What a program
/// asked for is `?`.
pub(super) fn buffer(summary: &BufferSummary) -> String {
    let Buffer { asked, initial, end, peak, verdict } = summary.buffer;
    if initial.is_none() && end.is_none() {
        return MISSING.to_owned();
    }
    let unasked = if verdict == Some(Verdict::Unknown) { "?" } else { Value::DEFAULT };
    let asked = asked.map_or_else(|| unasked.to_owned(), |asked| size(Some(asked)));
    let about = if summary.differs { "~" } else { "" };
    let peak = if peak > initial.max(end) { format!(" (peak {})", size(peak)) } else { String::new() };
    let text = format!("{asked} → {} → {about}{}{peak}", size(initial), size(end));
    match verdict {
        // These are said already.
        None | Some(Verdict::Default | Verdict::Unknown) => text,
        Some(verdict) => format!("{text}, {verdict}"),
    }
}

/// A buffer of both ends: once where they agree, else a line for each.
pub(super) fn both(client: &BufferSummary, server: &BufferSummary) -> String {
    let (client, server) = (buffer(client), buffer(server));
    if client == server { client } else { format!("client {client}\nserver {server}") }
}

/// The outcome and why, and what else has to be known: `2 of 5 timed out: 3 of 32 echoes had not arrived after 3m`.
pub(super) fn outcome(summary: &CellSummary) -> String {
    std::iter::once(outcome_and_reason(summary)).chain(summary.remarks.iter().cloned()).collect::<Vec<_>>().join("; ")
}

fn outcome_and_reason(summary: &CellSummary) -> String {
    let outcome = summary.outcome.to_string();
    let Some(reason) = summary.reasons.iter().find(|reason| reason.outcome == summary.outcome.worst) else {
        return outcome;
    };
    match summary.reasons.len() - 1 {
        0 => format!("{outcome}: {}", reason.text),
        more => format!("{outcome}: {} (and {more} more)", reason.text),
    }
}

/// The clock, so that nobody takes one kind of time for the other.
pub(super) const fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Real => "real time",
        Clock::Virtual => "virtual time (1 ns per instruction)",
        Clock::Auto => "unknown clock",
    }
}

/// The kernel's release, or the image that did not come up.
pub(super) fn kernel(summary: &CellSummary) -> String {
    let kernel = &summary.kernel;
    kernel.release.clone().unwrap_or_else(|| format!("{} (did not come up)", kernel.image))
}

/// Each text once, in order of first appearance.
pub(super) fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// How well a median is known: `±1.4 %`; with what was asked for where that was not reached.
pub(super) fn known(reached: &Reached) -> String {
    let found =
        reached.reached.map_or_else(|| "no interval".to_owned(), |reached| format!("±{}", percent(Some(reached))));
    if reached.enough { found } else { format!("{found} > {}", percent(Some(reached.asked))) }
}

/// What to say of a cell whose median is not known well enough.
pub(super) fn not_precise(reached: &Reached) -> String {
    let Reached { metric, repeats, asked, confidence, .. } = *reached;
    let asked = percent(Some(asked));
    match reached.reached {
        Some(found) => format!(
            "not precise enough: the median of its {metric} is known to ±{} after {repeats} repeats, and ±{asked} was asked for at {} % confidence",
            percent(Some(found)),
            confidence * 100.0
        ),
        None => format!(
            "not precise enough: {repeats} repeats with a {metric} tell no interval of its median at {} % confidence, and ±{asked} was asked for",
            confidence * 100.0
        ),
    }
}

/// How many cells are not known well enough, and what to do, in a line. Nothing where all are.
pub fn imprecise(cells: &[CellSummary]) -> Option<String> {
    let asked: Vec<&Reached> = cells.iter().filter_map(|cell| cell.precision.as_ref()).collect();
    let count = asked.iter().filter(|reached| !reached.enough).count();
    (count > 0).then(|| {
        format!("{count} of {} cells not precise enough: `sweep run --more RUN` goes on with them", asked.len())
    })
}

#[cfg(test)]
mod tests {
    use super::{buffer, percent};
    use crate::measurement::{Buffer, Verdict};
    use crate::stats::BufferSummary;

    #[test]
    fn spreads_keep_what_matters() {
        let shown: Vec<_> = [Some(0.0), Some(1e-9), Some(0.000_4), Some(0.019), Some(0.4), None].map(percent).into();
        assert_eq!(shown, ["0 %", "<0.01 %", "0.04 %", "1.9 %", "40 %", "–"]);
    }

    #[test]
    fn a_buffer_tells_asked_initial_final_and_a_larger_peak() {
        let autotuned = Buffer {
            asked: None,
            initial: Some(87380),
            end: Some(3_161_895),
            peak: Some(4_194_304),
            verdict: Some(Verdict::Default),
        };
        let mut summary = BufferSummary { buffer: autotuned, differs: true };
        assert_eq!(buffer(&summary), "default → 87380 B → ~3.02 MiB (peak 4 MiB)");
        summary.buffer =
            Buffer { asked: Some(32768), initial: Some(65536), verdict: Some(Verdict::Doubled), ..Buffer::default() };
        summary.differs = false;
        assert_eq!(buffer(&summary), "32 KiB → 64 KiB → –, doubled");
        assert_eq!(buffer(&BufferSummary::default()), "–");
        let verdict = Some(Verdict::Unknown);
        summary.buffer = Buffer { initial: Some(131_072), end: Some(131_072), verdict, ..Buffer::default() };
        assert_eq!(buffer(&summary), "? → 128 KiB → 128 KiB");
    }
}
