//! Socket options beyond those that every workload needs, and what a sender in place (`MSG_ZEROCOPY`) gets back.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::socket::IntOption;
use super::{check, check_len};

const fn socket(number: libc::c_int, name: &'static str) -> IntOption {
    IntOption::new(libc::SOL_SOCKET, number, name)
}

const fn tcp(number: libc::c_int, name: &'static str) -> IntOption {
    IntOption::new(libc::IPPROTO_TCP, number, name)
}

/// `SO_RCVLOWAT`.
pub const SO_RCVLOWAT: IntOption = socket(libc::SO_RCVLOWAT, "SO_RCVLOWAT");
/// `SO_BUSY_POLL`, in microseconds: since Linux 3.11; to raise it takes `CAP_NET_ADMIN`.
pub const SO_BUSY_POLL: IntOption = socket(libc::SO_BUSY_POLL, "SO_BUSY_POLL");
/// `SO_PRIORITY`: above 6 it takes `CAP_NET_RAW` or `CAP_NET_ADMIN`.
pub const SO_PRIORITY: IntOption = socket(libc::SO_PRIORITY, "SO_PRIORITY");
/// `SO_RCVBUFFORCE`: `SO_RCVBUF` without the bound of `net.core.rmem_max`, for `CAP_NET_ADMIN`.
pub const SO_RCVBUFFORCE: IntOption = socket(libc::SO_RCVBUFFORCE, "SO_RCVBUFFORCE");
/// `SO_SNDBUFFORCE`: likewise.
pub const SO_SNDBUFFORCE: IntOption = socket(libc::SO_SNDBUFFORCE, "SO_SNDBUFFORCE");
/// `SO_ZEROCOPY`: allows `MSG_ZEROCOPY` (Linux 4.14).
pub const SO_ZEROCOPY: IntOption = socket(libc::SO_ZEROCOPY, "SO_ZEROCOPY");
/// `IP_TOS`: the two bits for congestion notification are the kernel's own for TCP.
pub const IP_TOS: IntOption = IntOption::new(libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS");
/// `IPV6_TCLASS`: the same for IPv6.
pub const IPV6_TCLASS: IntOption = IntOption::new(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS");
/// `TCP_CORK`.
pub const TCP_CORK: IntOption = tcp(libc::TCP_CORK, "TCP_CORK");
/// `TCP_QUICKACK`: not permanent (`tcp_sock_set_quickack`, net/ipv4/tcp.c).
pub const TCP_QUICKACK: IntOption = tcp(libc::TCP_QUICKACK, "TCP_QUICKACK");
/// `TCP_NOTSENT_LOWAT`: since Linux 3.12.
pub const TCP_NOTSENT_LOWAT: IntOption = tcp(libc::TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT");
/// `TCP_USER_TIMEOUT`, in milliseconds (RFC 5482).
pub const TCP_USER_TIMEOUT: IntOption = tcp(libc::TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT");
/// `TCP_WINDOW_CLAMP`: at least half of the smallest receive buffer (`tcp_set_window_clamp`).
pub const TCP_WINDOW_CLAMP: IntOption = tcp(libc::TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP");
/// `TCP_MAXSEG`: of a connected socket it reads the size in use.
pub const TCP_MAXSEG: IntOption = tcp(libc::TCP_MAXSEG, "TCP_MAXSEG");

/// Longest name of a congestion control with its NUL (`TCP_CA_NAME_MAX`).
const CONGESTION_NAME: usize = 16;

/// Chooses the congestion control of that name (`TCP_CONGESTION`).
///
/// # Errors
/// What `setsockopt(2)` says: `ENOENT` for a name that the kernel does not have, `EPERM` for one that it does not allow.
pub fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let length = libc::socklen_t::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the pointer and the length describe `name`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_bytes().as_ptr().cast(),
            length,
        )
    })
    .map(drop)
}

/// The congestion control in use.
///
/// # Errors
/// What `getsockopt(2)` says.
pub fn congestion(socket: BorrowedFd<'_>) -> io::Result<String> {
    let mut name = [0u8; CONGESTION_NAME];
    // 16 fits any type of length.
    let mut length = 16;
    // SAFETY: the pointers are to `name` and to its length, both of which outlive the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Level of the MPTCP options (`SOL_MPTCP`, include/linux/socket.h).
const SOL_MPTCP: libc::c_int = 284;
/// Number of `MPTCP_INFO` (include/uapi/linux/mptcp.h).
const MPTCP_INFO: libc::c_int = 1;
/// Bit of `mptcpi_flags` that marks a connection that has fallen back.
const MPTCP_INFO_FLAG_FALLBACK: u32 = 1;

/// The begin of `struct mptcp_info`, up to its flags. The kernel writes no more than it is offered.
#[repr(C)]
#[derive(Default)]
struct MptcpInfo {
    counts: [u8; 8],
    flags: u32,
}

/// Whether a connected MPTCP socket has fallen back to TCP: its flag in `MPTCP_INFO` (Linux 5.16), or the lack of that option, which is how a
/// socket answers that has become TCP's own (`EOPNOTSUPP` over IPv4, `ENOPROTOOPT` over IPv6).
///
/// # Errors
/// What else `getsockopt(2)` says, and `EOPNOTSUPP` before Linux 5.16, where every socket answers so and nothing is known.
pub fn fell_back(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let error = match mptcp_flags(socket) {
        Ok(flags) => return Ok(flags & MPTCP_INFO_FLAG_FALLBACK != 0),
        Err(error) => error,
    };
    if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)) {
        return Err(error);
    }
    // A socket that is not connected has not fallen back.
    let fresh = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(libc::IPPROTO_MPTCP)))?;
    mptcp_flags(fresh.as_fd()).map(|_| true)
}

