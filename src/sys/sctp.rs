//! Options of SCTP sockets (RFC 6458) that are structures, as include/uapi/linux/sctp.h lays them out, and what the kernel knows of an
//! association.
//!
//! An association is named by its id. 0 names the endpoint, and with it the associations to come (`SCTP_FUTURE_ASSOC`); on a
//! one-to-one socket that has an association, that one.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;
use super::socket::IntOption;

/// Id of an association (`sctp_assoc_t`).
pub type Association = i32;

/// The endpoint and the associations to come.
pub const FUTURE: Association = 0;

const RTOINFO: libc::c_int = 0;
const INITMSG: libc::c_int = 2;
const PEER_ADDR_PARAMS: libc::c_int = 9;
const EVENTS: libc::c_int = 11;
const STATUS: libc::c_int = 14;
const GET_PEER_ADDR_INFO: libc::c_int = 15;
const DELAYED_SACK: libc::c_int = 16;
const GET_ASSOC_ID_LIST: libc::c_int = 29;
const DEFAULT_SNDINFO: libc::c_int = 34;
const GET_ASSOC_STATS: libc::c_int = 112;
const DEFAULT_PRINFO: libc::c_int = 114;

/// `SCTP_AUTOCLOSE`, in seconds, one-to-many sockets only.
pub const AUTOCLOSE: IntOption = IntOption::new(libc::IPPROTO_SCTP, 4, "SCTP_AUTOCLOSE");
/// `SCTP_FRAGMENT_INTERLEAVE`.
pub const FRAGMENT_INTERLEAVE: IntOption = IntOption::new(libc::IPPROTO_SCTP, 18, "SCTP_FRAGMENT_INTERLEAVE");

/// A structure that the kernel reads and writes as bytes.
///
/// # Safety
/// Every pattern of bytes must be a value of the type.
unsafe trait Plain: Copy {
    /// All zero.
    fn zeroed() -> Self {
        // SAFETY: every pattern of bytes is a value.
        unsafe { mem::zeroed() }
    }
}

fn set<T: Plain>(socket: BorrowedFd<'_>, number: libc::c_int, value: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_SCTP, number, std::ptr::from_ref(value).cast(), length)
    })
    .map(drop)
}

/// `value` says what is asked, such as the id of the association, and comes back filled in.
fn get<T: Plain>(socket: BorrowedFd<'_>, number: libc::c_int, mut value: T) -> io::Result<T> {
    let mut length = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the pointers are to `value` and to its length, both of which outlive the call; whatever the kernel writes is a
    // value of the type.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_SCTP, number, (&raw mut value).cast(), &raw mut length)
    })?;
    Ok(value)
}

/// Declares structures of integers, for which every pattern of bytes is a value.
macro_rules! plain {
    ($($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy)]
        struct $name { $($field: $type),+ }
        // SAFETY: it has nothing but integers and arrays of them.
        unsafe impl Plain for $name {}
    )+};
}

/// `struct sockaddr_storage`.
type Storage = [u8; 128];

plain! {
    #[repr(C)]
    struct RtoInfo { association: Association, initial: u32, max: u32, min: u32 }

    #[repr(C)]
    struct InitMsg { streams_out: u16, streams_in: u16, attempts: u16, timeout: u16 }

    #[repr(C, packed)]
    struct PeerParams {
        association: Association,
        address: Storage,
        heartbeat: u32,
        retransmissions: u16,
        mtu: u32,
        sack_delay: u32,
        flags: u32,
        flow_label: u32,
        dscp: u8,
        // The kernel's structure is aligned to 4.
        padding: u8,
    }

    #[repr(C)]
    struct SackInfo { association: Association, delay: u32, frequency: u32 }

    #[repr(C)]
    struct AssocValue { association: Association, value: u32 }

    #[repr(C)]
    struct SendInfo { stream: u16, flags: u16, protocol: u32, context: u32, association: Association }

    #[repr(C)]
    struct PrInfo { association: Association, value: u32, policy: u16, padding: u16 }

    #[repr(C, packed)]
    struct PeerInfo {
        association: Association,
        address: Storage,
        state: i32,
        cwnd: u32,
        srtt: u32,
        rto: u32,
        mtu: u32,
    }

    #[repr(C)]
    struct RawStatus {
        association: Association,
        state: i32,
        rwnd: u32,
        unacked: u16,
        pending: u16,
        streams_in: u16,
        streams_out: u16,
        fragmentation_point: u32,
        primary: PeerInfo,
    }

    #[repr(C)]
    struct AssocIds { count: u32, first: Association }

    #[repr(C)]
    struct RawStatistics {
        association: Association,
        // The address that follows is aligned to 8.
        padding: u32,
        address: Storage,
        counters: Statistics,
    }
}

