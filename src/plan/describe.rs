//! What `sweep check` says about a sweep, but for where it would run.

use std::fmt;

use serde::Serialize;

use crate::settings::{Value, find};
use crate::spec::{Order, Sweep};
use crate::units::Span;

use super::{Estimate, Plan};

/// Most values of an axis that are written out. More are counted.
const MAX_SHOWN: usize = 24;
/// Width of the description.
const MAX_WIDTH: usize = 96;

/// What a sweep would do. Displays as text; serialises for machines, with units in the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The name of the sweep.
    pub name: String,
    /// What it asks.
    pub description: String,
    /// What varies.
    pub axes: Vec<AxisDescription>,
    /// What is set and does not vary.
    pub fixed: Vec<FixedDescription>,
    /// How many cells the axes span.
    pub cells: usize,
    /// Repeats of each cell that count.
    pub repeat: u32,
    /// Repeats of each cell before these.
    pub warmup: u32,
    /// All repeats of all cells, warm-ups included.
    pub runs: usize,
    /// The order within each round.
    pub order: Order,
    /// What decides a shuffled order.
    pub seed: u64,
    /// Longest time that one repeat may take.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
    /// What works and is likely not what was meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long it all takes.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AxisDescription {
    /// The name in records and pictures.
    pub name: String,
    /// The path of its key.
    pub path: String,
    /// What the key sets.
    pub about: &'static str,
    /// The values, as in records.
    pub values: Vec<Value>,
    /// The values, as in tables.
    #[serde(skip)]
    shown: Vec<String>,
}

/// One key that does not vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FixedDescription {
    /// Its path.
    pub path: String,
    /// Its value, as in records.
    pub value: Value,
}

impl Description {
    /// Describes a sweep and its plan.
    pub fn new(sweep: &Sweep, plan: &Plan) -> Self {
        let axes = sweep.axes.iter().map(|axis| AxisDescription {
            name: axis.name.clone(),
            path: axis.path.clone(),
            about: find(&axis.path).map_or("", |key| key.about),
            values: axis.values.clone(),
            shown: axis.shown(),
        });
        let fixed =
            sweep.fixed.iter().map(|(path, value)| FixedDescription { path: path.clone(), value: value.clone() });
        Self {
            name: sweep.name.clone(),
            description: sweep.description.clone(),
            axes: axes.collect(),
            fixed: fixed.collect(),
            cells: plan.cells.len(),
            repeat: sweep.run.repeat,
            warmup: sweep.run.warmup,
            runs: plan.runs.len(),
            order: sweep.run.order,
            seed: sweep.run.seed,
            timeout: sweep.run.timeout,
            warnings: plan.warnings(),
            estimate: Estimate::of(plan, &sweep.run),
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        if !self.description.is_empty() {
            wrapped(&self.description).iter().try_for_each(|line| writeln!(f, "{line}"))?;
        }
        let rows = |title: &'static str, rows: Vec<(&str, String)>, f: &mut fmt::Formatter<'_>| -> fmt::Result {
            let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            if !rows.is_empty() {
                writeln!(f, "\n{title}")?;
            }
            rows.iter().try_for_each(|(name, text)| writeln!(f, "  {name:width$}  {text}"))
        };
        rows("axes", self.axes.iter().map(|axis| (axis.name.as_str(), shown(&axis.shown))).collect(), f)?;
        let fixed = self.fixed.iter().map(|fixed| {
            let value = find(&fixed.path).map_or_else(|| fixed.value.to_string(), |key| key.kind.show(&fixed.value));
            (fixed.path.as_str(), value)
        });
        rows("fixed", fixed.collect(), f)?;

        let lengths: Vec<String> = self.axes.iter().map(|axis| axis.values.len().to_string()).collect();
        let product = if lengths.len() > 1 { format!(" ({})", lengths.join(" × ")) } else { String::new() };
        let warmup = match self.warmup {
            0 => String::new(),
            warmup => format!(", after {}", count(warmup as usize, "warm-up")),
        };
        let order = match self.order {
            Order::Shuffled => format!("each round of all cells shuffled, seed {}", self.seed),
            Order::Listed => "each round of all cells as listed".to_owned(),
        };
        writeln!(f)?;
        writeln!(f, "cells    {}{product}", self.cells)?;
        writeln!(f, "repeats  {} of each cell{warmup}, each at most {}", self.repeat, self.timeout.exact())?;
        writeln!(f, "runs     {}: {order}", self.runs)?;
        writeln!(
            f,
            "time     about {} if no cell stalls, at most {}",
            whole(self.estimate.expected),
            whole(self.estimate.at_most)
        )?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning  {warning}"))
    }
}

/// A text in lines of at most [`MAX_WIDTH`] characters, broken at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= MAX_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The values of an axis, joined; many are cut short.
fn shown(values: &[String]) -> String {
    match values.get(..MAX_SHOWN) {
        Some(first) if values.len() > MAX_SHOWN => format!("{}, … ({} values)", first.join(", "), values.len()),
        _ => values.join(", "),
    }
}

/// A number of things.
fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A long time in whole seconds, a short one with three digits.
fn whole(span: Span) -> String {
    const SECOND: u64 = 1_000_000_000;
    if span.0 < 100 * SECOND { span.to_string() } else { Span(span.0.div_ceil(SECOND).saturating_mul(SECOND)).exact() }
}

#[cfg(test)]
mod tests {
    use super::Description;
    use crate::plan::Plan;
    use crate::spec::{Overrides, Sweep};

    fn describe(text: &str) -> Description {
        let sweep = Sweep::parse("t.toml", text, &Overrides::default()).expect("a sweep");
        Description::new(&sweep, &Plan::new(&sweep))
    }

    #[test]
    fn the_text_of_check() {
        insta::assert_snapshot!(describe(include_str!("../../sweeps/sctp_rcvbuf.toml")));
        insta::assert_snapshot!("a_plain_sweep", describe("name = \"plain\"\n[run]\nwarmup = 1\norder = \"listed\"\n"));
        let many: Vec<_> = (1..=100).map(|n| n.to_string()).collect();
        insta::assert_snapshot!(
            "a_long_axis",
            describe(&format!("name = \"long\"\n[axes]\nchunk_count = [{}]\n", many.join(", ")))
        );
    }

    #[test]
    fn what_is_likely_not_meant_is_said() {
        let text = "name = \"t\"\n[link]\nrate = \"1Gbit/s\"\n[axes]\n\"link.delay\" = [\"1ms\", \"20ms\"]\n";
        let said = describe(text).to_string();
        let warning = said.lines().find_map(|line| line.strip_prefix("warning  ")).expect("a warning");
        assert!(warning.starts_with("link.limit = 1000 is too small for 1Gbit/s and 20ms"), "{warning}");
        assert!(warning.ends_with("use 2477 or more (in 1 of 2 cells)"), "{warning}");
    }

    #[test]
    fn machines_read_it_too() {
        let description = describe("name = \"t\"\n[socket]\nsndbuf = 1024\n[axes]\nrcvbuf = [1024, \"default\"]\n");
        insta::assert_snapshot!(serde_json::to_string_pretty(&description).expect("serialises"));
    }
}
