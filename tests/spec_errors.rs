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
}

#[test]
fn overrides_that_are_wrong() {
    let text = named("[workload]\nkind = \"echo\"\n[axes]\nrcvbuf = [1024, \"64KiB\", \"default\"]\n");
    let overrides = Overrides {
        repeat: Some(0),
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
        repeat: Some(7),
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
        repeat: Some(9),
        set: assignments(&["run.timeout=180s", "rcvbuf=4KiB,1024", "sndbuf=2,1", "chunk_count=4,5", "link.mtu=1500"]),
        filter: Vec::new(),
    };
    insta::assert_snapshot!("differences", was.differences(&sweep_with(text, &overrides)).join("\n"));
}
