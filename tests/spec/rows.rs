//! Axes that move together, and cells that are left out or added.

use sweep::spec::{Overrides, Sweep};

use crate::{assignments, errors, errors_with, named, sweep_with};

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
