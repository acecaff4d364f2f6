//! What the two ends of a cell do, one thread each: make sockets as the cell says, run an echo or a stream between them, and
//! tell what was measured; or start two programs of the user's, and oversee them. It knows nothing of namespaces: whoever calls it has put the thread where it belongs.
//!
//! Imports `settings`, `measurement`, `sys` and `units`.

mod beside;
mod channel;
mod crowd;
mod echo;
mod endpoint;
mod exec;
mod failure;
mod in_place;
mod limits;
mod meeting;
mod numbered;
mod options;
mod samples;
mod silences;
mod stream;
mod watch;

use channel::Channel;
use endpoint::Part;

pub use exec::{Absent, Watch, locate};
pub use failure::Failure;
pub use limits::BufferLimits;
pub use meeting::{ClientSeat, Control, ServerSeat, meet};
pub use watch::{Pace, Sockets};

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::measurement::{Distribution, End, Measurement, Metric, Outcome, Recorder};
use crate::settings::{Protocol, Settings, Work, Workload};

/// The port on which the server listens. Its namespace is its own, so no port is ever taken.
const SERVER_PORT: u16 = 7001;
/// The port of the client.
const CLIENT_PORT: u16 = 7002;

/// Longest that a blocked call sleeps before the thread looks at its deadline and at the other end.
const SLICE: Duration = Duration::from_millis(100);

/// The addresses of the two ends.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Of the client.
    pub client: IpAddr,
    /// Of the server.
    pub server: IpAddr,
}

/// What one end has to tell when it is done, failed or not.
#[derive(Debug, Default)]
pub struct Report {
    /// Buffers, switches and CPU time.
    pub end: End,
    /// Bytes that arrived at this end.
    pub delivered_bytes: Option<u64>,
    /// From before the first send to after the last arrival, where this end knows.
    pub completion_ns: Option<u64>,
    /// Bits per second that arrived at this end.
    pub goodput_bps: Option<u64>,
    /// Chunks of which nothing came to this end.
    pub lost_chunks: Option<u64>,
    /// Arrivals of a chunk that had arrived at this end before.
    pub duplicated_chunks: Option<u64>,
    /// Round trips of the chunks.
    pub chunk_latency: Option<Distribution>,
    /// Why it did not end as it should.
    pub failure: Option<Failure>,
    /// Whether this end failed before the other, which is then a consequence.
    pub failed_first: bool,
    /// What this end of the stream beside has to tell.
    pub beside: Option<Box<Self>>,
    /// What this end of each further connection has to tell, where several run at once.
    pub others: Vec<Self>,
    /// Numbers that the program at this end printed.
    pub metrics: BTreeMap<String, Metric>,
    /// What a reader of the figures has to know.
    pub remarks: Vec<String>,
    /// When the first send was made and the last arrival came, where nothing rested between and this end knows.
    span: Option<(Instant, Instant)>,
    /// Bytes of which the goodput of a stream is made, and when the first and the last instant of their time were.
    counted: Option<(u64, (Instant, Instant))>,
    /// Round trips of the chunks one by one, kept where several connections put theirs together.
    latencies: Option<Recorder>,
}

impl Report {
    /// Notes a failure and calls the other end off, with all other connections. Losses of one of several connections do not: what the others
    /// lose is counted too.
    fn fail(&mut self, failure: Failure, control: &Control<'_>) {
        let goes_on = control.gathering().is_some() && matches!(failure, Failure::Incomplete { .. });
        self.failed_first = !goes_on && control.call_off();
        self.failure = Some(failure);
    }

    /// Takes what a step of an end yielded, or notes its failure, with the other end called off when this returns. An end lets go of its sockets
    /// and ends its program only then: what the other end makes of that is no failure of its own.
    fn note<T>(&mut self, result: Result<T, Failure>, control: &Control<'_>) -> Option<T> {
        result.map_err(|failure| self.fail(failure, control)).ok()
    }

    /// Tells what was seen of times without an arrival, where evidence is wanted.
    fn tell_silences(&mut self, watch: silences::Watch, control: &Control<'_>) {
        if control.evidence() {
            self.end.evidence.get_or_insert_default().silences = Some(watch.finish());
        }
    }

    /// Tells the round trips of one connection.
    fn tell_latencies(&mut self, latencies: Recorder, control: &Control<'_>) {
        if control.gathering().is_some() {
            self.latencies = Some(latencies);
        } else {
            self.chunk_latency = latencies.finish();
        }
    }
}

/// Runs the server's end in this thread until the workload is done, failed, or called off. A stream beside and each further connection have
/// a thread of their own, in the same namespace.
pub fn serve(settings: &Settings, addresses: Addresses, limits: &BufferLimits, seat: &ServerSeat<'_>) -> Report {
    if settings.workload.kind == Work::Exec {
        return exec::serve(settings, addresses, seat);
    }
    let part = Part::server(settings, addresses, limits);
    beside::with(
        &settings.workload,
        seat.beside(),
        |work, seat| serve_with(part.beside(work), work, &seat),
        || {
            crowd::with(
                &settings.workload,
                seat.control,
                seat.others(),
                |number, seat| serve_with(part.nth(number), &settings.workload, &seat),
                || serve_with(part, &settings.workload, seat),
            )
        },
    )
}

