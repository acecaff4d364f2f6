//! Socket options and messages.

use std::io;
use std::mem::{self, offset_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockAddr, SockAddrStorage};

use super::{check, check_len};

/// Level of the SCTP options, and the protocol number of SCTP (RFC 9260).
pub const IPPROTO_SCTP: i32 = libc::IPPROTO_SCTP;
/// The protocol number of MPTCP, which is no number of the Internet protocol (include/uapi/linux/in.h).
pub const IPPROTO_MPTCP: i32 = libc::IPPROTO_MPTCP;

/// An integer socket option: its level, its number, and its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntOption {
    level: libc::c_int,
    number: libc::c_int,
    /// As the manual pages write it.
    pub name: &'static str,
}

impl IntOption {
    pub(super) const fn new(level: libc::c_int, number: libc::c_int, name: &'static str) -> Self {
        Self { level, number, name }
    }
}

/// `SO_RCVBUF`: `sock_setsockopt` doubles what is asked and bounds it (net/core/sock.c).
pub const SO_RCVBUF: IntOption = IntOption { level: libc::SOL_SOCKET, number: libc::SO_RCVBUF, name: "SO_RCVBUF" };
/// `SO_SNDBUF`: likewise.
pub const SO_SNDBUF: IntOption = IntOption { level: libc::SOL_SOCKET, number: libc::SO_SNDBUF, name: "SO_SNDBUF" };
/// `TCP_NODELAY`: Nagle's algorithm off (RFC 9293, section 3.7.4).
pub const TCP_NODELAY: IntOption =
    IntOption { level: libc::IPPROTO_TCP, number: libc::TCP_NODELAY, name: "TCP_NODELAY" };
/// `SCTP_NODELAY`: the same for SCTP (RFC 6458, section 8.1.5).
pub const SCTP_NODELAY: IntOption =
    IntOption { level: libc::IPPROTO_SCTP, number: libc::SCTP_NODELAY, name: "SCTP_NODELAY" };

/// Sets an integer option.
///
/// # Errors
/// What `setsockopt(2)` says: `ENOPROTOOPT` where the kernel does not know the option.
pub fn set_int(socket: BorrowedFd<'_>, option: IntOption, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), option.level, option.number, (&raw const value).cast(), INT_LENGTH)
    })
    .map(drop)
}

/// Reads an integer option.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn get_int(socket: BorrowedFd<'_>, option: IntOption) -> io::Result<i32> {
    let mut value = 0i32;
    let mut length = INT_LENGTH;
    // SAFETY: the pointers are to `value` and to its length, both of which outlive the call.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), option.level, option.number, (&raw mut value).cast(), &raw mut length)
    })?;
    Ok(value)
}

/// What a socket has of the kernel's memory, in bytes that count the kernel's own overhead: the same that `SO_RCVBUF` and
/// `SO_SNDBUF` bound. `None` where this kernel does not tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Received and not yet read: `sk_rmem_alloc`.
    pub rmem_alloc: Option<u32>,
    /// `sk_rcvbuf`.
    pub rcvbuf: Option<u32>,
    /// Handed to the layers below and not yet freed by them: `sk_wmem_alloc`. What UDP charges against its send buffer.
    pub wmem_alloc: Option<u32>,
    /// `sk_sndbuf`.
    pub sndbuf: Option<u32>,
    /// Queued to be sent, or sent and not yet acknowledged: `sk_wmem_queued`. What TCP and SCTP charge against theirs.
    pub wmem_queued: Option<u32>,
    /// Received while a call holds the socket, and not yet looked at: `sk_backlog.len`.
    pub backlog: Option<u32>,
    /// Packets dropped for want of room, or damaged: `sk_drops`.
    pub drops: Option<u32>,
}

