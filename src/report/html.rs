//! `report.html`: one page that needs no network, no server and no other file. What was swept and where, a map of any
//! metric over any two axes, everything about each cell, and a table.
//!
//! Texts are escaped by the template, the data stands in a block that cannot be left, the script only ever sets text, and
//! the policy in the head lets the browser run nothing but that script and load nothing at all.

mod data;
mod over_time;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::plot::{Metric, PlotOptions, Run, facts, heatmap, text};
use crate::record::Manifest;
use crate::stats::CellSummary;

use super::search;

/// Name of the file in the folder of a run.
pub const PAGE: &str = "report.html";

const STYLE: &str = include_str!("html/page.css");
/// The parts of the script, which share one scope.
const SCRIPT: [&str; 5] = [
    include_str!("html/figures.js"),
    include_str!("html/map.js"),
    include_str!("html/details.js"),
    include_str!("html/table.js"),
    include_str!("html/page.js"),
];
/// Runs with more cells have no pictures for browsers without scripts: these would be megabytes.
const MAX_STATIC: usize = 2000;
/// Longest sweep file that is shown.
const MAX_SOURCE: usize = 100_000;

/// The page of a run.
pub fn page(run: Run<'_>) -> String {
    let Run { manifest, cells, .. } = run;
    let name = text::clean(&manifest.sweep.name);
    let script = format!("(() => {{\n'use strict';\n{}\n}})();", SCRIPT.concat());
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'",
        STANDARD.encode(Sha256::digest(script.as_bytes()))
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                link rel="icon" href="data:,";
                title { (name) " · sweep" }
                style { (PreEscaped(STYLE)) (PreEscaped(over_time::colours())) }
            }
            body {
                header {
                    div .top {
                        h1 dir="auto" { (name) }
                        button #theme type="button" { "Dark" }
                    }
                    @if let Some(about) = description(manifest) {
                        p .about dir="auto" { (about) }
                    }
                    (summary(manifest, cells))
                }
                main {
                    @if cells.is_empty() {
                        p { "No repeat has been run yet." }
                    } @else {
                        (search_section(run))
                        (map_section())
                        (table_section())
                        (without_script(run))
                    }
                    (provenance(manifest))
                }
                script type="application/json" #data { (PreEscaped(data::json(run))) }
                script { (PreEscaped(script)) }
            }
        }
    };
    page.into_string()
}

