//! Every error of a sweep file, as a person reads it.

use miette::{GraphicalReportHandler, GraphicalTheme};
use sweep::spec::{Overrides, SpecErrors, Sweep};

/// The report without colours, 100 columns wide.
fn report(errors: &SpecErrors) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    handler.with_width(100).with_links(false).render_report(&mut text, errors).expect("renders");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a file.
fn errors(text: &str) -> String {
    errors_with(text, &Overrides::default())
}

/// What is wrong with a file as the command line changes it.
fn errors_with(text: &str, overrides: &Overrides) -> String {
    report(&Sweep::parse("sweep.toml", text, overrides).expect_err("the sweep is wrong"))
}

/// Assignments as they follow `--set` or `--filter`.
fn assignments(texts: &[&str]) -> Vec<(String, Vec<String>)> {
    texts.iter().map(|text| Overrides::assignment(text).expect("an assignment")).collect()
}

/// A file with a name.
fn named(text: &str) -> String {
    format!("name = \"test\"\n{text}")
}

#[test]
fn unknown_keys_and_tables() {
    insta::assert_snapshot!(errors(&named(
        r#"descripton = "a slip"
rcvbuf = 1024
[wokload]
kind = "echo"
[frobnicate]
[workload]
protokol = "tcp"
repeat = 3
[socket]
chunk_size = 64
[socket.client]
rcvbf = 1
[link]
qqq = 1
[sysctl]
"net.ipv4.tcp_rmem" = "4096 87380 6291456"
"#
    )));
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(errors(&named(
        r#"description = 5
[run]
repeat = "five"
timeout = 60
order = "random"
seed = -1
[kernel]
image = 6.12
[link]
mtu = 1500.5
topology = ["veth", "loopback"]
[workload]
kind = "strem"
chunk_size = "64K"
chunk_count = 99999999999999999999
[socket]
nodelay = "true"
rcvbuf = 2024-01-01
sndbuf = { client = 1 }
"#
    )));
}

#[test]
fn fractions_and_signs() {
    insta::assert_snapshot!(errors(&named(
        r"[run]
timeout = 0.5
[socket]
rcvbuf = 1.5
sndbuf = -1
nodelay = 1
"
    )));
}

#[test]
fn beyond_the_bounds() {
    insta::assert_snapshot!(errors(&named(
        r#"[run]
repeat = 100000
warmup = 1001
timeout = "2h"
[link]
mtu = 60
[workload]
chunk_count = 2000000
chunk_size = "1GiB"
[socket]
rcvbuf = "2GiB"
"#
    )));
}

#[test]
fn axes_that_are_wrong() {
    insta::assert_snapshot!(errors(&named(
        r#"[axes]
rcvbuf = []
sndbuf = 1024
nodelay = { on = true }
rcvbuff = [1]
mtu = [1500]
repeat = [1, 2]
name = ["a", "b"]
"run.timeout" = ["1s"]
chunk_count = [1, "two", 0, [3]]
chunk_size = [1024, "1KiB", 64, 64]
"#
    )));
}

#[test]
fn the_same_axis_under_two_names() {
    insta::assert_snapshot!(errors(&named(
        r#"[axes]
rcvbuf = [1024]
"socket.rcvbuf" = [2048]
"#
    )));
}

#[test]
fn fixed_and_an_axis() {
    insta::assert_snapshot!(errors(&named(
        r"[workload]
chunk_count = 32
[socket]
rcvbuf = 1024
[axes]
rcvbuf = [1024, 2048]
chunk_count = [1, 2]
"
    )));
}

#[test]
fn tables_that_are_none() {
    insta::assert_snapshot!(errors(&named(
        r#"workload = "echo"
[[axes]]
rcvbuf = [1]
[[run]]
repeat = 1
"#
    )));
}

#[test]
fn a_burst_beyond_the_cap() {
    insta::assert_snapshot!(errors(&named(
        r#"[axes]
chunk_count = [1, 1_000_000]
chunk_size = [64, "16MiB"]
"#
    )));
}

