//! Where texts are on pictures: none lies over another or beyond the edge, whatever the sweep.

use std::sync::Arc;

use resvg::usvg::{Group, Node, Options, Rect, TextChunk, Tree, fontdb};
use sweep::measurement::{Measurement, Outcome};
use sweep::plot::{self, Metric, PlotOptions, Sample, Stat, Theme};
use sweep::settings::Value;

use super::runs::{self, Fixture, Shape, echo, int, kib, word};

/// What a text says, and where its letters are.
type Placed = (String, Rect);

fn collect(group: &Group, found: &mut Vec<Placed>) {
    for node in group.children() {
        match node {
            Node::Group(group) => collect(group, found),
            Node::Text(text) => {
                let said: String = text.chunks().iter().map(TextChunk::text).collect();
                if let Some(place) = text.flattened().abs_bounding_box().to_non_zero_rect() {
                    found.push((said.trim().to_owned(), place.to_rect()));
                }
            }
            Node::Path(_) | Node::Image(_) => {}
        }
    }
}

/// All texts of a picture, as the fonts of this program draw them.
fn texts(svg: &str) -> (Vec<Placed>, (f32, f32)) {
    let mut fonts = fontdb::Database::new();
    for font in ["DejaVuSans-subset.ttf", "DejaVuSans-Bold-subset.ttf"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/plot/fonts").join(font);
        fonts.load_font_data(std::fs::read(path).expect("a font"));
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).expect("an SVG");
    let mut found = Vec::new();
    collect(tree.root(), &mut found);
    (found, (tree.size().width(), tree.size().height()))
}

/// What is wrong with a picture.
fn faults(svg: &str) -> Vec<String> {
    let (texts, (width, height)) = texts(svg);
    let mut faults = Vec::new();
    for (index, (said, place)) in texts.iter().enumerate() {
        if place.left() < 2.0 || place.top() < 2.0 || place.right() > width - 2.0 || place.bottom() > height - 2.0 {
            faults.push(format!("`{said}` is at the edge or beyond it: {place:?} of {width} × {height}"));
        }
        for (other, its) in &texts[index + 1..] {
            let across = place.right().min(its.right()) - place.left().max(its.left());
            let down = place.bottom().min(its.bottom()) - place.top().max(its.top());
            // Two pixels between texts on one line, and none between lines.
            if across > -2.0 && down > 0.3 {
                faults.push(format!("`{said}` and `{other}` lie over each other at {place:?}"));
            }
        }
    }
    faults
}

/// Draws it in as many ways as there are, and says what is wrong.
fn check(name: &str, run: &Fixture, wrong: &mut Vec<String>) {
    let mut pictures: Vec<(String, String)> = Vec::new();
    let metrics: Vec<Metric> = ["completion", "goodput", "rcvbuf-final"]
        .iter()
        .map(|name| Metric::named(name, &[]).expect("a metric"))
        .chain(Metric::printed(&run.records))
        .collect();
    for metric in metrics {
        for stat in [Stat::Median, Stat::Spread] {
            let options = PlotOptions { stat, ..PlotOptions::of(metric.clone()) };
            let svg = run.with(|run| plot::heatmap(run, &options)).expect("a picture");
            pictures.push((format!("{name}-{metric}-{stat}"), svg));
        }
    }
    let options = PlotOptions { theme: Theme::Dark, ..PlotOptions::default() };
    pictures.push((format!("{name}-ratio"), run.with(|run| plot::ratio(run, run, &options)).expect("a picture")));
    for sample in [Sample::Chunks, Sample::Repeats] {
        let drawn = plot::distribution(&run.manifest, &run.cells, &run.records, &[], sample, &options);
        pictures.extend(drawn.ok().map(|svg| (format!("{name}-{sample}"), svg)));
    }
    let all: Vec<String> = run.cells.iter().map(|cell| cell.cell.clone()).collect();
    for (which, chosen) in [("one", &[][..]), ("all", &all)] {
        let drawn = plot::over_time(&run.manifest, &run.cells, &run.records, chosen, &options);
        pictures.extend(drawn.ok().map(|svg| (format!("{name}-over-time-{which}"), svg)));
    }
    for (name, svg) in pictures {
        if let Some(folder) = std::env::var_os("SWEEP_PICTURES") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.svg")), &svg).expect("written");
        }
        let found = faults(&svg);
        let more = if found.len() > 4 { format!("\n    and {} more", found.len() - 4) } else { String::new() };
        if !found.is_empty() {
            wrong.push(format!("{name}:\n    {}{more}", found[..found.len().min(4)].join("\n    ")));
        }
    }
}

fn none_is_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} pictures:\n{}", wrong.len(), wrong.join("\n"));
}

/// An axis: its name and values.
type Axis<'a> = (&'a str, Vec<Value>);

/// A run of two axes whose figures grow with both.
fn grown(name: &str, (x, y): (Axis<'_>, Axis<'_>), figure: impl Fn(u64) -> f64) -> Fixture {
    let shape = Shape { name, repeats: 2, ..Shape::default() };
    let count = std::cell::Cell::new(0);
    runs::run(&shape, &[x, y], |axes, _, repeat| {
        count.set(count.get() + 1);
        Some(echo(axes, figure(count.get()) * (1.0 + 0.15 * runs::noise(count.get() + repeat))))
    })
}

