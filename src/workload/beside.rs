//! A stream that runs beside an echo, on a connection of its own between the same two ends: what is the latency under load?

use std::thread;

use crate::measurement::Beside;
use crate::settings::{self, Workload};
use crate::units::Span;

use super::meeting::Control;
use super::{Failure, Report};

/// How often an echo looks whether the stream beside it has begun.
const LOOK_PERIOD: Span = Span(1_000_000);

/// Runs `own`, and `beside` in a thread of its own meanwhile if the workload has a stream beside it. A thread begins in the network
/// namespace of the thread that starts it.
pub(super) fn with<Seat: Send>(
    work: &Workload,
    seat: Option<Seat>,
    beside: impl FnOnce(&Workload, Seat) -> Report + Send,
    own: impl FnOnce() -> Report,
) -> Report {
    let (Some(stream), Some(seat)) = (work.stream_beside(), seat) else { return own() };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("beside".to_owned()).spawn_scoped(scope, || beside(&stream, seat));
        let mut report = own();
        let mut other = match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(other)) => other,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Report {
                failure: Some(Failure::Call { doing: "starting a thread for the stream beside".to_owned(), error }),
                failed_first: true,
                ..Report::default()
            },
        };
        let (own, failure) = (report.failure.take(), other.failure.take());
        report.failure = if other.failed_first { Failure::cause(failure, own) } else { Failure::cause(own, failure) };
        report.failed_first |= other.failed_first;
        report.beside = Some(Box::new(other));
        report
    })
}

/// Waits, before an echo, until the stream beside it has run for as long as was asked.
pub(super) fn lead(work: &Workload, control: &Control<'_>) -> Result<(), Failure> {
    if work.beside == settings::Beside::None {
        return Ok(());
    }
    let progress = || "the stream beside the echo had not begun".to_owned();
    while control.started().is_none() {
        control.pause(LOOK_PERIOD, progress)?;
    }
    control.pause(work.beside_lead, || "the echo had not begun".to_owned()).map(drop)
}

/// What both ends of the stream have to tell.
pub(super) fn conclude(client: Option<Box<Report>>, server: Option<Box<Report>>) -> Option<Box<Beside>> {
    let (client, server) = (client?, server?);
    Some(Box::new(Beside {
        goodput_bps: client.goodput_bps.or(server.goodput_bps),
        delivered_bytes: client.delivered_bytes.or(server.delivered_bytes),
        client: client.end,
        server: server.end,
    }))
}
