//! The options of `[run]`: how often, in which order, for how long at most. They do not decide a cell.

use serde::{Deserialize, Serialize};

use crate::settings::{Kind, Limit, Precision, Value, narrow};
use crate::units::{Span, choice};

/// Most repeats of a cell.
pub const MAX_REPEATS: Limit = Limit { name: "MAX_REPEATS", max: 10_000 };
/// Most warm-ups of a cell.
pub const MAX_WARMUP: Limit = Limit { name: "MAX_WARMUP", max: 1000 };
/// Longest time that one repeat may take.
pub const MAX_TIMEOUT: Limit = Limit { name: "MAX_TIMEOUT", max: 3600 * 1_000_000_000 };
/// Any seed will do.
const MAX_SEED: Limit = Limit { name: "MAX_SEED", max: u64::MAX };
/// Shortest timeout: below it no workload could end.
const MIN_TIMEOUT: u64 = 1_000_000;

choice! {
    /// The order of the cells within each round.
    Order {
        /// Shuffled by the seed, anew in each round.
        #[default] Shuffled = "shuffled",
        /// As the axes list them.
        Listed = "listed",
    }
}

/// How often, in which order, for how long at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Repeats of each cell that count: so many, or at most so many where there is a precision to be reached.
    pub repeat: u32,
    /// When a cell has been repeated often enough before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Repeats of each cell that run before these, are recorded as warm-up and left out of summaries.
    pub warmup: u32,
    /// Longest time that one repeat may take.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// The order of the cells within each round.
    pub order: Order,
    /// What decides a shuffled order.
    pub seed: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            repeat: 5,
            precision: None,
            warmup: 0,
            timeout: Span(60 * 1_000_000_000),
            order: Order::Shuffled,
            seed: 1,
        }
    }
}

/// One option of `[run]`.
#[derive(Debug)]
pub struct RunKey {
    /// Dotted path in a sweep file, such as `run.repeat`.
    pub path: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What it sets, in one line.
    pub about: &'static str,
    /// Puts a checked value into the options.
    pub set: fn(&mut RunOptions, &Value),
    /// Reads the value back.
    pub get: fn(&RunOptions) -> Value,
}

/// All options of `[run]`, in the order in which documentation lists them.
pub static RUN_KEYS: &[RunKey] = &[
    RunKey {
        path: "run.repeat",
        kind: Kind::Count { min: 1, limit: MAX_REPEATS, or_default: false },
        about: "repeats of each cell that count, each on fresh sockets in fresh namespaces; or until its median is known well enough: { min = 6, max = 50, precision = \"2%\", confidence = 0.95 }",
        set: |run, value| {
            run.repeat = narrow(value);
            run.precision = None;
        },
        get: |run| Value::Int(run.repeat.into()),
    },
    RunKey {
        path: "run.warmup",
        kind: Kind::Count { min: 0, limit: MAX_WARMUP, or_default: false },
        about: "repeats of each cell that run first, are recorded as warm-up and left out of summaries",
        set: |run, value| run.warmup = narrow(value),
        get: |run| Value::Int(run.warmup.into()),
    },
    RunKey {
        path: "run.timeout",
        kind: Kind::Span { min: MIN_TIMEOUT, limit: MAX_TIMEOUT, or_default: false },
        about: "longest time that one repeat may take; one that takes longer is recorded as timed out",
        set: |run, value| {
            if let Some(timeout) = value.text().and_then(|text| text.parse().ok()) {
                run.timeout = timeout;
            }
        },
        get: |run| Value::Text(run.timeout.exact()),
    },
    RunKey {
        path: "run.order",
        kind: Kind::Choice(Order::NAMES),
        about: "order of the cells within each round of repeats: shuffled by the seed, or as the axes list them",
        set: |run, value| run.order = value.text().and_then(Order::named).unwrap_or_default(),
        get: |run| Value::Text(run.order.name().to_owned()),
    },
    RunKey {
        path: "run.seed",
        kind: Kind::Count { min: 0, limit: MAX_SEED, or_default: false },
        about: "what decides a shuffled order: the same seed gives the same order on every host",
        set: |run, value| run.seed = value.int().unwrap_or_default(),
        get: |run| Value::Int(run.seed),
    },
];

/// The option of that path.
pub(super) fn find_run(path: &str) -> Option<&'static RunKey> {
    RUN_KEYS.iter().find(|key| key.path == path)
}

#[cfg(test)]
mod tests {
    use super::{RUN_KEYS, RunOptions};

    #[test]
    fn defaults_are_accepted_and_survive_the_table() {
        let defaults = RunOptions::default();
        let mut run = RunOptions { repeat: 9, warmup: 9, timeout: crate::units::Span(1), seed: 9, ..defaults.clone() };
        for key in RUN_KEYS {
            let value = (key.get)(&defaults);
            assert_eq!(key.kind.check(&value).as_ref(), Ok(&value), "{}", key.path);
            (key.set)(&mut run, &value);
        }
        assert_eq!(run, defaults);
    }
}
