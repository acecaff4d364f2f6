//! Rules about what the kernel made of a buffer.

use std::fmt::Write as _;

use super::finding::{Rule, Severity};
use super::limits::{APPLICATION_LIMITED, RECEIVER_LIMITED, SEND_BUFFER_LIMITED, is_full};
use super::queues::holds;
use super::view::{ENOUGH_LOOKS, View, at_least, count, rate};
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

/// The largest factor that is told.
const MOST_TIMES: u64 = 100;
/// What the kernel hands over at once, whatever the path is.
const AT_ONCE: u64 = 64 << 10;

/// Bytes that a TCP stream kept on their way at its goodput, by the smallest round trip that its sender saw; and that round trip.
fn on_its_way(view: &View<'_>) -> Option<(u64, Span)> {
    let (.., tcp) = view.tcp_sender()?;
    let round_trip = tcp.min_rtt_ns?;
    let goodput = view.measurement().goodput_bps?;
    let bytes = u64::try_from(u128::from(goodput) * u128::from(round_trip) / 8_000_000_000).ok()?;
    (bytes > 0).then_some((bytes, Span(round_trip)))
}

/// From what to what the kernel grew a buffer that nobody asked for.
fn grown(buffer: &Buffer) -> Option<(u64, u64)> {
    let Buffer { asked: None, initial: Some(initial), end: Some(end), .. } = *buffer else { return None };
    let largest = buffer.peak.unwrap_or(end).max(end);
    (largest > initial).then_some((initial, largest))
}

pub(super) const AUTOTUNED: Rule = Rule {
    name: "autotuned",
    severity: Severity::Note,
    about: "No size was asked, and while a TCP stream ran the kernel grew the receive buffer of the end that received, or the send buffer of the one that \
        sent, to more than four times what was on its way (goodput times the smallest round trip) and than \
        four times 64 KiB. Not where a program is the limit (application-limited).",
    advice: "where memory or queueing matters, ask for a size: a few times goodput times round trip is enough, and not less than a few of \
        the 64 KiB that the kernel hands over at once",
    source: "tcp_rcv_space_adjust and tcp_sndbuf_expand, net/ipv4/tcp_input.c; tcp(7), tcp_moderate_rcvbuf",
    look: |view| {
        // What a program holds up says nothing of the path.
        if !view.is_stream() || (APPLICATION_LIMITED.look)(view).is_some() {
            return None;
        }
        let (receiver, receiving) = view.tcp_receiver()?;
        let (sender, sending, _) = view.tcp_sender()?;
        let (bytes, round_trip) = on_its_way(view)?;
        let told: Vec<String> = [(receiver, "receive", &receiving.rcvbuf), (sender, "send", &sending.sndbuf)]
            .into_iter()
            .filter_map(|(name, which, buffer)| {
                let (initial, largest) =
                    grown(buffer).filter(|(_, largest)| *largest >= WORTH_A_WORD * bytes.max(AT_ONCE))?;
                let times = match largest / bytes {
                    times @ ..=MOST_TIMES => format!("{times} times"),
                    _ => format!("more than {MOST_TIMES} times"),
                };
                Some(format!(
                    "the {name}'s {which} buffer grew from {} to {} ({times})",
                    Bytes(initial),
                    Bytes(largest)
                ))
            })
            .collect();
        let full = if is_full(view) { ", and the link was full" } else { "" };
        (!told.is_empty()).then(|| {
            format!(
                "left to the kernel, {}; goodput times the smallest round trip ({round_trip}) keep {} on their way{full}",
                told.join(" and "),
                Bytes(bytes)
            )
        })
    },
};

/// A buffer that was asked for and stayed as it was given.
fn fixed(name: &str, which: &str, buffer: &Buffer) -> Option<String> {
    let (asked, initial, end) = (buffer.asked?, buffer.initial?, buffer.end?);
    (initial == end && buffer.peak.is_none_or(|peak| peak == end)).then(|| {
        format!(
            "the {name}'s {which} buffer stayed at the {} that it was given when {} were asked",
            Bytes(end),
            Bytes(asked)
        )
    })
}