/// Reads the memory of a socket in one call: `SO_MEMINFO`, since Linux 4.12 (`sk_get_meminfo`, net/core/sock.c).
///
/// `SIOCINQ` and `SIOCOUTQ` count bytes of data instead, which cannot be compared with the sizes, and SCTP has no `SIOCOUTQ`.
///
/// # Errors
/// What `getsockopt(2)` says: `ENOPROTOOPT` where the kernel does not know the option.
pub fn memory(socket: BorrowedFd<'_>) -> io::Result<Memory> {
    let mut words = [0u32; 16];
    let mut length = libc::socklen_t::try_from(size_of_val(&words)).unwrap_or(0);
    // SAFETY: the pointers are to `words`, whose size is `length`, and to `length`; both outlive the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    let told = words.get(..length as usize / size_of::<u32>()).unwrap_or(&[]);
    let word = |index: libc::c_int| usize::try_from(index).ok().and_then(|index| told.get(index)).copied();
    Ok(Memory {
        rmem_alloc: word(libc::SK_MEMINFO_RMEM_ALLOC),
        rcvbuf: word(libc::SK_MEMINFO_RCVBUF),
        wmem_alloc: word(libc::SK_MEMINFO_WMEM_ALLOC),
        sndbuf: word(libc::SK_MEMINFO_SNDBUF),
        wmem_queued: word(libc::SK_MEMINFO_WMEM_QUEUED),
        backlog: word(libc::SK_MEMINFO_BACKLOG),
        drops: word(libc::SK_MEMINFO_DROPS),
    })
}

/// What a TCP connection knows of itself. `None` where this kernel does not tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// Bytes of data in a segment that is sent.
    pub snd_mss: Option<u32>,
    /// The congestion window, in segments.
    pub snd_cwnd: Option<u32>,
    /// The smoothed round trip, in microseconds.
    pub rtt_us: Option<u32>,
    /// The window that the peer offers, after scaling, in bytes. Since Linux 5.4.
    pub snd_wnd: Option<u32>,
    /// The window that this end offers, after scaling, in bytes. Since Linux 6.2.
    pub rcv_wnd: Option<u32>,
    /// The congestion window at which slow start ends, in segments.
    pub snd_ssthresh: Option<u32>,
    /// The smallest round trip seen, in microseconds.
    pub min_rtt_us: Option<u32>,
    /// Segments sent again.
    pub total_retrans: Option<u32>,
    /// Time in which there was something to send or to be acknowledged, in microseconds.
    pub busy_us: Option<u64>,
    /// Time in which the peer's window kept it from sending, in microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Time in which its own send buffer did, in microseconds.
    pub sndbuf_limited_us: Option<u64>,
    /// Bytes of data sent, those sent again among them.
    pub bytes_sent: Option<u64>,
    /// Bytes of data sent again.
    pub bytes_retrans: Option<u64>,
    /// Bytes of data received in order. Since Linux 4.1.
    pub bytes_received: Option<u64>,
    /// Window scale that the peer asked for, as a power of two.
    pub snd_wscale: Option<u8>,
    /// Window scale that this end asked for.
    pub rcv_wscale: Option<u8>,
}

/// Reads the state of a TCP connection: `TCP_INFO` (`tcp_get_info`, net/ipv4/tcp.c). A kernel writes as much of the
/// structure as it knows and says how much that is.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn tcp_state(socket: BorrowedFd<'_>) -> io::Result<TcpState> {
    // SAFETY: all-zero is a valid `tcp_info`: it holds integers only.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&info)).unwrap_or(0);
    // SAFETY: the pointers are to `info`, whose size is `length`, and to `length`; both outlive the call.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length)
    })?;
    Ok(told(&info, length as usize))
}

/// The same from the bytes of the structure, as netlink carries them (`INET_DIAG_INFO`).
pub(super) fn tcp_state_of(bytes: &[u8]) -> TcpState {
    // SAFETY: all-zero is a valid `tcp_info`: it holds integers only.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let length = bytes.len().min(size_of_val(&info));
    // SAFETY: both are valid for `length` bytes and do not overlap, and any bytes make valid integers.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast(), length) };
    told(&info, length)
}