#[test]
fn impossible_everywhere() {
    insta::assert_snapshot!(errors(&named(
        r#"[workload]
style = "one-to-many"
duration = "1s"
omit = "2s"
[kernel]
image = "host"
clock = "virtual"
"#
    )));
}

#[test]
fn impossible_for_some_cells() {
    insta::assert_snapshot!(errors(&named(
        r#"[link]
family = "ipv6"
[workload]
kind = "stream"
duration = "1s"
[axes]
"link.mtu" = [600, 1000, 1500]
"workload.omit" = ["0s", "500ms", "1s", "2s"]
"#
    )));
}

#[test]
fn impossible_together() {
    insta::assert_snapshot!(errors(&named(
        r#"[workload]
kind = "stream"
[axes]
"workload.duration" = ["100ms", "1s"]
"workload.omit" = ["50ms", "500ms"]
"#
    )));
}

#[test]
fn zips_that_are_wrong() {
    insta::assert_snapshot!(errors(&named(
        r#"[[zip]]
rcvbuf = [1024, 2048, 4096]
sndbuf = [1024, 2048]
[[zip]]
nodelay = [false, true]
[[zip]]
[[zip]]
chunk_count = [1, 2, 1]
chunk_size = [64, 64, 64]
[[zip]]
link.mtu = [1500, "big"]
"link.family" = ["ipv4", "ipv6", "ipv6"]
[axes]
chunk_count = [3]
"#
    )));
    insta::assert_snapshot!(
        "lists_of_tables_that_are_none",
        errors(&named(
            r"exclude = 5
include = [1024, { rcvbuf = 1024 }]
[zip]
rcvbuf = [1024]
sndbuf = [1024]
[[zips]]
rcvbuf = [1]
[axes]
rcvbuf = [1024, 2048]
"
        ))
    );
}

#[test]
fn ranges_that_are_wrong() {
    insta::assert_snapshot!(errors(&named(
        r#"[axes]
rcvbuf = { from = "4MiB", to = "1KiB", factor = 2 }
sndbuf = { from = 0, to = "1MiB", factor = 2 }
nodelay = { from = false, to = true, step = 1 }
chunk_count = [{ from = 1, to = 10 }, { form = 1, to = 10, step = 1, factor = 2 }]
chunk_size = { from = 64, to = "1GiB", step = 0 }
"link.mtu" = ["default", { from = "default", to = 1500, step = 100.5 }]
"workload.omit" = { from = "0s", to = "1s", step = "1ns" }
"workload.read_size" = { from = 1, to = 10, factor = 1.0 }
"workload.bytes" = { from = 1, to = 10, factor = "2" }
"#
    )));
}

#[test]
fn expressions() {
    insta::assert_snapshot!(errors(&named(
        r#"[workload]
chunk_size = "rcvbuf / 4"
[socket]
sndbuf = "64 * 1024"
[axes]
rcvbuf = [1024, "2 * socket.sndbuf", "chunk_size"]
nodelay = ["chunk_size > 1"]
"#
    )));
}

#[test]
fn cells_that_cannot_be_left_out_or_added() {
    insta::assert_snapshot!(errors(&named(
        r#"[link]
mtu = 1500
[[zip]]
rcvbuf = [1024, 2048]
sndbuf = [4096, 8192]
[axes]
nodelay = [false, true]
chunk_count = { from = 1, to = 64, step = 1 }
[[exclude]]
rcvbuf = 1024
sndbuf = 8192
[[exclude]]
nodelay = "default"
chunk_count = [1, 65]
[[exclude]]
"link.mtu" = 1500
rcvbuff = 1024
rcvbuf = "64K"
repeat = 5
[[exclude]]
[[exclude]]
nodelay = []
[[include]]
rcvbuf = 4096
[[include]]
nodelay = [true, false]
[[include]]
link.mtu = 9000
chunk_count = 0
[[include]]
"#
    )));
}