/// Retransmission timeouts in milliseconds (`SCTP_RTOINFO`). 0, when set, leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rto {
    /// The first one.
    pub initial: u32,
    /// The smallest one.
    pub min: u32,
    /// The largest one.
    pub max: u32,
}

/// Sets retransmission timeouts.
///
/// # Errors
/// What `setsockopt(2)` says: `EINVAL` where the smallest is above the largest.
pub fn set_rto(socket: BorrowedFd<'_>, rto: Rto) -> io::Result<()> {
    set(socket, RTOINFO, &RtoInfo { association: FUTURE, initial: rto.initial, max: rto.max, min: rto.min })
}

/// Reads retransmission timeouts.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn rto(socket: BorrowedFd<'_>, association: Association) -> io::Result<Rto> {
    let RtoInfo { initial, min, max, .. } = get(socket, RTOINFO, RtoInfo { association, ..RtoInfo::zeroed() })?;
    Ok(Rto { initial, min, max })
}

/// When acknowledgements are sent (`SCTP_DELAYED_SACK`). 0, when set, leaves a part as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Milliseconds that one is delayed for.
    pub delay: u32,
    /// Packets after which none is delayed; 1 turns the delay off.
    pub frequency: u32,
}

/// Sets when acknowledgements are sent.
///
/// # Errors
/// What `setsockopt(2)` says: `EINVAL` for more than 500 ms (`sctp_setsockopt_delayed_ack`, RFC 9260, section 6.2).
pub fn set_sack(socket: BorrowedFd<'_>, sack: Sack) -> io::Result<()> {
    set(socket, DELAYED_SACK, &SackInfo { association: FUTURE, delay: sack.delay, frequency: sack.frequency })
}

/// Reads when acknowledgements are sent.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn sack(socket: BorrowedFd<'_>, association: Association) -> io::Result<Sack> {
    let SackInfo { delay, frequency, .. } = get(socket, DELAYED_SACK, SackInfo { association, ..SackInfo::zeroed() })?;
    Ok(Sack { delay, frequency })
}

/// Streams of the associations to come (`SCTP_INITMSG`). 0, when set, leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Asked for.
    pub out: u16,
    /// Allowed to the peer.
    pub within: u16,
}

/// Sets the streams of the associations to come.
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_streams(socket: BorrowedFd<'_>, streams: Streams) -> io::Result<()> {
    set(socket, INITMSG, &InitMsg { streams_out: streams.out, streams_in: streams.within, ..InitMsg::zeroed() })
}

/// Reads the streams of the associations to come.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn streams(socket: BorrowedFd<'_>) -> io::Result<Streams> {
    let InitMsg { streams_out, streams_in, .. } = get(socket, INITMSG, InitMsg::zeroed())?;
    Ok(Streams { out: streams_out, within: streams_in })
}

/// An option that is one number of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueOption {
    number: libc::c_int,
    /// As RFC 6458 writes it.
    pub name: &'static str,
}

/// `SCTP_MAXSEG`.
pub const MAXSEG: ValueOption = ValueOption { number: 13, name: "SCTP_MAXSEG" };
/// `SCTP_MAX_BURST`.
pub const MAX_BURST: ValueOption = ValueOption { number: 20, name: "SCTP_MAX_BURST" };

/// Sets a number of the associations to come, or of a one-to-one socket's own.
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_value(socket: BorrowedFd<'_>, option: ValueOption, value: u32) -> io::Result<()> {
    set(socket, option.number, &AssocValue { association: FUTURE, value })
}

/// Reads a number of an association.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn value(socket: BorrowedFd<'_>, option: ValueOption, association: Association) -> io::Result<u32> {
    get(socket, option.number, AssocValue { association, value: 0 }).map(|read| read.value)
}

