//! Everything about one cell: each repeat on a line, its latencies, its processor time, and the buffers of both ends.

use comfy_table::Cell;

use super::table::{figure, plain_table};
use super::why;
use super::words::{
    MISSING, both, buffer, clock, ended, kernel, known, not_precise, number, or_dash, outcome, percent, rate, size,
    span,
};
use crate::explain::CellFindings;
use crate::measurement::{
    Association, CapturedEnd, End, Measurement, OptionReading, ProgramFacts, Reading, Switch, Watched, Zerocopy,
};
use crate::record::Record;
use crate::stats::{BufferSummary, CellSummary, Figures, MetricSummary};
use crate::units::command_line;

/// A cell as [`crate::stats::select`] finds its repeats, for a terminal of that width in columns, or as wide as it gets
/// where that is `None`.
pub fn show_cell(summary: &CellSummary, repeats: &[&Record], found: &CellFindings, width: Option<u16>) -> String {
    let kernel_version = summary.kernel.version.as_ref().map(|version| format!(", {version}"));
    let package = summary.kernel.package_version.as_ref().map(|package| format!(", package {package}"));
    let mut lines = vec![
        format!("cell    {}", summary.cell),
        format!("axes    {}", summary.axes),
        format!(
            "kernel  {}{} (image {}{})",
            kernel(summary),
            kernel_version.unwrap_or_default(),
            summary.kernel.image,
            package.unwrap_or_default()
        ),
        format!("machine {}", summary.machines.join(", ")),
        format!("clock   {}", clock(summary.clock)),
        format!("outcome {}", outcome(summary)),
    ];
    for (label, figures, spread, interval, shape, show) in [
        (
            "completion",
            summary.completion_ns,
            summary.completion_spread,
            summary.completion_interval,
            &summary.completion_shape,
            span as fn(Option<u64>) -> String,
        ),
        (
            "goodput",
            summary.goodput_bps,
            summary.goodput_spread,
            summary.goodput_interval,
            &summary.goodput_shape,
            rate,
        ),
    ] {
        if let Some(Figures { count, min, median, max }) = figures {
            let [min, median, max] = [min, median, max].map(|figure| show(Some(figure)));
            let spread = percent(spread);
            let interval = interval.map_or_else(String::new, |interval| {
                let [low, high] = [interval.low, interval.high].map(|end| show(Some(end)));
                format!(" (95 % interval {low} to {high})")
            });
            lines.push(format!("{label}: median {median}{interval}, {min} to {max}, spread {spread}, of {count}"));
            let notes = shape.notes(&|figure| show(Some(figure)));
            lines.extend(notes.into_iter().map(|note| format!("{label}: {note}")));
        }
    }
    if let Some(reached) = &summary.precision {
        lines.push(if reached.enough {
            let asked = percent(Some(reached.asked));
            format!("{}: the median is known to {}, and ±{asked} was asked for", reached.metric, known(reached))
        } else {
            not_precise(reached)
        });
    }
    for metric in &summary.metrics {
        let [min, median, max] = [metric.min, metric.median, metric.max].map(|value| number(value, &metric.unit));
        let MetricSummary { name, better, count, .. } = metric;
        lines.push(format!("{name}: median {median}, {min} to {max}, of {count} ({better} is better)"));
    }
    for (label, client, server) in [
        ("receive buffer", &summary.client.rcvbuf, &summary.server.rcvbuf),
        ("send buffer", &summary.client.sndbuf, &summary.server.sndbuf),
    ] {
        lines.push(format!("{label}: {}", both(client, server).replace('\n', "; ")));
    }
    if let Some(record) = repeats.first() {
        for (name, end) in [("client", &record.measurement.client), ("server", &record.measurement.server)] {
            lines.extend(extras(name, end));
            lines.extend(end.program.iter().map(|program| ran(name, program)));
        }
    }
    if let Some(lost) = summary.lost_chunks {
        lines.push(format!("lost chunks: median {}, {} to {}", lost.median, lost.min, lost.max));
    }
    lines.extend([String::new(), figures_of(repeats, width), String::new(), ends_of(repeats, width), String::new()]);
    lines.extend(captures(repeats));
    if found.repeats > 0 {
        lines.push(why::findings(found));
    }
    if let Some(counters) = repeats.iter().map(|record| why::counters(record)).find(|counters| !counters.is_empty()) {
        lines.push(counters);
    }
    lines.join("\n")
}