pub(super) const AUTOTUNING_OFF: Rule = Rule {
    name: "autotuning-off",
    severity: Severity::Note,
    about: "A TCP buffer was asked for and never changed its size, while the sender waited for just that buffer (receiver-limited, or \
        send-buffer-limited): the kernel does not grow a buffer whose size was asked for.",
    advice: "do not ask for that size, so that the kernel grows it up to tcp_rmem's or tcp_wmem's most; or ask for more",
    source: "SOCK_RCVBUF_LOCK and SOCK_SNDBUF_LOCK: tcp_rcv_space_adjust and tcp_should_expand_sndbuf, net/ipv4/tcp_input.c",
    look: |view| {
        let (receiver, receiving) = view.tcp_receiver()?;
        let (sender, sending, _) = view.tcp_sender()?;
        let told: Vec<String> = [
            (RECEIVER_LIMITED.look)(view).and_then(|_| fixed(receiver, "receive", &receiving.rcvbuf)),
            (SEND_BUFFER_LIMITED.look)(view).and_then(|_| fixed(sender, "send", &sending.sndbuf)),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!told.is_empty()).then(|| format!("{}, and the sender waited for it", told.join("; ")))
    },
};

/// From what time on waiting in the own send buffer is worth a word.
const LONG: u64 = 20_000_000;

pub(super) const WAITS_IN_THE_SEND_BUFFER: Rule = Rule {
    name: "waits-in-the-send-buffer",
    severity: Severity::Stall,
    about: "The median chunk of a TCP echo took at least 20 ms, nothing timed out, the client's own queue has a rate, and of that time more than half is left \
        when the path and all that the link's queue can hold at its rate are taken off; and so much was seen in the client's send buffer that it takes as \
        long at the goodput: the chunk waited behind what its own socket had taken before it.",
    advice: "TCP_NOTSENT_LOWAT (socket.tcp.notsent_lowat), or a smaller send buffer: then the program holds back what is not sent yet, and can send first \
        what matters",
    source: "sk_stream_memory_free and tcp_stream_memory_free, net/ipv4/tcp.c; SO_MEMINFO",
    look: |view| {
        let latency = view.measurement().chunk_latency_ns.as_ref()?;
        let [(name, client), _] = view.ends();
        let evidence = client.evidence.as_ref()?;
        evidence.tcp.as_ref()?;
        if view.connections() > 1 || view.counter("TcpExtTCPTimeouts")? > 0 || latency.p50 < LONG {
            return None;
        }
        let (_, device) = view.devices().into_iter().find(|(end, _)| *end == name)?;
        let (queue, rate) = device.queues.iter().find_map(|queue| Some((queue, rate(queue)?)))?;
        let link = Span(holds(device, queue, rate)?.0 + view.path().0);
        let left = Span(latency.p50.checked_sub(link.0)?);
        let held = evidence.sndbuf_used_peak_bytes?;
        let takes = u128::from(held) * 8_000_000_000 / u128::from(view.measurement().goodput_bps?.max(1));
        (2 * left.0 > latency.p50 && takes >= u128::from(left.0)).then(|| {
            format!(
                "the median chunk took {}, of which path and queue of the link make {link} at most: it waited in the {name}'s own send buffer, in which \
                 up to {} were seen",
                Span(latency.p50),
                Bytes(held)
            )
        })
    },
};

/// The most of a column of samples, of enough of them.
fn most(column: Option<&Vec<u64>>) -> Option<(u64, usize)> {
    let column = column.filter(|column| column.len() >= ENOUGH_LOOKS)?;
    Some((*column.iter().max()?, column.len()))
}

pub(super) const LARGER_THAN_USED: Rule = Rule {
    name: "larger-than-used",
    severity: Severity::Note,
    about: "A TCP buffer was asked for, the sender never waited for it (tcpi_rwnd_limited and tcpi_sndbuf_limited below 1 % of the time that it had data to \
        send), and in at least 16 looks the largest receive window was four times the most that the sender held, sent or waiting; or the send buffer \
        was.",
    advice: "a smaller size does as well, and so may none at all: what is used is bounded by the other end or by the path",
    source: "tcpi_snd_wnd; SO_MEMINFO, sk_get_meminfo, net/core/sock.c",
    look: |view| {
        if !view.is_stream() {
            return None;
        }
        let (receiver, receiving) = view.tcp_receiver()?;
        let (sender, sending, tcp) = view.tcp_sender()?;
        let busy = tcp.busy_ns.filter(|&busy| busy > 0)?;
        let waited = |time: Option<u64>| time.is_none_or(|time| at_least(time, 1, busy));
        let samples = sending.samples.as_ref()?;
        let (held, looks) = most(samples.sndbuf_used_bytes.as_ref())?;
        let window = || {
            let asked = receiving.rcvbuf.asked.filter(|_| !waited(tcp.rwnd_limited_ns))?;
            let (window, _) = most(samples.snd_wnd_bytes.as_ref())?;
            (window >= WORTH_A_WORD * held).then(|| {
                format!(
                    "the {receiver}'s receive buffer ({} asked) offered a window of up to {}",
                    Bytes(asked),
                    Bytes(window)
                )
            })
        };
        let buffer = || {
            let asked = sending.sndbuf.asked.filter(|_| !waited(tcp.sndbuf_limited_ns))?;
            let size = sending.sndbuf.end?;
            (size >= WORTH_A_WORD * held)
                .then(|| format!("the {sender}'s send buffer ({} asked) had room for {}", Bytes(asked), Bytes(size)))
        };
        let told: Vec<String> = [window(), buffer()].into_iter().flatten().collect();
        (!told.is_empty()).then(|| {
            format!(
                "{}, and at {looks} looks the {sender} never held more than {}, sent or waiting, the kernel's own overhead included",
                told.join("; "),
                Bytes(held)
            )
        })
    },
};