/// Bit of `snd_flags` for a message without an order (`SCTP_UNORDERED`).
const UNORDERED: u16 = 1;

/// Sends messages without an order, or in order (`SCTP_DEFAULT_SNDINFO`, since Linux 3.17). It also undoes [`set_lifetime`], since both are flags of
/// the same word.
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_unordered(socket: BorrowedFd<'_>, unordered: bool) -> io::Result<()> {
    set(socket, DEFAULT_SNDINFO, &SendInfo { flags: if unordered { UNORDERED } else { 0 }, ..SendInfo::zeroed() })
}

/// Whether messages are sent without an order.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn unordered(socket: BorrowedFd<'_>, association: Association) -> io::Result<bool> {
    get(socket, DEFAULT_SNDINFO, SendInfo { association, ..SendInfo::zeroed() }).map(|info| info.flags & UNORDERED != 0)
}

/// The policy by which a message is given up after a time (`SCTP_PR_SCTP_TTL`).
const PR_TTL: u16 = 0x10;

/// Gives messages up after so many milliseconds (`SCTP_DEFAULT_PRINFO`, RFC 3758; since Linux 4.8).
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_lifetime(socket: BorrowedFd<'_>, milliseconds: u32) -> io::Result<()> {
    set(socket, DEFAULT_PRINFO, &PrInfo { value: milliseconds, policy: PR_TTL, ..PrInfo::zeroed() })
}

/// After how many milliseconds messages are given up: 0 for never.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn lifetime(socket: BorrowedFd<'_>, association: Association) -> io::Result<u32> {
    get(socket, DEFAULT_PRINFO, PrInfo { association, ..PrInfo::zeroed() })
        .map(|info| if info.policy == PR_TTL { info.value } else { 0 })
}

/// Flags of `SCTP_PEER_ADDR_PARAMS` for heartbeats.
const HEARTBEAT_ON: u32 = 1;
const HEARTBEAT_OFF: u32 = 2;

/// Sends heartbeats on idle paths with so many milliseconds between them (`SCTP_PEER_ADDR_PARAMS`); 0 turns them off.
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_heartbeat(socket: BorrowedFd<'_>, milliseconds: u32) -> io::Result<()> {
    let flags = if milliseconds == 0 { HEARTBEAT_OFF } else { HEARTBEAT_ON };
    set(socket, PEER_ADDR_PARAMS, &PeerParams { heartbeat: milliseconds, flags, ..PeerParams::zeroed() })
}

/// Milliseconds between heartbeats: 0 for none.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn heartbeat(socket: BorrowedFd<'_>, association: Association) -> io::Result<u32> {
    let params = get(socket, PEER_ADDR_PARAMS, PeerParams { association, ..PeerParams::zeroed() })?;
    Ok(if params.flags & HEARTBEAT_OFF != 0 { 0 } else { params.heartbeat })
}

/// Which notifications a socket is subscribed to: the first seven of `struct sctp_event_subscribe`, data, association, address, send
/// failure, peer error, shutdown and partial delivery. Every kernel with SCTP knows these.
pub type Events = [bool; 7];

// SAFETY: it is an array of bytes.
unsafe impl Plain for [u8; 7] {}

/// Subscribes to notifications, and from all others of the seven (`SCTP_EVENTS`).
///
/// # Errors
/// What `setsockopt(2)` says.
pub fn set_events(socket: BorrowedFd<'_>, events: Events) -> io::Result<()> {
    set(socket, EVENTS, &events.map(u8::from))
}

/// Which notifications the socket is subscribed to.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn events(socket: BorrowedFd<'_>) -> io::Result<Events> {
    get(socket, EVENTS, [0u8; 7]).map(|events| events.map(|event| event != 0))
}

/// The id of the socket's one association: [`FUTURE`] where it has none, or several.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn association(socket: BorrowedFd<'_>) -> io::Result<Association> {
    match get(socket, GET_ASSOC_ID_LIST, AssocIds::zeroed()) {
        Ok(AssocIds { count: 1, first }) => Ok(first),
        Ok(_) => Ok(FUTURE),
        // More than one does not fit.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(FUTURE),
        Err(error) => Err(error),
    }
}

