use super::{LinkEnd, Qdisc, Queue};
use crate::settings::{Settings, Value, find};
use crate::units::BitRate;

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

fn conflicts(values: &[(&str, &str)]) -> Vec<&'static str> {
    settings(values).conflicts(&|_| false).iter().map(|conflict| conflict.keys[0]).collect()
}

#[test]
fn each_wish_gets_the_queue_that_can_do_it() {
    for (values, queue) in [
        (&[][..], Queue::Default),
        (&[("link.client.tso", "false")], Queue::Default),
        (&[("link.rate", "1Gbit/s")], Queue::Tbf(Qdisc::Default)),
        (&[("link.rate", "1Gbit/s"), ("link.qdisc", "fq_codel")], Queue::Tbf(Qdisc::FqCodel)),
        (&[("link.qdisc", "fq")], Queue::Plain(Qdisc::Fq)),
        (&[("link.delay", "1ms")], Queue::Netem),
        (&[("link.rate", "1Gbit/s"), ("link.loss", "1%")], Queue::Netem),
        (&[("link.server.delay", "1ms")], Queue::Default),
    ] {
        assert_eq!(settings(values).link.client.queue(), queue, "{values:?}");
    }
}

#[test]
fn the_usual_bucket_and_queue() {
    let end = LinkEnd { rate: Some(BitRate(1_000_000_000)), ..LinkEnd::default() };
    assert_eq!((end.burst_bytes(1500), end.queue_bytes(1500)), (125_000, 6_375_000));
    let slow = LinkEnd { rate: Some(BitRate(1_000_000)), ..LinkEnd::default() };
    assert_eq!((slow.burst_bytes(1500), slow.queue_bytes(1500)), (3028, 20 * 1514 + 3028));
}

#[test]
fn what_cannot_go_together_is_said_once() {
    assert!(conflicts(&[("link.delay", "10ms"), ("link.jitter", "10ms"), ("link.rate", "1Mbit/s")]).is_empty());
    assert!(conflicts(&[("link.rate", "1Mbit/s"), ("link.limit", "10")]).is_empty());
    for (values, key) in [
        (&[("link.delay", "1ms"), ("link.jitter", "2ms")][..], "link.jitter"),
        (&[("link.reorder", "2%")], "link.reorder"),
        (&[("link.loss", "2%"), ("link.loss_p", "2%"), ("link.loss_r", "2%")], "link.loss"),
        (&[("link.loss_p", "2%")], "link.loss_p"),
        (&[("link.loss_bad", "2%")], "link.loss_r"),
        (&[("link.overhead", "24")], "link.overhead"),
        (&[("link.burst", "2000")], "link.burst"),
        (&[("link.rate", "1Mbit/s"), ("link.burst", "1000")], "link.burst"),
        (&[("link.delay", "1ms"), ("link.qdisc", "fq")], "link.qdisc"),
        (&[("link.limit", "10")], "link.limit"),
        (&[("link.qdisc", "bfifo"), ("link.limit", "10")], "link.limit"),
        (&[("link.delay", "1ms"), ("link.limit_bytes", "10000")], "link.limit_bytes"),
        (&[("link.qdisc", "fq"), ("link.ecn", "true")], "link.target"),
        (&[("link.qdisc", "pie"), ("link.interval", "100ms")], "link.interval"),
        (&[("link.topology", "loopback"), ("link.client.delay", "1ms")], "link.topology"),
    ] {
        assert_eq!(conflicts(values), [key], "{values:?}");
    }
}

#[test]
fn a_limit_below_the_bandwidth_delay_product_is_warned_of() {
    let warnings = |values: &[(&str, &str)]| settings(values).warnings();
    let tight = [("link.rate", "1Gbit/s"), ("link.delay", "20ms")];
    let warned = warnings(&tight);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("link.limit = 1000") && warned[0].ends_with("use 2477 or more"), "{warned:?}");
    assert!(warnings(&[&tight[..], &[("link.limit", "2477")]].concat()).is_empty());
    let one = warnings(&[("link.client.delay", "10ms"), ("link.client.jitter", "1ms")]);
    assert!(one.len() == 1 && one[0].starts_with("link.client.jitter = 1ms reorders"), "{one:?}");
    assert_eq!(warnings(&[("link.loss", "1%")]).len(), 1);
    assert!(warnings(&[("link.loss", "1%"), ("link.gso_max_segs", "1")]).is_empty());
    assert!(warnings(&[("link.loss", "1%"), ("workload.protocol", "sctp")]).is_empty());
    assert!(warnings(&[("link.delay", "10ms")]).is_empty());
}
