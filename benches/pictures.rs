//! How long the pictures and the page of a large run take, and how much memory: 10,000 cells with 10 repeats each.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up figures"
)]

#[path = "../tests/fixtures/runs.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod runs;

use std::hint::black_box;
use std::time::{Duration, Instant};

use sweep::explain::explain_run;
use sweep::plot::{self, Format, Metric, PlotOptions, Run};
use sweep::stats::summarise;

/// The most memory that this process has had, in MiB, as the kernel counts it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib / 1024.0)
}

/// Runs it, prints what it took, and returns whether that was within the limit.
fn time<T>(what: &str, limit: Duration, run: impl FnOnce() -> T) -> (T, bool) {
    let before = Instant::now();
    let result = black_box(run());
    let took = before.elapsed();
    let memory = peak().map_or_else(String::new, |mib| format!(", peak of the process {mib:.0} MiB"));
    println!("{what:<44} {:>8.3} s (limit {:.1} s){memory}", took.as_secs_f64(), limit.as_secs_f64());
    (result, took <= limit)
}

fn main() -> std::process::ExitCode {
    let run = runs::grid(200, 50, 10);
    let runs::Fixture { manifest, records, cells } = &run;
    let (explained, _) = time("why", Duration::from_secs(1), || explain_run(manifest, cells, records));
    let parts = Run { manifest, cells, records, explained: &explained };
    let memory = peak().map_or_else(String::new, |mib| format!(", {mib:.0} MiB with the records alone"));
    println!("{} cells, {} repeats{memory}", cells.len(), records.len());
    let second = Duration::from_secs(1);
    let draw = |metric| plot::heatmap(parts, &PlotOptions::of(metric));
    let (_, summed) = time("summaries", second, || summarise(records));
    let (pictures, plotted) =
        time("latency.svg and throughput.svg", 2 * second, || [draw(Metric::COMPLETION), draw(Metric::GOODPUT)]);
    let (page, reported) = time("report.html", 4 * second, || sweep::report::page(parts));
    let mut sound = true;
    for picture in pictures {
        match picture {
            Ok(svg) => {
                println!("an SVG of {:.2} MB", svg.len() as f64 / 1e6);
                let (png, _) = time("the same as PNG (no limit)", 20 * second, || plot::encode(svg, Format::Png));
                sound &= png.is_ok();
            }
            Err(error) => {
                println!("no picture: {error}");
                sound = false;
            }
        }
    }
    println!("a page of {:.2} MB", page.len() as f64 / 1e6);
    if summed && plotted && reported && sound {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}
