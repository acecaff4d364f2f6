//! Echo and stream over UDP. Each chunk is a datagram that carries its number, so that the lost, the doubled and the reordered are told
//! apart. What is missing after a time without arrivals counts as lost: nothing waits for it for ever.

use std::time::{Duration, Instant};

use crate::measurement::Recorder;
use crate::settings::{Direction, Pattern, Workload};
use crate::sys::socket::{SO_SNDBUF, Until, Wait, wait};
use crate::units::{BitRate, Span};

use super::channel::{Arrival, Channel, read};
use super::echo::MOST_LATENCIES;
use super::endpoint::retry;
use super::meeting::{ClientSeat, Control, ServerSeat};
use super::stream::Count;
use super::{Failure, Report, crowd};

/// Bytes of a number, first in each datagram, big end first.
const NUMBER: usize = Workload::NUMBER_BYTES as usize;
/// The number of the datagram that wakes the other end when all is done.
const LAST: u64 = u64::MAX;
/// The number of the datagram that greets the server: it asks for a download, and is answered otherwise.
const GO: u64 = u64::MAX - 1;

/// Which numbers have arrived.
#[derive(Debug, Default)]
struct Seen {
    bits: Vec<u64>,
    count: u64,
    duplicated: u64,
}

impl Seen {
    /// Marks a number. Whether it is new.
    fn mark(&mut self, number: u64) -> bool {
        let (Ok(word), bit) = (usize::try_from(number / 64), 1u64 << (number % 64)) else { return false };
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        if new {
            self.count += 1;
        } else {
            self.duplicated += 1;
        }
        new
    }
}

/// The number of a datagram, if it is long enough to have one.
fn number_of(datagram: &[u8]) -> Option<u64> {
    datagram.first_chunk::<NUMBER>().map(|bytes| u64::from_be_bytes(*bytes))
}

fn put_number(datagram: &mut [u8], number: u64) {
    if let Some(bytes) = datagram.first_chunk_mut::<NUMBER>() {
        *bytes = number.to_be_bytes();
    }
}

/// What an error of sending a datagram means.
fn sending(channel: &Channel, size: usize, error: std::io::Error, progress: impl FnOnce() -> String) -> Failure {
    match error.raw_os_error() {
        // Fragments beyond twice the send buffer are refused (`__ip_append_data`).
        Some(libc::ENOBUFS | libc::EMSGSIZE) => Failure::Refused {
            what: format!(
                "a datagram of {size} bytes with a send buffer of {} bytes: use a smaller chunk_size or a larger sndbuf",
                read(channel.fd(), SO_SNDBUF).unwrap_or(0)
            ),
            error,
        },
        _ => Failure::moving("sending a datagram", error, progress),
    }
}

/// Sends one datagram, blocking.
fn send_one(
    channel: &Channel,
    datagram: &[u8],
    control: &Control<'_>,
    progress: impl Fn() -> String,
) -> Result<(), Failure> {
    loop {
        match channel.send(datagram, Wait::Block) {
            Ok(_) => return Ok(()),
            Err(error) if retry(&error) => control.check(&progress)?,
            Err(error) => return Err(sending(channel, datagram.len(), error, progress)),
        }
    }
}

/// Tells the other end that all is sent, and wakes it. A lost wake-up costs it a slice of time.
fn conclude(channel: &Channel, control: &Control<'_>, sent: u64) {
    control.all_sent(sent);
    let _lost_if_it_fails = channel.send(&LAST.to_be_bytes(), Wait::No);
}

/// Greets the server until it answers. Neighbours are then known to both ends (which over IPv6 may take a second), as they are after the
/// handshake of another protocol.
fn greet(channel: &mut Channel, control: &Control<'_>) -> Result<(), Failure> {
    let progress = || "the server never answered the greeting".to_owned();
    let mut buffer = [0; NUMBER];
    send_one(channel, &GO.to_be_bytes(), control, progress)?;
    loop {
        match channel.receive(&mut buffer, Wait::Block) {
            Ok(Arrival::Bytes { len, .. }) if number_of(&buffer[..len]) == Some(GO) => return Ok(()),
            Ok(_) => {}
            Err(error) if retry(&error) => {
                control.check(progress)?;
                send_one(channel, &GO.to_be_bytes(), control, progress)?;
            }
            Err(error) => return Err(Failure::moving("greeting the server", error, progress)),
        }
    }
}

