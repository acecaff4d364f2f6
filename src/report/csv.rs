//! `summary.csv`: one line per cell, for spreadsheets (RFC 4180). A figure that was not measured is an empty field.

use std::path::Path;

use super::words::distinct;
use crate::measurement::Buffer;
use crate::record::{StoreError, write_atomically};
use crate::stats::{CellSummary, Figures, MetricSummary};

/// Name of the file in the folder of a run.
pub const SUMMARY: &str = "summary.csv";

/// The columns between the axes and the buffers. Units are in the names; spreads are ratios (0.02 is 2 %).
const FIGURES: [&str; 20] = [
    "kernel_release",
    "kernel_image",
    "clock",
    "machine",
    "outcome",
    "repeats",
    "measured",
    "incomplete",
    "timed_out",
    "invalid",
    "skipped",
    "failed",
    "completion_median_ns",
    "completion_min_ns",
    "completion_max_ns",
    "completion_spread",
    "goodput_median_bps",
    "goodput_min_bps",
    "goodput_max_bps",
    "lost_chunks_median",
];

/// Writes the file in one step.
///
/// # Errors
/// If the folder cannot be written to or has no room. A file from before is then still there.
pub fn write_csv(path: &Path, cells: &[CellSummary]) -> Result<(), StoreError> {
    let text =
        csv(cells).map_err(|error| StoreError::Unstorable { what: SUMMARY.to_owned(), why: error.to_string() })?;
    write_atomically(path, &text)
}

