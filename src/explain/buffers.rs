//! Rules about what the kernel made of a buffer.

use super::finding::{Rule, Severity};
use super::view::View;
use crate::measurement::{Buffer, End, Verdict};
use crate::units::{Bytes, Span};

/// Every buffer with a verdict, as `receive buffer of the client`: both ends' together where they are alike.
fn with_verdict(
    view: &View<'_>,
    wanted: impl Fn(Verdict) -> bool,
    say: impl Fn(&Buffer, u64, u64) -> String,
) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    for (which, pick) in [("receive", receive as fn(&End) -> &Buffer), ("send", send)] {
        let told: Vec<(&str, String)> = view
            .ends()
            .into_iter()
            .filter_map(|(name, end)| {
                let buffer: &Buffer = pick(end);
                if !buffer.verdict.is_some_and(&wanted) {
                    return None;
                }
                Some((name, say(buffer, buffer.asked?, buffer.initial?)))
            })
            .collect();
        match &told[..] {
            [(_, one), (_, other)] if one == other => said.push(format!("both {which} buffers: {one}")),
            told => said.extend(told.iter().map(|(name, text)| format!("the {name}'s {which} buffer: {text}"))),
        }
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn receive(end: &End) -> &Buffer {
    &end.rcvbuf
}

fn send(end: &End) -> &Buffer {
    &end.sndbuf
}

pub(super) const RAISED_TO_THE_MINIMUM: Rule = Rule {
    name: "raised-to-the-minimum",
    severity: Severity::Note,
    about: "A size was asked that is below what this kernel gives at least, and the minimum was read back.",
    advice: "ask for what the workload needs: the minimum holds a packet or two",
    source: "__sock_set_rcvbuf, SOCK_MIN_RCVBUF and SOCK_MIN_SNDBUF, net/core/sock.c",
    look: |view| {
        with_verdict(
            view,
            |verdict| verdict == Verdict::Raised,
            |_, asked, given| {
                format!("{} asked, raised to {given} bytes, the least that this kernel gives", Bytes(asked))
            },
        )
    },
};

pub(super) const CLAMPED: Rule = Rule {
    name: "clamped-by-a-sysctl",
    severity: Severity::Note,
    about: "A size was asked that is above net.core.rmem_max or wmem_max, and twice the maximum was read back.",
    advice: "raise net.core.rmem_max or wmem_max, or ask with SO_RCVBUFFORCE as root",
    source: "sock_setsockopt, net/core/sock.c",
    look: |view| {
        let clamped = |verdict| matches!(verdict, Verdict::ClampedRmem | Verdict::ClampedWmem);
        with_verdict(view, clamped, |buffer, asked, given| {
            let by = if buffer.verdict == Some(Verdict::ClampedRmem) { "rmem_max" } else { "wmem_max" };
            format!("{} asked, clamped by net.core.{by} to {given} bytes", Bytes(asked))
        })
    },
};

/// How many times the path's content a buffer must grow to for it to be worth a word.
const WORTH_A_WORD: u64 = 4;

pub(super) const AUTOTUNED: Rule = Rule {
    name: "autotuned",
    severity: Severity::Note,
    about: "No size was asked, and while a TCP stream ran the kernel grew the receive buffer to more than four times what was on its way \
        (goodput times the smallest round trip).",
    advice: "where memory or queueing matters, ask for a size: a few times goodput times round trip is enough",
    source: "tcp_rcv_space_adjust, net/ipv4/tcp_input.c; tcp(7), tcp_moderate_rcvbuf",
    look: |view| {
        if !view.is_stream() {
            return None;
        }
        let (name, receiver) = view.tcp_receiver()?;
        let (.., tcp) = view.tcp_sender()?;
        let Buffer { asked: None, initial: Some(initial), end: Some(end), .. } = receiver.rcvbuf else { return None };
        let largest = receiver.rcvbuf.peak.unwrap_or(end).max(end);
        let round_trip = tcp.min_rtt_ns?;
        let goodput = view.measurement().goodput_bps?;
        let on_its_way = u64::try_from(u128::from(goodput) * u128::from(round_trip) / 8_000_000_000).ok()?;
        if largest <= initial || on_its_way == 0 || largest < WORTH_A_WORD * on_its_way {
            return None;
        }
        Some(format!(
            "the {name}'s receive buffer was left to the kernel and grew from {} to {}, {} times the {} that goodput times the smallest round \
             trip ({}) keep on their way",
            Bytes(initial),
            Bytes(largest),
            largest / on_its_way,
            Bytes(on_its_way),
            Span(round_trip)
        ))
    },
};