/// How the program of one end of the first repeat was started, and how it ended.
fn ran(name: &str, program: &ProgramFacts) -> String {
    let ProgramFacts { command, ready_ns, stdout, stderr, .. } = program;
    let ready = ready_ns.map(|ns| format!(", ready after {}", span(Some(ns)))).unwrap_or_default();
    let ended = ended(program);
    let printed = [stdout, stderr].map(|output| size(Some(output.bytes)));
    format!(
        "{name} program: {}{ready}, {ended}, printed {} and {} of errors (--json has them)",
        command_line(command),
        printed[0],
        printed[1]
    )
}

/// The capture of each repeat that has one: its file, and what is in it.
fn captures(repeats: &[&Record]) -> Option<String> {
    let captured = repeats.iter().filter_map(|record| Some((record.repeat, record.measurement.capture.as_ref()?)));
    let lines: Vec<String> = captured
        .map(|(repeat, capture)| {
            let ends =
                [("client", capture.client), ("server", capture.server)].into_iter().filter_map(|(name, end)| {
                    let CapturedEnd { packets, dropped, cut } = end?;
                    let left_out = if dropped > 0 { format!(" and {dropped} left out") } else { String::new() };
                    let cut = if cut > 0 { format!(" ({cut} in part)") } else { String::new() };
                    Some(format!("{name} {packets} packets{cut}{left_out}"))
                });
            let ends = ends.collect::<Vec<_>>().join(", ");
            let why = capture.error.as_ref().map_or_else(String::new, |error| format!("; {error}"));
            format!("  repeat {repeat}: {}: {ends}{why}\n", capture.file.as_deref().unwrap_or("no file"))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("captured packets, in the folder of the run\n{}", lines.concat()))
}

/// Options of one end of the first repeat, and what its protocol knew of the connection.
fn extras(name: &str, end: &End) -> Vec<String> {
    let shown = |reading: &Option<Reading>| reading.as_ref().map_or_else(|| MISSING.to_owned(), ToString::to_string);
    let mut lines: Vec<String> = end
        .options
        .iter()
        .map(|(option, OptionReading { asked, given, end })| {
            format!("{name} {option}: {asked} → {} → {}", shown(given), shown(end))
        })
        .collect();
    if let Some(Zerocopy { sends, completed, copied }) = end.zerocopy {
        lines.push(format!(
            "{name} sends in place: {sends}, of which {completed} completed and {copied} copied after all"
        ));
    }
    if let Some(association) = &end.association {
        let Association { retransmitted_chunks, sacks_out, cwnd_bytes, peer_rwnd_bytes, rto_ns, .. } =
            association.as_ref();
        let count = |figure: &Option<u64>| or_dash(*figure, |count| count.to_string());
        lines.push(format!(
            "{name} association: {} chunks sent again, {} acknowledgements sent, congestion window {}, peer's window {}, retransmission timeout {}",
            count(retransmitted_chunks),
            count(sacks_out),
            size(*cwnd_bytes),
            size(*peer_rwnd_bytes),
            span(*rto_ns)
        ));
    }
    lines.extend(end.watched.iter().flat_map(|watched| seen(name, watched)));
    lines
}

/// Which of a program's sockets an end tells of, and how it was seen.
fn seen(name: &str, watched: &Watched) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if let Some(protocol) = &watched.protocol {
        let port = |port: Option<u16>| or_dash(port, |port| port.to_string());
        let mut parts = vec![format!(
            "{name}'s socket, seen from outside: {protocol} {} → {}",
            port(watched.local_port),
            port(watched.peer_port)
        )];
        if watched.connections > 1 {
            parts.push(format!("of {} the one that carried the most", watched.connections));
        }
        if watched.sent_bytes.or(watched.received_bytes).is_some() {
            parts.push(format!("sent {} and received {}", size(watched.sent_bytes), size(watched.received_bytes)));
        }
        parts.extend(watched.congestion.clone());
        parts.push(format!("{} looks in {} of processor time", watched.looks, span(Some(watched.cost_ns))));
        lines.push(parts.join(", "));
    }
    lines.extend(watched.reasons.iter().map(|reason| format!("{name}'s sockets: {reason}")));
    lines
}

