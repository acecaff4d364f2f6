//! Every error of a sweep file, as a person reads it, and forms that come to the same.

mod axes;
mod conflicts;
mod keys;
mod link;
mod overrides;
mod repeats;
mod rows;

use miette::{GraphicalReportHandler, GraphicalTheme};
use sweep::spec::{Overrides, SpecErrors, Sweep};

/// The report without colours, 100 columns wide.
fn report(errors: &SpecErrors) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    handler.with_width(100).with_links(false).render_report(&mut text, errors).expect("renders");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a file.
fn errors(text: &str) -> String {
    errors_with(text, &Overrides::default())
}

/// What is wrong with a file as the command line changes it.
fn errors_with(text: &str, overrides: &Overrides) -> String {
    report(&Sweep::parse("sweep.toml", text, overrides).expect_err("the sweep is wrong"))
}

/// Assignments as they follow `--set` or `--filter`.
fn assignments(texts: &[&str]) -> Vec<(String, Vec<String>)> {
    texts.iter().map(|text| Overrides::assignment(text).expect("an assignment")).collect()
}

/// A file with a name.
fn named(text: &str) -> String {
    format!("name = \"test\"\n{text}")
}

/// The sweep of a text.
fn sweep_with(text: &str, overrides: &Overrides) -> Sweep {
    Sweep::parse("sweep.toml", &named(text), overrides).unwrap_or_else(|errors| panic!("{}", report(&errors)))
}