fn numbers(count: u64, step: u64) -> Vec<Value> {
    (1..=count).map(|number| int(number * step)).collect()
}

fn missing(outcome: Outcome, reason: &str) -> Measurement {
    Measurement { outcome, reason: Some(reason.to_owned()), ..Measurement::default() }
}

/// Three values of `tcp_rmem`, as long as they are.
fn triples() -> Vec<Value> {
    ["4096 131072 6291456", "4096 1048576 33554432", "4096 131072 134217728"].map(word).to_vec()
}

const LONG: &str = "sysctl.net.ipv4.a_kernel_parameter_with_a_name_that_goes_on_and_on_and_does_not_end_soon";

#[test]
fn no_text_of_the_examples_lies_over_another() {
    let mut wrong = Vec::new();
    for (name, run) in [
        ("sctp_rcvbuf", runs::sctp_rcvbuf()),
        ("explained", runs::explained()),
        ("zipped", runs::zipped()),
        ("grown_together", runs::grown_together()),
        ("sctp_kernels", runs::sctp_kernels()),
        ("tcp_buffers", runs::tcp_buffers()),
        ("one_axis", runs::one_axis()),
        ("one_axis_two_kernels", runs::one_axis_two_kernels()),
        ("printed", runs::printed()),
        ("one_cell", runs::one_cell()),
        ("missing_cells", runs::missing_cells()),
        ("incomplete", runs::incomplete()),
        ("hostile", runs::hostile()),
        ("four_axes", runs::four_axes()),
        ("streams", runs::streams()),
        ("grid", runs::grid(60, 12, 2)),
    ] {
        check(name, &run, &mut wrong);
    }
    none_is_wrong(&wrong);
}

#[test]
fn nor_of_many_cells_or_few() {
    let mut wrong = Vec::new();
    for (across, up) in [(1, 1), (20, 1), (1, 20), (2, 20), (20, 2), (40, 40), (200, 1), (1, 200)] {
        let axes = (("rcvbuf", numbers(across, 1024)), ("chunk_count", numbers(up, 7)));
        check(&format!("cells_{across}x{up}"), &grown("many", axes, |cell| 1e5 * cell as f64), &mut wrong);
    }
    none_is_wrong(&wrong);
}

#[test]
fn nor_where_names_and_values_are_long() {
    let mut wrong = Vec::new();
    let switch = || ("nodelay", vec![Value::Bool(false), Value::Bool(true)]);
    let rmem = || ("sysctl.net.ipv4.tcp_rmem", triples());
    let long =
        || (LONG, ["short", "a value of many words that is cut where there is no more room for it"].map(word).to_vec());
    // Sizes below the least are raised, and the label says to what.
    let many = || ("rcvbuf", (1..=24).map(|size| int(size * 90)).collect());
    let few = || ("rcvbuf", kib(&[1, 4, 1024]));
    for (name, axes) in [
        ("rmem_across", (rmem(), switch())),
        ("rmem_up", (switch(), rmem())),
        ("rmem_both", (rmem(), ("sysctl.net.ipv4.tcp_wmem", triples()))),
        ("long_across", (long(), few())),
        ("long_up", (few(), long())),
        ("upright_gets", (many(), switch())),
        ("upright_gets_tall", (switch(), many())),
    ] {
        let run = grown(
            "a sweep whose name is so long that it does not fit beside what was measured, and then some more",
            axes,
            |cell| 1e7 * cell as f64,
        );
        check(name, &run, &mut wrong);
    }
    none_is_wrong(&wrong);
}

#[test]
fn nor_where_figures_are_tiny_or_huge_or_alike_or_missing() {
    let mut wrong = Vec::new();
    let axes = || (("rcvbuf", kib(&[1, 4, 16, 64])), ("chunk_count", numbers(4, 8)));
    check("tiny", &grown("tiny", axes(), |cell| cell as f64), &mut wrong);
    check("huge", &grown("huge", axes(), |cell| 1e17 * cell as f64), &mut wrong);
    check("wide", &grown("wide", axes(), |cell| 10_f64.powi(cell as i32 / 2)), &mut wrong);
    let shape = Shape { name: "alike", ..Shape::default() };
    let axes = [axes().0, axes().1];
    check("alike", &runs::run(&shape, &axes, |axes, _, _| Some(echo(axes, 1.5e6))), &mut wrong);
    let outcomes = [Outcome::TimedOut, Outcome::Invalid, Outcome::Skipped, Outcome::Failed, Outcome::Incomplete];
    let reason = "the kernel did not like it, and said so at length: Operation not supported (EOPNOTSUPP), which it says where a protocol has no such option";
    let count = std::cell::Cell::new(0);
    let none = runs::run(&Shape { name: "missing", ..Shape::default() }, &axes, |_, _, repeat| {
        count.set(count.get() + 1);
        Some(missing(outcomes[count.get() / 3 % 5], &format!("{reason} ({repeat})")))
    });
    check("missing", &none, &mut wrong);
    none_is_wrong(&wrong);
}
