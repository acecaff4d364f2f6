//! Several connections at once between the same two ends, each doing the whole workload on sockets, ports and threads of its own: how do
//! they share what lies between, and what becomes of the latency of each?

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::measurement::{Connection, End, Recorder, Zerocopy};
use crate::settings::{Work, Workload};
use crate::units::{BitRate, Span};

use super::meeting::Control;
use super::{Failure, Report};

/// Where the clients of several connections wait until all are connected.
#[derive(Debug)]
pub(super) struct Gathering {
    size: u32,
    connected: Mutex<u32>,
    all: Condvar,
}

impl Gathering {
    pub(super) const fn new(size: u32) -> Self {
        Self { size, connected: Mutex::new(0), all: Condvar::new() }
    }
}

/// Waits, on a client before its first send, until all connections stand. At once, where there is one.
pub(super) fn gather(control: &Control<'_>) -> Result<(), Failure> {
    let Some(Gathering { size, connected, all }) = control.gathering() else { return Ok(()) };
    let mut connected = connected.lock().unwrap_or_else(PoisonError::into_inner);
    *connected += 1;
    if *connected == *size {
        all.notify_all();
    }
    while *connected < *size {
        control.check(|| format!("{connected} of {size} connections stood"))?;
        (connected, _) = all.wait_timeout(connected, control.patience()).unwrap_or_else(PoisonError::into_inner);
    }
    Ok(())
}

/// Runs `own`, the first connection of an end, and meanwhile `other` in a thread of its own for each further seat. A thread begins in
/// the network namespace and on the processors of the thread that starts it.
pub(super) fn with<Seat: Send>(
    work: &Workload,
    control: &Control<'_>,
    seats: Vec<Seat>,
    other: impl Fn(u16, Seat) -> Report + Sync,
    own: impl FnOnce() -> Report,
) -> Report {
    if seats.is_empty() {
        return own();
    }
    thread::scope(|scope| {
        let other = &other;
        let start = |(number, seat)| {
            let thread = thread::Builder::new().name(format!("connection {number}"));
            thread.spawn_scoped(scope, move || other(number, seat)).map_err(|error| {
                let mut report = Box::new(Report::default());
                report.fail(
                    Failure::Call { doing: format!("starting a thread for connection {number}"), error },
                    control,
                );
                report
            })
        };
        let threads: Vec<_> = (1..).zip(seats).map(start).collect();
        let mut report = own();
        let ended = threads.into_iter().map(|thread| match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(other)) => other,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(report) => *report,
        });
        report.others = ended.collect();
        adopt_failure(work, &mut report);
        report
    })
}

/// Finds the failure that an end tells: the first of all, or else what was lost over all connections.
fn adopt_failure(work: &Workload, report: &mut Report) {
    for other in &mut report.others {
        match (&mut report.failure, other.failure.take()) {
            (
                Some(Failure::Incomplete { lost, late, .. }),
                Some(Failure::Incomplete { lost: more, late: later, .. }),
            ) => {
                *lost += more;
                *late += later;
            }
            // One that was called off is the consequence of another.
            (_, Some(failure)) => {
                let own = report.failure.take();
                report.failure = if other.failed_first {
                    Failure::cause(Some(failure), own)
                } else {
                    Failure::cause(own, Some(failure))
                };
                report.failed_first |= other.failed_first;
            }
            (_, None) => {}
        }
    }
    if let Some(Failure::Incomplete { sent, .. }) = &mut report.failure {
        *sent = u64::from(work.chunk_count) * u64::from(work.bursts) * u64::from(work.connections);
    }
}