/// The server's end of an echo: sends every datagram back until the client is done.
pub(super) fn serve_echo(channel: &mut Channel, work: &Workload, seat: &ServerSeat<'_>) -> Result<(), Failure> {
    let mut buffer = vec![0; work.read_size as usize];
    let mut echoed = 0u64;
    channel.begin();
    while seat.control.sent().is_none() {
        let progress = || format!("the server had echoed {echoed} datagrams");
        match channel.receive(&mut buffer, Wait::Block) {
            Ok(Arrival::Bytes { len, .. }) => {
                if number_of(&buffer[..len]) == Some(LAST) {
                    continue;
                }
                send_one(channel, &buffer[..len], seat.control, progress)?;
                echoed += 1;
                let now = Instant::now();
                seat.control.check_at(now, || format!("the server had echoed {echoed} datagrams"))?;
                channel.gauge(now);
            }
            Ok(Arrival::End) => {}
            Err(error) if retry(&error) => seat.control.check(progress)?,
            Err(error) => return Err(Failure::moving("receiving on the server", error, progress)),
        }
    }
    Ok(())
}

/// The client's end of an echo.
struct Echo<'a> {
    work: &'a Workload,
    chunk: Vec<u8>,
    buffer: Vec<u8>,
    /// When each chunk of this burst was sent.
    sent_at: Vec<Instant>,
    /// The number of this burst's first chunk.
    base: u64,
    /// Chunks of this burst that have come back.
    back: u64,
    /// Chunks of this burst that were given up.
    given_up: u64,
    /// Time that this burst spent in gaps.
    idle: Duration,
    /// When something arrived last, or was sent.
    last: Instant,
    seen: Seen,
    latencies: Recorder,
}

impl Echo<'_> {
    fn progress(&self) -> String {
        format!("{} of {} chunks were sent and {} echoed", self.sent_at.len(), self.work.chunk_count, self.back)
    }

    /// Offers the next chunk to the socket. Whether it was taken.
    fn offer(&mut self, channel: &Channel) -> Result<bool, Failure> {
        let number = self.base + self.sent_at.len() as u64;
        put_number(&mut self.chunk, number);
        let now = Instant::now();
        match channel.send(&self.chunk, Wait::No) {
            Ok(_) => {
                self.sent_at.push(now);
                self.last = now;
                Ok(true)
            }
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(sending(channel, self.chunk.len(), error, || self.progress())),
        }
    }

    /// Reads one echo if there is one. Whether there was.
    fn collect(&mut self, channel: &mut Channel, control: &Control<'_>) -> Result<bool, Failure> {
        match channel.receive(&mut self.buffer, Wait::No) {
            Ok(Arrival::Bytes { len, .. }) => {
                let now = Instant::now();
                if let Some(number) = number_of(&self.buffer[..len]).filter(|number| *number < GO)
                    && self.seen.mark(number)
                    // Of an earlier burst it was given up for lost already.
                    && let Some(at) = number.checked_sub(self.base).and_then(|place| self.sent_at.get(usize::try_from(place).ok()?))
                {
                    self.latencies.add(Span::from(now - *at).0);
                    self.back += 1;
                    self.last = now;
                }
                control.check_at(now, || self.progress())?;
                channel.gauge(now);
                Ok(true)
            }
            Ok(Arrival::End) => Ok(true),
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(Failure::moving("receiving echoes", error, || self.progress())),
        }
    }

    /// Reads echoes until all that was sent of this burst is back, or the quiet period gives up what is not.
    fn settle(&mut self, channel: &mut Channel, control: &Control<'_>) -> Result<(), Failure> {
        let quiet = self.work.quiet.duration();
        while self.back + self.given_up < self.sent_at.len() as u64 {
            if self.collect(channel, control)? {
                continue;
            }
            let left = quiet.saturating_sub(self.last.elapsed());
            if left.is_zero() {
                self.given_up = self.sent_at.len() as u64 - self.back;
                break;
            }
            control.check(|| self.progress())?;
            poll(channel, Until::Readable, left.min(control.patience()))?;
        }
        Ok(())
    }

    /// Sends one burst and reads its echoes.
    fn burst(&mut self, channel: &mut Channel, control: &Control<'_>) -> Result<(), Failure> {
        let count = self.work.chunk_count as usize;
        while self.sent_at.len() < count {
            if !self.offer(channel)? {
                control.check(|| self.progress())?;
                poll(channel, Until::Either, control.patience())?;
                while self.collect(channel, control)? {}
                continue;
            }
            match self.work.pattern {
                Pattern::Burst => while self.collect(channel, control)? {},
                Pattern::WriteRead | Pattern::WriteWriteRead => {
                    self.settle(channel, control)?;
                    if self.sent_at.len() < count {
                        self.idle += control.pause(self.work.gap, || self.progress())?;
                    }
                }
            }
        }
        self.settle(channel, control)
    }
}

