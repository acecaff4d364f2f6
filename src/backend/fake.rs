//! Makes figures up, exactly, so that everything above the backends can be tested without a kernel, a clock or root.
//!
//! A completion is a millisecond, a microsecond a chunk, and a millionth of the repeat's start phase; a receive buffer of
//! 1 to 4 bytes ends in each of the outcomes without figures.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::measurement::{Buffer, End, Measurement, Metric, Number, Outcome, Recorder, Verdict};
use crate::settings::{Clock, MetricSpec, Socket, Stands, Work};
use crate::units::{BitRate, Bytes, Span};
use crate::workload::BufferLimits;

use super::{Backend, BackendError, Event, Job, Machine};

/// The backend.
#[derive(Clone, Copy, Debug)]
pub struct Fake;

impl Backend for Fake {
    fn run(
        &mut self,
        jobs: &[Job],
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<(), BackendError> {
        let machine = Machine {
            name: "fake".to_owned(),
            image: "fake".to_owned(),
            release: "0.0.0-fake".to_owned(),
            version: "#0".to_owned(),
            clock: Clock::Real,
            why: "figures are made up".to_owned(),
            limits: BufferLimits::default(),
            ..Machine::default()
        };
        if tell(Event::Machine(&machine)).is_break() {
            return Ok(());
        }
        for (index, job) in jobs.iter().enumerate() {
            if interrupted.load(Ordering::Relaxed)
                || tell(Event::Started(index)).is_break()
                || tell(Event::Ended(index, Box::new(measure(job)))).is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

fn measure(job: &Job) -> Measurement {
    let work = &job.settings.workload;
    let outcome = match job.settings.client.rcvbuf {
        Some(Bytes(1)) => Outcome::TimedOut,
        Some(Bytes(2)) => Outcome::Invalid,
        Some(Bytes(3)) => Outcome::Skipped,
        Some(Bytes(4)) => Outcome::Failed,
        _ => Outcome::Measured,
    };
    if outcome != Outcome::Measured {
        return Measurement::without_figures(outcome, format!("made up: {outcome}"));
    }
    let completion = Span(1_000_000 + 1000 * u64::from(work.chunk_count) + job.phase.0 / 1_000_000);
    let mut latencies = Recorder::with_capacity(work.chunk_count as usize);
    (0..work.chunk_count).for_each(|chunk| latencies.add(1000 * u64::from(chunk + 1)));
    let echo = work.kind == Work::Echo;
    let made_up = |metric: &MetricSpec| {
        let value = Number::new(1.5 + f64::from(work.chunk_count));
        (metric.name.clone(), Metric { value, unit: metric.unit.clone(), better: metric.better, reason: None })
    };
    let metrics = job.settings.exec.iter().flat_map(|exec| &exec.metrics);
    Measurement {
        outcome,
        completion_ns: (work.kind != Work::Stream).then_some(completion.0),
        goodput_bps: BitRate::of(work.burst_bytes_of_all(), completion).map(|rate| rate.0),
        delivered_bytes: Some(work.burst_bytes_of_all()),
        chunk_latency_ns: latencies.finish().filter(|_| echo),
        metrics: metrics.filter(|metric| metric.is == Stands::ForItself).map(made_up).collect(),
        client: end(&job.settings.client),
        server: end(&job.settings.server),
        ..Measurement::default()
    }
}

fn end(socket: &Socket) -> End {
    let buffer = |asked: Option<Bytes>| {
        let given = asked.map_or(131_072, |bytes| 2 * bytes.0);
        Buffer {
            asked: asked.map(|bytes| bytes.0),
            initial: Some(given),
            end: Some(given),
            peak: Some(given),
            verdict: Some(if asked.is_some() { Verdict::Doubled } else { Verdict::Default }),
        }
    };
    End { rcvbuf: buffer(socket.rcvbuf), sndbuf: buffer(socket.sndbuf), ..End::default() }
}