/// What the sweep asks, as its file says.
fn description(manifest: &Manifest) -> Option<String> {
    let text = manifest.sweep.resolved.get("description")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What was run and where, and how it went.
fn summary(manifest: &Manifest, cells: &[CellSummary]) -> Markup {
    let measured = cells.iter().filter(|cell| cell.counts.measured == cell.counts.total()).count();
    let others = cells.len() - measured;
    let host = &manifest.host;
    let host = [host.os.clone(), host.cpu_model.clone(), host.cores.map(|cores| format!("{cores} cores"))];
    let host = host.into_iter().flatten().collect::<Vec<_>>().join(", ");
    html! {
        dl .facts {
            div { dt { "Ran on" } dd { (facts::where_it_ran(cells).join(", ")) } }
            div { dt { "Workload" } dd { (facts::what_was_run(manifest, cells).join(", ")) } }
            div { dt { "Cells" } dd {
                (cells.len()) ", " (facts::repeats(cells))
                @if others > 0 { "; " strong { (others) " not fully measured" } }
            } }
            div { dt { "When" } dd { (facts::when(manifest)) } }
            div { dt { "Host" } dd { (host) } }
        }
    }
}

/// What a search found, where the sweep has one.
fn search_section(run: Run<'_>) -> Markup {
    let Run { manifest, cells, records, .. } = run;
    html! {
        @if let Some(searched) = search::searched(manifest, cells, records) {
            section aria-labelledby="find-title" {
                h2 #find-title { "Search" }
                p { (search::heading(&searched, manifest)) }
                ul {
                    @for found in &searched.found {
                        li {
                            @if !found.others.0.is_empty() { strong { (found.others) } ": " }
                            (search::sentence(&searched.search, found))
                        }
                    }
                }
            }
        }
    }
}

/// The map and everything that changes it.
fn map_section() -> Markup {
    html! {
        section #map-section aria-labelledby="map-title" {
            h2 #map-title { "Map" }
            div .controls {
                label { "Show " select #metric {} }
                label { "as " select #stat {
                    option value="0" { "median" }
                    option value="1" { "smallest" }
                    option value="2" { "largest" }
                    option value="3" { "spread" }
                } }
                label { "across " select #x {} }
                label { "up " select #y {} }
            }
            fieldset .filters {
                legend { "Only cells with" }
                div #filters {}
                label { "text " input #search type="search" placeholder="id, value, reason" size="16"; }
                button #clear type="button" { "All cells" }
                output #matching {}
            }
            div #legend {}
            div .columns {
                div #map tabindex="0" role="group"
                    aria-label="Map of cells. Arrow keys move from cell to cell, Enter keeps a cell, Escape lets it go." {}
                aside #details aria-live="polite" aria-label="The chosen cell" {
                    p .hint { "Point at a cell, click it, or move with the arrow keys: everything about it stands here." }
                }
            }
            div #tip role="tooltip" hidden {}
        }
    }
}

/// All cells as a table.
fn table_section() -> Markup {
    html! {
        section aria-labelledby="table-title" {
            div .top {
                h2 #table-title { "Table" }
                button #copy type="button" { "Copy as CSV" }
            }
            div .scroll { table #table { thead {} tbody {} } }
            button #more type="button" hidden {}
        }
    }
}

/// The two pictures of the run, where no script runs.
fn without_script(run: Run<'_>) -> Markup {
    html! {
        noscript {
            p { "This page draws its map with a script, which this browser does not run." }
            @if run.cells.len() <= MAX_STATIC {
                @for metric in [Metric::COMPLETION, Metric::GOODPUT] {
                    @if let Ok(svg) = heatmap(run, &PlotOptions::of(metric.clone())) {
                        div .scroll { (PreEscaped(svg)) }
                    }
                }
            }
        }
    }
}

/// Everything that is needed to run it again.
fn provenance(manifest: &Manifest) -> Markup {
    let program = &manifest.program;
    let source: String = manifest.sweep.source.chars().take(MAX_SOURCE).collect();
    let resolved = serde_json::to_string_pretty(&manifest.sweep.resolved).unwrap_or_default();
    html! {
        section aria-labelledby="origin-title" {
            h2 #origin-title { "Where it comes from" }
            dl .facts {
                div { dt { "Program" } dd {
                    (program.name) " " (program.version)
                    @if let Some(revision) = &program.revision { " (" (revision) ")" }
                } }
                div { dt { "Command" } dd { code { (manifest.command.join(" ")) } } }
                @if let Some(path) = &manifest.sweep.path { div { dt { "Sweep file" } dd { code { (path) } } } }
                @if let Some(revision) = &manifest.revision {
                    div { dt { "Revision" } dd {
                        code { (revision.commit) } @if revision.dirty == Some(true) { " with changes" }
                    } }
                }
                @for (tool, version) in &manifest.tools { div { dt { (tool) } dd { (version) } } }
                @for machine in &manifest.machines {
                    div { dt { "Machine" } dd {
                        (machine.release.as_deref().unwrap_or("did not come up"))
                        " (" (machine.image) ", " (machine.machine) ", " (machine.clock.name()) " time)"
                        @if let Some(note) = &machine.note { ": " (note) }
                    } }
                }
            }
            (pairs("Kernel parameters of the host", &manifest.sysctls))
            (pairs("Offloads", &manifest.offloads))
            details { summary { "The sweep file" } pre dir="auto" { (source) } }
            details { summary { "What it was understood as" } pre dir="auto" { (resolved) } }
        }
    }
}

/// Names and values, folded away.
fn pairs(title: &str, pairs: &std::collections::BTreeMap<String, String>) -> Markup {
    html! {
        @if !pairs.is_empty() {
            details {
                summary { (title) }
                dl .facts { @for (name, value) in pairs { div { dt { code { (name) } } dd { (value) } } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{over_time, page};
    use crate::explain::explain_run;
    use crate::measurement::{Evidence, Samples};
    use crate::plot::Run;
    use crate::record::{Manifest, Record, example, example_manifest};
    use crate::stats::summarise;

    fn of(manifest: &Manifest, records: &[Record]) -> String {
        let cells = summarise(records);
        let explained = explain_run(manifest, &cells, records);
        page(Run { manifest, cells: &cells, records, explained: &explained })
    }

    #[test]
    fn texts_are_escaped_and_data_cannot_leave_its_block() {
        let mut manifest = example_manifest("</title><script>alert(1)</script>");
        manifest.command = vec!["\"><img src=x onerror=alert(1)>".to_owned()];
        let mut record = example("a", 0, 1_000_000);
        record.axes.0[0].0 = "</script><script>alert(1)".to_owned();
        record.kernel.release = Some("<!--<script>".to_owned());
        let records = [record];
        let page = of(&manifest, &records);
        assert_eq!(page.matches("<script").count(), 2, "the data and the script");
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<img") && !page.contains("<!--"));
    }

    #[test]
    fn a_run_without_repeats_has_a_page() {
        assert!(of(&example_manifest("empty"), &[]).contains("No repeat has been run yet."));
    }

    #[test]
    fn few_cells_have_charts_over_time_and_many_say_where_theirs_are() {
        let sampled = |cell: usize| {
            let mut record = example(&format!("{cell:08}"), 0, 1_000_000);
            let samples = Samples { t_ns: vec![0, 1], rcvbuf_bytes: Some(vec![5, 6]), ..Samples::default() };
            record.axes.0[0].1 = crate::settings::Value::Int(cell as u64);
            record.measurement.client.samples = Some(samples);
            record
        };
        for (cells, charts) in [(2, 2), (over_time::MOST_CELLS + 1, 0)] {
            let records: Vec<_> = (0..cells).map(sampled).collect();
            let page = of(&example_manifest("plain"), &records);
            assert_eq!(page.matches("\"s\":{\"repeat\":0").count(), charts);
            assert!(page.contains(if charts > 0 { "\"by_hand\":false" } else { "\"by_hand\":true" }));
        }
    }

    #[test]
    fn a_finding_stands_once_however_many_cells_have_it() {
        let stalled = |cell: &str| {
            let mut record = example(cell, 0, 31_250_000_000);
            record.axes.0[0].1 = crate::settings::Value::Text(cell.to_owned());
            let counters = Some([("SctpT3RtxExpireds".to_owned(), 5)].into());
            record.measurement.client.evidence = Some(Evidence { counters, ..Evidence::default() });
            record
        };
        let records = [stalled("a"), stalled("b")];
        let page = of(&example_manifest("plain"), &records);
        assert_eq!(page.matches("5 retransmission timers (T3-rtx) ran out").count(), 1);
        assert_eq!(page.matches("\"f\":[0").count(), 2);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let records = [example("a", 0, 1_000_000)];
        let page = of(&example_manifest("plain"), &records);
        // Hatches are patterns of the page itself.
        let page = page.replace("url(#", "");
        for word in ["src=", "url(", "@import", "fetch(", "innerHTML", "https:"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