fn poll(channel: &Channel, until: Until, at_most: Duration) -> Result<(), Failure> {
    wait(channel.fd(), until, at_most)
        .map(drop)
        .map_err(|error| Failure::Call { doing: "waiting for the socket".to_owned(), error })
}

/// Sends the bursts and reads the echoes.
pub(super) fn request_echo(
    channel: &mut Channel,
    work: &Workload,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let count = work.chunk_count as usize;
    let bursts = work.bursts as usize;
    let mut echo = Echo {
        work,
        chunk: vec![0x5a; work.chunk_bytes() as usize],
        buffer: vec![0; work.read_size as usize],
        sent_at: Vec::with_capacity(count),
        base: 0,
        back: 0,
        given_up: 0,
        idle: Duration::ZERO,
        last: Instant::now(),
        seen: Seen::default(),
        latencies: Recorder::with_capacity(count.saturating_mul(bursts).min(MOST_LATENCIES)),
    };
    let mut completions = Vec::with_capacity(bursts);
    let mut given_up = 0;
    greet(channel, seat.control)?;
    let mut all = 0u64;
    let mut idle = Duration::ZERO;
    crowd::gather(seat.control)?;
    channel.begin();
    let first = Instant::now();
    for burst in 0..bursts {
        let begun = Instant::now();
        let result = echo.burst(channel, seat.control);
        all += echo.sent_at.len() as u64;
        report.delivered_bytes = Some(echo.seen.count * u64::from(work.chunk_bytes()));
        report.lost_chunks = Some(all - echo.seen.count);
        report.duplicated_chunks = Some(echo.seen.duplicated);
        result?;
        given_up += echo.given_up;
        idle += echo.idle;
        completions.push(Span::from((echo.last - begun).saturating_sub(echo.idle)));
        echo.base = all;
        echo.sent_at.clear();
        (echo.back, echo.given_up, echo.idle) = (0, 0, Duration::ZERO);
        if burst + 1 < bursts {
            idle += seat.control.pause(work.gap, || echo.progress())?;
        }
    }
    conclude(channel, seat.control, all);
    if given_up > 0 {
        let lost = all - echo.seen.count;
        return Err(Failure::Incomplete { lost, late: given_up.saturating_sub(lost), sent: all, quiet: work.quiet });
    }
    let total = Span(completions.iter().map(|completion| completion.0).sum());
    completions.sort_unstable();
    report.completion_ns = completions.get((bursts - 1) / 2).map(|span| span.0);
    report.goodput_bps = report.delivered_bytes.and_then(|bytes| BitRate::of(bytes, total)).map(|rate| rate.0);
    report.span = idle.is_zero().then_some((first, echo.last));
    report.tell_latencies(echo.latencies, seat.control);
    Ok(())
}

/// The server's end of a stream.
pub(super) fn serve_stream(
    channel: &mut Channel,
    work: &Workload,
    seat: &ServerSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    match work.direction {
        Direction::Upload => receive_stream(channel, work, seat.control, report),
        Direction::Download => {
            await_go(channel, work, seat.control)?;
            send_stream(channel, work, seat.control)
        }
    }
}

/// The client's end of a stream.
pub(super) fn request_stream(
    channel: &mut Channel,
    work: &Workload,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    match work.direction {
        Direction::Upload => {
            greet(channel, seat.control)?;
            crowd::gather(seat.control)?;
            send_stream(channel, work, seat.control)
        }
        Direction::Download => {
            crowd::gather(seat.control)?;
            receive_stream(channel, work, seat.control, report)
        }
    }
}

fn await_go(channel: &mut Channel, work: &Workload, control: &Control<'_>) -> Result<(), Failure> {
    let mut buffer = vec![0; work.read_size as usize];
    let progress = || "the client never asked for the stream".to_owned();
    loop {
        match channel.receive(&mut buffer, Wait::Block) {
            Ok(_) => return Ok(()),
            Err(error) if retry(&error) => control.check(progress)?,
            Err(error) => return Err(Failure::moving("waiting for the client", error, progress)),
        }
    }
}

