//! Echo: the client sends a burst of chunks as fast as its socket takes them and reads the echoes meanwhile; the server
//! sends back whatever it reads.

use std::time::{Duration, Instant};

use crate::measurement::Recorder;
use crate::settings::{Pattern, Workload};
use crate::sys::socket::{SO_SNDBUF, Until, Wait};
use crate::units::{BitRate, Span};

use super::channel::{Arrival, Channel, read};
use super::endpoint::retry;
use super::meeting::{ClientSeat, Control, ServerSeat};
use super::silences::Watch;
use super::{Failure, Report, crowd};

/// Latencies for which memory is taken before the first send. Beyond them it is taken as they come.
pub(super) const MOST_LATENCIES: usize = 1 << 20;

/// Sends everything back until the whole burst has passed.
pub(super) fn serve(
    channel: &mut Channel,
    work: &Workload,
    seat: &ServerSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let total = work.burst_bytes() * u64::from(work.bursts);
    // A message is put together from its pieces before it is sent back, and a request is answered when all of it is there, so
    // there is room for a whole one.
    let read_size = work.read_size as usize;
    let request = work.chunk_bytes() as usize;
    let by_request = work.pattern != Pattern::Burst;
    let room = if channel.keeps_messages() || by_request { request } else { 0 };
    let mut buffer = vec![0; read_size + room];
    let mut filled = 0;
    let mut echoed = 0u64;
    channel.begin();
    while echoed < total {
        let progress = || format!("the server had echoed {echoed} of {total} bytes");
        let end = (filled + read_size).min(buffer.len());
        match channel.receive(&mut buffer[filled..end], Wait::Block) {
            Ok(Arrival::Bytes { len, ends_message }) => {
                filled += len;
                if by_request {
                    if filled < request {
                        continue;
                    }
                } else if channel.keeps_messages() && !ends_message {
                    if filled == buffer.len() {
                        return Err(Failure::Protocol(format!("a message of more than {filled} bytes arrived")));
                    }
                    continue;
                }
                send_all(channel, &buffer[..filled], seat.control, "echoing", progress)?;
                echoed += filled as u64;
                filled = 0;
                let now = Instant::now();
                seat.control.check_at(now, || format!("the server had echoed {echoed} of {total} bytes"))?;
                channel.gauge(now);
            }
            Ok(Arrival::End) => {
                return Err(Failure::PeerLeft(format!("the client closed the connection early: {}", progress())));
            }
            Err(error) if retry(&error) => seat.control.check(progress)?,
            Err(error) => return Err(Failure::moving("receiving on the server", error, progress)),
        }
    }
    report.delivered_bytes = Some(echoed);
    Ok(())
}

/// Sends all of `bytes`, blocking, in as many calls as it takes.
pub(super) fn send_all(
    channel: &Channel,
    bytes: &[u8],
    control: &Control<'_>,
    doing: &str,
    progress: impl Fn() -> String,
) -> Result<(), Failure> {
    let mut sent = 0;
    while sent < bytes.len() {
        match channel.send(&bytes[sent..], Wait::Block) {
            Ok(len) => sent += len,
            Err(error) if retry(&error) => {}
            Err(error) => return Err(sending(channel, bytes.len(), doing, error, &progress)),
        }
        if sent < bytes.len() {
            channel.until_writable(control, &progress)?;
        }
    }
    Ok(())
}

/// What an error of a send call means.
fn sending(
    channel: &Channel,
    size: usize,
    doing: &str,
    error: std::io::Error,
    progress: impl FnOnce() -> String,
) -> Failure {
    if error.raw_os_error() == Some(libc::EMSGSIZE) {
        return Failure::MessageTooLarge { size, sndbuf: read(channel.fd(), SO_SNDBUF).unwrap_or(0), error };
    }
    Failure::moving(doing, error, progress)
}

/// Where the client is in its burst.
struct Burst<'a> {
    work: &'a Workload,
    chunk: Vec<u8>,
    /// Bytes of the current chunk that the socket has taken.
    offset: usize,
    /// When the first send call of each chunk was made.
    sent_at: Vec<Instant>,
    /// Chunks that the socket has taken whole.
    sent: usize,
    received: u64,
    latencies: Recorder,
    /// Time that the burst spent in gaps.
    idle: Duration,
    watch: Watch,
}

impl Burst<'_> {
    fn begin_next(&mut self) {
        self.sent_at.clear();
        (self.offset, self.sent, self.received, self.idle) = (0, 0, 0, Duration::ZERO);
    }

    fn done_sending(&self) -> bool {
        self.sent == self.work.chunk_count as usize
    }

    fn progress(&self) -> String {
        format!(
            "{} of {} chunks were sent and {} echoed",
            self.sent,
            self.work.chunk_count,
            self.received / self.chunk.len() as u64
        )
    }

    /// Offers the rest of the current chunk to the socket. Whether it took all of it.
    fn offer(&mut self, channel: &Channel) -> Result<bool, Failure> {
        if self.offset == 0 && self.sent_at.len() == self.sent {
            self.sent_at.push(Instant::now());
        }
        match channel.send(&self.chunk[self.offset..], Wait::No) {
            Ok(len) => {
                self.offset += len;
                let whole = self.offset == self.chunk.len();
                if whole {
                    self.offset = 0;
                    self.sent += 1;
                }
                Ok(whole)
            }
            Err(error) if retry(&error) => Ok(false),
            Err(error) => Err(sending(channel, self.chunk.len(), "sending", error, || self.progress())),
        }
    }

    /// Reads echoes once. Whether there were any.
    fn collect(
        &mut self,
        channel: &mut Channel,
        buffer: &mut [u8],
        wait: Wait,
        control: &Control<'_>,
    ) -> Result<bool, Failure> {
        match channel.receive(buffer, wait) {
            Ok(Arrival::Bytes { len, .. }) => {
                let now = Instant::now();
                let size = self.chunk.len() as u64;
                let (before, after) = (self.received / size, (self.received + len as u64) / size);
                self.received += len as u64;
                for at in self.sent_at.iter().take(to_index(after)).skip(to_index(before)) {
                    self.latencies.add(Span::from(now - *at).0);
                }
                self.watch.heard(now);
                control.check_at(now, || self.progress())?;
                channel.gauge(now);
                Ok(true)
            }
            Ok(Arrival::End) => {
                Err(Failure::PeerLeft(format!("the server closed the connection early: {}", self.progress())))
            }
            Err(error) if retry(&error) => {
                if wait == Wait::Block && control.evidence() {
                    self.watch.look(channel.sctp_peer_window());
                }
                Ok(false)
            }
            Err(error) => Err(Failure::moving("receiving echoes", error, || self.progress())),
        }
    }
}

