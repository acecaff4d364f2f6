//! Samples of a socket while a stream runs: at a bounded rate, a bounded number, two system calls each.
//!
//! An end's own thread takes them between its calls, so no other thread disturbs what is measured, and there are none while
//! the end sleeps in a call.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::measurement::Samples;
use crate::settings::Protocol;
use crate::sys::socket::{Memory, TcpState, memory, tcp_state};
use crate::units::Span;

/// Shortest time from one sample to the next.
const FIRST_PERIOD: Duration = Duration::from_millis(1);
/// Most samples of one end. When they are reached, every second one is dropped and the period doubles, so that a stream of
/// any length ends with between half as many and as many, evenly spread.
const MOST: usize = 256;

/// One look at a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    t_ns: u64,
    rcvbuf: Option<u64>,
    rcvbuf_used: Option<u64>,
    sndbuf: Option<u64>,
    sndbuf_used: Option<u64>,
    rcv_wnd: Option<u64>,
    snd_wnd: Option<u64>,
    cwnd: Option<u64>,
    rtt_ns: Option<u64>,
}

impl Sample {
    fn of(socket: BorrowedFd<'_>, protocol: Protocol) -> Self {
        let state = if protocol == Protocol::Tcp { tcp_state(socket).ok() } else { None };
        Self::told(memory(socket).ok().as_ref(), state.as_ref(), protocol)
    }

    /// What a socket's memory and, of TCP, its state tell, at no instant yet.
    pub(super) fn told(memory: Option<&Memory>, state: Option<&TcpState>, protocol: Protocol) -> Self {
        let mut sample = Self::default();
        if let Some(memory) = memory {
            sample.rcvbuf = memory.rcvbuf.map(u64::from);
            sample.rcvbuf_used = memory.rmem_alloc.map(u64::from);
            sample.sndbuf = memory.sndbuf.map(u64::from);
            sample.sndbuf_used = queued(memory, protocol).map(u64::from);
        }
        if let Some(state) = state {
            sample.rcv_wnd = state.rcv_wnd.map(u64::from);
            sample.snd_wnd = state.snd_wnd.map(u64::from);
            sample.cwnd = state.snd_cwnd.zip(state.snd_mss).map(|(cwnd, mss)| u64::from(cwnd) * u64::from(mss));
            sample.rtt_ns = state.rtt_us.map(|rtt| u64::from(rtt) * 1000);
        }
        sample
    }
}

/// What a protocol charges against the size of its send buffer: `sk_stream_wspace` and `sctp_wspace` take
/// `sk_wmem_queued` from it, `sock_alloc_send_pskb` compares it with `sk_wmem_alloc`.
pub(super) const fn queued(memory: &Memory, protocol: Protocol) -> Option<u32> {
    match protocol {
        Protocol::Tcp | Protocol::Mptcp | Protocol::Sctp => memory.wmem_queued,
        Protocol::Udp => memory.wmem_alloc,
    }
}

/// Takes samples. Has no memory until the first one.
#[derive(Debug)]
pub(super) struct Sampler {
    period: Duration,
    next: Option<Instant>,
    taken: Vec<Sample>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { period: FIRST_PERIOD, next: None, taken: Vec::new() }
    }
}

impl Sampler {
    /// One whose shortest time from one sample to the next is another.
    pub(super) fn every(period: Duration) -> Self {
        Self { period, ..Self::default() }
    }

    /// Looks at a socket, if the last look is long enough ago. `start` is the instant that both ends count from.
    pub(super) fn look(&mut self, socket: BorrowedFd<'_>, protocol: Protocol, now: Instant, start: Instant) {
        self.note(now, start, || Sample::of(socket, protocol));
    }

