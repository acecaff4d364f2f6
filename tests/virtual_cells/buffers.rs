//! What buffers bound, and what they do not: the reports from the field about buffers whose figures need a long path or another kernel.

use serde_json::Value;

use crate::common::Workshop;
use crate::{measured, number, run};

fn largest(record: &Value, end: &str, column: &str) -> u64 {
    let samples = measured(record)[end]["samples"][column].as_array().expect("samples");
    samples.iter().map(number).max().expect("a sample")
}

/// C10: a fixed receive buffer bounds the goodput of a long path by its size over the round trip, and not that of a short one. One that is
/// left to the kernel bounds neither, and only there the size grows (lightway#437, xfr#60, wstunnel#80, iperf#356).
#[test]
fn a_fixed_receive_buffer_bounds_a_long_path_only() {
    let records = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "3s"
omit = "1500ms"
chunk_size = "16KiB"
[link]
rate = "20Mbit/s"
limit = 2000
[axes]
"link.delay" = ["250us", "95ms"]
"socket.server.rcvbuf" = ["64KiB", "default"]
"#);
    let goodput = |place: &str| number(&records[place]["goodput_bps"]);
    for place in ["250us 65536", "250us default", "95ms default"] {
        assert!(goodput(place) > 18_000_000, "{place}: {}", goodput(place));
    }
    // 64 KiB each round trip of 190 ms are 2.8 Mbit/s; the kernel doubles what is asked, and its overhead takes a part.
    assert!((2_000_000..6_000_000).contains(&goodput("95ms 65536")), "{}", goodput("95ms 65536"));
    for (place, record) in &records {
        let buffer = &record["server"]["rcvbuf"];
        let grew = number(&buffer["peak"]) > number(&buffer["initial"]);
        assert_eq!(grew, place.ends_with("default"), "{place}: {buffer}");
    }
}

