//! Where the shape of a workload does not fit its kind or its protocol.

use super::{Beside, Family, MAX_CHUNKS, Pattern, Protocol, Settings, Work, Workload};
use crate::units::Span;

impl Workload {
    /// The time that it takes however fast everything else is: a stream its duration, an echo its gaps and the lead of the stream beside it.
    pub fn least(&self) -> Span {
        if self.kind == Work::Stream {
            return self.stream_duration().unwrap_or_default();
        }
        let rests = match self.pattern {
            Pattern::Burst => u64::from(self.bursts),
            Pattern::WriteRead | Pattern::WriteWriteRead => u64::from(self.bursts) * u64::from(self.chunk_count),
        };
        let lead = if self.beside == Beside::None { 0 } else { self.beside_lead.0 };
        Span(self.gap.0.saturating_mul(rests.saturating_sub(1)).saturating_add(lead))
    }
}

/// What does not go together in the shape of a workload.
pub(super) fn add_conflicts(
    settings: &Settings,
    set: &dyn Fn(&str) -> bool,
    add: &mut impl FnMut(&'static [&'static str], String, &'static str),
) {
    let work = &settings.workload;
    if work.kind == Work::Stream && set("workload.pattern") {
        add(
            &["workload.pattern", "workload.kind"],
            "a stream has no `pattern`".to_owned(),
            "leave it out, or set kind = \"echo\"",
        );
    }
    if work.kind == Work::Stream && set("workload.gap") {
        add(
            &["workload.gap", "workload.kind"],
            "a stream has no `gap`".to_owned(),
            "leave it out, or set kind = \"echo\"",
        );
    }
    if work.kind == Work::Echo && work.gap.0 > 0 && work.pattern == Pattern::Burst && work.bursts == 1 {
        add(
            &["workload.gap", "workload.bursts", "workload.pattern"],
            "a `gap` lies between bursts, and there is one".to_owned(),
            "raise `bursts`, or set pattern = \"write-read\" for gaps between chunks",
        );
    }
    if work.beside != Beside::None && (work.kind == Work::Stream || work.protocol == Protocol::Udp) {
        add(
            &["workload.beside", "workload.kind", "workload.protocol"],
            format!(
                "a stream runs `beside` an echo over tcp, mptcp or sctp, and this is {} over {}",
                work.kind, work.protocol
            ),
            "leave it out, or change `kind` or `protocol`",
        );
    }
    if work.beside != Beside::None && work.connections > 1 {
        add(
            &["workload.connections", "workload.beside"],
            format!("a stream runs `beside` one echo, and {} `connections` are asked", work.connections),
            "leave one of them out",
        );
    }
    // Each connection keeps when its chunks were sent and how long they took.
    let chunks = u64::from(work.chunk_count) * u64::from(work.connections);
    if work.kind == Work::Echo && work.connections > 1 && chunks > MAX_CHUNKS.max {
        add(
            &["workload.connections", "workload.chunk_count"],
            format!(
                "{} connections with bursts of {} chunks each are {chunks} chunks at once, beyond {} ({})",
                work.connections, work.chunk_count, MAX_CHUNKS.name, MAX_CHUNKS.max
            ),
            "use fewer connections, or send fewer chunks",
        );
    }
    if work.beside == Beside::None && set("workload.beside_lead") {
        add(
            &["workload.beside_lead", "workload.beside"],
            "nothing runs beside the echo, so nothing leads".to_owned(),
            "set `beside` to \"upload\" or \"download\", or leave `beside_lead` out",
        );
    }
    if work.kind == Work::Echo && set("workload.read_pause") {
        add(
            &["workload.read_pause", "workload.kind"],
            "an echo has no `read_pause`".to_owned(),
            "leave it out, or set kind = \"stream\"",
        );
    }
    if work.zerocopy && (work.kind == Work::Echo || work.protocol != Protocol::Tcp) {
        add(
            &["workload.zerocopy", "workload.kind", "workload.protocol"],
            format!("`zerocopy` is for a stream over tcp, and this is {} over {}", work.kind, work.protocol),
            "leave it out, or set kind = \"stream\" and protocol = \"tcp\"",
        );
    }
    if work.pattern == Pattern::WriteWriteRead && work.chunk_bytes() < 2 {
        add(
            &["workload.pattern", "workload.chunk_size"],
            "a chunk of one byte has no two halves".to_owned(),
            "raise `chunk_size`, or use \"write-read\"",
        );
    }
    if work.protocol == Protocol::Udp {
        add_conflicts_of_udp(settings, add);
    } else if set("workload.quiet") {
        add(
            &["workload.quiet", "workload.protocol"],
            format!("`quiet` is for udp, and the protocol is {}", work.protocol),
            "leave it out, or set protocol = \"udp\"",
        );
    }
}

