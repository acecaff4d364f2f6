//! Stream: one end sends as fast as the other takes it, for a time or up to a number of bytes. The receiver counts.

use std::net::Shutdown;
use std::time::Instant;

use crate::measurement::End;
use crate::settings::{Direction, Workload};
use crate::sys::socket::Wait;
use crate::units::{BitRate, Span};

use super::channel::{Arrival, Channel};
use super::echo::send_all;
use super::endpoint::retry;
use super::in_place::InPlace;
use super::meeting::{ClientSeat, Control, ServerSeat};
use super::silences::Watch;
use super::{Failure, Report, crowd};

/// First byte of a message of the stream, for protocols that keep messages.
const DATA: u8 = 0;
/// First byte of the message that ends the stream.
const LAST: u8 = 1;
/// What the client sends to have a download begin. Its arrival also tells a one-to-many server who the client is.
const GO: [u8; 1] = [2];

/// The server's end of a stream.
pub(super) fn serve(
    channel: &mut Channel,
    work: &Workload,
    seat: &ServerSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    match work.direction {
        Direction::Upload => receive_stream(channel, work, seat.control, report),
        Direction::Download => {
            await_go(channel, seat.control)?;
            send_stream(channel, work, seat.control, &mut report.end)
        }
    }
}

/// The client's end of a stream.
pub(super) fn request(
    channel: &mut Channel,
    work: &Workload,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    match work.direction {
        Direction::Upload => {
            crowd::gather(seat.control)?;
            send_stream(channel, work, seat.control, &mut report.end)
        }
        Direction::Download => {
            crowd::gather(seat.control)?;
            send_all(channel, &GO, seat.control, "asking for the stream", || "nothing was sent".to_owned())?;
            receive_stream(channel, work, seat.control, report)
        }
    }
}

fn await_go(channel: &mut Channel, control: &Control<'_>) -> Result<(), Failure> {
    let mut buffer = [0; 16];
    loop {
        match channel.receive(&mut buffer, Wait::Block) {
            Ok(Arrival::Bytes { len: 0, .. }) => {}
            Ok(Arrival::Bytes { .. }) => return Ok(()),
            Ok(Arrival::End) => return Err(Failure::PeerLeft("the client left before the stream began".to_owned())),
            Err(error) if retry(&error) => control.check(|| "the client never asked for the stream".to_owned())?,
            Err(error) => {
                return Err(Failure::moving("waiting for the client", error, || "nothing had arrived".to_owned()));
            }
        }
    }
}

/// Sends until the time is over or the bytes are sent, then tells the receiver that this was all.
fn send_stream(channel: &mut Channel, work: &Workload, control: &Control<'_>, told: &mut End) -> Result<(), Failure> {
    let chunk = vec![DATA; work.chunk_bytes() as usize];
    let limit = work.bytes.map_or(u64::MAX, |bytes| bytes.0);
    let mut in_place = work.zerocopy.then(|| InPlace::new(channel)).transpose()?;
    channel.begin();
    let start = control.start();
    let end = work.stream_duration().map(|span| start + span.duration());
    let mut sent = 0u64;
    loop {
        let now = Instant::now();
        if sent >= limit || end.is_some_and(|end| now >= end) || control.beside_is_over() {
            break;
        }
        control.check_at(now, || format!("{sent} bytes were sent"))?;
        channel.gauge(now);
        channel.sample(now, Some(start));
        let size = usize::try_from((limit - sent).min(chunk.len() as u64)).unwrap_or(chunk.len());
        let progress = || format!("{sent} bytes were sent");
        match &mut in_place {
            Some(sender) => sender.send_all(channel, &chunk[..size], control, progress)?,
            None => send_all(channel, &chunk[..size], control, "streaming", progress)?,
        }
        sent += size as u64;
    }
    if channel.keeps_messages() {
        send_all(channel, &[LAST], control, "ending the stream", || format!("{sent} bytes were sent"))
    } else {
        channel
            .socket()
            .shutdown(Shutdown::Write)
            .map_err(|error| Failure::Call { doing: "ending the stream".to_owned(), error })?;
        if let Some(sender) = in_place {
            told.zerocopy = Some(sender.finish(channel, control)?);
        }
        Ok(())
    }
}

/// What the receiver counts.
#[derive(Default)]
pub(super) struct Count {
    pub(super) delivered: u64,
    /// The arrival from which goodput counts: the first one, or the first after the omitted time. Its own bytes came
    /// before the time that is measured, so they are not counted.
    origin: Option<(Instant, u64)>,
    first: Option<Instant>,
    pub(super) last: Option<Instant>,
}

