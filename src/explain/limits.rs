//! Rules about what bounds the throughput of a stream.

use super::finding::{Rule, Severity};
use super::view::{View, at_least, count, share};
use crate::measurement::{End, TcpFacts};
use crate::units::{BitRate, Bytes, Span};

/// From what share of the time on something counts as the limit, in per cent.
const LIMITS: u64 = 20;

pub(super) const CPU_BOUND: Rule = Rule {
    name: "cpu-bound",
    severity: Severity::Limit,
    about: "An end of a stream used a processor for at least 90 % of the time; in an emulated guest, which has one, both ends together.",
    advice: "larger chunks and reads, segmentation offload on, or a faster processor: no buffer helps",
    source: "getrusage(2), RUSAGE_THREAD",
    look: |view| {
        if !view.is_stream() {
            return None;
        }
        let took = view.measurement().elapsed_ns?;
        let used = |end: &End| Some(end.cpu_user_ns? + end.cpu_system_ns?);
        let busy = view.ends().into_iter().filter_map(|(name, end)| Some((name, used(end)?)));
        let (name, most) = busy.clone().max_by_key(|&(_, used)| used)?;
        // The threads of several connections are told together.
        if view.connections() == 1 && at_least(most, 90, took) {
            return Some(format!(
                "the {name}'s thread used a processor for {} of {} ({})",
                Span(most),
                Span(took),
                share(most, took)
            ));
        }
        let both: u64 = busy.map(|(_, used)| used).sum();
        (view.record.machine == "guest:tcg" && at_least(both, 90, took)).then(|| {
            format!(
                "both ends used the guest's one processor for {} of {} ({})",
                Span(both),
                Span(took),
                share(both, took)
            )
        })
    },
};

/// What the link can carry of a TCP stream's own bytes, in bits per second, by the rate of the sender's queue as the kernel has it.
fn most_of_link(view: &View<'_>) -> Option<(BitRate, u64)> {
    let (name, _, tcp) = view.first_tcp_sender()?;
    let link = view.measurement().link.as_ref()?;
    let device = if name == "client" { &link.client } else { &link.server };
    let given = |what: &str| device.queues.iter().find_map(|queue| queue.given.get(what));
    let rate: BitRate = given("rate")?.parse().ok()?;
    let overhead: u64 = given("overhead").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    // A frame of Ethernet has 14 bytes beside the packet.
    let frame = u64::from(device.mtu?) + 14 + overhead;
    let most = u128::from(rate.0) * u128::from(tcp.mss_bytes?) / u128::from(frame);
    Some((rate, u64::try_from(most).ok()?))
}

pub(super) const LINK_LIMITED: Rule = Rule {
    name: "link-limited",
    severity: Severity::Limit,
    about: "The goodput of a TCP stream is at least 95 % of what the rate of the sender's queue, as read back, leaves for data: the rate times \
        the segment's data over the frame (MTU and 14 bytes of Ethernet). Where it fires no other limit is told.",
    advice: "nothing at the sockets: the link is full; a smaller buffer may shorten the queue before it",
    source: "RTM_GETQDISC; tbf_segment and netem's rate, net/sched",
    look: |view| {
        if !view.is_stream() {
            return None;
        }
        let (rate, most) = most_of_link(view)?;
        let goodput = view.measurement().goodput_bps?;
        at_least(goodput, 95, most).then(|| {
            format!(
                "{} of the {} that a link of {rate} leaves for data ({})",
                BitRate(goodput),
                BitRate(most),
                share(goodput, most)
            )
        })
    },
};

/// Whether the link is full, so that whatever else the sender waited for was the link.
fn is_full(view: &View<'_>) -> bool {
    (LINK_LIMITED.look)(view).is_some()
}

/// The time that the sender of a stream was held up by something, with the time that it had something to send.
fn held_up(view: &View<'_>, by: impl Fn(&TcpFacts) -> Option<u64>) -> Option<(u64, u64)> {
    if !view.is_stream() || is_full(view) {
        return None;
    }
    let (.., tcp) = view.tcp_sender()?;
    Some((by(tcp)?, tcp.busy_ns.filter(|&busy| busy > 0)?))
}

