//! The table at the end of `sweep run`, and of `sweep show`: one row per cell.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableStyle, presets};

use super::words::{
    MISSING, both, clock, distinct, imprecise, kernel, known, not_precise, number, or_dash, outcome, percent, rate,
    span, value,
};
use crate::explain::{CellFindings, spoken};
use crate::settings::Value;
use crate::stats::{CellSummary, Shape};

/// Most cells that are each told to be not precise enough. Where there are more, the column has them.
const MAX_WANTING: usize = 8;

/// The cells of a run as a table for a terminal of that width in columns, or as wide as it gets where that is `None`.
///
/// Lines above the table say what all of it has in common: the sweep, the kernel, the clock, and axes with one value.
pub fn table(name: &str, cells: &[CellSummary], found: &[CellFindings], width: Option<u16>) -> String {
    let kernels = distinct(cells.iter().map(kernel));
    let clocks = distinct(cells.iter().map(|cell| clock(cell.clock).to_owned()));
    let machines = distinct(cells.iter().flat_map(|cell| cell.machines.iter().cloned()));
    let mut lines = vec![format!("sweep   {name}")];
    for (label, texts) in [("kernel ", &kernels), ("machine", &machines), ("clock  ", &clocks)] {
        if !texts.is_empty() {
            lines.push(format!("{label} {}", texts.join(", ")));
        }
    }
    if cells.is_empty() {
        lines.push("no repeat has been run".to_owned());
        return lines.join("\n") + "\n";
    }

    let (varying, fixed) = axes(cells);
    if !fixed.is_empty() {
        lines.push(format!("fixed   {}", fixed.join(", ")));
    }
    let shows = |axis: &str| varying.iter().any(|name| name == axis || name.ends_with(&format!(".{axis}")));
    let columns = Columns {
        kernel: kernels.len() > 1,
        clock: clocks.len() > 1,
        // The send buffer is what decides only where it is varied; `sweep show RUN CELL` has it always.
        sndbuf: shows("sndbuf"),
        axes: varying,
        precision: cells.iter().any(|cell| cell.precision.is_some()),
        metrics: distinct(cells.iter().flat_map(|cell| cell.metrics.iter().map(|metric| metric.name.clone()))),
        why: found.iter().any(|found| in_short(found).is_some()),
    };

    let mut table = plain_table(width);
    table.set_header(columns.header());
    for (index, cell) in cells.iter().enumerate() {
        table.add_row(columns.row(cell, found.get(index)));
    }
    let mut text = lines.join("\n") + "\n\n" + &table.trim_fmt() + "\n";
    if cells.iter().any(|cell| {
        cell.client.rcvbuf.differs
            || cell.server.rcvbuf.differs
            || columns.sndbuf && (cell.client.sndbuf.differs || cell.server.sndbuf.differs)
    }) {
        text += "~ differs between repeats: the first one is shown\n";
    }
    let wanting = cells.iter().filter(|cell| cell.precision.is_some_and(|reached| !reached.enough)).count();
    text += &cells.iter().flat_map(|cell| standing_out(cell, wanting <= MAX_WANTING)).collect::<String>();
    imprecise(cells).map_or(text.clone(), |line| text + &line + "\n")
}

/// Two modes or a drift of a cell, which its median does not tell, and a median that is not known well enough: a line each. `sweep show RUN CELL` names outliers, too.
fn standing_out(cell: &CellSummary, wanting: bool) -> Vec<String> {
    let (shape, show) = if cell.completion_ns.is_some() {
        (&cell.completion_shape, span as fn(Option<u64>) -> String)
    } else {
        (&cell.goodput_shape, rate as fn(Option<u64>) -> String)
    };
    let told = Shape { outliers: Vec::new(), ..shape.clone() };
    let mut notes = told.notes(&|figure| show(Some(figure)));
    notes.extend(cell.precision.filter(|reached| wanting && !reached.enough).map(|reached| not_precise(&reached)));
    notes.into_iter().map(|note| format!("note: {}: {note}\n", cell.axes)).collect()
}

