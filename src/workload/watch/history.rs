//! What became of each socket from look to look, and what that makes of an end's record.

use std::time::{Duration, Instant};

use crate::measurement::{Association, Buffer, End, Verdict, Watched};
use crate::settings::{Protocol, Side};
use crate::sys::diag::{self, Family, MptcpFacts, SctpFacts, Seen};
use crate::sys::socket::TcpState;
use crate::units::Span;
use crate::workload::channel::facts;
use crate::workload::samples::{Sample, Sampler};

use super::ours;

/// Most sockets that are followed. What else there is, is counted only.
const MOST: usize = 256;

/// For so many looks a subflow makes the watcher ask for its connection of MPTCP.
const NEW: u64 = 16;

/// The size of one buffer from look to look.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    first: Option<u64>,
    last: Option<u64>,
    most: Option<u64>,
}

impl Sizes {
    fn note(&mut self, size: Option<u32>) {
        let size = size.map(u64::from);
        self.first = self.first.or(size);
        self.last = size.or(self.last);
        self.most = self.most.max(size);
    }

    /// As records have it. What a program asked for is not ours to know, so nothing can be said of what became of it.
    fn buffer(self, initial: Option<u64>) -> Buffer {
        Buffer { asked: None, initial, end: self.last, peak: self.most, verdict: initial.map(|_| Verdict::Unknown) }
    }
}

/// One socket, or one association, from its first look to its last.
#[derive(Debug)]
struct Track {
    /// The last look that told each thing.
    seen: Seen,
    rcvbuf: Sizes,
    sndbuf: Sizes,
    backlog: Option<u64>,
    drops: Option<u64>,
    sampler: Sampler,
    /// Whether it was there when it was last asked for.
    open: bool,
    told_when_closed: bool,
    looks: u64,
}

impl Track {
    fn new(seen: Seen, period: Duration) -> Self {
        Self {
            seen,
            rcvbuf: Sizes::default(),
            sndbuf: Sizes::default(),
            backlog: None,
            drops: None,
            sampler: Sampler::every(period),
            open: false,
            told_when_closed: false,
            looks: 0,
        }
    }

    fn is(&self, seen: &Seen) -> bool {
        let same = self.seen.protocol == seen.protocol && self.seen.cookie == seen.cookie;
        same && self.seen.association == seen.association && (!seen.association || self.seen.peer == seen.peer)
    }

    fn note(&mut self, seen: Seen, now: Instant, begun: Instant) {
        self.open = true;
        self.looks += 1;
        if let Some(memory) = &seen.memory {
            self.rcvbuf.note(memory.rcvbuf);
            self.sndbuf.note(memory.sndbuf);
            self.backlog = self.backlog.max(memory.backlog.map(u64::from));
            self.drops = memory.drops.map(u64::from).or(self.drops);
            if !seen.listening {
                let look = || Sample::told(Some(memory), seen.tcp.as_ref(), ours(seen.protocol));
                self.sampler.note(now, begun, look);
            }
        }
        self.keep(seen);
    }

    /// Keeps what a look told, and of what it did not tell what an earlier one did.
    fn keep(&mut self, seen: Seen) {
        let before = std::mem::replace(&mut self.seen, seen);
        self.seen.memory = self.seen.memory.or(before.memory);
        self.seen.tcp = self.seen.tcp.or(before.tcp);
        self.seen.nodelay = self.seen.nodelay.or(before.nodelay);
        self.seen.congestion = self.seen.congestion.take().or(before.congestion);
        // Told of a connection only while it has its protocol on it.
        self.seen.subflow |= before.subflow;
        // One that was shut down has none of its own any more.
        if self.seen.peer.port() == 0 {
            self.seen.peer = before.peer;
        }
        if self.seen.local.port() == 0 {
            self.seen.local = before.local;
        }
    }

    /// How much it carried: bytes, of SCTP chunks.
    fn carried(&self) -> u64 {
        let sum = |sent: Option<u64>, received: Option<u64>| sent.unwrap_or(0).saturating_add(received.unwrap_or(0));
        match &self.seen {
            Seen { tcp: Some(tcp), .. } => sum(sent_once(tcp), tcp.bytes_received),
            Seen { mptcp: Some(mptcp), .. } => sum(mptcp.bytes_sent, mptcp.bytes_received),
            Seen { sctp: Some(sctp), .. } => sctp.chunks(),
            _ => 0,
        }
    }

