//! Rules about timers: retransmissions that waited for one, acknowledgements that Nagle's algorithm waited for, and the grain of all timers.

use super::finding::{Rule, Severity};
use super::view::{View, at_least, count, share};
use crate::measurement::Silences;
use crate::units::Span;

/// The shortest retransmission timeout of TCP (`TCP_RTO_MIN`, include/net/tcp.h), unless a route or `net.ipv4.tcp_rto_min_us` (Linux 6.11) says
/// otherwise.
const TCP_RTO_MIN: Span = Span(200_000_000);
/// The shortest delay of an acknowledgement of TCP (`TCP_DELACK_MIN`, include/net/tcp.h).
const TCP_DELACK_MIN: Span = Span(40_000_000);
/// The longest one (`TCP_DELACK_MAX`).
const TCP_DELACK_MAX: Span = Span(200_000_000);
/// How much later than asked a timer may run out: a tick and a slot of the timer wheel (`LVL_GRAN`, kernel/time/timer.c), up to an eighth.
const LATE: Span = Span(20_000_000);

pub(super) const SCTP_RETRANSMISSION_TIMEOUT: Rule = Rule {
    name: "sctp-retransmission-timeout",
    severity: Severity::Stall,
    about: "SctpT3RtxExpireds moved: data was not acknowledged in time, and its retransmission timer ran out. From net.sctp.rto_min \
        (1 s by default) the timer doubles at each expiry until something is acknowledged. What it accounts for are the longest silences, no \
        more than timers ran out, of at least half that length.",
    advice: "a larger receive buffer, so that no data is dropped or held back for want of room; or a smaller net.sctp.rto_min",
    source: "RFC 9260, section 6.3.3; sctp_generate_t3_rtx_event, net/sctp/sm_sideeffect.c",
    look: |view| {
        let expired = view.counter("SctpT3RtxExpireds").filter(|&expired| expired > 0)?;
        let told =
            format!("{} ran out", count(expired, "retransmission timer (T3-rtx)", "retransmission timers (T3-rtx)"));
        let shortest = view.times("sctp.rto_min", "net.sctp.rto_min").into_iter().min();
        let delays = view.times("sctp.sack_delay", "net.sctp.sack_timeout").into_iter().map(|(delay, _)| latest(delay));
        Some(accounted(view, told, expired, ("SctpT3RtxExpireds", delays.max().unwrap_or_default()), shortest))
    },
};

pub(super) const TCP_RETRANSMISSION_TIMEOUT: Rule = Rule {
    name: "tcp-retransmission-timeout",
    severity: Severity::Stall,
    about: "TcpExtTCPTimeouts moved: nothing was acknowledged in time, and the retransmission timer ran out. It is at least 200 ms \
        (net.ipv4.tcp_rto_min_us) and doubles at each expiry. What it accounts for are the longest silences, no more than timers ran out, of at \
        least half that length. Not told of an echo that sent nothing again itself beside a stream.",
    advice: "find what was lost: queue drops at the link, a receive buffer too small for the burst, or loss that was asked for",
    source: "RFC 6298; tcp_retransmit_timer, net/ipv4/tcp_timer.c",
    look: |view| {
        let expired = view.counter("TcpExtTCPTimeouts").filter(|&expired| expired > 0)?;
        if view.measurement().beside.is_some() && view.sent_again() == Some(0) {
            return None;
        }
        let told = format!("{} ran out", count(expired, "retransmission timer", "retransmission timers"));
        let set = view.sysctl("net.ipv4.tcp_rto_min_us").and_then(|number| number.parse::<u64>().ok());
        let shortest = set.map(|micros| Span(micros.saturating_mul(1000))).filter(|&set| set != TCP_RTO_MIN);
        let shortest = shortest.map_or((TCP_RTO_MIN, "the shortest timeout"), |set| (set, "net.ipv4.tcp_rto_min_us"));
        Some(accounted(view, told, expired, ("TcpExtTCPTimeouts", Span(0)), Some(shortest)))
    },
};

