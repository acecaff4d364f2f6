//! What `sweep check` says about a sweep, but for where it would run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::settings::{Axes, Program, Side, Value, find};
use crate::spec::{Axis, Order, Sweep};
use crate::units::{Span, command_line};

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
    /// What the presets that are named stand for. What is set or varied wins over them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub presets: BTreeMap<String, Axes>,
    /// What programs are run, each different command once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandDescription>,
    /// How many cells there are.
    pub cells: usize,
    /// How many combinations of the grid are left out by `[[exclude]]`.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: u64,
    /// How many cells are added to the grid by `[[include]]`: the last ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub included: u64,
    /// The lengths of the grid.
    #[serde(skip)]
    lengths: Vec<usize>,
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
    /// The names of the axes that move with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zipped_with: Vec<String>,
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

/// A program that is run in some cells. What is known only when a repeat runs stands in braces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandDescription {
    /// At which end.
    pub side: Side,
    /// Variables of its environment that the sweep sets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// In how many cells.
    pub cells: usize,
}

/// The different commands of a plan, the server's first, in the order of the cells.
fn commands(plan: &Plan) -> Vec<CommandDescription> {
    let mut found: Vec<CommandDescription> = Vec::new();
    for side in [Side::Server, Side::Client] {
        for exec in plan.cells.iter().filter_map(|cell| cell.settings.exec.as_deref()) {
            let Program { command, env, .. } = exec.program(side);
            match found.iter_mut().find(|known| known.side == side && known.command == *command && known.env == *env) {
                Some(known) => known.cells += 1,
                None => found.push(CommandDescription { side, env: env.clone(), command: command.clone(), cells: 1 }),
            }
        }
    }
    found
}

impl Description {
    /// Describes a sweep and its plan.
    pub fn new(sweep: &Sweep, plan: &Plan) -> Self {
        let axes = sweep.axes.iter().map(|axis| AxisDescription {
            name: axis.name.clone(),
            path: axis.path.clone(),
            about: find(&axis.path).map_or("", |key| key.about),
            values: axis.values.clone(),
            zipped_with: zipped_with(sweep, axis),
            shown: axis.shown(),
        });
        let fixed =
            sweep.fixed.iter().map(|(path, value)| FixedDescription { path: path.clone(), value: value.clone() });
        Self {
            name: sweep.name.clone(),
            description: sweep.description.clone(),
            axes: axes.collect(),
            fixed: fixed.collect(),
            presets: sweep.presets.clone(),
            commands: commands(plan),
            cells: plan.cells.len(),
            excluded: sweep.excluded_count(),
            included: sweep.include.len() as u64,
            lengths: sweep.lengths(),
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

impl Description {
    /// Writes the commands, as they would be typed in a shell.
    fn write_commands(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.commands.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nprograms")?;
        for side in [Side::Server, Side::Client] {
            let own: Vec<_> = self.commands.iter().filter(|command| command.side == side).collect();
            for CommandDescription { env, command, cells, .. } in own.iter().take(MAX_SHOWN) {
                let env = env.iter().map(|(name, value)| format!("{name}={value}"));
                let words: Vec<String> = env.chain(command.iter().cloned()).collect();
                let place = if *cells < self.cells { format!("  ({})", count(*cells, "cell")) } else { String::new() };
                writeln!(f, "  {side}  {}{place}", command_line(&words))?;
            }
            if own.len() > MAX_SHOWN {
                writeln!(f, "  {side}  … ({} commands; --json has all)", own.len())?;
            }
        }
        Ok(())
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
        let axes = self.axes.iter().map(|axis| {
            let with = axis.zipped_with.join(", ");
            let with = if with.is_empty() { with } else { format!("  (moves with {with})") };
            (axis.name.as_str(), shown(&axis.shown) + &with)
        });
        rows("axes", axes.collect(), f)?;
        let fixed = self.fixed.iter().map(|fixed| {
            let value = find(&fixed.path).map_or_else(|| fixed.value.to_string(), |key| key.kind.show(&fixed.value));
            (fixed.path.as_str(), value)
        });
        rows("fixed", fixed.collect(), f)?;
        let presets = self.presets.iter().filter(|(_, sets)| !sets.0.is_empty());
        let presets = presets.map(|(name, sets)| (name.as_str(), sets.to_string()));
        rows("presets, where nothing else is said", presets.collect(), f)?;

        self.write_commands(f)?;
        let lengths: Vec<String> = self.lengths.iter().map(ToString::to_string).collect();
        let mut product = lengths.join(" × ");
        if self.excluded > 0 {
            product = format!("{product}, less {} left out", self.excluded);
        }
        if self.included > 0 {
            product = format!("{product}, and {} added", self.included);
        }
        let plain = lengths.len() < 2 && self.excluded == 0 && self.included == 0;
        let product = if plain { String::new() } else { format!(" ({product})") };
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

/// The names of the axes that move with this one.
fn zipped_with(sweep: &Sweep, axis: &Axis) -> Vec<String> {
    let others = sweep.zip_of(&axis.path).unwrap_or_default().iter().filter(|path| **path != axis.path);
    others.filter_map(|path| sweep.axis(path)).map(|other| other.name.clone()).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
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
    fn what_moves_together_is_left_out_and_is_added() {
        let text = r#"
name = "zipped"
preset = "erlang-otp-28"
[[zip]]
rcvbuf = ["32KiB", "64KiB", "128KiB"]
sndbuf = ["32KiB", "64KiB", "64KiB"]
[axes]
nodelay = [false, true]
chunk_size = { from = 64, to = 1024, factor = 4 }
[[exclude]]
rcvbuf = "128KiB"
nodelay = false
[[include]]
rcvbuf = 1024
sndbuf = 1024
"#;
        insta::assert_snapshot!("zipped", describe(text));
        insta::assert_snapshot!("zipped_json", serde_json::to_string_pretty(&describe(text)).expect("serialises"));
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