#[test]
fn cells_that_are_added_though_they_are_there() {
    let text = "[axes]\nrcvbuf = [1024, 2048]\nnodelay = [true, false]\n";
    insta::assert_snapshot!("included_on_the_grid", errors(&named(&format!("{text}[[include]]\nrcvbuf = \"2KiB\"\n"))));
    insta::assert_snapshot!(
        "included_twice",
        errors(&named(&format!("{text}[[include]]\nrcvbuf = 4096\n[[include]]\nnodelay = true\nrcvbuf = \"4KiB\"\n")))
    );
    insta::assert_snapshot!(
        "included_and_overridden",
        errors(&named(
            "[socket.client]\nrcvbuf = 1\n[socket.server]\nrcvbuf = 1\n[axes]\nrcvbuf = [1024]\n[[include]]\nrcvbuf = 4096\n"
        ))
    );
}

#[test]
fn nothing_is_left() {
    let text = named("[axes]\nrcvbuf = [1024, 2048]\nnodelay = [true]\n[[exclude]]\nnodelay = true\n");
    insta::assert_snapshot!("everything_excluded", errors(&text));
    let text = named("[[zip]]\nrcvbuf = [1024, 2048]\nsndbuf = [1, 2]\n");
    let overrides = Overrides { filter: assignments(&["rcvbuf=1024", "sndbuf=2"]), ..Overrides::default() };
    insta::assert_snapshot!("everything_filtered", errors_with(&text, &overrides));
}

#[test]
fn impossible_for_added_cells() {
    insta::assert_snapshot!(errors(&named(
        r#"[workload]
kind = "stream"
duration = "1s"
[axes]
"workload.omit" = ["0s"]
"link.mtu" = [1500]
[[include]]
"workload.omit" = "2s"
"#
    )));
}

#[test]
fn presets_that_clash() {
    insta::assert_snapshot!(
        "preset_unknown",
        errors(&named("preset = \"erlang-otp-26\"\n[socket]\npreset = \"none\"\n"))
    );
    insta::assert_snapshot!(
        "preset_against_a_key",
        errors(&named("preset = \"erlang-otp-27\"\n[workload]\nprotocol = \"tcp\"\n"))
    );
    insta::assert_snapshot!(
        "preset_axis_against_a_key",
        errors(&named("[workload]\nchunk_count = 3\n[axes]\npreset = [\"erlang-otp-27\", \"netperf-omni\"]\n"))
    );
    insta::assert_snapshot!(
        "presets_that_come_to_the_same",
        errors(&named("[socket]\nrcvbuf = 1\nsndbuf = 1\n[axes]\npreset = [\"erlang-otp-27\", \"erlang-otp-28\"]\n"))
    );
    insta::assert_snapshot!("preset_that_is_no_list", errors(&named("[axes]\npreset = \"none\"\n")));
}

#[test]
fn overrides_of_zipped_axes() {
    let text = "[[zip]]\nrcvbuf = [1024, 2048, 4096]\nsndbuf = [1, 1, 2]\n[axes]\nnodelay = [false, true]\n[[include]]\nrcvbuf = 8192\nsndbuf = 3\n";
    let axes = |set: &[&str], filter: &[&str]| {
        let overrides = Overrides { set: assignments(set), filter: assignments(filter), ..Overrides::default() };
        let sweep = sweep_with(text, &overrides);
        let axes: Vec<_> = sweep.axes.iter().map(|axis| axis.shown().join(",")).collect();
        format!("{} + {}, {} cells", axes.join(" "), sweep.include.len(), sweep.cell_count())
    };
    assert_eq!(axes(&[], &[]), "1 KiB,2 KiB,4 KiB 1 B,1 B,2 B off,on + 1, 7 cells");
    assert_eq!(axes(&["sndbuf=7"], &[]), "1 KiB,2 KiB,4 KiB 7 B,7 B,7 B off,on + 1, 7 cells");
    assert_eq!(axes(&["sndbuf=7,8,9"], &[]), "1 KiB,2 KiB,4 KiB 7 B,8 B,9 B off,on + 1, 7 cells");
    assert_eq!(axes(&[], &["sndbuf=1"]), "1 KiB,2 KiB 1 B,1 B off,on + 0, 4 cells", "whole rows");
    assert_eq!(axes(&[], &["rcvbuf=4KiB,8KiB"]), "4 KiB 2 B off,on + 1, 3 cells", "added cells too");
    // The added cell had the first value of nodelay in the file.
    assert_eq!(axes(&[], &["nodelay=true"]), "1 KiB,2 KiB,4 KiB 1 B,1 B,2 B on + 0, 3 cells");
    let wrong = Overrides {
        set: assignments(&["rcvbuf=1,2", "sndbuf=1,x,2"]),
        filter: assignments(&["rcvbuf=16KiB"]),
        ..Overrides::default()
    };
    insta::assert_snapshot!("zip_overridden_wrongly", errors_with(&named(text), &wrong));
    let same = Overrides { set: assignments(&["rcvbuf=64KiB"]), ..Overrides::default() };
    insta::assert_snapshot!("zip_overridden_to_the_same_rows", errors_with(&named(text), &same));
}