/// What timers that ran out account for: as many of the longest silences as there were timers. A silence may be shorter than its timer ran, since what
/// had been sent before may have come meanwhile, but it is longer than what another timer (up to `from`) accounts for. Where no silences
/// were watched, what follows from their number.
fn accounted(
    view: &View<'_>,
    told: String,
    expired: u64,
    (counter, from): (&str, Span),
    shortest: Option<(Span, &'static str)>,
) -> String {
    if view.connections() > 1 {
        // They run at the same time: what they account for cannot be told from their number.
        return format!("{told} on {} connections at once", view.connections());
    }
    if view.measurement().beside.is_some() {
        // The stream's timers are counted with the echo's.
        return format!("{told} on the connection of the echo or on that of the stream beside it");
    }
    let Some((shortest, name)) = shortest else { return told };
    let each = if expired == 1 { "after" } else { "each after" };
    // On the way there and back nothing arrives either.
    let from = from.0.max(shortest.0 / 2).max(WATCHED) + view.path().0;
    let within = view.silences().and_then(|silences| Some((silences, silences.within(from, u64::MAX, expired)?)));
    match (within, view.took(), view.at_one_end(counter)) {
        (Some((_, (0, _))), ..) => {
            format!(
                "{told} ({each} {shortest} or more, {name}), and no arrival waited for that: nothing was silent for {}",
                Span(from)
            )
        }
        (Some((silences, (number, sum))), ..) => format!(
            "{told}, {each} {shortest} or more ({name}): {} nothing arrived meanwhile, {}",
            count(number, "time", "times"),
            of(sum, silences)
        ),
        (None, Some(took), Some(alone)) => format!("{told}{}", waited(alone, shortest, took, name)),
        (None, ..) => told,
    }
}

/// `1.00 s of the 4.00 s (25 %)`: a part of the time in which something was to arrive.
fn of(part: u64, silences: &Silences) -> String {
    let whole = silences.watched_ns;
    format!("{} of the {} ({})", Span(part), Span(whole), share(part, whole))
}

/// What expiries at one end account for: each waited for at least the shortest timeout, and if they followed on each other,
/// each for twice as long as the one before. Of so many at least, and so many at most.
fn waited((least, most): (u64, u64), shortest: Span, took: Span, name: &str) -> String {
    let doubling = (most < 32).then(|| Span(((1u64 << most) - 1).saturating_mul(shortest.0)));
    match doubling {
        Some(sum) if most > 1 && sum.0 <= took.0 && at_least(sum.0, 80, took.0) => {
            format!(": doubling from {shortest} ({name}) they make {sum} of the {took} ({})", share(sum.0, took.0))
        }
        _ => {
            let sum = Span(least.saturating_mul(shortest.0).min(took.0));
            format!(
                ", each after at least {shortest} ({name}): at least {sum} of the {took} ({})",
                share(sum.0, took.0)
            )
        }
    }
}

pub(super) const DELAYED_SACK_WITH_NAGLE: Rule = Rule {
    name: "delayed-sack-with-nagle",
    severity: Severity::Stall,
    about: "SctpDelaySackExpireds moved while Nagle's algorithm was on, and there were silences of just that delay (SCTP_DELAYED_SACK, \
        net.sctp.sack_timeout): a small chunk waited to be sent until earlier data was acknowledged, and the acknowledgement waited for its \
        timer. Of a stream, only where they make half of its time.",
    advice: "SCTP_NODELAY (nodelay = true), or a shorter delay (SCTP_DELAYED_SACK, net.sctp.sack_timeout)",
    source: "RFC 9260, sections 6.1 and 6.2; sctp_outq_flush and sctp_generate_sack_event",
    look: |view| {
        let expired = view.counter("SctpDelaySackExpireds").filter(|&expired| expired > 0)?;
        // A silence of this length is a retransmission timer's.
        let timeouts = view.counter("SctpT3RtxExpireds")?;
        let timer = view.times("sctp.rto_min", "net.sctp.rto_min").into_iter().min();
        let below = if timeouts == 0 { u64::MAX } else { timer?.0.0 / 100 * 95 };
        view.times("sctp.sack_delay", "net.sctp.sack_timeout").into_iter().find_map(|(delay, name)| {
            let bounds = (delay, latest(delay).0, below);
            held_back(view, (expired, timeouts), bounds, "selective acknowledgement (SACK)", name)
        })
    },
};

pub(super) const DELAYED_ACK_WITH_NAGLE: Rule = Rule {
    name: "delayed-ack-with-nagle",
    severity: Severity::Stall,
    about: "TcpExtDelayedACKs moved in an echo while Nagle's algorithm was on and nothing was sent again, and there were silences of such a \
        delay (40 to 200 ms): a small segment waited to be sent until earlier data was acknowledged, and the acknowledgement waited for its timer.",
    advice: "TCP_NODELAY (nodelay = true), or one write for each request",
    source: "RFC 9293, section 3.7.4, and RFC 1122, section 4.2.3.2; tcp_nagle_test and tcp_send_delayed_ack, net/ipv4/tcp_output.c",
    look: |view| {
        view.measurement().chunk_latency_ns.as_ref()?;
        let sent = view.counter("TcpExtDelayedACKs").filter(|&sent| sent > 0)?;
        let lost = view.counter("TcpExtTCPTimeouts")? + view.counter("TcpRetransSegs")?;
        if lost > 0 {
            return None;
        }
        held_back(view, (sent, 0), (TCP_DELACK_MIN, TCP_DELACK_MAX.0 + LATE.0, u64::MAX), "acknowledgement", "at least")
    },
};

/// Nagle's algorithm at one end waited for a delayed acknowledgement of the other: of so many that were `delayed` by at least `delay`, and at
/// most `to` beyond the path, those that a silence shows that was shorter than `below`.
fn held_back(
    view: &View<'_>,
    (delayed, timeouts): (u64, u64),
    (delay, to, below): (Span, u64, u64),
    what: &str,
    name: &str,
) -> Option<String> {
    if !view.nagle() {
        return None;
    }
    let why = format!(
        "Nagle's algorithm is on and held back a small chunk until the last one was acknowledged, and the delayed {what} came by its timer \
         ({delay}, {name})"
    );
    let Some(silences) = view.silences() else { return by_number(view, delayed, timeouts, delay, &why) };
    // A chunk that did not wait shows what the way there and back takes.
    let quickest = view.measurement().chunk_latency_ns.as_ref().map_or(0, |latency| latency.min);
    let path = view.path().0.max(quickest);
    let (number, sum) = silences.within(delay.0 / 100 * 95 + path, (to + path).min(below), delayed)?;
    // Of a stream it must account for most of the time; where retransmission timers ran out too, for a part worth a word.
    let least = if view.is_stream() {
        50
    } else if timeouts > 0 {
        10
    } else {
        0
    };
    if number == 0 || !at_least(sum, least, silences.watched_ns) {
        return None;
    }
    Some(format!("{why}: {} nothing arrived meanwhile, {}", count(number, "time", "times"), of(sum, silences)))
}

/// The same where no silences were watched: the completion must be as long as the delay, and no retransmission timer have run out.
fn by_number(view: &View<'_>, delayed: u64, timeouts: u64, delay: Span, why: &str) -> Option<String> {
    let took = view.took()?;
    // Of a stream, which has no completion, it must account for most of the time.
    if view.is_stream() && !at_least(delayed.saturating_mul(delay.0) / view.connections(), 50, took.0) {
        return None;
    }
    // A completion that is shorter did not wait for it, whatever was acknowledged late after it.
    if timeouts > 0 || !at_least(took.0, 90, delay.0) {
        return None;
    }
    let all = Span(delayed.saturating_mul(delay.0));
    // Several connections wait at the same time.
    let part = if all.0 <= took.0 && view.connections() == 1 {
        format!(", {all} of the {took} ({})", share(all.0, took.0))
    } else {
        format!("; it took {took}")
    };
    Some(format!("{why} {}{part}", count(delayed, "time", "times")))
}

/// When a timer of that length has run out at the latest.
const fn latest(delay: Span) -> Span {
    Span(delay.0 + delay.0 / 4 + LATE.0)
}

/// The shortest silence that is watched.
const WATCHED: u64 = 10_000_000;
/// Fewest round trips of which a median says that most of them took so long.
const ENOUGH: u64 = 8;

pub(super) const JIFFY_BOUND: Rule = Rule {
    name: "jiffy-bound",
    severity: Severity::Note,
    about: "The median round trip of at least eight is, to a fortieth of a tick, a whole number of ticks of this kernel's timer (1 / CONFIG_HZ, as \
        CLOCK_MONOTONIC_COARSE tells it), while the quickest took less than half a tick; and, where it is 10 ms or more, \
        four silences were as long: they wait for a timer that runs out at a tick.",
    advice: "look at the timer, not at the work: what it waits for; a kernel with a larger CONFIG_HZ has finer ones",
    source: "msecs_to_jiffies and the timer wheel, kernel/time/timer.c",
    look: |view| {
        let latency = view.measurement().chunk_latency_ns.as_ref()?;
        let tick = view.measurement().client.evidence.as_ref()?.tick_ns.filter(|&tick| tick > 0)?;
        let ticks = (latency.p50 + tick / 2) / tick;
        let near = tick / 40;
        if latency.count < ENOUGH || ticks == 0 || 2 * latency.min >= tick || latency.p50.abs_diff(ticks * tick) > near
        {
            return None;
        }
        // Of a burst that waited once most chunks have waited; those that waited one by one show as so many silences.
        let alike = |silences: &Silences| silences.within(latency.p50 - near, latency.p50 + near, u64::MAX);
        if latency.p50 >= WATCHED && view.silences().and_then(alike).is_none_or(|(number, _)| number < ENOUGH / 2) {
            return None;
        }
        Some(format!(
            "the median round trip ({}) is {} of this kernel's timer ({} each, {} a second), and the quickest took {}",
            Span(latency.p50),
            count(ticks, "tick", "ticks"),
            Span(tick),
            (1_000_000_000 + tick / 2) / tick,
            Span(latency.min)
        ))
    },
};
