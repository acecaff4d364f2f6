//! Socket options and messages.

use std::io;
use std::mem;
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

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Something can be received, or the connection failed.
    pub readable: bool,
    /// Something can be sent.
    pub writable: bool,
}

/// Waits until the socket can be read (and, if `for_write`, or written), for `at_most` that long.
///
/// # Errors
/// What `ppoll(2)` says. An interrupting signal is not an error: nothing is ready then.
pub fn wait(socket: BorrowedFd<'_>, for_write: bool, at_most: Duration) -> io::Result<Readiness> {
    let events = libc::POLLIN | if for_write { libc::POLLOUT } else { 0 };
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
    use super::{SO_RCVBUF, Wait, get_int, receive, send, set_int, wait};
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
    fn sending_receiving_and_waiting() {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        let mut buffer = [0; 8];
        let error = receive(one.as_fd(), &mut buffer, Wait::No).expect_err("nothing was sent");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let ready = wait(one.as_fd(), true, Duration::ZERO).expect("poll");
        assert!(ready.writable && !ready.readable);
        assert_eq!(send(other.as_fd(), b"abc", None, Wait::Block).expect("sent"), 3);
        assert!(wait(one.as_fd(), false, Duration::from_secs(5)).expect("poll").readable);
        assert_eq!(receive(one.as_fd(), &mut buffer, Wait::Block).expect("received"), 3);
        drop(other);
        assert_eq!(receive(one.as_fd(), &mut buffer, Wait::Block).expect("the end"), 0);
        let error = send(one.as_fd(), b"abc", None, Wait::Block).expect_err("no reader");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "and no SIGPIPE, which would have ended the test");
    }
}