#[test]
fn ranges_stand_for_lists() {
    let axes = |text: &str| {
        let sweep = sweep_with(&format!("[axes]\n{text}"), &Overrides::default());
        sweep
            .axes
            .iter()
            .map(|axis| axis.values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            .collect::<Vec<_>>()
    };
    assert_eq!(axes("chunk_count = { from = 1, to = 20, step = 7 }"), ["1,8,15"]);
    assert_eq!(axes("rcvbuf = { from = \"1KiB\", to = \"4MiB\", factor = 2 }")[0].split(',').count(), 13);
    assert_eq!(
        axes("workload.kind = [\"stream\"]\nworkload.duration = { from = \"100ms\", to = \"1s\", step = \"100ms\" }\n")
            [1],
        "100ms,200ms,300ms,400ms,500ms,600ms,700ms,800ms,900ms,1s"
    );
    assert_eq!(axes("sndbuf.from = 1\nsndbuf.to = 4\nsndbuf.factor = 1.5\n"), ["1,2,3"]);
    assert_eq!(
        axes("rcvbuf = [512, { from = 1024, to = 4096, factor = 2 }, \"default\"]"),
        ["512,1024,2048,4096,default"]
    );
}

#[test]
fn differences_of_what_moves_together() {
    let was = sweep_with(
        "preset = \"erlang-otp-27\"\n[[zip]]\nrcvbuf = [1, 2]\nsndbuf = [3, 4]\n[axes]\nnodelay = [true, false]\n[[exclude]]\nnodelay = true\nrcvbuf = [1, 2]\n[[include]]\nrcvbuf = 5\nsndbuf = 6\n",
        &Overrides::default(),
    );
    let json = serde_json::to_string(&was).expect("serialises");
    insta::assert_snapshot!("zipped_sweep_in_a_manifest", json);
    assert_eq!(was.differences(&serde_json::from_str(&json).expect("parses")), Vec::<String>::new());
    let now = sweep_with(
        "preset = \"erlang-otp-27\"\n[axes]\nrcvbuf = [1, 2]\nsndbuf = [3, 4]\nnodelay = [true, false]\n",
        &Overrides::default(),
    );
    insta::assert_snapshot!("differences_of_a_zip", was.differences(&now).join("\n"));
    // As a version of the program would have it in which the preset stands for something else.
    let other: Sweep =
        serde_json::from_str(&json.replace("\"socket.sndbuf\":65536", "\"socket.sndbuf\":4096")).expect("parses");
    insta::assert_snapshot!("differences_of_a_preset", was.differences(&other).join("\n"));
}

#[test]
fn nothing_follows_from_a_slip() {
    insta::assert_snapshot!(errors(&named(
        r#"[workload]
kind = "strem"
duration = "1s"
omit = "2s"
"#
    )));
}

#[test]
fn cells_that_are_one() {
    insta::assert_snapshot!(errors(&named(
        r#"[socket.client]
rcvbuf = 1024
[socket.server]
rcvbuf = 1024
[axes]
rcvbuf = [2048, 4096, "default"]
nodelay = [false, true]
"#
    )));
}

#[test]
fn a_key_set_twice() {
    insta::assert_snapshot!(errors(&named(
        r#""link.mtu" = 1400
[link]
mtu = 1500
"#
    )));
}

#[test]
fn syntax() {
    insta::assert_snapshot!(errors(&named(
        r"[run]
repeat = # how often?
timeout = 60s
[run]
repeat = 2
"
    )));
}

#[test]
fn a_name_is_needed() {
    insta::assert_snapshot!("name_missing", errors("[axes]\nrcvbuf = [1]\n"));
    insta::assert_snapshot!("name_missing_in_an_empty_file", errors(""));
    insta::assert_snapshot!("name_with_a_slash", errors("name = \"a/b\"\n"));
    insta::assert_snapshot!("name_hidden", errors("name = \".a\"\n"));
    insta::assert_snapshot!("name_too_long", errors(&format!("name = \"{}\"\n", "a".repeat(65))));
    insta::assert_snapshot!("name_empty", errors("name = \"\"\n"));
}

#[test]
fn a_grid_beyond_the_caps() {
    let list = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let cells = named(&format!("[axes]\nchunk_count = [{}]\nchunk_size = [{}]\n", list(20), list(6000)));
    let cells = Sweep::parse("sweep.toml", &cells, &Overrides::default()).expect_err("too many cells");
    let found: Vec<_> = cells.iter().map(|error| format!("{error}\nhelp: {}", error.fix())).collect();
    insta::assert_snapshot!("cells_beyond_the_cap", found.join("\n"));
    let zip = named(&format!(
        "[[zip]]\nchunk_count = [{}]\nchunk_size = [{}]\n[axes]\nrcvbuf = {{ from = 1, to = 100_000, step = 1 }}\n[[exclude]]\nrcvbuf = 1\n[[include]]\nrcvbuf = 200_000\n",
        list(20),
        list(20)
    ));
    insta::assert_snapshot!("zipped_cells_beyond_the_cap", errors(&zip));
    let runs =
        format!("[run]\nrepeat = 10_000\nwarmup = 1\n[axes]\nchunk_count = [{}]\nnodelay = [false, true]\n", list(50));
    insta::assert_snapshot!("runs_beyond_the_cap", errors(&named(&runs)));
}

#[test]
fn a_file_full_of_slips_is_answered_quickly() {
    let text = named(&format!("[axes]\nchunk_count = [{}]\n", "7, ".repeat(300_000)));
    let errors = Sweep::parse("sweep.toml", &text, &Overrides::default()).expect_err("duplicates");
    assert_eq!(errors.to_string(), "299999 errors in `sweep.toml`, of which these are the first 100");
    assert!(miette::Diagnostic::related(&errors).is_some_and(|errors| errors.count() == 100));
}

#[test]
fn the_largest_grid_is_checked_quickly() {
    let list = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!("[axes]\nchunk_count = [{}]\nrcvbuf = [{}]\n", list(1000), list(100));
    assert_eq!(sweep_with(&text, &Overrides::default()).cell_count(), 100_000);
    let excludes: Vec<_> = (1..=1000).map(|n| format!("[[exclude]]\nchunk_count = {n}\nrcvbuf = 7\n")).collect();
    let excludes = excludes.concat();
    let sweep = sweep_with(&format!("{text}{excludes}"), &Overrides::default());
    assert_eq!((sweep.cell_count(), sweep.excluded_count()), (99_000, 1000));
    let errors = Sweep::parse(
        "sweep.toml",
        &named(&format!("{text}{excludes}[[exclude]]\nrcvbuf = 8\n")),
        &Overrides::default(),
    );
    let errors = errors.expect_err("one [[exclude]] too many");
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["more [[exclude]] tables than MAX_EXCLUDES (1000)"]
    );
}