    /// Keeps a look at a socket, if the last one is long enough ago.
    pub(super) fn note(&mut self, now: Instant, start: Instant, look: impl FnOnce() -> Sample) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        let t_ns = Span::from(now.saturating_duration_since(start)).0;
        self.add(Sample { t_ns, ..look() });
        self.next = Some(now + self.period);
    }

    fn add(&mut self, sample: Sample) {
        if self.taken.is_empty() {
            self.taken.reserve_exact(MOST);
        }
        if self.taken.len() == MOST {
            let mut keep = false;
            self.taken.retain(|_| {
                keep = !keep;
                keep
            });
            self.period *= 2;
        }
        self.taken.push(sample);
    }

    /// Counts from an instant that is known only now, so much after the one that was counted from. What was before is left out.
    pub(super) fn since(mut self, later: Duration) -> Self {
        let later = Span::from(later).0;
        self.taken.retain(|sample| sample.t_ns >= later);
        self.taken.iter_mut().for_each(|sample| sample.t_ns -= later);
        self
    }

    /// All of them in columns, or `None` where none were taken.
    pub(super) fn finish(self) -> Option<Samples> {
        if self.taken.is_empty() {
            return None;
        }
        let column = |pick: fn(&Sample) -> Option<u64>| self.taken.iter().map(pick).collect::<Option<Vec<u64>>>();
        Some(Samples {
            t_ns: self.taken.iter().map(|sample| sample.t_ns).collect(),
            rcvbuf_bytes: column(|sample| sample.rcvbuf),
            rcvbuf_used_bytes: column(|sample| sample.rcvbuf_used),
            sndbuf_bytes: column(|sample| sample.sndbuf),
            sndbuf_used_bytes: column(|sample| sample.sndbuf_used),
            rcv_wnd_bytes: column(|sample| sample.rcv_wnd),
            snd_wnd_bytes: column(|sample| sample.snd_wnd),
            cwnd_bytes: column(|sample| sample.cwnd),
            rtt_ns: column(|sample| sample.rtt_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_PERIOD, MOST, Sample, Sampler};
    use crate::settings::Protocol;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    #[test]
    fn a_stream_of_any_length_ends_with_a_bounded_number_evenly_spread() {
        let mut sampler = Sampler::default();
        for t_ns in 0..5 * MOST as u64 {
            // As `look` would, were each sample taken on time.
            if t_ns.is_multiple_of(u64::try_from(sampler.period.as_millis()).expect("small")) {
                sampler.add(Sample { t_ns, ..Sample::default() });
            }
        }
        assert_eq!(sampler.period, FIRST_PERIOD * 8);
        let told = sampler.finish().expect("told");
        assert!((MOST / 2..=MOST).contains(&told.len()), "{}", told.len());
        assert!(told.t_ns.windows(2).all(|pair| pair[1] - pair[0] == 8), "{:?}", told.t_ns);
        assert_eq!((told.t_ns[0], told.rcvbuf_bytes), (0, None), "what was not told is no column of zeros");
    }

    #[test]
    fn a_socket_is_looked_at_once_in_a_period() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        client.write_all(&[7; 1000]).expect("sent");
        let mut byte = [0];
        assert_eq!(server.peek(&mut byte).expect("arrived"), 1);
        let start = Instant::now();
        let mut sampler = Sampler::default();
        for micros in [0, 10, 999, 1000, 1500] {
            sampler.look(server.as_fd(), Protocol::Tcp, start + Duration::from_micros(micros), start);
        }
        let told = sampler.finish().expect("told");
        assert_eq!(told.t_ns, [0, 1_000_000]);
        let of = |column: &Option<Vec<u64>>| column.as_ref().map(|column| column[0]);
        let (size, used) = (of(&told.rcvbuf_bytes).expect("a size"), of(&told.rcvbuf_used_bytes).expect("a use"));
        assert!((1000..=size).contains(&used), "1000 bytes lie unread: {used} of {size}");
        assert_eq!(of(&told.sndbuf_used_bytes), Some(0), "nothing was sent");
        assert!(of(&told.cwnd_bytes).is_some_and(|cwnd| cwnd > 536), "{told:?}");
        assert!(of(&told.snd_wnd_bytes).is_some_and(|window| window > 0), "{told:?}");
        assert!(of(&told.rtt_ns).is_some(), "{told:?}");
    }
}
