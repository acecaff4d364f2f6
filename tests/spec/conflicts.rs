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

#[test]
fn a_workload_that_cannot_end_in_time() {
    insta::assert_snapshot!(
        "a_stream_longer_than_the_timeout",
        errors(&named(
            "[run]\ntimeout = \"2s\"\n[workload]\nkind = \"stream\"\n[axes]\n\"workload.duration\" = [\"1s\", \"2s\", \"5s\"]\n"
        ))
    );
    insta::assert_snapshot!(
        "gaps_longer_than_the_timeout",
        errors(&named("[workload]\npattern = \"write-read\"\ngap = \"2s\"\nchunk_count = 100\n"))
    );
}

/// Each of these was once answered with a second error that was none, or without the place.
#[test]
fn nothing_follows_from_what_cannot_go_together() {
    insta::assert_snapshot!(
        "a_qdisc_beside_netem",
        errors(&named("[link]\nqdisc = \"fq_codel\"\ntarget = \"5ms\"\ninterval = \"50ms\"\ndelay = \"1ms\"\n"))
    );
    insta::assert_snapshot!(
        "a_datagram_too_large",
        errors(&named("[workload]\nprotocol = \"udp\"\nchunk_size = \"1MiB\"\n"))
    );
    insta::assert_snapshot!(
        "loopback_with_two_ends",
        errors(&named("[link]\ntopology = \"loopback\"\ndelay = \"1ms\"\nserver.loss = \"1%\"\n"))
    );
}