#[test]
fn overrides_that_are_wrong() {
    let text = named("[workload]\nkind = \"echo\"\n[axes]\nrcvbuf = [1024, \"64KiB\", \"default\"]\n");
    let overrides = Overrides {
        repeat: Some("0".into()),
        precision: None,
        set: assignments(&[
            "sndbuf=64K,1024",
            "chunk_count=1,1",
            "mtu=1500",
            "run.timeout=1s,2s",
            "run.seed=x",
            "nodelay=on",
            "link.mtu=1400",
            "link.mtu=1500",
        ]),
        filter: assignments(&["rcvbuf=64KiB,2048", "rcvbuf=4Ki", "rcvbuff=1024", "sndbof=1"]),
    };
    insta::assert_snapshot!(errors_with(&text, &overrides));
}

#[test]
fn repeats_that_are_wrong() {
    for (fields, wrong) in [
        ("min = 50, max = 5, precision = \"2%\"", &["at least 50 repeats and at most 5 are none"][..]),
        ("min = 2, max = 5, precision = \"2%\"", &["at 95% confidence", "it takes 6"]),
        ("max = 7, precision = \"2%\", confidence = 0.99", &["at 99% confidence", "it takes 8"]),
        ("min = 5", &["`repeat` lacks `max`", "`repeat` lacks `precision`"]),
        (
            "min = 0, max = \"many\", precision = 2, confidence = 95",
            &["`min` of `repeat`", "`max` of `repeat`", "`precision` of `repeat`", "`confidence` of `repeat`"],
        ),
        (
            "max = 50, precision = \"0%\", confidence = 0.2",
            &["only identical repeats", "no confidence between 0.5 and"],
        ),
        ("max = 50, precison = \"2%\"", &["unknown key `precison`", "did you mean `precision`?"]),
        ("max = 20000, precision = \"2%\"", &["MAX_REPEATS"]),
    ] {
        // Lines are broken where the terminal ends.
        let told = errors(&named(&format!("[run]\nrepeat = {{ {fields} }}\n")));
        let told = told.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        for wrong in wrong {
            assert!(told.contains(wrong), "{fields}: {told}");
        }
        assert!(told.contains("[sweep.toml:3:"), "its place: {told}");
    }
}

