//! Pictures as files.

use std::path::{Path, PathBuf};

use super::error::PlotError;
use super::heatmap::heatmap;
use super::metric::Metric;
use super::options::{Format, PlotOptions};
use super::png::png;
use super::run::Run;
use crate::record::write_atomically;

/// Name of the picture of completion in the folder of a run, without its ending.
pub const LATENCY: &str = "latency";
/// Name of the picture of goodput.
pub const THROUGHPUT: &str = "throughput";

/// The bytes of a file of that format.
///
/// # Errors
/// If the picture is too large to be turned into pixels.
pub fn encode(svg: String, format: Format) -> Result<Vec<u8>, PlotError> {
    match format {
        Format::Svg => Ok(svg.into_bytes()),
        Format::Png => png(&svg),
    }
}

/// Writes a picture in one step.
///
/// # Errors
/// If it cannot be encoded, or the folder cannot be written to.
pub fn write(path: &Path, svg: String, format: Format) -> Result<(), PlotError> {
    let bytes = encode(svg, format)?;
    Ok(write_atomically(path, &bytes)?)
}

/// Writes the two pictures that every run has, `latency` and `throughput`, into a folder, and returns their paths. The
/// metric of the options is not used.
///
/// # Errors
/// As [`heatmap`], and if the folder cannot be written to.
pub fn write_run(folder: &Path, run: Run<'_>, options: &PlotOptions) -> Result<Vec<PathBuf>, PlotError> {
    [(LATENCY, Metric::COMPLETION), (THROUGHPUT, Metric::GOODPUT)]
        .into_iter()
        .map(|(name, metric)| {
            let path = folder.join(format!("{name}.{}", options.format));
            let svg = heatmap(run, &PlotOptions { metric, ..options.clone() })?;
            write(&path, svg, options.format)?;
            Ok(path)
        })
        .collect()
}
