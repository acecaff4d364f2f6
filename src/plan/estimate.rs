//! How long a plan takes, before anything of it was measured.

use serde::Serialize;

use crate::settings::{Settings, Work};
use crate::spec::RunOptions;
use crate::units::Span;

use super::Plan;

/// To make and remove the namespaces, the link and the sockets of one repeat.
const SETUP_NS: u64 = 3_000_000;
/// An echo that waits for nothing.
const ECHO_NS: u64 = 3_000_000;
/// Two programs, of which nothing is known.
const EXEC_NS: u64 = 1_000_000_000;
/// Bytes a second at which a virtual link is taken to carry them: 8 Gbit/s.
const BYTES_PER_SECOND: u64 = 1_000_000_000;
/// The same as a cost.
const NS_PER_BYTE: u64 = 1_000_000_000 / BYTES_PER_SECOND;

/// How long a plan takes, apart from the boot of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// If no cell stalls.
    #[serde(rename = "expected_ns")]
    pub expected: Span,
    /// If no cell stalls, and each has a median that is known well enough as soon as can be. `None` where the number of repeats is fixed.
    #[serde(rename = "soonest_ns", skip_serializing_if = "Option::is_none")]
    pub soonest: Option<Span>,
    /// If every repeat runs into its timeout.
    #[serde(rename = "at_most_ns")]
    pub at_most: Span,
}

impl Estimate {
    /// The estimate for all runs of a plan.
    pub fn of(plan: &Plan, options: &RunOptions) -> Self {
        let up_to = |repeats: u32| {
            let runs = plan.runs.iter().filter(|run| run.warmup || run.repeat < repeats);
            Span(runs.filter_map(|run| plan.cells.get(run.cell)).fold(0u64, |total, cell| {
                let work = work_ns(&cell.settings).min(options.timeout.0);
                total.saturating_add(SETUP_NS + work)
            }))
        };
        let soonest = options.precision.map(|precision| up_to(precision.min.max(precision.fewest())));
        let each = SETUP_NS.saturating_add(options.timeout.0);
        let at_most = Span(each.saturating_mul(plan.runs.len() as u64));
        Self { expected: up_to(u32::MAX), soonest, at_most }
    }
}

/// How long the workload of a cell takes if it waits for nothing.
fn work_ns(settings: &Settings) -> u64 {
    let work = &settings.workload;
    let carried = |bytes: u64| bytes.saturating_mul(NS_PER_BYTE);
    match work.kind {
        // There and back.
        Work::Echo => {
            let bursts = carried(work.burst_bytes_of_all()).saturating_mul(2).saturating_add(ECHO_NS);
            bursts.saturating_add(work.least().0)
        }
        Work::Stream => {
            let bytes = if work.duration.is_none() { work.bytes } else { None };
            carried(bytes.map_or(0, |bytes| bytes.0)).saturating_mul(work.connections.into()).max(work.least().0)
        }
        // How long a program takes is not known before it has run.
        Work::Exec => EXEC_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, SETUP_NS};
    use crate::plan::Plan;
    use crate::spec::{Overrides, Sweep};
    use crate::units::Span;

    fn estimate(text: &str) -> Estimate {
        let text = format!(
            "name = \"t\"\n[run]\nrepeat = 2\nwarmup = 1\ntimeout = \"2s\"\n[workload]\nkind = \"stream\"\n{text}"
        );
        let sweep = Sweep::parse("t.toml", &text, &Overrides::default()).expect("a sweep");
        Estimate::of(&Plan::new(&sweep), &sweep.run)
    }

    #[test]
    fn a_stream_takes_its_time_or_that_of_its_bytes() {
        let at_most = Span(3 * (SETUP_NS + 2_000_000_000));
        assert_eq!(
            estimate("duration = \"300ms\""),
            Estimate { expected: Span(3 * (SETUP_NS + 300_000_000)), soonest: None, at_most }
        );
        assert_eq!(estimate("bytes = \"1MB\"").expected, Span(3 * (SETUP_NS + 1_000_000)));
        assert_eq!(estimate("bytes = \"9GB\"").expected, at_most, "never more than the timeout");
    }

    #[test]
    fn a_precision_takes_from_the_fewest_repeats_that_tell_it_to_the_most() {
        let text = "name = \"t\"\n[run]\nrepeat = { min = 3, max = 40, precision = \"2%\" }\n[axes]\nrcvbuf = [1, 2]\n";
        let sweep = Sweep::parse("t.toml", text, &Overrides::default()).expect("a sweep");
        let Estimate { expected, soonest, at_most } = Estimate::of(&Plan::new(&sweep), &sweep.run);
        let one = expected.0 / 80;
        assert_eq!(soonest, Some(Span(2 * 6 * one)), "6 repeats are the fewest that tell it");
        assert!(at_most > expected);
    }
}
