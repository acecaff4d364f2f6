//! Rules about timers: retransmissions that waited for one, and acknowledgements that Nagle's algorithm waited for.

use super::finding::{Rule, Severity};
use super::view::{View, at_least, count, share};
use crate::units::Span;

/// The shortest retransmission timeout of TCP (`TCP_RTO_MIN`, include/net/tcp.h), unless a route says otherwise.
const TCP_RTO_MIN: Span = Span(200_000_000);
/// The shortest delay of an acknowledgement of TCP (`TCP_DELACK_MIN`, include/net/tcp.h).
const TCP_DELACK_MIN: Span = Span(40_000_000);

pub(super) const SCTP_RETRANSMISSION_TIMEOUT: Rule = Rule {
    name: "sctp-retransmission-timeout",
    severity: Severity::Stall,
    about: "SctpT3RtxExpireds moved: data was not acknowledged in time, and its retransmission timer ran out. From net.sctp.rto_min \
        (1 s by default) the timer doubles at each expiry until something is acknowledged.",
    advice: "a larger receive buffer, so that no data is dropped or held back for want of room; or a smaller net.sctp.rto_min",
    source: "RFC 9260, section 6.3.3; sctp_generate_t3_rtx_event, net/sctp/sm_sideeffect.c",
    look: |view| {
        let expired = view.counter("SctpT3RtxExpireds").filter(|&expired| expired > 0)?;
        let told =
            format!("{} ran out", count(expired, "retransmission timer (T3-rtx)", "retransmission timers (T3-rtx)"));
        if view.connections() > 1 {
            return Some(format!("{told}{}", on_several(view)));
        }
        let (Some(took), Some(shortest), Some(alone)) =
            (view.took(), view.milliseconds("net.sctp.rto_min"), view.at_one_end("SctpT3RtxExpireds"))
        else {
            return Some(told);
        };
        Some(format!("{told}{}", waited(alone, shortest, took, "net.sctp.rto_min")))
    },
};

pub(super) const TCP_RETRANSMISSION_TIMEOUT: Rule = Rule {
    name: "tcp-retransmission-timeout",
    severity: Severity::Stall,
    about: "TcpExtTCPTimeouts moved: nothing was acknowledged in time, and the retransmission timer ran out. It is at least 200 ms and \
        doubles at each expiry.",
    advice: "find what was lost: queue drops at the link, a receive buffer too small for the burst, or loss that was asked for",
    source: "RFC 6298; tcp_retransmit_timer, net/ipv4/tcp_timer.c",
    look: |view| {
        let expired = view.counter("TcpExtTCPTimeouts").filter(|&expired| expired > 0)?;
        let told = format!("{} ran out", count(expired, "retransmission timer", "retransmission timers"));
        if view.connections() > 1 {
            return Some(format!("{told}{}", on_several(view)));
        }
        let (Some(took), Some(alone)) = (view.took(), view.at_one_end("TcpExtTCPTimeouts")) else { return Some(told) };
        Some(format!("{told}{}", waited(alone, TCP_RTO_MIN, took, "the shortest timeout")))
    },
};

/// Timers of several connections run at the same time: what they account for cannot be told from their number.
fn on_several(view: &View<'_>) -> String {
    format!(" on {} connections at once", view.connections())
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
    about: "SctpDelaySackExpireds moved while Nagle's algorithm was on and no retransmission timer ran out, and the completion is no shorter \
        than the delay: a small chunk waited to be sent until earlier data was acknowledged, and the acknowledgement waited for its timer.",
    advice: "SCTP_NODELAY (nodelay = true), or a shorter net.sctp.sack_timeout",
    source: "RFC 9260, sections 6.1 and 6.2; sctp_outq_flush and sctp_generate_sack_event",
    look: |view| {
        let expired = view.counter("SctpDelaySackExpireds").filter(|&expired| expired > 0)?;
        let delay = view.milliseconds("net.sctp.sack_timeout")?;
        held_back(
            view,
            expired,
            delay,
            view.counter("SctpT3RtxExpireds")?,
            "selective acknowledgement (SACK)",
            "net.sctp.sack_timeout",
        )
    },
};

pub(super) const DELAYED_ACK_WITH_NAGLE: Rule = Rule {
    name: "delayed-ack-with-nagle",
    severity: Severity::Stall,
    about: "TcpExtDelayedACKs moved in an echo while Nagle's algorithm was on and no retransmission timer ran out, and the completion is no \
        shorter than the delay: a small segment waited to be sent until earlier data was acknowledged, and the acknowledgement waited for \
        its timer.",
    advice: "TCP_NODELAY (nodelay = true), or one write for each request",
    source: "RFC 9293, section 3.7.4, and RFC 1122, section 4.2.3.2; tcp_nagle_test and tcp_send_delayed_ack, net/ipv4/tcp_output.c",
    look: |view| {
        view.measurement().chunk_latency_ns.as_ref()?;
        let sent = view.counter("TcpExtDelayedACKs").filter(|&sent| sent > 0)?;
        held_back(view, sent, TCP_DELACK_MIN, view.counter("TcpExtTCPTimeouts")?, "acknowledgement", "at least")
    },
};

/// Nagle's algorithm at one end waited for a delayed acknowledgement of the other.
fn held_back(view: &View<'_>, delayed: u64, delay: Span, timeouts: u64, what: &str, name: &str) -> Option<String> {
    let took = view.took()?;
    // Of a stream, which has no completion, it must account for most of the time.
    if view.is_stream() && !at_least(delayed.saturating_mul(delay.0) / view.connections(), 50, took.0) {
        return None;
    }
    // A completion that is shorter did not wait for it, whatever was acknowledged late after it.
    if timeouts > 0 || !view.nagle() || !at_least(took.0, 90, delay.0) {
        return None;
    }
    let all = Span(delayed.saturating_mul(delay.0));
    // Several connections wait at the same time.
    let part = if all.0 <= took.0 && view.connections() == 1 {
        format!(", {all} of the {took} ({})", share(all.0, took.0))
    } else {
        format!("; it took {took}")
    };
    let times = count(delayed, "time", "times");
    Some(format!(
        "Nagle's algorithm is on and held back a small chunk until the last one was acknowledged, and the delayed {what} came by its timer \
         ({delay}, {name}) {times}{part}"
    ))
}
