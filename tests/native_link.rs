//! Each knob of the link, of sysctls and of placement that this kernel can have, seen to take effect.

use std::fs;
use std::sync::atomic::AtomicBool;

use sweep::backend::Job;
use sweep::backend::native::{self, Native};
use sweep::measurement::{Measurement, Outcome};
use sweep::settings::{Settings, Value, find};
use sweep::units::Span;

/// Settings from paths and values as they are typed.
fn settings(values: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    for (path, text) in values {
        let key = find(path).expect("a key");
        let typed = text.parse().map_or_else(|_| Value::Text((*text).to_owned()), Value::Int);
        let typed = text.parse().map_or(typed, Value::Bool);
        key.put(&mut settings, &key.kind.check(&typed).expect("a fitting value"));
    }
    settings
}

/// One repeat, on this kernel.
fn measure(values: &[(&str, &str)]) -> Measurement {
    let native = Native::new("for a test").expect("tests run as root, or where user namespaces are allowed");
    let job = Job { settings: settings(values), timeout: Span(20_000_000_000), phase: Span(0), evidence: true };
    native.measure(&job, &AtomicBool::new(false))
}

#[track_caller]
fn measured(values: &[(&str, &str)]) -> Measurement {
    let measured = measure(values);
    assert_eq!(measured.outcome, Outcome::Measured, "{values:?}: {:?}", measured.reason);
    measured
}

/// A kernel without the queue discipline skips the cell, and says which one it lacks.
fn measured_unless_absent(kind: &str, values: &[(&str, &str)]) -> Option<Measurement> {
    let measurement = measure(values);
    if measurement.outcome == Outcome::Skipped {
        let reason = measurement.reason.expect("a reason");
        assert!(reason.starts_with(&format!("no queue discipline `{kind}` in this kernel")), "{reason}");
        let lack = native::lack(&[&settings(values)]).expect("what is skipped is what is lacking");
        assert_eq!(lack, format!("no queue discipline `{kind}` in its kernel"));
        return None;
    }
    assert_eq!(measurement.outcome, Outcome::Measured, "{values:?}: {:?}", measurement.reason);
    assert_eq!(native::lack(&[&settings(values)]), None, "{values:?}");
    Some(measurement)
}

const STREAM: [(&str, &str); 3] =
    [("workload.kind", "stream"), ("workload.duration", "400ms"), ("workload.omit", "100ms")];

#[test]
fn a_rate_bounds_the_goodput_in_its_direction() {
    let limited = [("link.client.rate", "50Mbit/s"), ("link.client.limit_bytes", "200000")];
    let Some(up) = measured_unless_absent("tbf", &[&STREAM[..], &limited].concat()) else { return };
    let goodput = up.goodput_bps.expect("a goodput");
    // 1448 bytes of a frame of 1514 are the application's: 47.8 Mbit/s. How far below, or by how much a reader that got to run late reads
    // more in less time, depends on how busy this machine is; without the rate it would be gigabits.
    assert!((5_000_000..=75_000_000).contains(&goodput), "{goodput}");
    let link = up.link.expect("a link");
    let [queue] = link.client.queues.as_slice() else { panic!("one queue: {link:?}") };
    assert_eq!(queue.kind, "tbf");
    assert_eq!((queue.given["rate"].as_str(), queue.given["limit_bytes"].as_str()), ("50Mbit/s", "200000"));
    assert!(queue.packets > 1000 && queue.bytes > up.delivered_bytes.expect("bytes"), "{queue:?}");
    assert!(queue.overlimits > 0, "it had to hold back: {queue:?}");
    assert!(link.server.queues.is_empty(), "nothing was asked there");

    let down = measured(&[&STREAM[..], &[("workload.direction", "download")], &limited].concat());
    assert!(down.goodput_bps.expect("a goodput") > 100_000_000, "the other direction is free");
}

#[test]
fn overhead_counts_against_the_rate() {
    let plain = [("link.rate", "100Mbit/s"), ("link.gso_max_segs", "1")];
    let Some(plainly) = measured_unless_absent("tbf", &[&STREAM[..], &plain].concat()) else { return };
    // As many bytes again for each packet of 1514: half the goodput.
    let halved = measured(&[&STREAM[..], &plain, &[("link.overhead", "1514")]].concat());
    let (whole, half) = (plainly.goodput_bps.expect("a goodput"), halved.goodput_bps.expect("a goodput"));
    assert!((250..=750).contains(&(half * 1000 / whole)), "{half} of {whole}");
    let link = halved.link.expect("a link");
    assert_eq!(link.client.queues[0].given["overhead"], "1514");
    assert_eq!(link.client.gso_max_segs, Some(1), "else it counts once for many segments");
    assert_eq!(measured(&[]).link.expect("a link").client.gso_max_segs, Some(65535), "the kernel's own");
}