impl Count {
    pub(super) fn add(&mut self, len: usize, now: Instant, omit: Span) {
        self.delivered += len as u64;
        let first = *self.first.get_or_insert(now);
        if self.origin.is_none() && now - first >= omit.duration() {
            self.origin = Some((now, self.delivered));
        }
        self.last = Some(now);
    }

    /// Bits per second between the origin and the last arrival, `None` if nothing arrived between them.
    pub(super) fn goodput(&self) -> Option<u64> {
        let (counted, (origin, last)) = self.counted()?;
        BitRate::of(counted, Span::from(last - origin)).map(|rate| rate.0)
    }

    /// Tells what was counted, and the completion of a stream with an end of its own of which all (`whole`) has arrived.
    pub(super) fn tell(&self, work: &Workload, control: &Control<'_>, whole: bool, report: &mut Report) {
        report.goodput_bps = self.goodput();
        report.counted = self.counted();
        if work.bytes.is_some()
            && whole
            && let (Some(start), Some(last)) = (control.started(), self.last)
        {
            report.completion_ns = Some(Span::from(last - start).0);
            report.span = Some((start, last));
        }
    }

    /// Bytes that arrived after the origin, and the instants of the origin and the last arrival.
    pub(super) fn counted(&self) -> Option<(u64, (Instant, Instant))> {
        let (origin, before) = self.origin?;
        let counted = self.delivered - before;
        if counted == 0 { None } else { Some((counted, (origin, self.last?))) }
    }
}

fn receive_stream(
    channel: &mut Channel,
    work: &Workload,
    control: &Control<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut buffer = vec![0; work.read_size as usize];
    let mut count = Count::default();
    channel.begin();
    // It is not known before the first arrival when the sender began.
    let mut watch = None;
    let result = drain(channel, &mut buffer, work, control, &mut count, &mut watch);
    report.delivered_bytes = Some(count.delivered);
    if let Some(mut watch) = watch {
        if result.is_err() {
            watch.heard(Instant::now());
        }
        report.tell_silences(watch, control);
    }
    result?;
    count.tell(work, control, true, report);
    Ok(())
}

/// Reads to the end of the stream.
fn drain(
    channel: &mut Channel,
    buffer: &mut [u8],
    work: &Workload,
    control: &Control<'_>,
    count: &mut Count,
    watch: &mut Option<Watch>,
) -> Result<(), Failure> {
    let mut message_begins = true;
    loop {
        match channel.receive(buffer, Wait::Fill) {
            Ok(Arrival::Bytes { len: 0, .. }) => {}
            Ok(Arrival::Bytes { len, ends_message }) => {
                if channel.keeps_messages() && message_begins && buffer[0] == LAST {
                    return Ok(());
                }
                message_begins = ends_message;
                let now = Instant::now();
                count.add(len, now, work.omit);
                watch.get_or_insert_with(|| Watch::new(control.started().unwrap_or(now))).heard(now);
                control.check_at(now, || format!("{} bytes had arrived", count.delivered))?;
                channel.gauge(now);
                channel.sample(now, control.started());
                if work.read_pause.0 > 0 {
                    control.pause(work.read_pause, || format!("{} bytes had arrived", count.delivered))?;
                    let now = Instant::now();
                    // What came while nobody read lies there now.
                    channel.sample(now, control.started());
                    if let Some(watch) = watch {
                        watch.again(now);
                    }
                }
            }
            Ok(Arrival::End) => return Ok(()),
            Err(error) if retry(&error) => {
                control.check(|| format!("{} bytes had arrived", count.delivered))?;
                channel.sample(Instant::now(), control.started());
            }
            Err(error) => {
                return Err(Failure::moving("receiving the stream", error, || {
                    format!("{} bytes had arrived", count.delivered)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Count;
    use crate::units::Span;
    use std::time::{Duration, Instant};

    #[test]
    fn goodput_counts_what_arrived_within_the_time_that_is_measured() {
        let start = Instant::now();
        let mut count = Count::default();
        for step in 0..=10 {
            count.add(1000, start + Duration::from_millis(step), Span(5_000_000));
        }
        // Origin at 5 ms; five arrivals of 1000 bytes follow within 5 ms.
        assert_eq!(count.goodput(), Some(8_000_000));
        assert_eq!(count.delivered, 11_000);
    }

    #[test]
    fn a_single_arrival_has_no_rate() {
        let mut count = Count::default();
        count.add(1000, Instant::now(), Span(0));
        assert_eq!(count.goodput(), None);
    }
}
