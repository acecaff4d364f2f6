//! A connected end: sends and receives the same way for each protocol, and watches its own buffers and CPU time meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::{SockAddr, Socket};

use crate::measurement::{End, TcpFacts};
use crate::settings::{self, Protocol};
use crate::sys::option::TCP_QUICKACK;
use crate::sys::process::{Usage, thread_usage};
use crate::sys::sctp;
use crate::sys::socket::{
    IntOption, Piece, Readiness, SCTP_NODELAY, SO_RCVBUF, SO_SNDBUF, TCP_NODELAY, TcpState, Until, Wait, get_int,
    memory, receive, receive_message, send, set_int, tcp_state, wait,
};

use crate::units::Span;

use super::Failure;
use super::meeting::Control;
use super::options;
use super::samples::{Sampler, queued};

/// How often the buffers are looked at while a workload runs: one `getsockopt` call each time.
const GAUGE_PERIOD: Duration = Duration::from_millis(1);

/// Who is at the other end.
#[derive(Debug)]
enum Peer {
    /// The socket is connected to it.
    Connected,
    /// Every message names it (one-to-many). `None` until something has come from it.
    Named(Option<SockAddr>),
}

/// A connected end.
#[derive(Debug)]
pub(super) struct Channel {
    socket: Socket,
    protocol: Protocol,
    peer: Peer,
    gauge: Gauge,
    sampler: Sampler,
    usage: Usage,
    /// Whether quick acknowledgements are asked for before each receive call.
    quickack: bool,
}

/// The largest buffer sizes seen, and the most in them.
#[derive(Debug)]
struct Gauge {
    next: Instant,
    rcvbuf: Option<u64>,
    sndbuf: Option<u64>,
    rcvbuf_used: Option<u64>,
    sndbuf_used: Option<u64>,
}

impl Gauge {
    const fn new(next: Instant) -> Self {
        Self { next, rcvbuf: None, sndbuf: None, rcvbuf_used: None, sndbuf_used: None }
    }

    fn look(&mut self, socket: BorrowedFd<'_>, protocol: Protocol) {
        let wide = |value: Option<u32>| value.map(u64::from);
        // One call for all four, where the kernel knows it.
        let (rcvbuf, sndbuf) = match memory(socket) {
            Ok(memory) => {
                self.rcvbuf_used = self.rcvbuf_used.max(wide(memory.rmem_alloc));
                self.sndbuf_used = self.sndbuf_used.max(wide(queued(&memory, protocol)));
                (wide(memory.rcvbuf), wide(memory.sndbuf))
            }
            Err(_) => (read(socket, SO_RCVBUF), read(socket, SO_SNDBUF)),
        };
        self.rcvbuf = self.rcvbuf.max(rcvbuf);
        self.sndbuf = self.sndbuf.max(sndbuf);
    }
}

/// What a receive call brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// So many bytes.
    Bytes {
        /// Their number.
        len: usize,
        /// Whether they end a message. Never, for a protocol without messages.
        ends_message: bool,
    },
    /// The peer has closed its end.
    End,
}

impl Channel {
    /// An end that is connected to its peer.
    pub(super) fn connected(socket: Socket, protocol: Protocol) -> Self {
        Self::new(socket, protocol, Peer::Connected)
    }

    /// An end whose messages name their receiver: `peer`, or whoever is heard first.
    pub(super) fn one_to_many(socket: Socket, peer: Option<SockAddr>) -> Self {
        Self::new(socket, Protocol::Sctp, Peer::Named(peer))
    }

    fn new(socket: Socket, protocol: Protocol, peer: Peer) -> Self {
        let gauge = Gauge::new(Instant::now());
        Self { socket, protocol, peer, gauge, sampler: Sampler::default(), usage: Usage::default(), quickack: false }
    }

    /// The same end, which does before each call what its socket's options ask for.
    pub(super) fn asking(mut self, asked: &settings::Socket) -> Self {
        self.quickack = options::quickack_before_each_read(asked);
        self
    }

