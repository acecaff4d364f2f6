//! Options of sockets and their buffers: set, read back, refused or absent.

use sweep::backend::native::Native;
use sweep::measurement::{Outcome, Reading, Verdict};
use sweep::settings::Value;

use crate::common;
use crate::common::cells::{measure, word};
use crate::{measured, option};

#[test]
fn options_of_tcp_are_set_and_read_back_on_both_ends() {
    let numbers = [
        ("rcvlowat", 1),
        ("tos", 32),
        ("priority", 5),
        ("tcp.notsent_lowat", 16384),
        ("tcp.window_clamp", 65536),
        ("tcp.maxseg", 536),
    ];
    let words = [("busy_poll", "50us"), ("tcp.user_timeout", "5s"), ("tcp.congestion", "reno")];
    let mut values: Vec<(String, Value)> =
        numbers.iter().map(|(name, number)| (format!("socket.{name}"), Value::Int(*number))).collect();
    values.extend(words.iter().map(|(name, text)| (format!("socket.{name}"), word(text))));
    values.push(("socket.tcp.cork".to_owned(), Value::Bool(false)));
    let values: Vec<(&str, Value)> = values.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    let measured = measured(&values);
    for end in [&measured.client, &measured.server] {
        for (name, number) in numbers {
            let number = Reading::Number(number.try_into().expect("small"));
            let (asked, given, last) = option(end, name);
            assert_eq!(asked, number, "{name}");
            // Of a connection `TCP_MAXSEG` tells what is in use: less the time stamps.
            if name == "tcp.maxseg" {
                assert_eq!(last, Some(Reading::Number(524)));
            } else if name == "tcp.window_clamp" {
                // A whole number of segments.
                assert_eq!(given, Some(number));
                assert!(matches!(last, Some(Reading::Number(64000..=65536))), "{last:?}");
            } else {
                assert_eq!((given, last), (Some(number.clone()), Some(number)), "{name}");
            }
        }
        for (name, text) in words {
            let text = Reading::Word(text.to_owned());
            assert_eq!(option(end, name), (text.clone(), Some(text.clone()), Some(text)), "{name}");
        }
        let off = Reading::Switch(false);
        assert_eq!(option(end, "tcp.cork"), (off.clone(), Some(off.clone()), Some(off)));
    }
}

#[test]
fn an_option_of_one_end_is_not_the_others_and_ipv6_has_a_traffic_class() {
    let measured = measured(&[("link.family", word("ipv6")), ("socket.client.tos", Value::Int(64))]);
    let class = Some(Reading::Number(64));
    assert_eq!(option(&measured.client, "tos"), (Reading::Number(64), class.clone(), class));
    assert!(measured.server.options.is_empty());
}

#[test]
fn what_the_kernel_refuses_or_lacks_says_what_and_where() {
    let refused = measure(&[("socket.client.tcp.maxseg", Value::Int(1))], 5000);
    assert_eq!(refused.outcome, Outcome::Invalid);
    let reason = refused.reason.expect("a reason");
    assert!(reason.contains("TCP_MAXSEG = 1 on the client"), "{reason}");

    let absent = measure(&[("socket.server.tcp.congestion", word("no-such"))], 5000);
    assert_eq!(absent.outcome, Outcome::Skipped);
    let reason = absent.reason.expect("a reason");
    assert!(reason.contains("no-such on the server") && reason.contains("reno"), "{reason}");
}

/// C02: a floor, then exactly twice, on both sides and for each protocol that has one (measured on 6.18: 2304 and 4608); C08: MPTCP doubles
/// like TCP (mptcp#36, mptcp_net-next#619). The floor is the kernel's own and found by asking for nothing.
#[test]
fn below_the_floor_all_requests_are_one_and_above_it_each_is_doubled() {
    for protocol in ["tcp", "udp", "mptcp"] {
        let given = |asked: u64| {
            let asked = Value::Int(asked);
            // One small chunk each way: the smallest buffers take it.
            let cell = measure(
                &[
                    ("workload.protocol", word(protocol)),
                    ("chunk_count", Value::Int(1)),
                    ("rcvbuf", asked.clone()),
                    ("sndbuf", asked),
                ],
                20_000,
            );
            (cell.outcome != Outcome::Skipped).then_some([cell.client.rcvbuf, cell.client.sndbuf])
        };
        let Some(floors) = given(0) else { continue };
        for (side, floor) in floors.iter().enumerate() {
            assert_eq!(floor.verdict, Some(Verdict::Raised), "{protocol}: {floor:?}");
            let least = floor.initial.expect("a size");
            for (asked, expected, verdict) in [
                (least / 4, least, Verdict::Raised),
                (least / 2, least, Verdict::Doubled),
                (least / 2 + 1, least + 2, Verdict::Doubled),
                (least, 2 * least, Verdict::Doubled),
            ] {
                let buffer = &given(asked).expect("as before")[side];
                assert_eq!((buffer.initial, buffer.verdict), (Some(expected), Some(verdict)), "{protocol}: {asked}");
            }
        }
    }
}

/// C06: as root in a namespace of the machine's own user namespace, `SO_RCVBUFFORCE` is allowed: 16 MiB become 33554432 whatever the limit
/// (crun#598, quic-go#3795). In a user namespace it is not: `tests/native_cli.rs`.
#[test]
fn a_forced_buffer_is_not_bounded() {
    let forced = measure(&[("socket.rcvbuf_force", word("16MiB")), ("socket.sndbuf_force", word("16MiB"))], 10_000);
    if forced.outcome == Outcome::Skipped {
        let reason = forced.reason.expect("a reason");
        assert!(reason.contains("SO_RCVBUFFORCE") && !common::root_or_skip("forced buffers"), "{reason}");
        return;
    }
    assert_eq!(forced.outcome, Outcome::Measured, "{:?}", forced.reason);
    let limit = Native::new("for a test").expect("a native backend").machine().limits.rmem_max.expect("a limit");
    assert!(limit < 16 << 20, "the test needs a lower limit than it asks for: {limit}");
    for end in [&forced.client, &forced.server] {
        for buffer in [&end.rcvbuf, &end.sndbuf] {
            assert_eq!((buffer.asked, buffer.initial, buffer.end), (Some(16 << 20), Some(32 << 20), Some(32 << 20)));
            assert_eq!(buffer.verdict, Some(Verdict::Doubled));
        }
        assert_eq!(option(end, "rcvbuf_force").1, Some(Reading::Number(32 << 20)));
    }
}

/// The window scale is settled at the handshake: a small buffer that is set before makes it small.
#[test]
fn when_a_buffer_is_set_decides_the_window_scale() {
    let scale = |at: &str| {
        let measured = measured(&[("rcvbuf", word("16KiB")), ("socket.set_at", word(at))]);
        for end in [&measured.client, &measured.server] {
            assert_eq!((end.rcvbuf.initial, end.rcvbuf.end), (Some(32768), Some(32768)), "{at}");
        }
        [measured.client, measured.server].map(|end| {
            let facts = end.evidence.and_then(|evidence| evidence.tcp).expect("what TCP knows");
            facts.rcv_wscale.expect("a scale")
        })
    };
    assert_eq!(scale("before"), [0, 0]);
    assert!(scale("after").iter().all(|scale| *scale > 0), "the buffer was still the kernel's own at the handshake");
}