pub(super) const BEYOND_THE_SIZE: Rule = Rule {
    name: "beyond-the-size",
    severity: Severity::Note,
    about: "At some look more lay in a receive buffer than its size at that look (SO_MEMINFO): what was on its way when the window closed is taken in all \
        the same, since a window that was offered is not taken back, and small segments take more memory than the window told of.",
    advice: "count on more memory than the size; net.ipv4.tcp_shrink_window = 1 (Linux 6.5 and later) takes the window back instead",
    source: "tcp_can_ingest and __tcp_select_window, net/ipv4; net.ipv4.tcp_shrink_window, Documentation/networking/ip-sysctl.rst",
    look: |view| {
        let told: Vec<String> = view
            .ends()
            .into_iter()
            .filter_map(|(name, end)| {
                let samples = end.samples.as_ref()?;
                let (sizes, used) = (samples.rcvbuf_bytes.as_ref()?, samples.rcvbuf_used_bytes.as_ref()?);
                let (size, used) = sizes.iter().zip(used).max_by_key(|(size, used)| used.saturating_sub(**size))?;
                (used > size)
                    .then(|| format!("up to {} lay in the {name}'s receive buffer of {}", Bytes(*used), Bytes(*size)))
            })
            .collect();
        let pressed = view.counter("TcpExtPruneCalled").filter(|&pressed| pressed > 0);
        let pressed = pressed.map_or_else(String::new, |pressed| {
            format!("; the kernel had to make room {} (TcpExtPruneCalled)", count(pressed, "time", "times"))
        });
        (!told.is_empty()).then(|| told.join("; ") + &pressed)
    },
};

pub(super) const MEMORY_PRESSURE: Rule = Rule {
    name: "memory-pressure",
    severity: Severity::Stall,
    about: "TcpExtTCPMemoryPressures moved: the TCP of the whole machine took more memory than the second number of net.ipv4.tcp_mem, in pages, and from then \
        on windows shrink, buffers do not grow, and what arrives may be dropped (receive-queue-drops). Not told where the link is full all the same.",
    advice: "smaller buffers, fewer connections, or a larger net.ipv4.tcp_mem",
    source: "tcp_enter_memory_pressure, net/ipv4/tcp.c; __sk_mem_raise_allocated, net/core/sock.c; __tcp_select_window, net/ipv4/tcp_output.c",
    look: |view| {
        let entered = view.counter("TcpExtTCPMemoryPressures").filter(|&entered| entered > 0)?;
        if is_full(view) {
            return None;
        }
        let bound = view.sysctl("net.ipv4.tcp_mem").map_or_else(String::new, |pages| {
            format!(" of {} pages", pages.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        let mut said = format!(
            "the machine's TCP took more memory than it may ({}, net.ipv4.tcp_mem{bound})",
            count(entered, "time", "times")
        );
        for (name, end) in view.ends() {
            let evidence = end.evidence.as_ref();
            for (which, used, size) in [
                ("send", evidence.and_then(|evidence| evidence.sndbuf_used_peak_bytes), end.sndbuf.end),
                ("receive", evidence.and_then(|evidence| evidence.rcvbuf_used_peak_bytes), end.rcvbuf.end),
            ] {
                if let (Some(used @ MUCH..), Some(size)) = (used, size) {
                    let _ =
                        write!(said, "; up to {} lay in the {name}'s {which} buffer of {}", Bytes(used), Bytes(size));
                }
            }
        }
        if let Some((name, sender, _)) = view.tcp_sender()
            && let Some(windows) = sender.samples.as_ref().and_then(|samples| samples.snd_wnd_bytes.as_ref())
            && let (Some(largest), Some(last)) = (windows.iter().max(), windows.last())
            && last * WORTH_A_WORD <= *largest
        {
            let _ = write!(
                said,
                "; the window that the {name} was offered fell from {} to {}",
                Bytes(*largest),
                Bytes(*last)
            );
        }
        Some(said)
    },
};

/// From what size on the content of a buffer is told where memory was short.
const MUCH: u64 = 1 << 20;