#[test]
fn a_limit_in_packets_drops_what_is_beyond_it() {
    let small = [("link.client.rate", "10Mbit/s"), ("link.client.limit", "5"), ("link.gso_max_segs", "1")];
    let Some(measured) = measured_unless_absent("tbf", &[&STREAM[..], &small].concat()) else { return };
    let queues = measured.link.expect("a link").client.queues;
    let kinds: Vec<_> = queues.iter().map(|queue| queue.kind.as_str()).collect();
    assert_eq!(kinds, ["tbf", "pfifo"], "the one that counts packets stands within");
    assert_eq!(queues[1].given["limit"], "5");
    assert!(queues[0].drops > 0, "{queues:?}");
}

#[test]
fn a_queue_discipline_by_name_is_the_one_that_packets_pass() {
    for (kind, options) in [
        ("pfifo", &[("limit", "7")][..]),
        ("bfifo", &[("limit_bytes", "70000")]),
        ("pfifo_fast", &[]),
        ("fq", &[("limit", "100")]),
        ("fq_codel", &[("limit", "100"), ("target", "4ms"), ("interval", "80ms"), ("ecn", "false")]),
        ("codel", &[("limit", "100"), ("ecn", "true")]),
        ("sfq", &[("limit", "100")]),
        ("pie", &[("limit", "100"), ("target", "10ms"), ("ecn", "true")]),
        ("fq_pie", &[("limit", "100"), ("ecn", "true")]),
        ("cake", &[]),
    ] {
        let asked: Vec<(String, &str)> =
            options.iter().map(|(name, value)| (format!("link.server.{name}"), *value)).collect();
        let mut values = vec![("link.server.qdisc", kind)];
        values.extend(asked.iter().map(|(path, value)| (path.as_str(), *value)));
        let Some(measured) = measured_unless_absent(kind, &values) else { continue };
        let link = measured.link.expect("a link");
        let queue = &link.server.queues[0];
        assert_eq!(queue.kind, kind);
        assert!(queue.packets > 0, "{queue:?}");
        for (name, value) in options {
            // Controlled delay keeps time in units of 1024 ns.
            let near = |given: &str| {
                matches!((*name, given), ("target", "3ms 999us") | ("interval", "79ms 999us" | "79ms 998us"))
            };
            let given = queue.given.get(*name).map(String::as_str).expect("read back");
            assert!(given == *value || near(given), "{kind} {name}: asked {value}, given {given}");
        }
        assert!(link.client.queues.is_empty());
    }
}

#[test]
fn what_needs_netem_is_measured_or_skipped_with_the_reason() {
    for values in [&[("link.delay", "1ms")][..], &[("link.loss", "1%")], &[("link.duplicate", "1%")]] {
        let Some(measured) = measured_unless_absent("netem", values) else { continue };
        assert_eq!(measured.link.expect("a link").client.queues[0].kind, "netem");
    }
}

#[test]
fn offloads_are_turned_off_and_on_at_the_end_that_is_named() {
    for (name, other) in [("tso", "gso"), ("gso", "gro"), ("gro", "tso")] {
        for on in [false, true] {
            let path = format!("link.client.{name}");
            let measured = measured(&[(path.as_str(), if on { "true" } else { "false" })]);
            let link = measured.link.expect("a link");
            let switch = |interface: &sweep::measurement::Interface, name: &str| match name {
                "tso" => interface.tso.clone(),
                "gso" => interface.gso.clone(),
                _ => interface.gro.clone(),
            };
            let given = switch(&link.client, name);
            assert_eq!((given.asked, given.given), (Some(on), Some(on)), "{name}");
            assert_eq!(switch(&link.client, other).asked, None);
            assert_eq!(switch(&link.server, name).asked, None);
            assert_eq!(link.client.mtu, Some(1500));
        }
    }
    let measured = measured(&[("link.server.tx_checksum", "false"), ("link.server.tso", "false")]);
    let link = measured.link.expect("a link");
    assert_eq!(link.server.tx_checksum.given, Some(false));
    assert_eq!(link.client.tx_checksum.given, Some(true), "the kernel's own");
    for on in ["false", "true"] {
        let link = self::measured(&[("link.client.rx_checksum", on)]).link.expect("a link");
        assert_eq!(link.client.rx_checksum.given, Some(on == "true"));
        assert_eq!(link.server.rx_checksum.asked, None);
    }
}

#[test]
fn an_mtu_is_that_of_both_devices_and_decides_the_segments() {
    for (mtu, mss) in [(1000, 948), (9000, 8948)] {
        let measured = measured(&[("link.mtu", mtu.to_string().as_str())]);
        let link = measured.link.expect("a link");
        assert_eq!((link.client.mtu, link.server.mtu), (Some(mtu), Some(mtu)));
        let tcp = measured.client.evidence.and_then(|evidence| evidence.tcp).expect("what TCP knows");
        assert_eq!(tcp.mss_bytes, Some(mss), "less 40 bytes of headers and 12 of time stamps");
    }
}

