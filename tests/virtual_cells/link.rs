//! Each knob of the link and of sysctls.

use serde_json::Value;

use crate::common::Workshop;
use crate::{measured, number, run};

/// The outermost queue that the client sends through.
#[track_caller]
fn queue(record: &Value) -> &Value {
    &measured(record)["link"]["client"]["queues"][0]
}

#[test]
fn a_delay_is_exact_and_one_way() {
    let records = run(r#"
[socket]
nodelay = true
[workload]
chunk_count = 1
[axes]
"link.client.delay" = ["0s", "100us", "1ms", "10ms"]
"link.server.delay" = ["0s", "1ms"]
"#);
    let completion = |client: &str, server: &str| {
        let record = &records[&format!("{client} {server}")];
        assert_eq!(record["outcome"], "measured", "{record}");
        number(&record["completion_ns"])
    };
    let bare = completion("0s", "0s");
    for (client, client_ns) in [("0s", 0), ("100us", 100_000), ("1ms", 1_000_000), ("10ms", 10_000_000)] {
        for (server, server_ns) in [("0s", 0), ("1ms", 1_000_000u64)] {
            let delayed = completion(client, server);
            let expected = bare + client_ns + server_ns;
            // What the processor does meanwhile is saved, and what the timer costs is added.
            assert!(delayed.abs_diff(expected) < 40_000, "{client} {server}: {delayed} ns, expected {expected} ns");
        }
    }
}

/// C34: a delay is one way (coreemu#145, firezone#13839). Over loopback all packets pass one queue, those of both directions.
#[test]
fn over_loopback_a_delay_applies_to_both_directions() {
    let records = run(
        "[socket]\nnodelay = true\n[workload]\nchunk_count = 1\n[link]\ntopology = \"loopback\"\n[axes]\n\"link.delay\" = [\"0s\", \"5ms\"]\n",
    );
    let completion = |delay: &str| number(&measured(&records[delay])["completion_ns"]);
    let (delayed, expected) = (completion("5ms"), completion("0s") + 10_000_000);
    assert!(delayed.abs_diff(expected) < 40_000, "{delayed} ns, expected {expected} ns");
}

/// A stream of 512 KiB, a segment a packet, through a client's queue at 20 Mbit/s.
const STREAM: &str = r#"
[workload]
kind = "stream"
bytes = "512KiB"
[link]
gso_max_segs = 1
rate = "20Mbit/s"
delay = "1ms"
"#;

#[test]
fn losses_duplicates_and_corruption_are_counted_and_cost_time() {
    let records = run(&format!(
        "{STREAM}[axes]\n\"link.client.loss\" = [\"0%\", \"5%\"]\n\"link.client.duplicate\" = [\"0%\", \"20%\"]\n\"link.client.corrupt\" = [\"0%\", \"3%\"]\n"
    ));
    let bare = &records["0% 0% 0%"];
    let given = &queue(bare)["given"];
    assert_eq!((&given["delay"], &given["rate"], &given["loss"]), (&"1ms".into(), &"20Mbit/s".into(), &"0%".into()));
    assert_eq!(queue(bare)["drops"], 0);
    let packets = number(&queue(bare)["packets"]);
    assert!((363..400).contains(&packets), "362.1 segments of 1448 bytes, and the handshake: {packets}");
    // 512 KiB in frames of 1514 bytes for 1448 take 219.3 ms at 20 Mbit/s.
    let completion = |record: &Value| number(&record["completion_ns"]) / 1_000_000;
    assert!((219..235).contains(&completion(bare)), "{} ms", completion(bare));

    let lossy = &records["5% 0% 0%"];
    assert_eq!(queue(lossy)["given"]["loss"], "5%");
    let drops = number(&queue(lossy)["drops"]);
    assert!((6..40).contains(&drops), "5 % of about 380: {drops}");
    assert!(completion(lossy) > completion(bare));

    let doubled = &records["0% 20% 0%"];
    assert_eq!(queue(doubled)["given"]["duplicate"], "20%");
    let more = number(&queue(doubled)["packets"]);
    assert!((packets * 11 / 10..packets * 14 / 10).contains(&more), "{more} instead of {packets}");

    let corrupted = &records["0% 0% 3%"];
    assert_eq!(queue(corrupted)["given"]["corrupt"], "3%");
    assert_eq!(corrupted["delivered_bytes"], 512 << 10, "checksums hold, and what was hit is sent again");
    assert!(number(&queue(corrupted)["packets"]) > packets);
}

#[test]
fn bursts_of_loss_reordering_jitter_and_the_limit_take_effect() {
    let bursty = run(&format!(
        "{STREAM}loss_p = \"2%\"\nloss_r = \"50%\"\n[axes]\n\"link.client.loss_bad\" = [\"0%\", \"100%\"]\n"
    ));
    let drops = |record: &Value| number(&queue(record)["drops"]);
    assert_eq!(drops(&bursty["0%"]), 0, "bad is no worse than good");
    // Mean share bad: p / (p + r) = 3.8 %. Of some eight bursts in 380 packets there may be few by chance, and of one in 2000 such streams none.
    assert!((1..80).contains(&drops(&bursty["100%"])), "{}", drops(&bursty["100%"]));
    let given = &queue(&bursty["100%"])["given"];
    assert_eq!((&given["loss_p"], &given["loss_r"]), (&"2%".into(), &"50%".into()));

    // The link is bad for no longer than a packet, and loses none then: what is lost, is lost while it is good.
    let good = run(&format!(
        "{STREAM}loss_p = \"1%\"\nloss_r = \"100%\"\nloss_bad = \"0%\"\n[axes]\n\"link.client.loss_good\" = [\"0%\", \"5%\"]\n"
    ));
    assert_eq!(drops(&good["0%"]), 0);
    assert!((6..40).contains(&drops(&good["5%"])), "5 % of about 380: {}", drops(&good["5%"]));
    assert_eq!(queue(&good["5%"])["given"]["loss_good"], "5%");

    let limited = run(&format!("{STREAM}[axes]\n\"link.client.limit\" = [2, 1000]\n"));
    assert!(drops(&limited["2"]) > 0, "{:?}", queue(&limited["2"]));
    assert_eq!(drops(&limited["1000"]), 0);

    // Without a rate. Every second packet, and an echo of one, overtakes none: what changes is its time.
    let early = run(
        "[socket]\nnodelay = true\n[workload]\nchunk_count = 1\nbursts = 40\n[link.client]\ndelay = \"4ms\"\n[axes]\n\"link.client.reorder\" = [\"0%\", \"50%\"]\n\"link.client.jitter\" = [\"0s\", \"2ms\"]\n",
    );
    let spread = |record: &Value| {
        assert_eq!(record["outcome"], "measured", "{record}");
        number(&record["chunk_latency_ns"]["max"]) - number(&record["chunk_latency_ns"]["min"])
    };
    assert!(spread(&early["0% 0s"]) < 200_000, "{}", spread(&early["0% 0s"]));
    assert!((3_500_000..4_500_000).contains(&spread(&early["50% 0s"])), "some wait 4 ms and some do not");
    assert!((1_500_000..=4_200_000).contains(&spread(&early["0% 2ms"])), "between 2 and 6 ms");
}

#[test]
fn every_queue_discipline_of_a_distribution_is_had() {
    let kinds = ["pfifo", "bfifo", "pfifo_fast", "fq", "fq_codel", "codel", "sfq", "pie", "fq_pie", "cake"];
    let list = kinds.map(|kind| format!("\"{kind}\"")).join(", ");
    let records =
        run(&format!("[link]\nrate = \"10Mbit/s\"\n[axes]\n\"link.client.qdisc\" = [{list}]\nchunk_count = [8]\n"));
    for kind in kinds {
        let record = &records[&format!("{kind} 8")];
        assert_eq!(queue(record)["kind"], "tbf");
        assert_eq!(record["link"]["client"]["queues"][1]["kind"], kind);
        assert!(number(&queue(record)["packets"]) > 0);
    }
}

#[test]
fn sysctls_of_the_machine_are_set_in_the_guest_and_bound_buffers() {
    let sysctls = "[sysctl]\n\"net.core.rmem_max\" = 131071\nnet.core.wmem_max = 126976\n";
    // Without a word about the kernel: where the host cannot, a guest can.
    let workshop = Workshop::new(&format!(
        "name = \"clamp\"\n[run]\nrepeat = 1\n{sysctls}[axes]\nrcvbuf = [\"64KiB\", \"128KiB\"]\nsndbuf = [\"128KiB\"]\n"
    ));
    let ran = workshop.run(&["run", "sweep.toml"]).expect(0);
    assert!(ran.err.contains("`net.core.rmem_max` is one for the whole machine"), "it says why: {}", ran.err);
    for record in workshop.records("latest") {
        assert!(record["machine"].as_str().expect("a machine").starts_with("guest:"), "{record}");
        for end in ["client", "server"] {
            let (rcvbuf, sndbuf) = (&record[end]["rcvbuf"], &record[end]["sndbuf"]);
            assert_eq!((&sndbuf["initial"], &sndbuf["verdict"]), (&253_952.into(), &"clamped by wmem_max".into()));
            let (given, verdict) =
                if rcvbuf["asked"] == 65536 { (131_072, "doubled") } else { (262_142, "clamped by rmem_max") };
            assert_eq!((&rcvbuf["initial"], &rcvbuf["verdict"]), (&given.into(), &verdict.into()));
        }
        let told = &record["sysctls"]["net.core.rmem_max"];
        assert_eq!((&told["asked"], &told["given"]), (&"131071".into(), &"131071".into()));
        assert!(record["sysctls"]["net.ipv4.tcp_rmem"]["given"].is_string());
    }
    let on_the_host = workshop.run(&["run", "sweep.toml", "--set", "kernel.image=host", "--set", "kernel.clock=real"]);
    on_the_host.expect(3);
    assert!(workshop.records("latest").iter().all(|record| record["outcome"] == "skipped"));
}

#[test]
fn a_guest_in_real_time_sets_the_machine_back_after_each_repeat() {
    let workshop = Workshop::new(
        r#"
name = "restore"
[run]
repeat = 1
order = "listed"
timeout = "60s"
[kernel]
clock = "real"
image = "auto"
[socket]
rcvbuf = "128KiB"
[axes]
"sysctl.net.core.rmem_max" = [65536, "default"]
"#,
    );
    workshop.run(&["run", "sweep.toml"]).expect(0);
    let records = workshop.records("latest");
    let initial = |record: &Value| number(&record["client"]["rcvbuf"]["initial"]);
    assert_eq!(initial(&records[0]), 131_072, "twice the limit that was set");
    assert_eq!(records[0]["client"]["rcvbuf"]["verdict"], "clamped by rmem_max");
    assert_eq!(initial(&records[1]), 262_144, "twice what was asked: the limit is the kernel's own again");
}

/// C28: what was written before a message delays it by its bytes over the rate, however short the link's queue (libtorrent#4328,
/// twisted#9078), unless `TCP_NOTSENT_LOWAT` keeps the socket from taking more than is on its way.
#[test]
fn a_message_waits_behind_what_the_send_buffer_holds() {
    let records = run(r#"
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
    let latency = |lowat: &str| number(&records[lowat]["chunk_latency_ns"]["p50"]);
    // Half of 300 KiB at 5 Mbit/s are 246 ms.
    let behind = latency("default");
    assert!((200_000_000..400_000_000).contains(&behind), "{behind}");
    // The round trip is 10 ms, and the queue of 20 packets another 48 ms.
    let soon = latency("4096");
    assert!((10_000_000..80_000_000).contains(&soon), "{soon}");
}
