//! Buffers and windows: which one bounds, which is larger than used, and what lies in them.

use crate::{run, run_within};

/// C28 (libtorrent#4328, twisted#9078): a message waits behind what its own socket has taken.
#[test]
fn what_waits_in_the_own_send_buffer_is_told_from_what_waits_in_the_link() {
    let cells = run(r#"
[link]
rate = "5Mbit/s"
delay = "5ms"
limit = 20
gso_max_segs = 1
[socket]
nodelay = true
sndbuf = "1MiB"
[workload]
chunk_count = 300
chunk_size = "1KiB"
[axes]
"socket.tcp.notsent_lowat" = ["4KiB", "default"]
"#);
    let said = cells.says("default", "waits-in-the-send-buffer");
    assert!(said.contains("it waited in the client's own send buffer"), "{said}");
    cells.silent("4096", "waits-in-the-send-buffer");
}

/// C16 (Cloudflare on receive buffers, truenas/linux#317): a reader that pauses, and how much lies in its buffer meanwhile.
#[test]
fn a_reader_that_pauses_is_the_limit_and_its_buffer_may_hold_more_than_its_size() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "600ms"
read_size = "16KiB"
chunk_size = "16KiB"
[socket.server]
rcvbuf = "128KiB"
[sysctl]
"net.ipv4.tcp_shrink_window" = 0
[axes]
"workload.read_pause" = ["0s", "10ms"]
"#);
    let said = cells.says("10ms", "application-limited");
    assert!(said.contains("the server's program did not read as fast as data came"), "{said}");
    cells.silent("10ms", "receiver-limited");
    cells.silent("10ms", "autotuning-off");
    cells.silent("0s", "application-limited");
    cells.says("10ms", "zero-window");
    let most = cells.number("10ms", "/server/evidence/rcvbuf_used_peak_bytes");
    assert!((128 << 10..512 << 10).contains(&most), "of a buffer of 256 KiB: {most}");
}

/// C16 again: small segments take more memory than the window told of, so that more lies in the buffer than its size; where the window may be
/// taken back it does not.
#[test]
fn small_segments_take_more_memory_than_the_size_unless_the_window_may_shrink() {
    let cells = run(r#"
image = "debian:6.12"
[workload]
kind = "stream"
bytes = "1MiB"
chunk_size = 64
read_pause = "500ms"
[socket]
nodelay = true
[socket.server]
rcvbuf = "128KiB"
[axes]
"sysctl.net.ipv4.tcp_shrink_window" = [0, 1]
"#);
    // The timer tick decides whether a look comes before the kernel presses them together.
    let said = cells.says("0", "beyond-the-size");
    assert!(said.contains("server's receive buffer of 256 KiB") || said.contains("(TcpExtPruneCalled)"), "{said}");
    cells.silent("1", "beyond-the-size");
    cells.says("1", "zero-window");
}

/// C12 (iperf#198, iperf#970): buffers beyond what the machine's TCP may have in all.
#[test]
fn buffers_beyond_the_machine_s_memory_are_told() {
    let cells = run_within(
        "12s",
        3,
        r#"
[workload]
kind = "stream"
duration = "6s"
omit = "2s"
[socket]
nodelay = true
[link]
rate = "100Mbit/s"
delay = "150ms"
limit = 20000
gso_max_segs = 1
[[zip]]
"socket.rcvbuf_force" = ["256KiB", "64MiB"]
"socket.sndbuf_force" = ["256KiB", "64MiB"]
"#,
    );
    let (small, large) = ("262144 262144", "67108864 67108864");
    assert_eq!(cells.at(large).record["outcome"], "timed-out");
    let said = cells.says(large, "memory-pressure");
    assert!(said.starts_with("the machine's TCP took more memory than it may (1 time, net.ipv4.tcp_mem of "), "{said}");
    assert!(said.contains("lay in the client's send buffer of 128 MiB"), "{said}");
    assert!(said.contains("the window that the client was offered fell from "), "{said}");
    cells.silent(large, "send-buffer-limited");
    cells.silent(small, "memory-pressure");
    cells.says(small, "send-buffer-limited");
}

/// C11 (xrdp#2905, hpn-ssh#58): a send buffer of 32 KiB bounds a round trip of 250 ms and not one of 0.5 ms. With Nagle's algorithm, and
/// writes that leave a part of a segment, it bounds nothing (docs/tcp-send-buffer.md).
#[test]
fn a_send_buffer_is_the_limit_where_it_holds_all_that_is_on_its_way() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
omit = "2s"
[socket.client]
sndbuf = "32KiB"
[link]
rate = "20Mbit/s"
limit = 2000
[axes]
"link.delay" = ["250us", "125ms"]
nodelay = [false, true]
chunk_size = [14480, "16KiB"]
"#);
    let name = "send-buffer-limited";
    for place in ["125ms false 14480", "125ms true 14480", "125ms true 16384"] {
        let said = cells.says(place, name);
        assert!(said.starts_with("the client's send buffer of 64 KiB was as full"), "{said}");
        cells.says(place, "autotuning-off");
    }
    cells.silent("125ms false 16384", name);
    for place in ["250us false 14480", "250us true 14480", "250us false 16384", "250us true 16384"] {
        cells.silent(place, name);
        cells.says(place, "link-limited");
    }
}