/// Completion, goodput and quantiles of chunk latency: a line for each repeat.
fn figures_of(repeats: &[&Record], width: Option<u16>) -> String {
    let mut table = plain_table(width);
    let quantiles = ["min", "p50", "p90", "p99", "p99.9", "max"];
    table.set_header(
        ["repeat", "run", "completion", "goodput", "arrived"]
            .into_iter()
            .chain(quantiles)
            .map(figure)
            .chain(["outcome", "started"].map(Cell::new)),
    );
    for record in repeats {
        let Measurement { outcome, reason, completion_ns, goodput_bps, delivered_bytes, chunk_latency_ns, .. } =
            &record.measurement;
        let latency = chunk_latency_ns.as_ref();
        let mut row = vec![
            figure(record.repeat.to_string()),
            figure(record.sequence.to_string()),
            figure(span(*completion_ns)),
            figure(rate(*goodput_bps)),
            figure(size(*delivered_bytes)),
        ];
        row.extend(
            [
                latency.map(|latency| latency.min),
                latency.map(|latency| latency.p50),
                latency.and_then(|latency| latency.p90),
                latency.and_then(|latency| latency.p99),
                latency.and_then(|latency| latency.p99_9),
                latency.map(|latency| latency.max),
            ]
            .map(|quantile| figure(span(quantile))),
        );
        row.push(Cell::new(match reason {
            Some(reason) => format!("{outcome}: {reason}"),
            None => outcome.to_string(),
        }));
        row.push(Cell::new(match &record.reused_from {
            Some(from) => format!("{}, reused from {from}", record.started),
            None => record.started.to_string(),
        }));
        table.add_row(row);
    }
    table.trim_fmt()
}

/// Buffers, the no-delay switch and processor time: a line for each end of each repeat.
fn ends_of(repeats: &[&Record], width: Option<u16>) -> String {
    let mut table = plain_table(width);
    table.set_header(
        [
            figure("repeat"),
            Cell::new("end"),
            Cell::new("receive buffer"),
            Cell::new("send buffer"),
            Cell::new("nodelay"),
        ]
        .into_iter()
        .chain(["user", "system", "switches"].map(figure)),
    );
    for record in repeats {
        for (name, end) in [("client", &record.measurement.client), ("server", &record.measurement.server)] {
            // Samples are drawn, not listed; options and evidence have lists of their own.
            let End {
                rcvbuf,
                sndbuf,
                nodelay,
                cpu_user_ns,
                cpu_system_ns,
                voluntary_switches,
                involuntary_switches,
                ..
            } = end;
            let of_one = |shown| buffer(&BufferSummary { buffer: shown, differs: false });
            let switches =
                or_dash(voluntary_switches.zip(*involuntary_switches), |(own, forced)| format!("{own} + {forced}"));
            table.add_row([
                figure(record.repeat.to_string()),
                Cell::new(name),
                Cell::new(of_one(rcvbuf.clone())),
                Cell::new(of_one(sndbuf.clone())),
                Cell::new(switch(nodelay)),
                figure(span(*cpu_user_ns)),
                figure(span(*cpu_system_ns)),
                figure(switches),
            ]);
        }
    }
    table.trim_fmt()
}

/// A switch: asked, and what the kernel has where that is something else.
fn switch(switch: &Switch) -> String {
    let word = |on| if on { "on" } else { "off" };
    match (switch.asked, switch.given) {
        (None, None) => MISSING.to_owned(),
        (None, Some(given)) => format!("default → {}", word(given)),
        (Some(asked), None) => format!("{} → {MISSING}", word(asked)),
        (Some(asked), Some(given)) if asked == given => word(given).to_owned(),
        (Some(asked), Some(given)) => format!("{} → {}", word(asked), word(given)),
    }
}