/// Puts the reports of an end's further connections into that of the first: figures become those of all. What each connection was by itself,
/// where there are several.
pub(super) fn merge(work: &Workload, client: &mut Report, server: &mut Report) -> Vec<Connection> {
    let (clients, servers) = (std::mem::take(&mut client.others), std::mem::take(&mut server.others));
    if clients.is_empty() || servers.is_empty() {
        return Vec::new();
    }
    let others = clients.iter().zip(&servers);
    let pairs: Vec<(&Report, &Report)> = std::iter::once((&*client, &*server)).chain(others).collect();
    let connections: Vec<Connection> = pairs.iter().map(|(client, server)| figures(client, server)).collect();
    let span = pairs.iter().map(|(client, server)| client.span.or(server.span)).reduce(widest).flatten();
    let span = span.map(|(begun, ended)| Span::from(ended - begun));

    let completions: Option<Vec<u64>> = connections.iter().map(|connection| connection.completion_ns).collect();
    let largest = completions.and_then(|completions| completions.into_iter().max());
    let completion = largest.map(|largest| span.filter(|_| work.bursts == 1).map_or(largest, |span| span.0));
    let delivered =
        connections.iter().filter_map(|connection| connection.delivered_bytes).reduce(|one, other| one + other);
    let goodput = match work.kind {
        Work::Echo if span.is_some() => span.zip(delivered).and_then(|(span, bytes)| BitRate::of(bytes, span)),
        Work::Echo => connections
            .iter()
            .filter_map(|connection| connection.goodput_bps)
            .reduce(|one, other| one + other)
            .map(BitRate),
        // Not the sum of their goodputs: streams that do not overlap all the time would seem to carry more than the link does.
        Work::Stream => pairs
            .iter()
            .filter_map(|(client, server)| client.counted.or(server.counted))
            .reduce(|(bytes, time), (more, other)| (bytes + more, union(time, other)))
            .and_then(|(bytes, (origin, last))| BitRate::of(bytes, Span::from(last - origin))),
        // Programs count what they carry by themselves, if at all.
        Work::Exec => None,
    }
    .map(|rate| rate.0);
    (client.completion_ns, client.goodput_bps, client.delivered_bytes) = (completion, goodput, delivered);

    for (report, others) in [(&mut *client, clients), (&mut *server, servers)] {
        for other in others {
            absorb(report, other);
        }
    }
    client.chunk_latency = client.latencies.take().and_then(Recorder::finish);
    connections
}

/// What one connection was.
fn figures(client: &Report, server: &Report) -> Connection {
    Connection {
        completion_ns: client.completion_ns.or(server.completion_ns),
        goodput_bps: client.goodput_bps.or(server.goodput_bps),
        delivered_bytes: client.delivered_bytes.or(server.delivered_bytes),
    }
}

/// From the begin of the one that began first to the end of the one that ended last, where both are known.
fn widest(one: Option<(Instant, Instant)>, other: Option<(Instant, Instant)>) -> Option<(Instant, Instant)> {
    Some(union(one?, other?))
}

fn union((begun, ended): (Instant, Instant), (other_begun, other_ended): (Instant, Instant)) -> (Instant, Instant) {
    (begun.min(other_begun), ended.max(other_ended))
}

/// Adds what is counted over all connections of an end.
fn absorb(report: &mut Report, other: Report) {
    let known = |one: Option<u64>, other: Option<u64>| one.map_or(other, |one| Some(one + other.unwrap_or(0)));
    report.lost_chunks = known(report.lost_chunks, other.lost_chunks);
    report.duplicated_chunks = known(report.duplicated_chunks, other.duplicated_chunks);
    match (&mut report.latencies, other.latencies) {
        (Some(latencies), Some(more)) => latencies.append(more),
        (latencies @ None, more) => *latencies = more,
        (Some(_), None) => {}
    }
    let (end, other) = (&mut report.end, other.end);
    let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
    end.cpu_user_ns = both(end.cpu_user_ns, other.cpu_user_ns);
    end.cpu_system_ns = both(end.cpu_system_ns, other.cpu_system_ns);
    end.voluntary_switches = both(end.voluntary_switches, other.voluntary_switches);
    end.involuntary_switches = both(end.involuntary_switches, other.involuntary_switches);
    absorb_facts(end, &other);
}

/// Of facts about a connection, those that are told for all: sends in place, and whether any fell back to TCP.
fn absorb_facts(end: &mut End, other: &End) {
    if let (Some(one), Some(other)) = (&mut end.zerocopy, other.zerocopy) {
        *one = Zerocopy {
            sends: one.sends + other.sends,
            completed: one.completed + other.completed,
            copied: one.copied + other.copied,
        };
    }
    if other.fell_back == Some(true) {
        end.fell_back = other.fell_back;
    }
}