    fn is_mptcp(&self) -> bool {
        self.seen.protocol == diag::Protocol::Mptcp
    }

    /// Whether data goes over it: of SCTP over associations, of UDP over any socket.
    fn is_connection(&self) -> bool {
        !self.seen.listening && (self.seen.protocol != diag::Protocol::Sctp || self.seen.association)
    }
}

/// Which of a namespace's sockets are an end's: all of them, or where both ends share it the server's or the client's. The server's are
/// those whose port is the server's, or one on which something listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) side: Side,
    pub(super) shared: bool,
    pub(super) server_port: u16,
}

/// All sockets, from the first look on.
#[derive(Debug)]
pub(super) struct History {
    begun: Instant,
    period: Duration,
    protocol: Protocol,
    tracks: Vec<Track>,
    /// Sockets that there was no room for.
    beyond: u64,
    looks: u64,
    cost: Duration,
    reasons: Vec<String>,
}

impl History {
    pub(super) const fn new(begun: Instant, period: Duration, protocol: Protocol) -> Self {
        Self {
            begun,
            period,
            protocol,
            tracks: Vec::new(),
            beyond: 0,
            looks: 0,
            cost: Duration::ZERO,
            reasons: Vec::new(),
        }
    }

    /// Notes why something is not known, once.
    pub(super) fn reason(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn spent(&mut self, cost: Duration) {
        self.looks += 1;
        self.cost += cost;
    }

    pub(super) const fn cost(&self) -> Duration {
        self.cost
    }

    /// Notes all sockets that there are of a protocol and a family: what is not among them is no more.
    pub(super) fn note_all(&mut self, protocol: diag::Protocol, family: Family, found: Vec<Seen>, now: Instant) {
        for track in &mut self.tracks {
            if track.seen.protocol == protocol && track.seen.local.is_ipv6() == (family == Family::Ipv6) {
                track.open = false;
            }
        }
        for seen in found {
            self.note(seen, now);
        }
    }

    /// Notes one look.
    pub(super) fn note(&mut self, seen: Seen, now: Instant) {
        let begun = self.begun;
        if let Some(track) = self.track(seen) {
            track.0.note(track.1, now, begun);
        }
    }

    /// Notes what a TCP connection was when it was closed.
    pub(super) fn note_closed(&mut self, seen: Seen) {
        // One that listened, or that never connected, has nothing to tell.
        if seen.tcp.is_none() || seen.peer.port() == 0 {
            return;
        }
        if let Some((track, seen)) = self.track(seen)
            && track.is_connection()
        {
            track.open = false;
            track.told_when_closed = true;
            track.keep(seen);
        }
    }

    /// The track of a socket, a new one where it is new and there is room.
    fn track(&mut self, seen: Seen) -> Option<(&mut Track, Seen)> {
        let at = self.tracks.iter().position(|track| track.is(&seen));
        if at.is_none() && self.tracks.len() >= MOST {
            self.beyond += 1;
            return None;
        }
        let at = at.unwrap_or_else(|| {
            self.tracks.push(Track::new(seen.clone(), self.period));
            self.tracks.len() - 1
        });
        self.tracks.get_mut(at).map(|track| (track, seen))
    }

    /// The TCP connections that are there, those first that carried the most.
    pub(super) fn open_connections(&self, most: usize) -> Vec<Seen> {
        let mut open: Vec<&Track> = self
            .tracks
            .iter()
            .filter(|track| track.open && track.seen.protocol == diag::Protocol::Tcp && track.is_connection())
            .collect();
        open.sort_by_key(|track| std::cmp::Reverse(track.carried()));
        open.truncate(most);
        open.into_iter().map(|track| track.seen.clone()).collect()
    }

    /// Whether there is a new subflow, and the connection of MPTCP that has its port was not seen. One that joined later may have none.
    pub(super) fn lacks_mptcp(&self) -> bool {
        let is_new = |track: &Track| track.open && track.looks <= NEW && track.is_connection() && track.seen.subflow;
        self.tracks.iter().filter(|track| is_new(track)).any(|subflow| {
            let port = subflow.seen.local.port();
            !self
                .tracks
                .iter()
                .any(|track| track.is_mptcp() && track.is_connection() && track.seen.local.port() == port)
        })
    }

    /// Whether a TCP connection has gone and the kernel has not yet told what it was.
    pub(super) fn is_waiting(&self) -> bool {
        self.tracks.iter().any(|track| {
            track.seen.protocol == diag::Protocol::Tcp
                && track.is_connection()
                && track.seen.peer.port() != 0
                && !track.open
                && !track.told_when_closed
        })
    }

    /// Puts what was seen into an end's record: of the connection that carried the most, of the protocol that the cell names where there is
    /// one. Samples count from `origin`.
    pub(super) fn tell(&mut self, whose: Whose, origin: Instant, cost: Duration, end: &mut End) {
        if self.beyond > 0 {
            let many = format!(
                "more than {MOST} sockets were seen, and what carried the most may not be among those followed"
            );
            self.reason(many);
        }
        let mut tracks = std::mem::take(&mut self.tracks);
        if whose.shared {
            let servers = ports(&tracks, whose.server_port);
            tracks.retain(|track| servers.contains(&track.seen.local.port()) == (whose.side == Side::Server));
        }
        let named = |track: &Track| ours(track.seen.protocol) == self.protocol;
        // Over MPTCP the subflows carry the same bytes once more.
        let hidden = tracks.iter().any(|track| track.is_mptcp() && track.is_connection());
        let is_told = |track: &Track| track.is_connection() && !(hidden && track.seen.subflow);
        // Of several that carried as much the one that was there first.
        let best = (0..tracks.len())
            .filter(|&at| is_told(&tracks[at]))
            .max_by_key(|&at| (named(&tracks[at]), tracks[at].carried(), std::cmp::Reverse(at)));
        let protocol = best.map_or(self.protocol, |at| ours(tracks[at].seen.protocol));
        let of_protocol = |track: &&Track| ours(track.seen.protocol) == protocol;
        let mut watched = Watched {
            protocol: best.map(|_| protocol.name().to_owned()),
            connections: count(tracks.iter().filter(of_protocol).filter(|track| is_told(track))),
            listeners: count(tracks.iter().filter(of_protocol).filter(|track| track.seen.listening)),
            looks: self.looks,
            period_ns: Span::from(self.period).0,
            cost_ns: Span::from(cost).0,
            reasons: std::mem::take(&mut self.reasons),
            ..Watched::default()
        };
        if let Some(at) = best {
            let initial = listener(&tracks, &tracks[at]);
            let nodelay = tracks.iter().filter(|track| track.seen.cookie == tracks[at].seen.cookie);
            end.nodelay.given = nodelay.filter_map(|track| track.seen.nodelay).next_back();
            let told = tracks.swap_remove(at);
            told.tell(initial, origin.saturating_duration_since(self.begun), end, &mut watched);
        } else {
            watched.reasons.push(format!("no {} connection of the program was seen", protocol.name()));
        }
        end.evidence.get_or_insert_default().cost_ns = Some(watched.cost_ns);
        end.watched = Some(Box::new(watched));
    }
}

impl Track {
    /// Puts what was seen of this socket into an end's record.
    fn tell(self, initial: Option<[Option<u64>; 2]>, later: Duration, end: &mut End, watched: &mut Watched) {
        let [rcvbuf, sndbuf] = initial.unwrap_or([self.rcvbuf.first, self.sndbuf.first]);
        end.rcvbuf = self.rcvbuf.buffer(rcvbuf);
        end.sndbuf = self.sndbuf.buffer(sndbuf);
        if self.looks == 0 {
            watched.reasons.push("the connection was closed before its buffers were looked at".to_owned());
        }
        let evidence = end.evidence.get_or_insert_default();
        evidence.tcp = self.seen.tcp.map(facts);
        evidence.socket_drops = self.drops;
        end.association = self.seen.sctp.as_ref().map(|sctp| Box::new(association(sctp)));
        end.fell_back = self.seen.mptcp.as_ref().and_then(|mptcp| mptcp.fell_back);
        end.samples = self.sampler.since(later).finish();
        watched.local_port = Some(self.seen.local.port());
        watched.peer_port = Some(self.seen.peer.port()).filter(|&port| port != 0);
        watched.congestion.clone_from(&self.seen.congestion);
        let Seen { tcp, mptcp, .. } = &self.seen;
        let of_mptcp = |pick: fn(&MptcpFacts) -> Option<u64>| mptcp.as_ref().and_then(pick);
        watched.sent_bytes = of_mptcp(|mptcp| mptcp.bytes_sent).or(tcp.as_ref().and_then(sent_once));
        watched.received_bytes =
            of_mptcp(|mptcp| mptcp.bytes_received).or(tcp.as_ref().and_then(|tcp| tcp.bytes_received));
        watched.backlog_peak_bytes = self.backlog;
        watched.told_when_closed = self.told_when_closed;
    }
}

/// Bytes of data that were sent, those not counted that were sent again.
fn sent_once(tcp: &TcpState) -> Option<u64> {
    Some(tcp.bytes_sent?.saturating_sub(tcp.bytes_retrans.unwrap_or(0)))
}

fn count<'a>(tracks: impl Iterator<Item = &'a Track>) -> u64 {
    tracks.count() as u64
}