    /// Whether the protocol keeps messages apart.
    pub(super) const fn keeps_messages(&self) -> bool {
        match self.protocol {
            Protocol::Tcp | Protocol::Mptcp => false,
            Protocol::Sctp | Protocol::Udp => true,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends bytes, or one message. Returns how many were taken.
    pub(super) fn send(&self, bytes: &[u8], wait: Wait) -> io::Result<usize> {
        let to = match &self.peer {
            Peer::Connected => None,
            Peer::Named(Some(peer)) => Some(peer),
            Peer::Named(None) => return Err(io::ErrorKind::NotConnected.into()),
        };
        send(self.fd(), bytes, to, wait)
    }

    /// Waits until a socket that has not taken all it was offered takes bytes again.
    ///
    /// Whoever offers bytes anew without waiting, as when a blocked call is over after its slice of time, has them taken however full the
    /// buffer is: `tcp_sendmsg_locked` looks at the buffer's size (`sk_stream_memory_free`) before it begins a segment of up to 64 KiB, not
    /// before it fills one up that was sent in part, and `mptcp_sendmsg` likewise. Repeated in each slice, that let a buffer of 64 KiB
    /// hold a megabyte. For messages there is nothing to wait for: each send is checked.
    pub(super) fn until_writable(&self, control: &Control<'_>, progress: impl Fn() -> String) -> Result<(), Failure> {
        loop {
            control.check(&progress)?;
            if self.keeps_messages() || self.wait(Until::Writable, control)?.writable {
                return Ok(());
            }
        }
    }

    /// Waits for the socket, no longer than until the next look at the deadline is due.
    pub(super) fn wait(&self, until: Until, control: &Control<'_>) -> Result<Readiness, Failure> {
        wait(self.fd(), until, control.patience())
            .map_err(|error| Failure::Call { doing: "waiting for the socket".to_owned(), error })
    }

    /// Receives the next bytes, or the next piece of a message.
    pub(super) fn receive(&mut self, into: &mut [u8], wait: Wait) -> io::Result<Arrival> {
        if self.quickack {
            set_int(self.fd(), TCP_QUICKACK, 1)?;
        }
        if self.protocol == Protocol::Udp {
            // A datagram without bytes is no end, and none is cut off: buffers hold the largest that is sent.
            let len = receive(self.fd(), into, wait)?;
            return Ok(Arrival::Bytes { len, ends_message: true });
        }
        if !self.keeps_messages() {
            return Ok(match receive(self.fd(), into, wait)? {
                0 => Arrival::End,
                len => Arrival::Bytes { len, ends_message: false },
            });
        }
        let Piece { len, ends_message, notification, from } = receive_message(self.fd(), into, wait)?;
        if notification {
            return Ok(Arrival::Bytes { len: 0, ends_message: false });
        }
        match &mut self.peer {
            Peer::Connected if len == 0 => return Ok(Arrival::End),
            Peer::Named(peer) if peer.is_none() => *peer = Some(from),
            Peer::Connected | Peer::Named(_) => {}
        }
        Ok(Arrival::Bytes { len, ends_message })
    }

    /// Marks the begin of the time whose CPU use is told.
    pub(super) fn begin(&mut self) {
        self.usage = thread_usage().unwrap_or_default();
    }

    /// Looks at the size of the buffers, if the last look is long enough ago.
    pub(super) fn gauge(&mut self, now: Instant) {
        if now < self.gauge.next {
            return;
        }
        self.gauge.next = now + GAUGE_PERIOD;
        self.gauge.look(self.socket.as_fd(), self.protocol);
    }

    /// Takes a sample of buffers and windows, if the last one is long enough ago. None before `start`.
    pub(super) fn sample(&mut self, now: Instant, start: Option<Instant>) {
        if let Some(start) = start {
            self.sampler.look(self.socket.as_fd(), self.protocol, now, start);
        }
    }

    /// Tells what this end has used since [`Channel::begin`].
    pub(super) fn usage(&self, end: &mut End) {
        if let Ok(usage) = thread_usage() {
            let used = usage.since(self.usage);
            end.cpu_user_ns = Some(used.user_ns);
            end.cpu_system_ns = Some(used.system_ns);
            end.voluntary_switches = Some(used.voluntary_switches);
            end.involuntary_switches = Some(used.involuntary_switches);
        }
    }

    /// Tells what the kernel knows of the connection.
    pub(super) fn testify(&self, end: &mut End) {
        let begun = Instant::now();
        let evidence = end.evidence.get_or_insert_default();
        if self.protocol == Protocol::Tcp {
            evidence.tcp = tcp_state(self.fd()).ok().map(facts);
        }
        evidence.rcvbuf_used_peak_bytes = self.gauge.rcvbuf_used;
        evidence.sndbuf_used_peak_bytes = self.gauge.sndbuf_used;
        evidence.socket_drops = memory(self.fd()).ok().and_then(|memory| memory.drops).map(u64::from);
        evidence.cost_ns = Some(Span::from(begun.elapsed()).0);
    }

    /// The window of an SCTP peer, in bytes.
    pub(super) fn sctp_peer_window(&self) -> Option<u32> {
        if self.protocol != Protocol::Sctp {
            return None;
        }
        let association = sctp::association(self.fd()).unwrap_or(sctp::FUTURE);
        sctp::status(self.fd(), association).ok().map(|status| status.rwnd)
    }

    /// Tells what this end was given.
    pub(super) fn finish(&mut self, end: &mut End) {
        end.rcvbuf.end = read(self.fd(), SO_RCVBUF);
        end.rcvbuf.peak = self.gauge.rcvbuf.max(end.rcvbuf.end).max(end.rcvbuf.initial);
        end.sndbuf.end = read(self.fd(), SO_SNDBUF);
        end.sndbuf.peak = self.gauge.sndbuf.max(end.sndbuf.end).max(end.sndbuf.initial);
        end.nodelay.given =
            nodelay_of(self.protocol).and_then(|option| get_int(self.fd(), option).ok()).map(|given| given != 0);
        let ipv6 = self.socket.local_addr().is_ok_and(|address| address.is_ipv6());
        options::finish(self.fd(), ipv6, self.protocol, end);
        end.samples = std::mem::take(&mut self.sampler).finish();
    }
}

/// What `tcpi_min_rtt` is before a round trip was measured (`tcp_init_sock`, net/ipv4/tcp.c); `tcpi_rtt` is 0 then. None ever is where all was
/// sent twice and there are no timestamps (Karn's algorithm).
const NO_MIN_RTT: u32 = u32::MAX;

/// The kernel's own units as ours.
pub(super) fn facts(state: TcpState) -> TcpFacts {
    let wide = |value: Option<u32>| value.map(u64::from);
    let nanoseconds = |micros: Option<u64>| micros.map(|micros| micros * 1000);
    let mss = wide(state.snd_mss);
    // `TCP_INFINITE_SSTHRESH` (include/net/tcp.h): slow start has not ended.
    let ssthresh = state.snd_ssthresh.filter(|&segments| segments != 0x7fff_ffff);
    TcpFacts {
        busy_ns: nanoseconds(state.busy_us),
        rwnd_limited_ns: nanoseconds(state.rwnd_limited_us),
        sndbuf_limited_ns: nanoseconds(state.sndbuf_limited_us),
        retransmits: wide(state.total_retrans),
        sent_bytes: state.bytes_sent,
        retransmitted_bytes: state.bytes_retrans,
        rtt_ns: nanoseconds(wide(state.rtt_us.filter(|&rtt| rtt != 0))),
        min_rtt_ns: nanoseconds(wide(state.min_rtt_us.filter(|&rtt| rtt != NO_MIN_RTT))),
        cwnd_bytes: wide(state.snd_cwnd).zip(mss).map(|(cwnd, mss)| cwnd * mss),
        ssthresh_bytes: wide(ssthresh).zip(mss).map(|(segments, mss)| segments * mss),
        snd_wnd_bytes: wide(state.snd_wnd),
        rcv_wnd_bytes: wide(state.rcv_wnd),
        mss_bytes: mss,
        snd_wscale: state.snd_wscale.map(u64::from),
        rcv_wscale: state.rcv_wscale.map(u64::from),
    }
}

/// The no-delay option of a protocol, if it has one.
pub(super) const fn nodelay_of(protocol: Protocol) -> Option<IntOption> {
    match protocol {
        Protocol::Tcp | Protocol::Mptcp => Some(TCP_NODELAY),
        Protocol::Sctp => Some(SCTP_NODELAY),
        Protocol::Udp => None,
    }
}

/// A size as the kernel has it.
pub(super) fn read(socket: BorrowedFd<'_>, option: IntOption) -> Option<u64> {
    get_int(socket, option).ok().and_then(|size| u64::try_from(size).ok())
}

#[cfg(test)]
mod tests {
    use super::facts;
    use crate::sys::socket::tcp_state;
    use socket2::{Domain, Protocol, Socket, Type};
    use std::os::fd::AsFd;

    #[test]
    fn a_round_trip_that_was_never_measured_is_none() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
        let state = tcp_state(socket.as_fd()).expect("told");
        assert_eq!((state.rtt_us, state.min_rtt_us), (Some(0), Some(u32::MAX)), "as the kernel tells it");
        let told = facts(state);
        assert_eq!((told.rtt_ns, told.min_rtt_ns), (None, None));
    }
}