/// Serves one connection.
fn serve_with(part: Part<'_>, work: &Workload, seat: &ServerSeat<'_>) -> Report {
    let mut report = Report::default();
    let Some(mut channel) = endpoint::accept(part, seat, &mut report) else { return report };
    let result = match (work.kind, work.protocol) {
        (Work::Echo, Protocol::Udp) => numbered::serve_echo(&mut channel, work, seat),
        (Work::Stream, Protocol::Udp) => numbered::serve_stream(&mut channel, work, seat, &mut report),
        (Work::Echo, _) => echo::serve(&mut channel, work, seat, &mut report),
        (Work::Stream, _) => stream::serve(&mut channel, work, seat, &mut report),
        (Work::Exec, _) => Err(programs()),
    };
    close(&mut channel, result, (|| seat.part(), || seat.leave()), seat.control, &mut report);
    report
}

/// What to say where a connection of our own is asked for and the cell runs two programs.
fn programs() -> Failure {
    Failure::Protocol("two programs have no connection of sweep's own".to_owned())
}

/// Closes an end: its CPU time stops at once, its socket is read when the other is done too, and closed when that has been read.
fn close(
    channel: &mut Channel,
    result: Result<(), Failure>,
    (part, leave): (impl FnOnce(), impl FnOnce()),
    control: &Control<'_>,
    report: &mut Report,
) {
    channel.usage(&mut report.end);
    report.note(result, control);
    part();
    if control.evidence() {
        channel.testify(&mut report.end);
    }
    channel.finish(&mut report.end);
    leave();
}

/// Runs the client's end in this thread until the workload is done, failed, or called off.
pub fn request(settings: &Settings, addresses: Addresses, limits: &BufferLimits, seat: &ClientSeat<'_>) -> Report {
    if settings.workload.kind == Work::Exec {
        return exec::request(settings, addresses, seat);
    }
    let part = Part::client(settings, addresses, limits);
    beside::with(
        &settings.workload,
        seat.beside(),
        |work, seat| request_with(part.beside(work), work, &seat),
        || {
            crowd::with(
                &settings.workload,
                seat.control,
                seat.others(),
                |number, seat| request_with(part.nth(number), &settings.workload, &seat),
                || request_with(part, &settings.workload, seat),
            )
        },
    )
}

/// Requests over one connection.
fn request_with(part: Part<'_>, work: &Workload, seat: &ClientSeat<'_>) -> Report {
    let mut report = Report::default();
    let Some(mut channel) = endpoint::connect(part, seat, &mut report) else { return report };
    let result = beside::lead(work, seat.control).and_then(|()| match (work.kind, work.protocol) {
        (Work::Echo, Protocol::Udp) => numbered::request_echo(&mut channel, work, seat, &mut report),
        (Work::Stream, Protocol::Udp) => numbered::request_stream(&mut channel, work, seat, &mut report),
        (Work::Echo, _) => echo::request(&mut channel, work, seat, &mut report),
        (Work::Stream, _) => stream::request(&mut channel, work, seat, &mut report),
        (Work::Exec, _) => Err(programs()),
    });
    if work.kind == Work::Echo {
        seat.control.end_beside();
    }
    close(&mut channel, result, (|| seat.part(), || seat.leave()), seat.control, &mut report);
    report
}

/// Puts the two ends' reports together. Of two failures the first is told, since the second may be
/// its consequence; but for one that is plainly a consequence itself.
pub fn conclude(work: &Workload, mut client: Report, mut server: Report) -> Measurement {
    let connections = crowd::merge(work, &mut client, &mut server);
    let failure = if client.failed_first {
        Failure::cause(client.failure, server.failure)
    } else {
        Failure::cause(server.failure, client.failure)
    };
    let mut remarks = fall_backs(&client.end, &server.end);
    remarks.extend(client.remarks.into_iter().chain(server.remarks));
    let mut measurement = Measurement {
        outcome: Outcome::Measured,
        reason: None,
        completion_ns: client.completion_ns.or(server.completion_ns),
        goodput_bps: client.goodput_bps.or(server.goodput_bps),
        delivered_bytes: client.delivered_bytes.or(server.delivered_bytes),
        lost_chunks: client.lost_chunks.or(server.lost_chunks),
        duplicated_chunks: client.duplicated_chunks.or(server.duplicated_chunks),
        beside: beside::conclude(client.beside, server.beside),
        connections,
        metrics: client.metrics.into_iter().chain(server.metrics).collect(),
        remarks,
        chunk_latency_ns: client.chunk_latency,
        elapsed_ns: None,
        setup_ns: None,
        client: client.end,
        server: server.end,
        ..Measurement::default()
    };
    if let Some(failure) = failure {
        measurement.void(failure.outcome(), failure.to_string());
    }
    measurement
}

/// Tells of ends whose MPTCP connection is one of TCP.
fn fall_backs(client: &End, server: &End) -> Vec<String> {
    let ends = [("client", client), ("server", server)].into_iter().filter(|(_, end)| end.fell_back == Some(true));
    let sides: Vec<_> = ends.map(|(side, _)| side).collect();
    if sides.is_empty() {
        return Vec::new();
    }
    vec![format!("MPTCP fell back to TCP, as the {} tells", sides.join(" and the "))]
}

/// Whether this kernel has what the workload needs, found by opening its sockets and setting their options, not by its version.
///
/// # Errors
/// What is missing, and what to do.
pub fn probe(settings: &Settings) -> Result<(), Failure> {
    endpoint::probe(settings)
}