/// A number of chunks as an index: bounded by `MAX_CHUNKS`.
fn to_index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Sends the burst and reads all echoes.
pub(super) fn request(
    channel: &mut Channel,
    work: &Workload,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let count = work.chunk_count as usize;
    let bursts = work.bursts as usize;
    let mut burst = Burst {
        work,
        chunk: vec![0x5a; work.chunk_bytes() as usize],
        offset: 0,
        sent_at: Vec::with_capacity(count),
        sent: 0,
        received: 0,
        latencies: Recorder::with_capacity(count.saturating_mul(bursts).min(MOST_LATENCIES)),
        idle: Duration::ZERO,
        watch: Watch::new(Instant::now()),
    };
    let mut buffer = vec![0; work.read_size as usize];
    let mut completions = Vec::with_capacity(bursts);
    let mut delivered = 0;
    crowd::gather(seat.control)?;
    channel.begin();
    let begun = Instant::now();
    let mut idle = Duration::ZERO;
    for number in 1..=bursts {
        let start = Instant::now();
        burst.watch.again(start);
        let result = match work.pattern {
            Pattern::Burst => exchange(channel, &mut burst, &mut buffer, seat.control),
            Pattern::WriteRead | Pattern::WriteWriteRead => ask(channel, &mut burst, &mut buffer, seat.control),
        };
        completions.push(Span::from(start.elapsed().saturating_sub(burst.idle)));
        delivered += burst.received;
        report.delivered_bytes = Some(delivered);
        if let Err(failure) = result {
            burst.watch.heard(Instant::now());
            report.tell_silences(burst.watch, seat.control);
            return Err(failure);
        }
        idle += burst.idle;
        burst.begin_next();
        if number < bursts {
            idle += seat.control.pause(work.gap, || format!("{number} of {bursts} bursts were echoed"))?;
        }
    }
    let ended = Instant::now();
    let elapsed = Span::from((ended - begun).saturating_sub(idle));
    completions.sort_unstable();
    report.completion_ns = completions.get((bursts - 1) / 2).map(|span| span.0);
    report.goodput_bps = BitRate::of(delivered, if bursts == 1 { completions[0] } else { elapsed }).map(|rate| rate.0);
    report.span = idle.is_zero().then_some((begun, ended));
    report.tell_silences(burst.watch, seat.control);
    report.tell_latencies(burst.latencies, seat.control);
    Ok(())
}

/// Sends the burst's chunks one by one, and each when the one before it has been echoed.
fn ask(channel: &mut Channel, burst: &mut Burst<'_>, buffer: &mut [u8], control: &Control<'_>) -> Result<(), Failure> {
    let size = burst.chunk.len();
    let first = if burst.work.pattern == Pattern::WriteWriteRead { size / 2 } else { size };
    while !burst.done_sending() {
        let now = Instant::now();
        burst.sent_at.push(now);
        burst.watch.again(now);
        for part in [0..first, first..size].into_iter().filter(|part| !part.is_empty()) {
            send_all(channel, &burst.chunk[part], control, "sending", || burst.progress())?;
        }
        burst.sent += 1;
        while burst.received < burst.sent as u64 * size as u64 {
            if !burst.collect(channel, buffer, Wait::Block, control)? {
                control.check(|| burst.progress())?;
            }
        }
        if !burst.done_sending() {
            burst.idle += control.pause(burst.work.gap, || burst.progress())?;
        }
    }
    Ok(())
}

fn exchange(
    channel: &mut Channel,
    burst: &mut Burst<'_>,
    buffer: &mut [u8],
    control: &Control<'_>,
) -> Result<(), Failure> {
    let total = burst.work.burst_bytes();
    while !burst.done_sending() {
        let mut taken = burst.offer(channel)?;
        if burst.done_sending() {
            break;
        }
        loop {
            // Reading between the sends keeps each chunk's latency true, and a burst larger than all buffers together moving.
            let mut got = false;
            while burst.received < total && burst.collect(channel, buffer, Wait::No, control)? {
                got = true;
            }
            // What makes room for a message may be the echo of another. Bytes are not offered before there is room, see
            // `Channel::until_writable`.
            if taken || (got && channel.keeps_messages()) {
                break;
            }
            control.check(|| burst.progress())?;
            taken = channel.wait(Until::Either, control)?.writable;
        }
    }
    while burst.received < total {
        if !burst.collect(channel, buffer, Wait::Block, control)? {
            control.check(|| burst.progress())?;
        }
    }
    Ok(())
}