/// Axes with several values, and those with one as `name=value`.
fn axes(cells: &[CellSummary]) -> (Vec<String>, Vec<String>) {
    let names = distinct(cells.iter().flat_map(|cell| cell.axes.0.iter().map(|(name, _)| name.clone())));
    let only = |name: &str| {
        let mut values = cells.iter().map(|cell| cell.axes.get(name));
        let first = values.next().flatten();
        first.filter(|_| values.all(|value| value == first))
    };
    let mut varying = Vec::new();
    let mut fixed = Vec::new();
    for name in names {
        match only(&name) {
            Some(one) => fixed.push(format!("{name}={}", value(&name, one))),
            None => varying.push(name),
        }
    }
    (varying, fixed)
}

/// Which columns the table has beside those that it always has.
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
struct Columns {
    axes: Vec<String>,
    kernel: bool,
    clock: bool,
    sndbuf: bool,
    precision: bool,
    metrics: Vec<String>,
    why: bool,
}

impl Columns {
    fn header(&self) -> Vec<Cell> {
        let mut header: Vec<_> = self.axes.iter().map(Cell::new).collect();
        header.extend(self.kernel.then(|| Cell::new("kernel")));
        header.extend(self.clock.then(|| Cell::new("clock")));
        header.extend(["completion", "spread", "goodput"].map(figure));
        header.extend(self.precision.then(|| figure("median within")));
        header.extend(self.metrics.iter().map(figure));
        header.push(Cell::new("receive buffer: asked → initial → final"));
        header.extend(self.sndbuf.then(|| Cell::new("send buffer")));
        header.push(Cell::new("outcome"));
        header.extend(self.why.then(|| Cell::new("why")));
        header
    }

    fn row(&self, cell: &CellSummary, found: Option<&CellFindings>) -> Vec<Cell> {
        let mut row: Vec<_> = self
            .axes
            .iter()
            .map(|axis| {
                let found = cell.axes.get(axis);
                let shown = Cell::new(found.map_or_else(|| MISSING.to_owned(), |found| value(axis, found)));
                // Numbers, and the "default" among them, to the right.
                let number = matches!(found, Some(Value::Int(_))) || found.is_some_and(Value::is_default);
                if number { shown.set_alignment(CellAlignment::Right) } else { shown }
            })
            .collect();
        row.extend(self.kernel.then(|| Cell::new(kernel(cell))));
        row.extend(self.clock.then(|| Cell::new(cell.clock.name())));
        row.push(figure(span(cell.completion_ns.map(|figures| figures.median))));
        // A stream for a fixed time has no completion; what varies there is its goodput.
        row.push(figure(percent(if cell.completion_ns.is_some() {
            cell.completion_spread
        } else {
            cell.goodput_spread
        })));
        row.push(figure(rate(cell.goodput_bps.map(|figures| figures.median))));
        row.extend(self.precision.then(|| figure(or_dash(cell.precision, |reached| known(&reached)))));
        row.extend(self.metrics.iter().map(|name| {
            let found = cell.metrics.iter().find(|metric| metric.name == *name);
            figure(found.map_or_else(|| MISSING.to_owned(), |metric| number(metric.median, &metric.unit)))
        }));
        row.push(Cell::new(both(&cell.client.rcvbuf, &cell.server.rcvbuf)));
        row.extend(self.sndbuf.then(|| Cell::new(both(&cell.client.sndbuf, &cell.server.sndbuf))));
        row.push(Cell::new(outcome(cell)));
        if self.why {
            row.push(Cell::new(found.and_then(in_short).unwrap_or_else(|| MISSING.to_owned())));
        }
        row
    }
}

/// Why, in a few words: what explains most, else what explains the slowest repeats.
fn in_short(found: &CellFindings) -> Option<String> {
    let seldom = found.now_and_then.first();
    let seldom = seldom.map(|one| format!("{}: {}", one.how_often(found.repeats), spoken(one.finding.name)));
    found.first().map(|finding| spoken(finding.name)).or(seldom)
}

/// A cell for a number, to the right.
pub(super) fn figure(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

/// A table with one line, under its header.
pub(super) fn plain_table(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(rule()).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table
}

/// No lines but the one under the header.
fn rule() -> TableStyle {
    presets::NOTHING.header_separator(comfy_table::LineStyle::none().fill('─').junction('─'))
}

#[cfg(test)]
mod tests;