/// C11: a send buffer of 32 KiB, which the kernel doubles, carries about its size in each round trip (xrdp#2905, hpn-ssh#58, which both turn
/// Nagle's algorithm off), and at 0.5 ms it fills the link.
///
/// With Nagle's algorithm it bounds nothing: the rest of each write that fills no segment waits for an acknowledgement, and
/// `tcp_sendmsg_locked` looks at the buffer's size only before it begins a segment, not before it fills up one that waits
/// (docs/tcp-send-buffer.md). Writes of whole segments leave no rest.
#[test]
fn a_send_buffer_bounds_a_long_path_where_no_segment_waits() {
    let records = run(r#"
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
    let of = |place: &str| {
        let record = measured(&records[place]);
        let buffer = &record["client"]["sndbuf"];
        assert_eq!((&buffer["initial"], &buffer["final"]), (&65536.into(), &65536.into()), "{place}");
        (number(&record["goodput_bps"]), largest(record, "client", "sndbuf_used_bytes"))
    };
    for place in ["250us false 14480", "250us true 14480", "250us false 16384", "250us true 16384"] {
        assert!(of(place).0 > 18_000_000, "{place}: {:?}", of(place));
    }
    // 64 KiB each round trip of 250 ms are 2.1 Mbit/s.
    for place in ["125ms false 14480", "125ms true 14480", "125ms true 16384"] {
        let (goodput, used) = of(place);
        assert!((700_000..2_200_000).contains(&goodput), "{place}: {goodput}");
        // One segment begun below the limit may lie beyond it.
        assert!(used < 65536 + 4096, "{place}: {used} bytes in a buffer of 65536");
    }
    let (goodput, used) = of("125ms false 16384");
    assert!(goodput > 6_000_000 && used > 4 * 65536, "{goodput} with {used} bytes in a buffer of 65536");
}

/// C12: buffers beyond what the machine's TCP may have in all (`net.ipv4.tcp_mem`) put it under memory pressure: windows shrink to a few
/// segments and the stream stalls (iperf#198, iperf#970). The outcome says so; it is neither a goodput of 0 nor left out.
#[test]
fn very_large_windows_on_a_long_path_stall_and_are_told() {
    let records = run(r#"
[workload]
kind = "stream"
duration = "10s"
omit = "2s"
chunk_size = "16KiB"
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
"#);
    // 512 KiB each round trip of 300 ms are 14 Mbit/s, of which the overhead takes a part.
    let fair = number(&measured(&records["262144 262144"])["goodput_bps"]);
    assert!((3_000_000..14_000_000).contains(&fair), "{fair}");
    let stalled = &records["67108864 67108864"];
    assert_eq!(stalled["outcome"], "timed-out", "{stalled}");
    let reason = stalled["reason"].as_str().expect("a reason");
    assert!(reason.contains("bytes had arrived"), "{reason}");
    assert!(number(&stalled["delivered_bytes"]) > 0);
    assert_eq!((&stalled["goodput_bps"], &stalled["completion_ns"]), (&Value::Null, &Value::Null));
    let pressed = |end: &str| stalled[end]["evidence"]["counters"]["TcpExtTCPMemoryPressures"].as_u64().unwrap_or(0);
    assert!(pressed("client") + pressed("server") > 0, "{stalled}");
}

/// C13: kernel × MTU × `tcp_rmem`, and a comparison of two kernels that names just those cells that differ (kops#10206).
#[test]
fn two_kernels_differ_in_some_cells_and_the_comparison_names_those() {
    let workshop = Workshop::new(
        r#"
name = "kernels"
[run]
repeat = 1
[kernel]
clock = "virtual"
[workload]
kind = "stream"
bytes = "1MiB"
[link]
rate = "200Mbit/s"
delay = "10ms"
limit = 5000
[axes]
"link.mtu" = [1500, 9001]
"sysctl.net.ipv4.tcp_rmem" = ["4096 16384 6291456", "4096 131072 6291456"]
"#,
    );
    for (kernel, out) in [("debian:6.1", "older"), ("debian:7.2", "newer")] {
        let image = format!("kernel.image={kernel}");
        workshop.run(&["run", "sweep.toml", "--no-plot", "--out", out, "--set", &image]).expect(0);
    }
    let compare = ["compare", "older", "newer", "--match", "axes", "--least", "5%"];
    let json: Value =
        serde_json::from_str(&workshop.run(&[&compare[..], &["--json"]].concat()).expect(0).out).expect("JSON");
    let cells = json["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    let shown = workshop.run(&[&compare[..], &["--changed"]].concat()).expect(0).out;
    let mut differing = 0;
    for cell in cells {
        let medians = ["first", "second"].map(|side| number(&cell[side]["median"]));
        let differs = medians[0].abs_diff(medians[1]) * 20 > medians[0];
        assert_eq!(cell["difference"] != "no difference", differs, "{cell}");
        let axes = cell["axes"].as_object().expect("axes");
        let named = axes.iter().map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')));
        let named = named.collect::<Vec<_>>().join(" ");
        assert_eq!(shown.contains(&named), differs, "{named} in\n{shown}");
        differing += usize::from(differs);
    }
    // With a default of 16 KiB the window opens otherwise on each kernel, with one of 128 KiB alike.
    assert!((1..4).contains(&differing), "{shown}");
    assert!(shown.contains("differs kernel.image: was \"debian:6.1\", is \"debian:7.2\""), "{shown}");
    let plotted = workshop.run(&["plot", "older", "newer"]).expect(0);
    let picture = std::fs::read_to_string(workshop.path().join("older/ratio-completion.svg")).expect(&plotted.out);
    assert!(picture.contains("9001"), "the ratio of each cell is drawn");
}

/// C16: a reader that pauses. Small segments take more memory than the window told of: the window stays open until the memory reaches its
/// limit, where the kernel has to press segments together (`tcp_prune_queue`). With `tcp_shrink_window` it takes the window back before that. A
/// kernel without that sysctl skips the cell (Cloudflare on receive buffers, truenas/linux#317).
///
/// C30: what an older kernel does not tell is null and not 0: the window that an end offers is told since Linux 6.2.
#[test]
fn a_reader_that_pauses_has_its_memory_filled_unless_the_window_may_shrink() {
    let records = run(r#"
[workload]
kind = "stream"
bytes = "256KiB"
chunk_size = 64
read_pause = "500ms"
[socket]
nodelay = true
[socket.server]
rcvbuf = "128KiB"
[axes]
"kernel.image" = ["debian:5.10", "debian:6.12"]
"sysctl.net.ipv4.tcp_shrink_window" = ["default", 0, 1]
"#);
    // How often memory was reclaimed, and how often the window was closed.
    let moved = |place: &str| {
        let server = &measured(&records[place])["server"];
        let size = number(&server["rcvbuf"]["final"]);
        assert_eq!(size, 262_144, "{place}");
        // A segment is taken in whole while the memory is below its limit (`tcp_try_rmem_schedule`), and over a veth pair it is as large as it was
        // sent: up to 64 KiB, as far as the window goes that was offered, and a page for what the kernel needs beside it.
        let used = largest(&records[place], "server", "rcvbuf_used_bytes");
        assert!((size / 4..size + (64 << 10) + 4096).contains(&used), "{place}: {used} of {size}");
        // A counter that never moved is left out.
        ["TcpExtPruneCalled", "TcpExtTCPToZeroWindowAdv"]
            .map(|name| server["evidence"]["counters"][name].as_u64().unwrap_or(0))
    };
    let (kept, shrunk) = (moved("debian:6.12 0"), moved("debian:6.12 1"));
    assert!(kept[1] == 0 && shrunk[0] == 0 && shrunk[1] > 0, "{kept:?} and {shrunk:?}");
    moved("debian:5.10 default");
    for value in ["0", "1"] {
        let absent = &records[&format!("debian:5.10 {value}")];
        assert_eq!(absent["outcome"], "skipped", "{absent}");
        assert!(absent["reason"].as_str().expect("a reason").contains("no sysctl `net.ipv4.tcp_shrink_window`"));
    }
    let window = |place: &str| records[place]["server"]["samples"]["rcv_wnd_bytes"].clone();
    assert_eq!(window("debian:5.10 default"), Value::Null);
    assert!(window("debian:6.12 0").is_array());
}

/// C03 and C04: a request above the limit is given more than was asked and is clamped all the same (iperf#1022, quic-go#3415, with the limit
/// that was usual for long), and where only `wmem_max` is low, only the send side is (iperf#757).
#[test]
fn sides_are_clamped_each_by_its_own_limit() {
    let records = run(r#"
[workload]
chunk_count = 1
[sysctl]
"net.core.rmem_max" = 212992
[socket]
rcvbuf = "300KiB"
[axes]
sndbuf = [212992, "300KiB"]
"sysctl.net.core.wmem_max" = [65536, 212992]
"#);
    for (place, sndbuf, verdict) in [
        ("212992 65536", 131_072, "clamped by wmem_max"),
        ("212992 212992", 425_984, "doubled"),
        ("307200 212992", 425_984, "clamped by wmem_max"),
    ] {
        let record = measured(&records[place]);
        for end in ["client", "server"] {
            let (receive, send) = (&record[end]["rcvbuf"], &record[end]["sndbuf"]);
            assert_eq!((&receive["initial"], &receive["verdict"]), (&425_984.into(), &"clamped by rmem_max".into()));
            assert_eq!((&send["initial"], &send["verdict"]), (&sndbuf.into(), &verdict.into()), "{place}");
        }
    }
}