#[test]
fn repeats_as_a_table() {
    let precision = |text: &str| {
        let run = sweep_with(text, &Overrides::default()).run;
        let precision = run.precision.expect("a precision");
        (precision.min, run.repeat, precision.to_string())
    };
    let usual = (6, 50, "±2% at 95% confidence".to_owned());
    assert_eq!(precision("[run]\nrepeat = { max = 50, precision = \"2%\" }\n"), usual);
    assert_eq!(precision("[run.repeat]\nmax = 50\nmin = 6\nprecision = \"2%\"\nconfidence = \"95%\"\n"), usual);
    let issue = "[run]\nrepeat = { min = 5, max = 50, precision = \"2%\", confidence = 0.95 }\n";
    assert_eq!(precision(issue), (5, 50, usual.2));
    let was = sweep_with(issue, &Overrides::default());
    let stored = serde_json::to_string(&was).expect("serialises");
    assert_eq!(serde_json::from_str::<Sweep>(&stored).expect("parses"), was);
    let now = sweep_with("[run]\nrepeat = 50\n", &Overrides::default());
    assert_eq!(
        was.differences(&now),
        ["precision of run.repeat: was from 5 repeats on until ±2% at 95% confidence, is not asked for"]
    );
}

#[test]
fn an_override_that_clashes_with_the_file() {
    let text = named("[workload]\nduration = \"1s\"\nkind = \"stream\"\n");
    let overrides = Overrides { set: assignments(&["workload.bytes=1MiB"]), ..Overrides::default() };
    insta::assert_snapshot!(errors_with(&text, &overrides));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let latin = folder.path().join("latin.toml");
    std::fs::write(&latin, b"name = \"caf\xe9\"\n").expect("writes");
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).expect("writes");
    let load = |path: &std::path::Path| report(&Sweep::load(path, &Overrides::default()).expect_err("cannot be read"));
    let reports = [load(&folder.path().join("none.toml")), load(folder.path()), load(&latin), load(&large)].concat();
    insta::assert_snapshot!(reports.replace(&folder.path().display().to_string(), "FOLDER"));
}

