//! Pictures: golden files, byte for byte.
//!
//! `SWEEP_BLESS=1 cargo test --test plot` writes them anew; look at them before they are committed.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up figures"
)]

#[path = "fixtures/runs.rs"]
mod runs;

#[path = "plot/geometry.rs"]
mod geometry;

use std::fs;
use std::path::Path;

use runs::Fixture;
use sweep::plot::{self, Format, Metric, PlotError, PlotOptions, Run, Sample, Stat, Theme};

/// Compares a picture with the one in the repository.
fn golden(name: &str, svg: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.svg"));
    if std::env::var_os("SWEEP_BLESS").is_some() {
        fs::write(&path, svg).expect("written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == svg, "{name} differs from {}: look at it, then run this with SWEEP_BLESS=1", path.display());
}

fn draw(run: &Fixture, options: &PlotOptions) -> Result<String, PlotError> {
    run.with(|run| plot::heatmap(run, options))
}

fn latency(run: &Fixture) -> String {
    draw(run, &PlotOptions::default()).expect("a picture")
}

fn throughput(run: &Fixture) -> String {
    draw(run, &PlotOptions::of(Metric::GOODPUT)).expect("a picture")
}

#[test]
fn pictures_are_as_they_were() {
    golden("sctp_rcvbuf_latency", &latency(&runs::sctp_rcvbuf()));
    golden("sctp_rcvbuf_throughput", &throughput(&runs::sctp_rcvbuf()));
    golden("sctp_kernels", &latency(&runs::sctp_kernels()));
    golden("tcp_buffers_latency", &latency(&runs::tcp_buffers()));
    golden("tcp_buffers_throughput", &throughput(&runs::tcp_buffers()));
    golden("one_axis", &latency(&runs::one_axis()));
    golden("one_axis_two_kernels", &latency(&runs::one_axis_two_kernels()));
    golden("one_cell", &latency(&runs::one_cell()));
    golden("missing_cells", &latency(&runs::missing_cells()));
    golden("four_axes", &latency(&runs::four_axes()));
    golden("hostile", &latency(&runs::hostile()));
    let dark = PlotOptions { theme: Theme::Dark, ..PlotOptions::default() };
    golden("missing_cells_dark", &draw(&runs::missing_cells(), &dark).expect("a picture"));
    let spread = PlotOptions { stat: Stat::Spread, metric: Metric::GOODPUT, ..PlotOptions::default() };
    golden("spread", &draw(&runs::tcp_buffers(), &spread).expect("a picture"));
    let sizes = PlotOptions::of(Metric::named("rcvbuf-final", &[]).expect("a metric"));
    golden("rcvbuf_final", &draw(&runs::tcp_buffers(), &sizes).expect("a picture"));
}

#[test]
fn what_was_found_and_where_more_does_not_help_is_marked() {
    let run = runs::explained();
    let svg = latency(&run);
    golden("explained", &svg);
    assert!(svg.contains("SCTP retransmission timeout"), "the letter has a meaning");
    let by_kib = PlotOptions { x: Some("nodelay".into()), y: Some("rcvbuf".into()), ..PlotOptions::default() };
    golden("explained_upright", &draw(&run, &by_kib).expect("a picture"));
    // A picture of sizes is not of what the findings explain.
    let sizes = draw(&run, &PlotOptions::of(Metric::named("rcvbuf-final", &[]).expect("a metric"))).expect("a picture");
    assert!(!sizes.contains("SCTP retransmission timeout"));
}

#[test]
fn a_picture_explains_itself() {
    let svg = latency(&runs::explained());
    for part in [
        "which is worse (logarithmic scale)",
        "A, SCTP retransmission timeout; what to try: a larger receive buffer",
        "nodelay: on (true) turns Nagle",
        "guest emulated by QEMU",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let line = latency(&runs::one_axis());
    assert!(line.contains("(lower is better)") && line.contains("Completion time, logarithmic scale"));
    assert!(line.contains("gets …: the size that the kernel gave"), "as on a map");
    // No edge from which on more does not help stands in cells without a figure.
    let (kernels, knees) = (runs::sctp_kernels(), |svg: &str| svg.matches("<polygon").count());
    assert_eq!(knees(&latency(&kernels)), 3 * 2 + 1, "two in each of three kernels, and one in the legend");
    // One figure has nothing to be darker than.
    assert!(!latency(&runs::one_cell()).contains("darker"));
    // Where a title does not fit, the name of the sweep is cut and not what was measured.
    assert!(latency(&runs::hostile()).contains("…: completion time\n</text>"));
    let missing = latency(&runs::missing_cells());
    assert!(
        missing.contains("timed out (2 cells), for example: 1 of 32 echoes"),
        "one kind of reason, in other figures"
    );
}

/// What the legend says of knees, in part.
const KNEE: &str = "from here on more";

#[test]
fn numbers_that_a_program_printed_are_drawn_in_their_unit_and_say_which_way_is_worse() {
    let run = runs::printed();
    let printed = Metric::printed(&run.records);
    let of = |name: &str| PlotOptions::of(Metric::named(name, &printed).expect("printed"));
    let rate = draw(&run, &of("rate")).expect("a picture");
    golden("printed_rate", &rate);
    assert!(rate.contains("rate (msg/s), median of 3 repeats: darker is more, which is better"), "{rate}");
    let rtt = draw(&run, &of("rtt_avg")).expect("a picture");
    golden("printed_rtt", &rtt);
    assert!(rtt.contains("rtt_avg, median of 3 repeats: darker is slower, which is worse") && rtt.contains(" µs"));
    golden("printed_offset", &draw(&run, &of("offset")).expect("a picture"));

    let mut faster = runs::printed();
    for record in &mut faster.records {
        let rate = record.measurement.metrics.get_mut("rate").expect("a rate");
        rate.value = rate.value.and_then(|value| sweep::measurement::Number::new(value.get() * 1.5));
    }
    let ratio = run.with(|a| faster.with(|b| plot::ratio(a, b, &of("rate")))).expect("a picture");
    golden("printed_ratio", &ratio);
    assert!(ratio.contains("blue is more, which is better") && ratio.contains("+50 %"), "{ratio}");
    let repeats = plot::distribution(&run.manifest, &run.cells, &run.records, &[], Sample::Repeats, &of("rate"));
    assert!(repeats.expect("a picture").contains("distribution of rate (msg/s)"));
}

#[test]
fn axes_that_move_together_are_one() {
    let run = runs::zipped();
    let svg = latency(&run);
    golden("zipped", &svg);
    assert!(svg.contains("rcvbuf, sndbuf") && svg.contains("128 KiB, 32 KiB"));
    for name in ["rcvbuf", "sndbuf", "socket.sndbuf"] {
        let options = PlotOptions { y: Some(name.into()), ..PlotOptions::default() };
        assert!(draw(&run, &options).is_ok(), "an axis by any of its names: {name}");
    }
    // A pair that is larger on one axis and smaller on the other leaves them without an order.
    assert!(!svg.contains(KNEE));
    let grown = runs::grown_together();
    let svg = latency(&grown);
    golden("grown_together", &svg);
    assert!(svg.contains(KNEE));
}

#[test]
fn thousands_of_cells_stay_readable_and_small() {
    let svg = latency(&runs::grid(200, 50, 1));
    assert!(svg.len() < 3_000_000, "{} bytes", svg.len());
    // The golden file is of a smaller one, so that the repository does not grow by megabytes.
    golden("hundreds", &latency(&runs::grid(60, 12, 2)));
    if let Some(folder) = std::env::var_os("SWEEP_PICTURES") {
        fs::write(Path::new(&folder).join("thousands.svg"), svg).expect("written");
    }
}

#[test]
fn ratios_and_distributions() {
    let (before, after) = (runs::sctp_rcvbuf(), runs::sctp_rcvbuf());
    let mut after = after;
    for record in &mut after.records {
        let slower = if record.axes.to_string().contains("nodelay=on") { 1.3 } else { 0.4 };
        let completion = record.measurement.completion_ns.map(|ns| (ns as f64 * slower) as u64);
        record.measurement.completion_ns = completion;
    }
    after.cells = sweep::stats::summarise(&after.records);
    let ratio = |a: &Fixture, b: &Fixture| a.with(|a| b.with(|b| plot::ratio(a, b, &PlotOptions::default())));
    golden("ratio", &ratio(&before, &after).expect("a picture"));
    golden("ratio_of_equal_runs", &ratio(&before, &before).expect("a picture"));
    let nothing = ratio(&runs::one_axis(), &after).expect_err("nothing in common");
    assert!(matches!(nothing, PlotError::NothingInCommon(..)), "{nothing}");

    let ecdf = |chosen: &[String], sample| {
        plot::distribution(&before.manifest, &before.cells, &before.records, chosen, sample, &PlotOptions::default())
    };
    golden("distribution_chunks", &ecdf(&[], Sample::Chunks).expect("a picture"));
    let chosen = [before.cells[0].cell[..8].to_owned()];
    golden("distribution_repeats", &ecdf(&chosen, Sample::Repeats).expect("a picture"));
    assert!(ecdf(&["zz".to_owned()], Sample::Chunks).is_err());
}

#[test]
fn the_ratio_over_one_axis_is_a_line() {
    let (before, mut after) = (runs::one_axis(), runs::one_axis());
    for record in &mut after.records {
        let faster =
            record.axes.get("rcvbuf").and_then(sweep::settings::Value::int).map_or(1.0, |size| 1.0 - size as f64 / 9e4);
        record.measurement.completion_ns = record.measurement.completion_ns.map(|ns| (ns as f64 * faster) as u64);
    }
    after.cells = sweep::stats::summarise(&after.records);
    let ratio = |a: &Fixture, b: &Fixture| {
        a.with(|a| b.with(|b| plot::ratio(a, b, &PlotOptions::default()))).expect("a picture")
    };
    golden("ratio_one_axis", &ratio(&before, &after));
    assert!(ratio(&before, &before).contains("±0 %"));
}

#[test]
fn buffers_over_time_are_lines_of_both_ends() {
    let run = runs::streams();
    let draw = |chosen: &[String], theme| {
        let options = PlotOptions { theme, ..PlotOptions::default() };
        plot::over_time(&run.manifest, &run.cells, &run.records, chosen, &options)
    };
    let grown = draw(&[], Theme::Light).expect("a picture");
    assert!(grown.contains("rcvbuf default"), "without being told, the cell whose buffers grew");
    golden("over_time", &grown);
    let all: Vec<String> = run.cells.iter().map(|cell| cell.cell.clone()).collect();
    golden("over_time_dark", &draw(&all, Theme::Dark).expect("a picture"));
    let upload = |protocol: &str| {
        let is = |cell: &&sweep::stats::CellSummary| {
            let axes = cell.axes.to_string();
            ["rcvbuf=64", "upload", protocol].iter().all(|part| axes.contains(part))
        };
        run.cells.iter().find(is).map(|cell| [cell.cell.clone()]).expect("a cell")
    };
    let sctp = draw(&upload("sctp"), Theme::Light).expect("a picture");
    assert!(sctp.contains("no samples of this end") && !sctp.contains("advertised window"), "the server told nothing");
    let tcp = draw(&upload("tcp"), Theme::Light).expect("a picture");
    assert!(tcp.contains("server receives") && tcp.contains("drawn is what its peer heard"));
    assert!(draw(&["zz".to_owned()], Theme::Light).is_err());

    let echo = runs::one_cell();
    let error = plot::over_time(&echo.manifest, &echo.cells, &echo.records, &[], &PlotOptions::default());
    let error = error.expect_err("an echo has no samples");
    assert!(matches!(error, PlotError::NoSamples), "{error}");
}

#[test]
fn axes_can_be_chosen_and_slips_are_explained() {
    let run = runs::sctp_rcvbuf();
    let options = |x: &str, y: &str| PlotOptions { x: Some(x.into()), y: Some(y.into()), ..PlotOptions::default() };
    let svg = draw(&run, &options("nodelay", "socket.rcvbuf")).expect("a picture");
    assert!(svg.contains("link.topology = veth"), "what is not an axis is a facet");
    let error = draw(&run, &options("rcvbfu", "nodelay")).expect_err("a slip").to_string();
    assert_eq!(error, "there is no axis `rcvbfu`: did you mean `rcvbuf`?");
    let error = draw(&run, &options("rcvbuf", "rcvbuf")).expect_err("twice").to_string();
    assert_eq!(error, "`rcvbuf` cannot be on both axes: name another one for --x or --y");
    let facet = PlotOptions { facet: vec!["nodelay".into()], ..PlotOptions::default() };
    assert!(draw(&run, &facet).expect("a picture").contains("nodelay = on"));
}

#[test]
fn hostile_names_leave_a_well_formed_picture() {
    let svg = latency(&runs::hostile());
    assert!(!svg.contains("<script") && !svg.contains('\u{202e}') && !svg.contains('\u{0}'));
    assert!(plot::png(&svg).is_ok(), "it is XML");
}

#[test]
fn the_two_pictures_of_a_run_are_written_and_their_paths_returned() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = runs::one_cell();
    for (format, ending) in [(Format::Svg, "svg"), (Format::Png, "png")] {
        let options = PlotOptions { format, ..PlotOptions::default() };
        let paths = run.with(|run| plot::write_run(folder.path(), run, &options)).expect("written");
        let names = ["latency", "throughput"].map(|name| folder.path().join(format!("{name}.{ending}")));
        assert_eq!(paths, names);
        let first = fs::read(&paths[0]).expect("read");
        run.with(|run| plot::write_run(folder.path(), run, &options)).expect("written");
        assert_eq!(first, fs::read(&paths[0]).expect("read"), "the same run gives the same bytes");
    }
    assert!(fs::read(folder.path().join("latency.png")).expect("read").starts_with(b"\x89PNG"));
    let empty = run.with(|run| plot::heatmap(Run { cells: &[], ..run }, &PlotOptions::default()));
    assert!(matches!(empty, Err(PlotError::Empty)));
}