/// What does not go together over UDP.
fn add_conflicts_of_udp(settings: &Settings, add: &mut impl FnMut(&'static [&'static str], String, &'static str)) {
    let Settings { workload: work, client, server, .. } = settings;
    let family = settings.link.family;
    if work.pattern == Pattern::WriteWriteRead {
        add(
            &["workload.pattern", "workload.protocol"],
            "a datagram is one write, so there is no write-write-read over udp".to_owned(),
            "use \"write-read\", or another protocol",
        );
    }
    if [client, server].iter().any(|socket| socket.nodelay.is_some()) {
        add(
            &["socket.nodelay", "socket.client.nodelay", "socket.server.nodelay", "workload.protocol"],
            "udp has no `nodelay`".to_owned(),
            "leave it out: each datagram is sent at once",
        );
    }
    // 65535 bytes of IPv4 or of IPv6 payload, less the headers that they count.
    let most = match family {
        Family::Ipv4 => 65507,
        Family::Ipv6 => 65527,
    };
    if !(Workload::NUMBER_BYTES..=most).contains(&work.chunk_bytes()) {
        add(
            &["workload.chunk_size", "workload.protocol", "link.family"],
            format!(
                "a chunk of udp has {} to {most} bytes over {family}, its number among them, and {} are asked",
                Workload::NUMBER_BYTES,
                work.chunk_bytes()
            ),
            "use a `chunk_size` within these bounds",
        );
    } else if work.read_size < work.chunk_bytes() {
        add(
            &["workload.read_size", "workload.chunk_size", "workload.protocol"],
            format!(
                "a datagram of {} bytes would be cut off by a `read_size` of {}",
                work.chunk_bytes(),
                work.read_size
            ),
            "make `read_size` at least as large as `chunk_size`",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{Beside, Pattern, Settings, Work, Workload};
    use crate::units::Span;

    #[test]
    fn a_workload_takes_at_least_what_it_waits_by_itself() {
        let echo = Workload { gap: Span(10), bursts: 4, chunk_count: 5, ..Workload::default() };
        assert_eq!(echo.least(), Span(30), "three gaps between four bursts");
        assert_eq!(Workload { pattern: Pattern::WriteRead, ..echo.clone() }.least(), Span(190), "20 requests");
        assert_eq!(Workload { beside: Beside::Upload, beside_lead: Span(7), ..echo.clone() }.least(), Span(37));
        assert_eq!(Workload { beside_lead: Span(7), ..echo }.least(), Span(30), "nothing runs beside");
        let stream = Workload { kind: Work::Stream, ..Workload::default() };
        assert_eq!(stream.least(), Workload::DEFAULT_DURATION);
        assert_eq!(Workload { bytes: Some(crate::units::Bytes(5)), ..stream }.least(), Span(0));
    }

    #[test]
    fn several_connections_have_no_stream_beside_and_no_more_chunks_than_one_may_have() {
        let conflicts = |connections, change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            settings.workload.connections = connections;
            change(&mut settings);
            settings.conflicts(&|_| false).into_iter().map(|conflict| conflict.message).collect::<Vec<_>>()
        };
        let beside: fn(&mut Settings) = |settings| settings.workload.beside = Beside::Upload;
        assert_eq!(conflicts(1, beside), [""; 0]);
        assert_eq!(conflicts(2, beside), ["a stream runs `beside` one echo, and 2 `connections` are asked"]);
        let many: fn(&mut Settings) = |settings| settings.workload.chunk_count = 500_000;
        assert_eq!(conflicts(2, many), [""; 0]);
        let [message] = &conflicts(3, many)[..] else { panic!("one conflict") };
        assert!(message.contains("1500000 chunks at once, beyond MAX_CHUNKS"), "{message}");
        let stream: fn(&mut Settings) = |settings| settings.workload.kind = Work::Stream;
        assert_eq!(conflicts(64, stream), [""; 0]);
    }
}
