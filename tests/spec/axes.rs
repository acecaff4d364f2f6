//! Axes, ranges, expressions, and grids that are too large.

use sweep::spec::{Overrides, Sweep};

use crate::{errors, named, sweep_with};

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
fn a_burst_beyond_the_cap() {
    insta::assert_snapshot!(errors(&named(
        r#"[axes]
chunk_count = [1, 1_000_000]
chunk_size = [64, "16MiB"]
"#
    )));
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
