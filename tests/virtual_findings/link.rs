//! What the link does to packets, and what does not become of them in the link: queues, order, loss, and what is cut.

use serde_json::Value;

use crate::run;

/// A burst that comes back while the client is still in its call to send waits in the socket's backlog, and what that has no room for is lost:
/// the link is not to blame.
#[test]
fn an_sctp_backlog_that_is_full_is_told_from_a_link_that_changes_the_order() {
    let cells = run(r#"
[workload]
protocol = "sctp"
[socket]
nodelay = true
[axes]
rcvbuf = ["4KiB", "64KiB"]
"#);
    assert!(cells.number("4096", "/client/evidence/counters/SctpInPktDiscards") > 0);
    let said = cells.says("4096", "receive-queue-drops");
    assert!(said.contains("found the socket's backlog full"), "{said}");
    for rcvbuf in ["4096", "65536"] {
        cells.silent(rcvbuf, "reordered");
    }
    cells.silent("65536", "receive-queue-drops");
}

/// C31 (iproute2#56, comcast#28, chaosblade#1080): a limit that does not hold what is on its way drops without any loss asked for. C32
/// (sandia-minimega#752): one that holds much more makes a queue that stands.
#[test]
fn a_queue_may_be_too_short_and_too_long() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
duration = "4s"
[link]
rate = "20Mbit/s"
delay = "20ms"
gso_max_segs = 1
[axes]
"link.client.limit" = [20, 60, 300]
"socket.server.rcvbuf" = ["32KiB", "default"]
"#);
    // 20 Mbit/s for 20 ms are 33 frames of 1514 bytes.
    let said = cells.says("20 default", "netem-limit-too-small");
    assert!(
        said.contains("it holds 20, those on their way among them, which at 20.0 Mbit/s for 20.0 ms are 33"),
        "{said}"
    );
    cells.silent("20 default", "link-queue-drops");
    cells.silent("300 default", "netem-limit-too-small");
    cells.silent("300 32768", "netem-limit-too-small");
    cells.says("60 default", "link-queue-drops");
    cells.silent("60 default", "netem-limit-too-small");
    cells.silent("60 32768", "link-queue-drops");
    // A receive window below what is on its way fills no queue.
    let said = cells.says("300 default", "standing-queue");
    assert!(said.contains("holds up to 182 ms"), "300 frames of 1514 bytes: {said}");
    cells.silent("300 32768", "standing-queue");
    cells.silent("300 32768", "link-queue-drops");
    cells.says("300 32768", "receiver-limited");
    cells.says("300 32768", "autotuning-off");
    cells.silent("300 default", "autotuning-off");
    cells.says("300 default", "link-limited");
}

/// C32 beside an echo: what stands in the queue is what a request waits for.
#[test]
fn a_request_waits_in_the_queue_of_a_transfer() {
    let cells = run(r#"
[link]
rate = "5Mbit/s"
delay = "5ms"
limit = 100
gso_max_segs = 1
[socket]
nodelay = true
[workload]
chunk_count = 1
bursts = 5
gap = "50ms"
[axes]
"workload.beside" = ["none", "upload"]
"#);
    cells.nothing("none");
    cells.says("upload", "standing-queue");
}

/// C33 (srt#735, usrsctp#434): jitter without a rate puts packets out of order.
#[test]
fn jitter_puts_packets_out_of_order_and_none_does_not() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
bytes = "256KiB"
[link]
gso_max_segs = 1
delay = "4ms"
[axes]
"workload.protocol" = ["tcp", "sctp"]
"link.client.jitter" = ["0s", "1ms"]
"#);
    for protocol in ["tcp", "sctp"] {
        let said = cells.says(&format!("{protocol} 1ms"), "reordered");
        assert!(
            said.contains("out of order")
                && said.contains("the client's netem: each delayed by itself within ± 1.00 ms"),
            "{said}"
        );
        cells.silent(&format!("{protocol} 0s"), "reordered");
    }
    assert!(
        cells
            .says("tcp 1ms", "reordered")
            .starts_with(&format!("{} of", cells.number("tcp 1ms", "/server/evidence/counters/TcpExtTCPOFOQueue")))
    );
}

/// C36 (mptcp_net-next#230, flent): a packet that is lost before it is cut takes all its segments along.
#[test]
fn offloads_lose_segments_together() {
    let cells = run(r#"
[workload]
kind = "stream"
direction = "upload"
bytes = "16MiB"
[link]
delay = "2ms"
rate = "200Mbit/s"
limit = 4000
[link.client]
loss = "1%"
[axes]
"link.gso_max_segs" = [1, "default"]
"#);
    let said = cells.says("default", "segments-lost-together");
    assert!(said.contains("holds up to 65535 segments, lost together"), "{said}");
    cells.silent("1", "segments-lost-together");
    cells.says("1", "retransmissions");
    for place in ["1", "default"] {
        for end in ["client", "server"] {
            for offload in ["tso", "gso", "gro"] {
                let given = cells.at(place).record.pointer(&format!("/link/{end}/{offload}/given"));
                assert!(given.is_some_and(Value::is_boolean), "{end} {offload}: {given:?}");
            }
        }
    }
}

#[test]
fn datagrams_are_cut_and_dropped_and_small_ones_into_a_large_buffer_are_not() {
    // Losses are figures, and no failure of the run.
    let cells = run(r#"
[workload]
protocol = "udp"
chunk_count = 128
quiet = "200ms"
[axes]
chunk_size = [1000, 4000]
rcvbuf = ["4KiB", "2MiB"]
"#);
    let cut = cells.says("4000 2097152", "fragmented");
    assert!(cut.starts_with("IP cut 256 datagrams into 768 fragments"), "{cut}");
    let dropped = cells.says("1000 4096", "udp-receive-drops");
    // At both ends, for echoes are dropped too.
    let at = |end| cells.at("1000 4096").record.pointer(&format!("/{end}/evidence/counters/UdpRcvbufErrors"));
    let counted: u64 = ["client", "server"].into_iter().filter_map(|end| at(end)?.as_u64()).sum();
    assert!(dropped.starts_with(&format!("{counted} datagrams")), "{dropped}");
    cells.nothing("1000 2097152");
}
