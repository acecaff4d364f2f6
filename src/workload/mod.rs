//! What the two ends of a cell do, one thread each: make sockets as the cell says, run an echo or a stream between them, and
//! tell what was measured. It knows nothing of namespaces: whoever calls it has put the thread where it belongs.
//!
//! Imports `settings`, `measurement`, `sys` and `units`.

mod channel;
mod echo;
mod endpoint;
mod failure;
mod limits;
mod meeting;
mod samples;
mod stream;

pub use failure::Failure;
pub use limits::BufferLimits;
pub use meeting::{ClientSeat, Control, ServerSeat, meet};

use std::net::IpAddr;
use std::time::Duration;

use crate::measurement::{Distribution, End, Measurement, Outcome};
use crate::settings::{Settings, Work};

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
    /// Round trips of the chunks.
    pub chunk_latency: Option<Distribution>,
    /// Why it did not end as it should.
    pub failure: Option<Failure>,
    /// Whether this end failed before the other, which is then a consequence.
    pub failed_first: bool,
}

/// Runs the server's end in this thread until the workload is done, failed, or called off.
pub fn serve(settings: &Settings, addresses: Addresses, limits: &BufferLimits, seat: &ServerSeat<'_>) -> Report {
    let mut report = Report::default();
    if let Err(failure) = serve_into(settings, addresses, limits, seat, &mut report) {
        report.failed_first = seat.control.call_off();
        report.failure = Some(failure);
    }
    report
}

fn serve_into(
    settings: &Settings,
    addresses: Addresses,
    limits: &BufferLimits,
    seat: &ServerSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut channel = endpoint::accept(settings, addresses, limits, seat, &mut report.end)?;
    let result = match settings.workload.kind {
        Work::Echo => echo::serve(&mut channel, &settings.workload, seat, report),
        Work::Stream => stream::serve(&mut channel, &settings.workload, seat, report),
    };
    close(channel, result, || seat.part(), seat.control, report);
    Ok(())
}

/// Closes an end: its CPU time stops at once, its buffers are read and its socket is closed when the other is done too.
fn close(
    channel: channel::Channel,
    result: Result<(), Failure>,
    part: impl FnOnce(),
    control: &Control<'_>,
    report: &mut Report,
) {
    channel.usage(&mut report.end);
    if let Err(failure) = result {
        report.failed_first = control.call_off();
        report.failure = Some(failure);
    }
    part();
    if control.evidence() {
        channel.testify(&mut report.end);
    }
    channel.finish(&mut report.end);
}

/// Runs the client's end in this thread until the workload is done, failed, or called off.
pub fn request(settings: &Settings, addresses: Addresses, limits: &BufferLimits, seat: &ClientSeat<'_>) -> Report {
    let mut report = Report::default();
    if let Err(failure) = request_into(settings, addresses, limits, seat, &mut report) {
        report.failed_first = seat.control.call_off();
        report.failure = Some(failure);
    }
    report
}

fn request_into(
    settings: &Settings,
    addresses: Addresses,
    limits: &BufferLimits,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut channel = endpoint::connect(settings, addresses, limits, seat, &mut report.end)?;
    let result = match settings.workload.kind {
        Work::Echo => echo::request(&mut channel, &settings.workload, seat, report),
        Work::Stream => stream::request(&mut channel, &settings.workload, seat, report),
    };
    close(channel, result, || seat.part(), seat.control, report);
    Ok(())
}

/// Puts the two ends' reports together. Of two failures the first is told, since the second may be
/// its consequence.
pub fn conclude(client: Report, server: Report) -> Measurement {
    let failure = if client.failed_first { client.failure } else { server.failure.or(client.failure) };
    let mut measurement = Measurement {
        outcome: Outcome::Measured,
        reason: None,
        completion_ns: client.completion_ns.or(server.completion_ns),
        goodput_bps: client.goodput_bps.or(server.goodput_bps),
        delivered_bytes: client.delivered_bytes.or(server.delivered_bytes),
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

/// Whether this kernel has what the workload needs, found by opening its sockets and not by its version.
///
/// # Errors
/// What is missing, and what to do.
pub fn probe(settings: &Settings) -> Result<(), Failure> {
    endpoint::probe(settings)
}
