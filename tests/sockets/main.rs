//! Socket options, protocols and shapes of a workload: each takes effect on the kernel that the tests run on, or says why not. What
//! that kernel lacks is tried in a guest in virtual time (`tests/virtual_cells`).

#[path = "../common/mod.rs"]
mod common;

mod connections;
mod options;
mod protocols;
mod shapes;

use common::cells::measure;
use sweep::measurement::{End, Measurement, Outcome, Reading};
use sweep::settings::Value;

#[track_caller]
fn measured(values: &[(&str, Value)]) -> Measurement {
    let measured = measure(values, 30_000);
    assert_eq!(measured.outcome, Outcome::Measured, "{values:?}: {:?}", measured.reason);
    measured
}

/// What an option was asked, given, and is at the end.
fn option(end: &End, name: &str) -> (Reading, Option<Reading>, Option<Reading>) {
    let reading = end.options.get(name).unwrap_or_else(|| panic!("{name} was not recorded: {end:?}")).clone();
    (reading.asked, reading.given, reading.end)
}