/// The peer's window bounds where it is the smaller one, and the send buffer, though as full, does not.
#[test]
fn a_send_buffer_that_waits_for_a_window_is_not_the_limit() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
omit = "2s"
[socket]
nodelay = true
[socket.client]
sndbuf = "128KiB"
[link]
rate = "20Mbit/s"
delay = "125ms"
limit = 2000
gso_max_segs = 1
[axes]
"socket.server.rcvbuf" = ["32KiB", "default"]
"link.client.loss" = ["0%", "3%"]
"#);
    cells.says("32768 0%", "receiver-limited");
    cells.silent("32768 0%", "send-buffer-limited");
    cells.says("default 0%", "send-buffer-limited");
    cells.silent("default 3%", "send-buffer-limited");
}

/// The report on autotuning, in short: megabytes or not, the link is full; and sizes beyond `rmem_max` are clamped.
#[test]
fn autotuning_grows_beyond_what_a_full_link_needs_and_fixed_sizes_are_clamped() {
    let cells = run(r#"
[link]
rate = "984395kbit/s"
[workload]
kind = "stream"
direction = "download"
duration = "300ms"
omit = "100ms"
chunk_size = "16KiB"
[sysctl]
"net.ipv4.tcp_rmem" = "16384 87380 4194304"
"net.ipv4.tcp_wmem" = "16384 16384 4194304"
"net.core.rmem_max" = 131071
"net.core.wmem_max" = 126976
[axes]
"socket.client.rcvbuf" = ["64KiB", "512KiB", "default"]
"#);
    for place in ["65536", "524288", "default"] {
        let said = cells.says(place, "link-limited");
        assert!(said.contains("all that a link of 984 Mbit/s leaves for data (941 Mbit/s)"), "{said}");
    }
    let grown = cells.says("default", "autotuned");
    assert!(
        grown.contains("the client's receive buffer grew from 87380 B") && grown.ends_with("and the link was full"),
        "{grown}"
    );
    let clamped = cells.says("524288", "clamped-by-a-sysctl");
    assert!(clamped.contains("512 KiB asked, clamped by net.core.rmem_max to 262142 bytes"), "{clamped}");
    for place in ["65536", "524288"] {
        assert!(!cells.at(place).findings.get("autotuned").is_some_and(|said| said.contains("receive buffer")));
    }
    cells.silent("65536", "clamped-by-a-sysctl");
    cells.silent("default", "clamped-by-a-sysctl");
}

#[test]
fn a_burst_beyond_a_tcp_window_and_a_size_beyond_use_are_told() {
    let cells = run(r#"
[link]
delay = "2ms"
[socket]
nodelay = true
[workload]
chunk_count = 64
chunk_size = "4KiB"
[axes]
"socket.server.rcvbuf" = ["8KiB", "1MiB"]
"#);
    let said = cells.says("8192", "burst-beyond-the-window");
    assert!(
        said.starts_with("the client had more to send than the server's window (a buffer of 16 KiB) let through"),
        "{said}"
    );
    cells.silent("1048576", "burst-beyond-the-window");

    let cells = run(r#"
[link]
rate = "50Mbit/s"
delay = "2ms"
limit = 1000
gso_max_segs = 1
[workload]
kind = "stream"
direction = "upload"
duration = "500ms"
[socket.client]
sndbuf = "32KiB"
[axes]
"socket.server.rcvbuf" = ["64KiB", "2MiB"]
"#);
    let said = cells.says("2097152", "larger-than-used");
    assert!(said.starts_with("the server's receive buffer (2 MiB asked) offered a window of up to"), "{said}");
    cells.silent("65536", "larger-than-used");
}