/// The server's ports, where both ends are in one namespace.
fn ports(tracks: &[Track], server_port: u16) -> Vec<u16> {
    let listening = tracks.iter().filter(|track| track.seen.listening).map(|track| track.seen.local.port());
    listening.chain([server_port]).collect()
}

/// The first sizes of the buffers of the socket that a connection was accepted from, which are the ones that it began with. SCTP's associations
/// do not take them over.
fn listener(tracks: &[Track], connection: &Track) -> Option<[Option<u64>; 2]> {
    let seen = &connection.seen;
    if !matches!(seen.protocol, diag::Protocol::Tcp | diag::Protocol::Mptcp) {
        return None;
    }
    let same = |track: &&Track| {
        track.seen.listening && track.seen.protocol == seen.protocol && track.seen.local.port() == seen.local.port()
    };
    tracks.iter().find(same).map(|track| [track.rcvbuf.first, track.sndbuf.first])
}

/// An association as records have it. `SCTP_STATUS` counts its states from one (`sctp_assoc_to_state`), and tells the path's MTU and the
/// largest timeout, which this does not.
fn association(told: &SctpFacts) -> Association {
    let ms = |milliseconds: Option<u32>| milliseconds.map(|ms| u64::from(ms) * 1_000_000);
    let wide = |number: Option<u32>| number.map(u64::from);
    let half = |number: Option<u16>| number.map(u64::from);
    Association {
        state: told.state.and_then(|state| i32::try_from(state).ok()).map(|state| state + 1),
        peer_rwnd_bytes: wide(told.peer_rwnd),
        unacked_chunks: half(told.unacked),
        pending_chunks: half(told.pending),
        streams_in: half(told.streams_in),
        streams_out: half(told.streams_out),
        fragmentation_point_bytes: wide(told.fragmentation_point),
        cwnd_bytes: wide(told.cwnd),
        srtt_ns: ms(told.srtt),
        rto_ns: ms(told.rto),
        max_rto_ticks: None,
        mtu_bytes: None,
        sacks_in: told.sacks_in,
        sacks_out: told.sacks_out,
        packets_in: told.packets_in,
        packets_out: told.packets_out,
        retransmitted_chunks: told.retransmitted,
        out_of_sequence_chunks: told.out_of_sequence,
        duplicate_chunks_in: told.duplicates_in,
        gaps: told.gaps,
        unordered_chunks_in: told.unordered_in,
        unordered_chunks_out: told.unordered_out,
        ordered_chunks_in: told.ordered_in,
        ordered_chunks_out: told.ordered_out,
        control_chunks_in: told.control_in,
        control_chunks_out: told.control_out,
    }
}