#[test]
fn every_shipped_sweep_is_right() {
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sweeps")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let sweep =
                Sweep::load(&path, &Overrides::default()).unwrap_or_else(|errors| panic!("{}", report(&errors)));
            assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(sweep.name.as_str()));
            assert!(sweep.description.contains('?'), "{} asks nothing", sweep.name);
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} sweeps");
}

/// The sweep of a text.
fn sweep_with(text: &str, overrides: &Overrides) -> Sweep {
    Sweep::parse("sweep.toml", &named(text), overrides).unwrap_or_else(|errors| panic!("{}", report(&errors)))
}

#[test]
fn axes_keep_the_order_of_the_file_and_their_short_names() {
    let sweep = sweep_with(
        "[axes]\nsndbuf = [2048]\nlink.mtu = [1500]\n\"socket.rcvbuf\" = [\"1KiB\"]\nlink.family = [\"ipv4\"]\n",
        &Overrides::default(),
    );
    let names: Vec<_> = sweep.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["sndbuf", "link.mtu", "rcvbuf", "link.family"]);
    assert_eq!(sweep.axes[2].path, "socket.rcvbuf");
    assert_eq!(sweep.axes[2].shown(), ["1 KiB"]);
}

#[test]
fn overrides_change_the_sweep() {
    let text = "[run]\nrepeat = 3\n[socket]\nsndbuf = 1024\n[axes]\nrcvbuf = [1024, \"64KiB\", \"default\"]\n";
    let overrides = Overrides {
        repeat: Some("7".into()),
        precision: None,
        set: assignments(&["sndbuf=2KiB,default", "link.mtu=1400", "run.timeout=5s", "kernel.image=6.12"]),
        filter: assignments(&["rcvbuf=1KiB", "rcvbuf=default"]),
    };
    let sweep = sweep_with(text, &overrides);
    assert_eq!((sweep.run.repeat, sweep.run.timeout.exact().as_str()), (7, "5s"));
    let fixed: Vec<_> = sweep.fixed.iter().map(|(path, value)| format!("{path}={value}")).collect();
    assert_eq!(fixed, ["link.mtu=1400", "kernel.image=6.12"]);
    let axes: Vec<_> = sweep.axes.iter().map(|axis| format!("{}={}", axis.name, axis.shown().join(","))).collect();
    assert_eq!(axes, ["rcvbuf=1 KiB,default", "sndbuf=2 KiB,default"]);

    let one = Overrides { set: assignments(&["rcvbuf=8KiB"]), ..Overrides::default() };
    assert_eq!(sweep_with(text, &one).axes[0].shown(), ["8 KiB"], "an axis remains one");
}

#[test]
fn differences_are_told_in_words() {
    let text = "[run]\ntimeout = \"60s\"\n[workload]\nchunk_count = 3\n[axes]\nrcvbuf = [1024]\nsndbuf = [1, 2]\n";
    let was = sweep_with(text, &Overrides::default());
    assert_eq!(was.differences(&was), Vec::<String>::new());
    let json = serde_json::to_string(&was).expect("serialises");
    insta::assert_snapshot!("sweep_in_a_manifest", json);
    assert_eq!(serde_json::from_str::<Sweep>(&json).expect("parses"), was);
    let unknown = json.replace("workload.chunk_count", "workload.chunks");
    assert!(serde_json::from_str::<Sweep>(&unknown).is_err_and(|error| error.to_string().contains("workload.chunks")));

    let overrides = Overrides {
        repeat: Some("9".into()),
        precision: None,
        set: assignments(&["run.timeout=180s", "rcvbuf=4KiB,1024", "sndbuf=2,1", "chunk_count=4,5", "link.mtu=1500"]),
        filter: Vec::new(),
    };
    insta::assert_snapshot!("differences", was.differences(&sweep_with(text, &overrides)).join("\n"));
}
