//! Settings that cannot go together, and presets.

use crate::{errors, named};

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