fn mptcp_flags(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = MptcpInfo::default();
    let mut length = 12;
    // SAFETY: the pointers are to `info`, which is 12 bytes without padding, and to its length; both outlive the call.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), SOL_MPTCP, MPTCP_INFO, (&raw mut info).cast(), &raw mut length)
    })?;
    Ok(info.flags)
}

/// Sends bytes from where they lie (`MSG_ZEROCOPY`); they must not change until the kernel says that it is done with them. Never raises
/// `SIGPIPE`.
///
/// # Errors
/// What `send(2)` says: `ENOBUFS` when too many sends are not yet completed.
pub fn send_in_place(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for its length during the call. Its pages stay the kernel's beyond the call: should they be
    // changed or given back before, then other bytes are sent, which is no matter of memory safety.
    check_len(unsafe {
        libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL)
    })
}

/// A range of sends in place that the kernel is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// How many sends.
    pub sends: u64,
    /// Whether their bytes were copied after all (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied: bool,
}

/// Room for the control messages of one entry of the error queue.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Takes the next completion of sends in place from the socket's error queue (`MSG_ERRQUEUE`), if there is one.
///
/// # Errors
/// What `recvmsg(2)` says, other than that nothing is there.
pub fn next_completion(socket: BorrowedFd<'_>) -> io::Result<Option<Completion>> {
    let mut control = Control([0; 128]);
    // SAFETY: all-zero is a valid `msghdr`: null pointers with zero lengths.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: the only pointer in `header` is to `control`, with its length; it outlives the call.
    let received = check_len(unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    });
    match received {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    }
    // SAFETY: the kernel filled `control` up to `msg_controllen`, which bounds what the macro reads.
    let message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    if message.is_null() {
        return Ok(Some(Completion { sends: 0, copied: false }));
    }
    // SAFETY: the header lies within `control`; its data is the extended error of IP_RECVERR or IPV6_RECVERR, which the
    // kernel wrote whole (128 bytes hold it and the address behind it). It need not be aligned.
    let error = unsafe { libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned() };
    if error.ee_origin != SO_EE_ORIGIN_ZEROCOPY {
        return Ok(Some(Completion { sends: 0, copied: false }));
    }
    // The range is inclusive, of 32-bit numbers that wrap around.
    let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
    Ok(Some(Completion { sends, copied: error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0 }))
}

/// Origin of an extended error that is a completion (include/uapi/linux/errqueue.h).
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
/// Code of a completion whose bytes were copied.
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::{SO_ZEROCOPY, congestion, fell_back, next_completion, send_in_place, set_congestion};
    use crate::sys::socket::set_int;
    use socket2::{Domain, Protocol, SockAddr, Socket, Type};
    use std::io::Read;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        (client, listener.accept().expect("accepted").0)
    }

    #[test]
    fn congestion_controls_are_chosen_by_name() {
        let (client, _server) = pair();
        set_congestion(client.as_fd(), "reno").expect("every kernel has it");
        assert_eq!(congestion(client.as_fd()).expect("read"), "reno");
        let error = set_congestion(client.as_fd(), "no-such").expect_err("unknown");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn sends_in_place_are_completed() {
        let (client, mut server) = pair();
        set_int(client.as_fd(), SO_ZEROCOPY, 1).expect("since Linux 4.14");
        assert_eq!(next_completion(client.as_fd()).expect("asked"), None);
        let bytes = vec![1; 20_000];
        let sent = send_in_place(client.as_fd(), &bytes).expect("sent");
        let mut read = vec![0; sent];
        server.read_exact(&mut read).expect("received");
        // The acknowledgement may still be on its way.
        let completion = (0..1000)
            .find_map(|_| {
                let completion = next_completion(client.as_fd()).expect("asked");
                if completion.is_none() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                completion
            })
            .expect("a completion");
        assert!(completion.copied, "loopback copies");
        assert_eq!(completion.sends, 1);
    }

    /// C39: a client of MPTCP whose server speaks TCP only, and one whose server does not.
    #[test]
    fn a_fall_back_is_seen() {
        let mptcp = Protocol::from(libc::IPPROTO_MPTCP);
        let client = || Socket::new(Domain::IPV4, Type::STREAM, Some(mptcp));
        if client().is_err() {
            eprintln!("SKIPPED: no MPTCP in this kernel");
            return;
        }
        let any = SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        for (server, expected) in [(Protocol::TCP, true), (mptcp, false)] {
            let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(server)).expect("a socket");
            listener.bind(&any).and_then(|()| listener.listen(1)).expect("listening");
            let client = client().expect("a socket");
            client.connect(&listener.local_addr().expect("an address")).expect("connected");
            assert_eq!(fell_back(client.as_fd()).expect("asked"), expected);
        }
    }
}