/// What stands in the first `length` bytes.
fn told(info: &libc::tcp_info, length: usize) -> TcpState {
    let told = |offset: usize, field: u32| (offset + size_of::<u32>() <= length).then_some(field);
    let wide = |offset: usize, field: u64| (offset + size_of::<u64>() <= length).then_some(field);
    let byte = |offset: usize, field: u8| (offset < length).then_some(field);
    // Two bit fields, the first one in the lower bits.
    let scales = byte(offset_of!(libc::tcp_info, tcpi_snd_rcv_wscale), info.tcpi_snd_rcv_wscale);
    TcpState {
        snd_mss: told(offset_of!(libc::tcp_info, tcpi_snd_mss), info.tcpi_snd_mss),
        snd_cwnd: told(offset_of!(libc::tcp_info, tcpi_snd_cwnd), info.tcpi_snd_cwnd),
        rtt_us: told(offset_of!(libc::tcp_info, tcpi_rtt), info.tcpi_rtt),
        snd_wnd: told(offset_of!(libc::tcp_info, tcpi_snd_wnd), info.tcpi_snd_wnd),
        rcv_wnd: told(offset_of!(libc::tcp_info, tcpi_rcv_wnd), info.tcpi_rcv_wnd),
        snd_ssthresh: told(offset_of!(libc::tcp_info, tcpi_snd_ssthresh), info.tcpi_snd_ssthresh),
        min_rtt_us: told(offset_of!(libc::tcp_info, tcpi_min_rtt), info.tcpi_min_rtt),
        total_retrans: told(offset_of!(libc::tcp_info, tcpi_total_retrans), info.tcpi_total_retrans),
        busy_us: wide(offset_of!(libc::tcp_info, tcpi_busy_time), info.tcpi_busy_time),
        rwnd_limited_us: wide(offset_of!(libc::tcp_info, tcpi_rwnd_limited), info.tcpi_rwnd_limited),
        sndbuf_limited_us: wide(offset_of!(libc::tcp_info, tcpi_sndbuf_limited), info.tcpi_sndbuf_limited),
        bytes_sent: wide(offset_of!(libc::tcp_info, tcpi_bytes_sent), info.tcpi_bytes_sent),
        bytes_retrans: wide(offset_of!(libc::tcp_info, tcpi_bytes_retrans), info.tcpi_bytes_retrans),
        bytes_received: wide(offset_of!(libc::tcp_info, tcpi_bytes_received), info.tcpi_bytes_received),
        snd_wscale: scales.map(|scales| scales & 0xf),
        rcv_wscale: scales.map(|scales| scales >> 4),
    }
}

/// What to do when a call cannot proceed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Block, up to the socket's own timeout.
    Block,
    /// Block until the whole buffer is full, up to the socket's own timeout (`MSG_WAITALL`; a message ends it too).
    Fill,
    /// Return `WouldBlock` (`MSG_DONTWAIT`).
    No,
}

impl Wait {
    const fn flags(self) -> libc::c_int {
        match self {
            Self::Block => 0,
            Self::Fill => libc::MSG_WAITALL,
            Self::No => libc::MSG_DONTWAIT,
        }
    }
}

/// Sends bytes, or for SCTP one message, to the peer or to `to`. Never raises `SIGPIPE`.
///
/// Returns the number of bytes taken, which for a message is all of them.
///
/// # Errors
/// What `sendto(2)` says: `WouldBlock` when the buffer is full, `EMSGSIZE` for a message that can never fit.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], to: Option<&SockAddr>, wait: Wait) -> io::Result<usize> {
    let (address, length) = to.map_or((std::ptr::null(), 0), |to| (to.as_ptr().cast(), to.len()));
    // SAFETY: `bytes` and, if there is one, the address are valid for their lengths during the call.
    check_len(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            wait.flags() | libc::MSG_NOSIGNAL,
            address,
            length,
        )
    })
}

/// Receives bytes from a connected stream. 0 is the end of the stream.
///
/// # Errors
/// What `recv(2)` says: `WouldBlock` when nothing came in time.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8], wait: Wait) -> io::Result<usize> {
    // SAFETY: `into` is valid for writes of its length during the call.
    check_len(unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), wait.flags()) })
}

/// A piece of a message.
#[derive(Debug)]
pub struct Piece {
    /// Bytes written to the buffer.
    pub len: usize,
    /// Whether it ends its message (`MSG_EOR`).
    pub ends_message: bool,
    /// Whether it is a notification of the protocol, not data (`MSG_NOTIFICATION`).
    pub notification: bool,
    /// Who sent it, where the socket is not connected to one peer.
    pub from: SockAddr,
}

/// Bit of `msg_flags` that marks an SCTP notification (RFC 6458, section 5.3.1; include/uapi/linux/sctp.h).
const MSG_NOTIFICATION: libc::c_int = 0x8000;

