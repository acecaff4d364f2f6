//! Rules about what bounds the throughput of a stream.

use super::finding::{Rule, Severity};
use super::queues::round_trips;
use super::view::{ENOUGH_LOOKS, View, at_least, count, median, number, rate, share};
use crate::measurement::{End, Interface, QueueFacts, TcpFacts};
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

/// The device that an end sends through, and the first of its queues that was set to a rate.
fn bottleneck<'a>(view: &View<'a>, end: &str) -> Option<(&'a Interface, &'a QueueFacts, BitRate)> {
    let (_, device) = view.devices().into_iter().find(|(name, _)| *name == end)?;
    device.queues.iter().find_map(|queue| Some((device, queue, rate(queue)?)))
}

/// What the link can carry of a TCP stream's own bytes, in bits per second, by the rate of the sender's queue as the kernel has it.
fn most_of_link(view: &View<'_>) -> Option<(BitRate, u64)> {
    let (name, _, tcp) = view.first_tcp_sender()?;
    let (device, queue, rate) = bottleneck(view, name)?;
    // A frame of Ethernet has 14 bytes beside the packet.
    let frame = u64::from(device.mtu?) + 14 + number(queue, "overhead").unwrap_or(0);
    let most = u128::from(rate.0) * u128::from(tcp.mss_bytes?) / u128::from(frame);
    Some((rate, u64::try_from(most).ok()?))
}

/// A stream of another protocol fills a queue if the queue's own count of bytes says so.
fn by_count(view: &View<'_>) -> Option<String> {
    let took = view.silences().map_or(view.measurement().elapsed_ns?, |silences| silences.watched_ns);
    let full = |(name, _): &(&'static str, &Interface)| {
        let (_, queue, rate) = bottleneck(view, name)?;
        let sent = u64::try_from(u128::from(queue.bytes) * 8_000_000_000 / u128::from(took.max(1))).ok()?;
        at_least(sent, 95, rate.0).then(|| {
            format!("the {name}'s {} passed on {} of {rate} ({})", queue.kind, BitRate(sent), share(sent, rate.0))
        })
    };
    view.devices().iter().find_map(full)
}