/// Sends numbered datagrams until the time is over or the bytes are sent.
fn send_stream(channel: &mut Channel, work: &Workload, control: &Control<'_>) -> Result<(), Failure> {
    let mut chunk = vec![0x5a; work.chunk_bytes() as usize];
    let limit = work.bytes.map_or(u64::MAX, |bytes| bytes.0);
    channel.begin();
    let start = control.start();
    let end = work.stream_duration().map(|span| start + span.duration());
    let (mut sent, mut bytes) = (0u64, 0u64);
    loop {
        let now = Instant::now();
        if bytes >= limit || end.is_some_and(|end| now >= end) {
            break;
        }
        control.check_at(now, || format!("{sent} datagrams were sent"))?;
        channel.gauge(now);
        channel.sample(now, Some(start));
        put_number(&mut chunk, sent);
        // The last one is no shorter than its number.
        let size = usize::try_from(limit - bytes).unwrap_or(usize::MAX).clamp(NUMBER, chunk.len());
        send_one(channel, &chunk[..size], control, || format!("{sent} datagrams were sent"))?;
        sent += 1;
        bytes += size as u64;
    }
    conclude(channel, control, sent);
    Ok(())
}

fn receive_stream(
    channel: &mut Channel,
    work: &Workload,
    control: &Control<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut count = Count::default();
    let mut seen = Seen::default();
    channel.begin();
    let result = drain(channel, work, control, &mut count, &mut seen);
    report.delivered_bytes = Some(count.delivered);
    report.duplicated_chunks = Some(seen.duplicated);
    report.lost_chunks = control.sent().map(|sent| sent.saturating_sub(seen.count));
    result?;
    count.tell(work, control, report.lost_chunks == Some(0), report);
    Ok(())
}

/// Reads until all that was sent is there, or until it has been quiet for long enough after the sender was done.
fn drain(
    channel: &mut Channel,
    work: &Workload,
    control: &Control<'_>,
    count: &mut Count,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let mut buffer = vec![0; work.read_size as usize];
    let quiet = work.quiet.duration();
    let mut last = Instant::now();
    let asks = work.direction == Direction::Download;
    if asks {
        send_one(channel, &GO.to_be_bytes(), control, || "nothing was sent".to_owned())?;
    }
    loop {
        if let Some(sent) = control.sent()
            && (seen.count >= sent || last.elapsed() >= quiet)
        {
            return Ok(());
        }
        let progress = |count: &Count| format!("{} bytes had arrived", count.delivered);
        match channel.receive(&mut buffer, Wait::Block) {
            Ok(Arrival::Bytes { len, .. }) => {
                let now = Instant::now();
                let number = number_of(&buffer[..len]);
                if number == Some(GO) {
                    send_one(channel, &GO.to_be_bytes(), control, || progress(count))?;
                }
                if number.is_some_and(|number| number < GO && seen.mark(number)) {
                    count.add(len, now, work.omit);
                    last = now;
                }
                control.check_at(now, || progress(count))?;
                channel.gauge(now);
                channel.sample(now, control.started());
                control.pause(work.read_pause, || progress(count))?;
            }
            Ok(Arrival::End) => {}
            Err(error) if retry(&error) => {
                control.check(|| progress(count))?;
                if asks && seen.count == 0 && control.sent().is_none() {
                    // What asked for the stream may have been lost.
                    send_one(channel, &GO.to_be_bytes(), control, || "nothing had arrived".to_owned())?;
                }
            }
            Err(error) => return Err(Failure::moving("receiving the stream", error, || progress(count))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NUMBER, Seen, number_of, put_number};

    #[test]
    fn numbers_are_told_apart() {
        let mut seen = Seen::default();
        assert!(seen.mark(3) && seen.mark(200) && seen.mark(0));
        assert!(!seen.mark(200) && !seen.mark(3) && !seen.mark(3));
        assert_eq!((seen.count, seen.duplicated), (3, 3));
    }

    #[test]
    fn a_number_survives_its_datagram() {
        let mut datagram = [0x5a; NUMBER + 3];
        put_number(&mut datagram, 77);
        assert_eq!(number_of(&datagram), Some(77));
        assert_eq!(number_of(&datagram[..NUMBER - 1]), None);
    }
}
