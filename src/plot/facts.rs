//! What must stand on a picture so that it can be shown alone: the kernel, the clock, the link, the workload, repeats and
//! date.

use super::space::{Space, clock_name, kernel_name};
use super::text::clean;
use crate::record::Manifest;
use crate::settings::{Key, Settings, Value, find};
use crate::stats::CellSummary;

/// More kernels than this are counted, not listed.
const MAX_LISTED: usize = 3;

/// Each text once, in order of first appearance.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// A few texts, or how many there are.
fn listed(noun: &str, texts: &[String]) -> String {
    match texts {
        [one] => format!("{noun} {one}"),
        few if few.len() <= MAX_LISTED => format!("{noun}s {}", few.join(", ")),
        many => format!("{} {noun}s", many.len()),
    }
}

/// The value of a key that is no axis: as the sweep sets it, or else as it is when nobody does.
fn off_axis(manifest: &Manifest, key: &Key) -> Option<Value> {
    let stored = manifest.sweep.resolved.get("fixed").and_then(|fixed| fixed.get(key.path));
    match stored.and_then(|value| serde_json::from_value::<Value>(value.clone()).ok()) {
        Some(value) => Some(value),
        None => key.read(&Settings::default()),
    }
}

/// The value of a key that is the same in all cells, as it is shown; `None` where it is an axis.
fn fixed(manifest: &Manifest, cells: &[CellSummary], path: &str) -> Option<String> {
    let key = find(path)?;
    if cells.iter().any(|cell| cell.axes.get(key.name()).is_some()) {
        return None;
    }
    Some(clean(&key.kind.show(&off_axis(manifest, key)?)))
}

/// The value of a key in one cell, whether it is an axis or not.
pub(super) fn setting(manifest: &Manifest, cell: &CellSummary, path: &str) -> Option<Value> {
    let key = find(path)?;
    cell.axes.get(key.name()).cloned().or_else(|| off_axis(manifest, key))
}

/// Kernel, clock and machine.
pub(crate) fn where_it_ran(cells: &[CellSummary]) -> Vec<String> {
    let kernels = distinct(cells.iter().map(|cell| clean(&kernel_name(cell))));
    let clocks = distinct(cells.iter().map(|cell| clock_name(cell.clock).to_owned()));
    let machines = distinct(cells.iter().flat_map(|cell| cell.machines.iter().map(|machine| clean(machine))));
    let mut facts = Vec::new();
    if !kernels.is_empty() {
        facts.push(listed("kernel", &kernels));
    }
    facts.push(clocks.join(" and "));
    facts.extend(machines.into_iter().filter_map(|machine| match machine.as_str() {
        "guest:tcg" => Some("guest emulated by QEMU".to_owned()),
        "guest:kvm" => Some("guest on KVM".to_owned()),
        other => (other.starts_with("guest") || other == "fake").then(|| other.to_owned()),
    }));
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// Link and workload, as far as they are the same in all cells.
pub(crate) fn what_was_run(manifest: &Manifest, cells: &[CellSummary]) -> Vec<String> {
    let of = |path: &str| fixed(manifest, cells, path);
    let mut facts = Vec::new();
    let kind = of("workload.kind");
    let protocol = of("workload.protocol");
    let style = of("workload.style").filter(|_| protocol.as_deref() == Some("sctp"));
    let stream = kind.as_deref() == Some("stream");
    let direction = of("workload.direction").filter(|_| stream);
    let work: Vec<_> = [protocol, kind, style, direction].into_iter().flatten().collect();
    if !work.is_empty() {
        facts.push(work.join(" "));
    }
    if let Some(topology) = of("link.topology") {
        let mtu = of("link.mtu").map_or_else(String::new, |mtu| match mtu.as_str() {
            "default" => ", MTU as the kernel has it".to_owned(),
            mtu => format!(", MTU {mtu}"),
        });
        facts.push(format!("link {topology}{mtu}"));
    }
    if stream {
        facts.extend(of("workload.duration").filter(|span| span != "default").map(|span| format!("for {span}")));
    }
    facts
}

/// How often: `3 repeats of each cell`.
pub(crate) fn repeats(cells: &[CellSummary]) -> String {
    let totals = || cells.iter().map(|cell| cell.counts.total());
    let (least, most) = (totals().min().unwrap_or(0), totals().max().unwrap_or(0));
    match (least, most) {
        (1, 1) => "1 repeat of each cell".to_owned(),
        (least, most) if least == most => format!("{most} repeats of each cell"),
        (least, most) => format!("{least} to {most} repeats of each cell"),
    }
}

/// When, and whether it is all there.
pub(crate) fn when(manifest: &Manifest) -> String {
    let date = manifest.started.strftime("%Y-%m-%d %H:%M UTC");
    match (manifest.interrupted, manifest.finished) {
        (true, _) => format!("{date}, interrupted"),
        (false, None) => format!("{date}, not finished"),
        (false, Some(_)) => date.to_string(),
    }
}

/// All of it, as items of a line.
pub(super) fn all(manifest: &Manifest, cells: &[CellSummary], space: &Space) -> Vec<String> {
    let mut facts = where_it_ran(cells);
    facts.extend(what_was_run(manifest, cells));
    facts.extend(space.fixed());
    facts.push(repeats(cells));
    facts.push(if cells.len() == 1 { "1 cell".to_owned() } else { format!("{} cells", cells.len()) });
    facts.push(when(manifest));
    facts.push(format!("{} {}", clean(&manifest.program.name), clean(&manifest.program.version)));
    facts
}