/// An association as `SCTP_STATUS` and `SCTP_GET_PEER_ADDR_INFO` (of its primary path) tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// `enum sctp_sstat_state`: 4 is established.
    pub state: i32,
    /// The peer's receive window in bytes.
    pub rwnd: u32,
    /// Chunks sent and not acknowledged.
    pub unacked: u16,
    /// Chunks received and not read.
    pub pending: u16,
    /// Streams of the peer.
    pub streams_in: u16,
    /// Streams to the peer.
    pub streams_out: u16,
    /// Bytes beyond which a message is cut into chunks.
    pub fragmentation_point: u32,
    /// Congestion window of the path in bytes.
    pub cwnd: u32,
    /// Smoothed round trip of the path in milliseconds.
    pub srtt: u32,
    /// Retransmission timeout of the path in milliseconds.
    pub rto: u32,
    /// MTU of the path in bytes.
    pub mtu: u32,
}

/// Reads the state of an association and of its primary path.
///
/// # Errors
/// What `getsockopt(2)` says: `EINVAL` where there is no such association.
pub fn status(socket: BorrowedFd<'_>, association: Association) -> io::Result<Status> {
    let raw = get(socket, STATUS, RawStatus { association, ..RawStatus::zeroed() })?;
    let asked = PeerInfo { association, address: raw.primary.address, ..PeerInfo::zeroed() };
    let path = get(socket, GET_PEER_ADDR_INFO, asked)?;
    Ok(Status {
        state: raw.state,
        rwnd: raw.rwnd,
        unacked: raw.unacked,
        pending: raw.pending,
        streams_in: raw.streams_in,
        streams_out: raw.streams_out,
        fragmentation_point: raw.fragmentation_point,
        cwnd: path.cwnd,
        srtt: path.srtt,
        rto: path.rto,
        mtu: path.mtu,
    })
}

/// Counters of an association (`SCTP_GET_ASSOC_STATS`, since Linux 3.8), in the kernel's order (`struct sctp_assoc_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Statistics {
    /// Largest retransmission timeout since the last look, in ticks of the kernel's timer: unlike other times it is not converted
    /// (`sctp_getsockopt_assoc_stats`, net/sctp/socket.c).
    pub max_rto: u64,
    /// Acknowledgements received.
    pub sacks_in: u64,
    /// Acknowledgements sent.
    pub sacks_out: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Packets received.
    pub packets_in: u64,
    /// Chunks sent again.
    pub retransmitted: u64,
    /// Chunks received out of sequence.
    pub out_of_sequence: u64,
    /// Chunks received twice.
    pub duplicates_in: u64,
    /// Gaps reported by the peer.
    pub gaps: u64,
    /// Chunks sent without an order.
    pub unordered_out: u64,
    /// Chunks received without an order.
    pub unordered_in: u64,
    /// Chunks sent in order.
    pub ordered_out: u64,
    /// Chunks received in order.
    pub ordered_in: u64,
    /// Control chunks sent.
    pub control_out: u64,
    /// Control chunks received.
    pub control_in: u64,
}

/// Reads the counters of an association, and sets back its largest retransmission timeout.
///
/// # Errors
/// What `getsockopt(2)` says: `EINVAL` where there is no such association.
pub fn statistics(socket: BorrowedFd<'_>, association: Association) -> io::Result<Statistics> {
    get(socket, GET_ASSOC_STATS, RawStatistics { association, ..RawStatistics::zeroed() }).map(|raw| raw.counters)
}

#[cfg(test)]
mod tests {
    use super::{AssocIds, InitMsg, PeerInfo, PeerParams, PrInfo, RawStatistics, RawStatus, SendInfo};

    /// Sizes as a C compiler has them for include/uapi/linux/sctp.h.
    #[test]
    fn structures_are_as_large_as_the_kernels() {
        assert_eq!(size_of::<InitMsg>(), 8);
        assert_eq!(size_of::<PeerParams>(), 156);
        assert_eq!(size_of::<SendInfo>(), 16);
        assert_eq!(size_of::<PrInfo>(), 12);
        assert_eq!(size_of::<PeerInfo>(), 152);
        assert_eq!(size_of::<RawStatus>(), 176);
        assert_eq!(size_of::<AssocIds>(), 8);
        assert_eq!(size_of::<RawStatistics>(), 256);
    }
}