pub(super) const LINK_LIMITED: Rule = Rule {
    name: "link-limited",
    severity: Severity::Limit,
    about: "The goodput of a TCP stream is at least 95 % of what the rate of the sender's queue, as read back, leaves for data: the rate times \
        the segment's data over the frame (MTU and 14 bytes of Ethernet). Of another protocol's stream: a queue passed on 95 % of its rate, by its own \
        count of bytes. Where it fires no other limit is told.",
    advice: "nothing at the sockets: the link is full; a smaller buffer may shorten the queue before it",
    source: "RTM_GETQDISC; tbf_segment and netem's rate, net/sched",
    look: |view| {
        if !view.is_stream() {
            return None;
        }
        if view.first_tcp_sender().is_none() {
            return by_count(view);
        }
        let (rate, most) = most_of_link(view)?;
        let goodput = view.measurement().goodput_bps?;
        if at_least(goodput.saturating_mul(10), 995, most) {
            return Some(format!(
                "{}: all that a link of {rate} leaves for data ({})",
                BitRate(goodput),
                BitRate(most)
            ));
        }
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
pub(super) fn is_full(view: &View<'_>) -> bool {
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

/// Whether a TCP receiver's application left its buffer full: the window closed altogether, and at half of the looks at least half of the buffer
/// lay unread. How often it closed, and at how many of how many looks.
fn unread(view: &View<'_>) -> Option<(&'static str, u64, usize, usize)> {
    let (name, receiver) = view.tcp_receiver()?;
    let closed = view.counter("TcpExtTCPToZeroWindowAdv").filter(|&closed| closed > 0)?;
    let samples = receiver.samples.as_ref()?;
    let (sizes, used) = (samples.rcvbuf_bytes.as_ref()?, samples.rcvbuf_used_bytes.as_ref()?);
    let half_full = sizes.iter().zip(used).filter(|(size, used)| 2 * **used >= **size).count();
    (2 * half_full >= samples.len()).then_some((name, closed, half_full, samples.len()))
}

pub(super) const RECEIVER_LIMITED: Rule = Rule {
    name: "receiver-limited",
    severity: Severity::Limit,
    about: "The sender of a TCP stream waited for the peer's window for at least 20 % of the time in which it had something to send \
        (tcpi_rwnd_limited over tcpi_busy_time), and not because the receiver's application left its buffer full (application-limited).",
    advice: "a larger receive buffer at the receiver, or none asked for so that the kernel grows it",
    source: "tcp_chrono_start, TCP_CHRONO_RWND_LIMITED, net/ipv4/tcp_output.c",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| tcp.rwnd_limited_ns)?;
        if !at_least(waited, LIMITS, busy) || unread(view).is_some() {
            return None;
        }
        let size = view.tcp_receiver().and_then(|(name, end)| Some((name, end.rcvbuf.end?)));
        let size =
            size.map_or_else(String::new, |(name, size)| format!(" of the {name}, whose buffer is {}", Bytes(size)));
        Some(format!(
            "the sender waited for the receive window{size}, for {} of the {} that it had data to send ({})",
            Span(waited),
            Span(busy),
            share(waited, busy)
        ))
    },
};

/// The shortest stream of which it is said, in nanoseconds.
const LONG_ENOUGH: u64 = 200_000_000;

/// From what share of the time on a connection without anything to send counts as waiting for its application, in per cent.
const IDLE: u64 = 20;

pub(super) const APPLICATION_LIMITED: Rule = Rule {
    name: "application-limited",
    severity: Severity::Limit,
    about: "For at least 20 % of a TCP stream's time, of 200 ms at least, nothing was to be sent and all was acknowledged (tcpi_busy_time), and no \
        processor was the limit (cpu-bound). Or the sender waited for the \
        peer's window for as much of the time as receiver-limited asks for, the window closed altogether (TcpExtTCPToZeroWindowAdv), and at half of \
        the looks at least half of the receive buffer lay unread.",
    advice: "look at the program, not at the sockets: it writes, or reads, less than the connection would carry; larger chunks or reads",
    source: "tcp_chrono_start, TCP_CHRONO_BUSY, net/ipv4/tcp_output.c; tcp_select_window; SO_MEMINFO",
    look: |view| {
        if let Some((waited, busy)) = held_up(view, |tcp| tcp.rwnd_limited_ns)
            && at_least(waited, LIMITS, busy)
            && let Some((name, closed, full, looks)) = unread(view)
        {
            return Some(format!(
                "the {name}'s program did not read as fast as data came: its window closed {}, at {full} of {looks} looks half of its receive \
                 buffer or more lay unread, and the sender waited for {} of {} ({})",
                count(closed, "time", "times"),
                Span(waited),
                Span(busy),
                share(waited, busy)
            ));
        }
        let (name, _, tcp) = view.tcp_sender().filter(|_| view.is_stream() && !is_full(view))?;
        let watched = view.silences()?.watched_ns;
        // The kernel counts in ticks, and a writer without a processor is no other limit than that.
        if watched < LONG_ENOUGH || (CPU_BOUND.look)(view).is_some() {
            return None;
        }
        // Of the time from the first send to the last arrival, the last one is acknowledged half a round trip later.
        let idle = watched.checked_sub(tcp.busy_ns?)?.checked_sub(tcp.min_rtt_ns?)?;
        at_least(idle, IDLE, watched).then(|| {
            format!(
                "the {name}'s program did not write as fast as data could leave: for {} of {} ({}) nothing was to be sent and all was acknowledged",
                Span(idle),
                Span(watched),
                share(idle, watched)
            )
        })
    },
};

pub(super) const SEND_BUFFER_LIMITED: Rule = Rule {
    name: "send-buffer-limited",
    severity: Severity::Limit,
    about: "The sender of a TCP stream waited for room in its own send buffer for at least 20 % of the time in which it had something to \
        send (tcpi_sndbuf_limited over tcpi_busy_time). Or, since the kernel counts that time only if something was sent after the buffer was found \
        full: at the usual one of at least 16 looks two thirds of the buffer or more were taken, at none more than a segment beyond it; at least two \
        fifths of what was taken was data on its way (goodput times the usual round trip), which filled no more than four fifths of the congestion \
        window and of the peer's; and no queue stood (the usual round trip is at most a quarter longer than the smallest) and no more than four \
        fifths of the link were used.",
    advice: "a larger send buffer at the sender, or none asked for so that the kernel grows it",
    source: "tcp_chrono_start, TCP_CHRONO_SNDBUF_LIMITED, net/ipv4/tcp.c; sk_stream_memory_free and sk_stream_is_writeable, include/net/sock.h; SO_MEMINFO",
    look: |view| {
        let (waited, busy) = held_up(view, |tcp| tcp.sndbuf_limited_ns)?;
        if at_least(waited, LIMITS, busy) {
            return Some(format!(
                "the sender's own buffer was full for {} of the {} that it had data to send ({})",
                Span(waited),
                Span(busy),
                share(waited, busy)
            ));
        }
        holds_all_on_its_way(view)
    },
};

/// The most that one segment, begun below a send buffer's size, may lie beyond it.
const SEGMENT: u64 = 64 << 10;

/// A send buffer that is full of what is on its way, while nothing else keeps the sender from sending more.
fn holds_all_on_its_way(view: &View<'_>) -> Option<String> {
    let (name, sender, tcp) = view.tcp_sender()?;
    let samples = sender.samples.as_ref().filter(|samples| samples.len() >= ENOUGH_LOOKS)?;
    let column = |column: &Option<Vec<u64>>| median(column.as_ref()?);
    let (sizes, used) = (samples.sndbuf_bytes.as_ref()?, samples.sndbuf_used_bytes.as_ref()?);
    // A writer that sleeps is woken when a third of the buffer is free, and a look follows what it writes then.
    let full = sizes.iter().zip(used).filter(|(size, used)| 3 * **used >= 2 * **size).count();
    let size = column(&samples.sndbuf_bytes)?;
    if 2 * full < used.len() || *used.iter().max()? > size + SEGMENT {
        return None;
    }
    let (usual, least) = round_trips(sender)?;
    let goodput = view.measurement().goodput_bps?;
    let on_its_way = u64::try_from(u128::from(goodput) * u128::from(usual.0) / 8_000_000_000).ok()?;
    let (cwnd, window) = (column(&samples.cwnd_bytes)?, column(&samples.snd_wnd_bytes)?);
    // What waits in the buffer without being on its way waits for something else.
    let all_on_its_way = at_least(on_its_way, 40, column(&samples.sndbuf_used_bytes)?);
    let room = at_least(cwnd.min(window), 125, on_its_way);
    let stands = 4 * usual.0 > 5 * least.0;
    let link = most_of_link(view).is_some_and(|(_, most)| at_least(goodput, 80, most));
    let waited = at_least(tcp.rwnd_limited_ns?, LIMITS, tcp.busy_ns?);
    let program = [&APPLICATION_LIMITED, &CPU_BOUND].into_iter().any(|rule| (rule.look)(view).is_some());
    (all_on_its_way && room && !stands && !link && !waited && !program).then(|| {
        format!(
            "the {name}'s send buffer of {} was as full as a waiting writer leaves it at {full} of {} looks, and what it held was on its way ({} in \
             each round trip of {usual}), while the congestion window ({}) and the peer's ({}) had room for more",
            Bytes(size),
            used.len(),
            Bytes(on_its_way),
            Bytes(cwnd),
            Bytes(window)
        )
    })
}

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
        let others = [&CPU_BOUND, &SEND_BUFFER_LIMITED].into_iter().any(|rule| (rule.look)(view).is_some());
        if at_least(waited, LIMITS, busy) || !at_least(busy, 80, took) || others {
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
    about: "TcpExtTCPToZeroWindowAdv moved: a receiver closed its window altogether, since its buffer was full. Over SCTP: the peer's window was \
        0 bytes when the client looked at it in a silence (SCTP_STATUS). Not told where the link is full all the same.",
    advice: "a larger receive buffer, or a reader that reads faster",
    source: "RFC 9293, section 3.8.6.1; tcp_select_window, net/ipv4/tcp_output.c; RFC 9260, section 6.1, A; sstat_rwnd, net/sctp/socket.c",
    look: |view| {
        if is_full(view) {
            return None;
        }
        if let Some(closed) = view.counter("TcpExtTCPToZeroWindowAdv").filter(|&closed| closed > 0) {
            let probes = view.counter("TcpExtTCPWinProbe").filter(|&probes| probes > 0);
            let probes = probes.map_or_else(String::new, |probes| {
                format!("; {} whether it was open again", count(probes, "probe asked", "probes asked"))
            });
            return Some(format!(
                "a receiver closed its window {}, its buffer being full{probes}",
                count(closed, "time", "times")
            ));
        }
        let silences = view.silences()?;
        let (closed, looks) = (silences.closed.filter(|&closed| closed > 0)?, silences.looks?);
        Some(format!(
            "while nothing arrived the server's window was closed (0 bytes) at {closed} of {}",
            count(looks, "look", "looks")
        ))
    },
};