/// The text of the file.
fn csv(cells: &[CellSummary]) -> Result<Vec<u8>, csv::Error> {
    let axes = distinct(cells.iter().flat_map(|cell| cell.axes.0.iter().map(|(name, _)| name.clone())));
    let metrics = distinct(cells.iter().flat_map(|cell| cell.metrics.iter().map(|metric| metric.name.clone())));
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let buffers = ["client", "server"].iter().flat_map(|end| {
        ["rcvbuf", "sndbuf"].into_iter().flat_map(move |buffer| {
            ["asked_bytes", "initial_bytes", "final_bytes", "peak_bytes", "verdict"]
                .into_iter()
                .map(move |size| format!("{end}_{buffer}_{size}"))
        })
    });
    let header = std::iter::once("cell".to_owned())
        .chain(axes.iter().cloned())
        .chain(FIGURES.map(str::to_owned))
        .chain(
            metrics
                .iter()
                .flat_map(|name| ["median", "min", "max", "unit"].map(|part| format!("metric_{name}_{part}"))),
        )
        .chain(buffers)
        .chain(["reason".to_owned()]);
    writer.write_record(header)?;
    for cell in cells {
        let values = axes.iter().map(|axis| cell.axes.get(axis).map(ToString::to_string).unwrap_or_default());
        let ends = [&cell.client, &cell.server];
        let buffers = ends.into_iter().flat_map(|end| [&end.rcvbuf, &end.sndbuf]);
        let line = std::iter::once(cell.cell.clone())
            .chain(values)
            .chain(figures(cell))
            .chain(metrics.iter().flat_map(|name| metric(cell, name)))
            .chain(buffers.flat_map(|summary| sizes(&summary.buffer)))
            .chain([reason(cell)]);
        writer.write_record(line)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// One cell's fields for [`FIGURES`].
fn figures(cell: &CellSummary) -> [String; FIGURES.len()] {
    let counts = &cell.counts;
    let each = |figures: Option<Figures>, pick: fn(Figures) -> u64| or_empty(figures.map(pick));
    [
        or_empty(cell.kernel.release.as_ref()),
        cell.kernel.image.clone(),
        cell.clock.to_string(),
        cell.machines.join(" "),
        cell.outcome.worst.to_string(),
        counts.total().to_string(),
        counts.measured.to_string(),
        counts.incomplete.to_string(),
        counts.timed_out.to_string(),
        counts.invalid.to_string(),
        counts.skipped.to_string(),
        counts.failed.to_string(),
        each(cell.completion_ns, |figures| figures.median),
        each(cell.completion_ns, |figures| figures.min),
        each(cell.completion_ns, |figures| figures.max),
        or_empty(cell.completion_spread),
        each(cell.goodput_bps, |figures| figures.median),
        each(cell.goodput_bps, |figures| figures.min),
        each(cell.goodput_bps, |figures| figures.max),
        each(cell.lost_chunks, |figures| figures.median),
    ]
}

/// One metric's fields.
fn metric(cell: &CellSummary, name: &str) -> [String; 4] {
    let found = cell.metrics.iter().find(|metric| metric.name == name);
    let each = |pick: fn(&MetricSummary) -> Option<f64>| or_empty(found.and_then(pick));
    let unit = or_empty(found.map(|metric| metric.unit.as_str()));
    [each(|metric| metric.median), each(|metric| metric.min), each(|metric| metric.max), unit]
}

/// One buffer's fields.
fn sizes(buffer: &Buffer) -> [String; 5] {
    let Buffer { asked, initial, end, peak, verdict } = buffer;
    [or_empty(*asked), or_empty(*initial), or_empty(*end), or_empty(*peak), or_empty(*verdict)]
}

/// Why repeats were not measured, and what else has to be known: `2 timed-out: …; 1 failed: …`.
fn reason(cell: &CellSummary) -> String {
    let reasons = cell.reasons.iter().map(|reason| format!("{} {}: {}", reason.count, reason.outcome, reason.text));
    reasons.chain(cell.remarks.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// A figure, or nothing.
fn or_empty(figure: Option<impl ToString>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{SUMMARY, csv, write_csv};
    use crate::measurement::{Measurement, Outcome};
    use crate::record::{Record, example};
    use crate::settings::{Axes, Value};
    use crate::stats::summarise;

    fn rows(text: &[u8]) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text);
        reader.records().map(|row| row.expect("even rows").iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn fields_are_quoted_and_missing_figures_empty() {
        let invalid = Record {
            measurement: Measurement::without_figures(Outcome::Invalid, "EMSGSIZE: \"too long\",\nsaid the kernel"),
            axes: Axes(vec![("rcvbuf".into(), Value::kernel_default()), ("nodelay".into(), Value::Bool(true))]),
            ..example("b", 0, 1)
        };
        let records = [example("a", 0, 1_000_000), example("a", 1, 3_000_000), invalid];
        let rows = rows(&csv(&summarise(&records)).expect("text"));
        assert_eq!(rows.len(), 3);
        let field = |row: usize, name: &str| {
            let column = rows[0].iter().position(|column| column == name).expect("a column");
            rows[row][column].as_str()
        };
        assert_eq!((field(1, "cell"), field(1, "rcvbuf"), field(1, "nodelay")), ("a", "1024", "false"));
        assert_eq!((field(1, "completion_median_ns"), field(1, "completion_spread")), ("2000000", "1"));
        assert_eq!((field(1, "client_rcvbuf_final_bytes"), field(1, "server_sndbuf_peak_bytes")), ("2304", ""));
        assert_eq!((field(2, "rcvbuf"), field(2, "outcome"), field(2, "measured")), ("default", "invalid", "0"));
        assert_eq!((field(2, "completion_median_ns"), field(2, "goodput_median_bps")), ("", ""));
        assert_eq!(field(2, "reason"), "1 invalid: EMSGSIZE: \"too long\",\nsaid the kernel");
    }

    #[test]
    fn the_file_is_written_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(SUMMARY);
        write_csv(&path, &summarise(&[example("a", 0, 1)])).expect("written");
        assert_eq!(rows(&std::fs::read(&path).expect("read")).len(), 2);
        write_csv(&path, &[]).expect("written");
        assert_eq!(rows(&std::fs::read(&path).expect("read")).len(), 1, "the header");
    }
}