#[test]
fn an_offload_that_cannot_be_is_said_so() {
    // Without checksums made by the device there is no TSO.
    let measured = measure(&[("link.client.tx_checksum", "false"), ("link.client.tso", "true")]);
    assert_eq!(measured.outcome, Outcome::Invalid, "{measured:?}");
    let reason = measured.reason.expect("a reason");
    assert!(reason.starts_with("`tso` was turned on and stays off"), "{reason}");
}

#[test]
fn loopback_has_one_queue_for_both() {
    let measured = measured(&[("link.topology", "loopback"), ("link.qdisc", "pfifo"), ("link.limit", "50")]);
    let link = measured.link.expect("a link");
    assert_eq!(link.client, link.server, "they are one device");
    assert_eq!(link.client.queues[0].given["limit"], "50");
    assert_eq!(link.client.mtu, Some(65536));
}

/// C14: `tcp_rmem` is the namespace's, and what was not set there is read back too: whether a new one copies the host's differs by kernel
/// (moby#30778, kubernetes#125234). `rmem_max` is not, and is never written: the test below.
#[test]
fn a_sysctl_of_the_namespace_takes_effect_there_and_nowhere_else() {
    let before = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("a sysctl");
    let asked = "8192 98304 4194304";
    let measured = measured(&[("sysctl.net.ipv4.tcp_rmem", asked), ("sysctl.net.ipv4.tcp_timestamps", "0")]);
    assert_eq!(measured.client.rcvbuf.initial, Some(98304), "the default of the client's socket");
    assert_eq!(measured.server.rcvbuf.initial, Some(98304), "and of the server's");
    let told = &measured.sysctls["net.ipv4.tcp_rmem"];
    assert_eq!((told.asked.as_deref(), told.given.as_deref()), (Some(asked), Some(asked)));
    assert_eq!(measured.sysctls["net.ipv4.tcp_timestamps"].given.as_deref(), Some("0"));
    let unset = &measured.sysctls["net.ipv4.tcp_wmem"];
    assert!(unset.asked.is_none() && unset.given.is_some(), "those that bear on buffers are told all the same");
    assert!(measured.sysctls["net.ipv4.tcp_mem"].given.is_some(), "also those of the machine");
    assert_eq!(fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("a sysctl"), before);
}

#[test]
fn a_sysctl_of_the_machine_is_never_written_here() {
    let before = fs::read_to_string("/proc/sys/net/core/rmem_max").expect("a sysctl");
    let values = [("sysctl.net.core.rmem_max", "131071")];
    let measured = measure(&values);
    assert_eq!(measured.outcome, Outcome::Skipped);
    let reason = measured.reason.expect("a reason");
    assert!(
        reason.contains("`net.core.rmem_max` is one for the whole machine") && reason.contains("in a guest"),
        "{reason}"
    );
    assert_eq!(fs::read_to_string("/proc/sys/net/core/rmem_max").expect("a sysctl"), before);
    assert_eq!(native::lack(&[&settings(&values)]), Some(reason), "which is what moves a sweep to a guest");
}

#[test]
fn a_sysctl_that_is_not_there_and_a_value_that_is_refused_are_told_apart() {
    let absent = measure(&[("sysctl.net.ipv4.tcp_no_such_thing", "1")]);
    assert_eq!(absent.outcome, Outcome::Skipped);
    assert!(absent.reason.expect("a reason").starts_with("this kernel has no sysctl `net.ipv4.tcp_no_such_thing`"));
    let refused = measure(&[("sysctl.net.ipv4.tcp_sack", "many")]);
    assert_eq!(refused.outcome, Outcome::Invalid);
    let reason = refused.reason.expect("a reason");
    assert!(reason.starts_with("the kernel refuses `net.ipv4.tcp_sack` = `many`"), "{reason}");
    let unknown = measure(&[("sysctl.net.ipv4.tcp_congestion_control", "nosuchcc")]);
    assert_eq!(unknown.outcome, Outcome::Skipped, "{:?}", unknown.reason);
}

#[test]
fn threads_stay_where_they_are_put() {
    let here = sweep::sys::process::allowed_processors().expect("processors");
    let last = here.last().expect("one").to_string();
    let placed = measured(&[("placement.client_cpu", last.as_str()), ("placement.policy", "batch")]);
    let facts = placed.placement.expect("told");
    assert_eq!(facts.client.processors, [last.parse::<u32>().expect("a number")]);
    assert_eq!(facts.client.policy.as_deref(), Some("batch"));
    assert_eq!(facts.server.processors.len(), here.len(), "the scheduler decides there");
    assert_eq!(measured(&[]).placement, None, "nothing was asked");

    // The other end, which may wait for this one by then, does not wait for the deadline.
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(measure(&[("placement.client_cpu", "1023")]).outcome, Outcome::Skipped);
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let nowhere = measure(&[("placement.server_cpu", "1023")]);
    assert_eq!(nowhere.outcome, Outcome::Skipped);
    let reason = nowhere.reason.expect("a reason");
    assert!(reason.starts_with("there is no processor 1023 for the server"), "{reason}");
}