/// Receives the next piece of a message.
///
/// # Errors
/// What `recvmsg(2)` says: `WouldBlock` when nothing came in time.
pub fn receive_message(socket: BorrowedFd<'_>, into: &mut [u8], wait: Wait) -> io::Result<Piece> {
    let mut storage = SockAddrStorage::zeroed();
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid `msghdr`: null pointers with zero lengths.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_name = (&raw mut storage).cast();
    header.msg_namelen = storage.size_of();
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    // SAFETY: every pointer in `header` is to a local or to `into`, all of which outlive the call.
    let len = check_len(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, wait.flags()) })?;
    // SAFETY: the kernel wrote an address of `msg_namelen` bytes into the storage (or none, and left it zeroed).
    let from = unsafe { SockAddr::new(storage, header.msg_namelen) };
    Ok(Piece {
        len,
        ends_message: header.msg_flags & libc::MSG_EOR != 0,
        notification: header.msg_flags & MSG_NOTIFICATION != 0,
        from,
    })
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Something can be received.
    Readable,
    /// Something can be sent.
    Writable,
    /// Either.
    Either,
}

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Something can be received, or the connection failed.
    pub readable: bool,
    /// Something can be sent.
    pub writable: bool,
}

/// Waits until the socket can be read or written, for `at_most` that long.
///
/// # Errors
/// What `ppoll(2)` says. An interrupting signal is not an error: nothing is ready then.
pub fn wait(socket: BorrowedFd<'_>, until: Until, at_most: Duration) -> io::Result<Readiness> {
    let events = match until {
        Until::Readable => libc::POLLIN,
        Until::Writable => libc::POLLOUT,
        Until::Either => libc::POLLIN | libc::POLLOUT,
    };
    let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(at_most.subsec_nanos().cast_signed()),
    };
    // SAFETY: one valid `pollfd` and a valid timeout; a null signal mask leaves the mask as it is.
    match check(unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, std::ptr::null()) }) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => entry.revents = 0,
        Err(error) => return Err(error),
    }
    let failed = entry.revents & (libc::POLLERR | libc::POLLHUP) != 0;
    Ok(Readiness {
        readable: failed || entry.revents & libc::POLLIN != 0,
        writable: failed || entry.revents & libc::POLLOUT != 0,
    })
}

/// The length of an `int` in the type that the socket calls want.
const INT_LENGTH: libc::socklen_t = 4;

#[cfg(test)]
mod tests {
    use super::{SO_RCVBUF, SO_SNDBUF, Until, Wait, get_int, memory, receive, send, set_int, tcp_state, wait};
    use std::io::ErrorKind;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn options_are_set_and_read_back() {
        let (socket, _peer) = UnixStream::pair().expect("a pair of sockets");
        set_int(socket.as_fd(), SO_RCVBUF, 8192).expect("set");
        assert_eq!(get_int(socket.as_fd(), SO_RCVBUF).expect("read"), 16384);
    }

    #[test]
    fn memory_and_sizes_are_told_alike() {
        let (socket, peer) = UnixStream::pair().expect("a pair of sockets");
        set_int(socket.as_fd(), SO_SNDBUF, 32768).expect("set");
        assert_eq!(send(socket.as_fd(), &[1; 100], None, Wait::Block).expect("sent"), 100);
        let told = memory(socket.as_fd()).expect("Linux 4.12 or later");
        let size = |option| u32::try_from(get_int(socket.as_fd(), option).expect("read")).ok();
        assert_eq!((told.rcvbuf, told.sndbuf), (size(SO_RCVBUF), size(SO_SNDBUF)));
        assert!(told.wmem_alloc.is_some_and(|used| used >= 100), "{told:?}: not yet read by the peer");
        drop(peer);
        tcp_state(socket.as_fd()).expect_err("it is no TCP socket");
    }

    #[test]
    fn sending_receiving_and_waiting() {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        let mut buffer = [0; 8];
        let error = receive(one.as_fd(), &mut buffer, Wait::No).expect_err("nothing was sent");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let ready = wait(one.as_fd(), Until::Either, Duration::ZERO).expect("poll");
        assert!(ready.writable && !ready.readable);
        assert_eq!(send(other.as_fd(), b"abc", None, Wait::Block).expect("sent"), 3);
        assert!(wait(one.as_fd(), Until::Readable, Duration::from_secs(5)).expect("poll").readable);
        assert_eq!(receive(one.as_fd(), &mut buffer, Wait::Block).expect("received"), 3);
        drop(other);
        assert_eq!(receive(one.as_fd(), &mut buffer, Wait::Block).expect("the end"), 0);
        let error = send(one.as_fd(), b"abc", None, Wait::Block).expect_err("no reader");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "and no SIGPIPE, which would have ended the test");
    }
}
