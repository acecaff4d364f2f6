//! Names, types and bounds of keys, and files that are none.

use sweep::spec::{Overrides, Sweep};

use crate::{errors, named, report};

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