pub(super) const RECEIVER_LIMITED: Rule = Rule {
    name: "receiver-limited",
    severity: Severity::Limit,
    about: "The sender of a TCP stream waited for the peer's window for at least 20 % of the time in which it had something to send \
        (tcpi_rwnd_limited over tcpi_busy_time).",
    advice: "a larger receive buffer at the receiver, or none asked for so that the kernel grows it; or a reader that reads faster",
    source: "tcp_chrono_start, TCP_CHRONO_RWND_LIMITED, net/ipv4/tcp_output.c",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| tcp.rwnd_limited_ns)?;
        if !at_least(waited, LIMITS, busy) {
            return None;
        }
        let (name, receiver) = view.tcp_receiver()?;
        let fixed = match (receiver.rcvbuf.asked, receiver.rcvbuf.end) {
            (Some(asked), Some(size)) => {
                format!(
                    "; the {name}'s receive buffer of {} was asked for ({}), so the kernel did not grow it",
                    Bytes(size),
                    Bytes(asked)
                )
            }
            _ => String::new(),
        };
        Some(format!(
            "the sender waited for the receiver's window for {} of the {} that it had data to send ({}){fixed}",
            Span(waited),
            Span(busy),
            share(waited, busy)
        ))
    },
};

pub(super) const SEND_BUFFER_LIMITED: Rule = Rule {
    name: "send-buffer-limited",
    severity: Severity::Limit,
    about: "The sender of a TCP stream waited for room in its own send buffer for at least 20 % of the time in which it had something to \
        send (tcpi_sndbuf_limited over tcpi_busy_time).",
    advice: "a larger send buffer at the sender, or none asked for so that the kernel grows it",
    source: "tcp_chrono_start, TCP_CHRONO_SNDBUF_LIMITED, net/ipv4/tcp.c",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| tcp.sndbuf_limited_ns)?;
        at_least(waited, LIMITS, busy).then(|| {
            format!(
                "the sender's own buffer was full for {} of the {} that it had data to send ({})",
                Span(waited),
                Span(busy),
                share(waited, busy)
            )
        })
    },
};

pub(super) const CONGESTION_LIMITED: Rule = Rule {
    name: "congestion-limited",
    severity: Severity::Limit,
    about: "Segments of a TCP stream were sent again, slow start has ended, and neither window nor buffers nor processor held the sender up \
        (each below its own rule's threshold), and twice the congestion window fits both buffers: it was the limit.",
    advice: "another congestion control, a longer queue at the link, or less loss",
    source: "RFC 5681; tcp_cwnd_test, net/ipv4/tcp_output.c",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| Some(tcp.rwnd_limited_ns? + tcp.sndbuf_limited_ns?))?;
        let (_, sender, tcp) = view.tcp_sender()?;
        let again = tcp.retransmits.filter(|&again| again > 0)?;
        let took = view.measurement().elapsed_ns?;
        if at_least(waited, LIMITS, busy) || !at_least(busy, 80, took) || (CPU_BOUND.look)(view).is_some() {
            return None;
        }
        tcp.ssthresh_bytes?;
        // It was the smallest of the three that bound what is on its way; buffers count the kernel's overhead, about twice the data.
        let (_, receiver) = view.tcp_receiver()?;
        let buffers = sender.sndbuf.end?.min(receiver.rcvbuf.end?);
        if 2 * tcp.cwnd_bytes? > buffers {
            return None;
        }
        Some(format!(
            "{} sent again, and the congestion window ({} at the end) was what kept the sender from sending more",
            count(again, "segment was", "segments were"),
            Bytes(tcp.cwnd_bytes?)
        ))
    },
};

pub(super) const WINDOW_SCALE_TOO_SMALL: Rule = Rule {
    name: "window-scale-too-small",
    severity: Severity::Limit,
    about: "The receive buffer at the end is more than twice the largest window that the scale agreed on at the handshake can tell the peer \
        of, and the sender waited for that window: the scale is chosen for the size that the buffer has before the connection.",
    advice: "ask for the receive buffer before connect or listen",
    source: "RFC 7323, section 2.2; tcp_select_initial_window, net/ipv4/tcp_output.c",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| tcp.rwnd_limited_ns)?;
        let (name, receiver) = view.tcp_receiver()?;
        let scale = receiver.evidence.as_ref()?.tcp.as_ref()?.rcv_wscale.filter(|&scale| scale <= 14)?;
        let largest = 65535u64 << scale;
        let size = receiver.rcvbuf.end?;
        (size > 2 * largest && at_least(waited, LIMITS, busy)).then(|| {
            format!(
                "the {name}'s receive buffer is {}, and with the window scale of {scale} no window above {} can be offered",
                Bytes(size),
                Bytes(largest)
            )
        })
    },
};

pub(super) const ZERO_WINDOW: Rule = Rule {
    name: "zero-window",
    severity: Severity::Note,
    about: "TcpExtTCPToZeroWindowAdv moved: a receiver closed its window altogether, since its buffer was full.",
    advice: "a larger receive buffer, or a reader that reads faster",
    source: "RFC 9293, section 3.8.6.1; tcp_select_window, net/ipv4/tcp_output.c",
    look: |view| {
        let closed = view.counter("TcpExtTCPToZeroWindowAdv").filter(|&closed| closed > 0)?;
        Some(format!("a receiver closed its window {}, its buffer being full", count(closed, "time", "times")))
    },
};