#[cfg(test)]
mod tests {
    use super::{adopt_failure, gather, merge};
    use crate::measurement::{Outcome, Recorder};
    use crate::settings::{Work, Workload};
    use crate::units::Span;
    use crate::workload::{Control, Failure, Report};
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[test]
    fn who_waits_for_connections_that_never_come_times_out_or_is_called_off() {
        let interrupted = AtomicBool::new(false);
        let control = Control::new(Span(20_000_000), &interrupted).with_connections(2);
        control.begin();
        let failure = gather(&control).expect_err("the other never came");
        assert_eq!(failure.outcome(), Outcome::TimedOut);
        assert!(failure.to_string().contains("1 of 2 connections stood"), "{failure}");

        let control = Control::new(Span(60_000_000_000), &interrupted).with_connections(3);
        assert!(control.call_off() && !control.call_off());
        assert!(matches!(gather(&control), Err(Failure::CalledOff)));
    }

    fn echo(start: Instant, from: u64, to: u64) -> Report {
        let at = |ms| start + Duration::from_millis(ms);
        let mut latencies = Recorder::with_capacity(1);
        latencies.add(to * 1_000_000);
        Report {
            completion_ns: Some((to - from) * 1_000_000),
            goodput_bps: Some(1),
            delivered_bytes: Some(1000),
            span: Some((at(from), at(to))),
            latencies: Some(latencies),
            ..Report::default()
        }
    }

    #[test]
    fn echoes_are_measured_from_the_first_send_of_all_to_the_last_arrival_of_all() {
        let work = Workload { connections: 3, ..Workload::default() };
        let start = Instant::now();
        let mut client = Report { others: vec![echo(start, 0, 7), echo(start, 5, 10)], ..echo(start, 2, 6) };
        let mut server = Report { others: vec![Report::default(), Report::default()], ..Report::default() };
        let connections = merge(&work, &mut client, &mut server);
        let own: Vec<_> = connections.iter().map(|connection| connection.completion_ns).collect();
        assert_eq!(own, [4, 7, 5].map(|ms| Some(ms * 1_000_000)));
        assert_eq!((client.completion_ns, client.delivered_bytes), (Some(10_000_000), Some(3000)));
        assert_eq!(client.goodput_bps, Some(2_400_000), "3000 bytes in 10 ms");
        let latencies = client.chunk_latency.expect("latencies");
        assert_eq!(
            (latencies.count, latencies.min, latencies.p50, latencies.max),
            (3, 6_000_000, 7_000_000, 10_000_000)
        );
    }

    #[test]
    fn streams_that_follow_each_other_carry_no_more_than_the_link() {
        let work = Workload { kind: Work::Stream, connections: 2, ..Workload::default() };
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let receiver = |from, to| Report {
            goodput_bps: Some(8_000_000),
            delivered_bytes: Some(1000 * (to - from)),
            counted: Some((1000 * (to - from), (at(from), at(to)))),
            ..Report::default()
        };
        let mut client = Report { others: vec![Report::default()], ..Report::default() };
        let mut server = Report { others: vec![receiver(30, 50)], ..receiver(10, 30) };
        let connections = merge(&work, &mut client, &mut server);
        assert_eq!(
            connections.iter().map(|connection| connection.goodput_bps).collect::<Vec<_>>(),
            [Some(8_000_000); 2]
        );
        assert_eq!(
            (client.goodput_bps, client.delivered_bytes, client.completion_ns),
            (Some(8_000_000), Some(40_000), None)
        );
    }

    #[test]
    fn the_first_failure_is_told_and_losses_add_up() {
        let work = Workload { chunk_count: 8, connections: 4, ..Workload::default() };
        let quiet = work.quiet;
        let lossy = |lost| Some(Failure::Incomplete { lost, late: 0, sent: 8, quiet });
        let with = |failure| Report { failure, ..Report::default() };
        let others = vec![with(None), with(lossy(2)), with(lossy(3))];
        let mut report = Report { others, ..Report::default() };
        adopt_failure(&work, &mut report);
        let text = report.failure.expect("a failure").to_string();
        assert!(text.starts_with("5 of 32 chunks were lost"), "{text}");

        let first = Report { failed_first: true, ..with(Some(Failure::Protocol("the first".to_owned()))) };
        let others = vec![with(lossy(2)), first, with(Some(Failure::CalledOff))];
        let mut report = Report { others, ..with(Some(Failure::CalledOff)) };
        adopt_failure(&work, &mut report);
        assert!(report.failed_first);
        assert_eq!(report.failure.expect("a failure").to_string(), "the first");
    }
}
