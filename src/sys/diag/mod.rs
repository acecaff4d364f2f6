//! Sockets of a network namespace, looked at from outside: `sock_diag(7)`.
//!
//! A conversation belongs to the namespace in which it was opened, whichever thread goes on with it. Which socket is whose is not told:
//! in a namespace that was made for one pair of programs all are theirs.

mod facts;

pub use facts::{MptcpFacts, SctpFacts};

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable, Nla as _, NlasIterator,
};
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, INET_DIAG_PEERS, SOCK_DIAG_BY_FAMILY};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_packet_sock_diag::message::SockDiagMessage;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddress};

use super::socket::{Memory, TcpState, tcp_state_of};

/// Room for the largest datagram of a dump (`netlink_recvmsg` offers the kernel at most 32 KiB at a time).
const ROOM: usize = 32 << 10;

/// `TCP_LISTEN` (`include/net/tcp_states.h`), of SCTP's endpoints too (`SCTP_SS_LISTENING`).
const LISTENING: u8 = 10;
/// States that are no socket of a program's: what waits to be forgotten, and requests for a connection. They have no buffers.
const NO_SOCKETS: StateFlags = StateFlags::TIME_WAIT.union(StateFlags::SYN_RECV);

/// `INET_DIAG_REQ_PROTOCOL` (`include/uapi/linux/inet_diag.h`, Linux 5.9): a protocol whose number takes more than eight bits.
const REQ_PROTOCOL: u16 = 3;
/// `INET_DIAG_ULP_INFO` and in it `INET_ULP_INFO_NAME`: what has been put on a TCP connection.
const ULP_INFO: u16 = 19;
const ULP_NAME: u16 = 1;
/// Multicast groups that tell of TCP sockets that are closed for good (`enum sknetlink_groups`, `include/uapi/linux/sock_diag.h`).
const TCP_DESTROY: u32 = 1;
const TCP6_DESTROY: u32 = 3;

/// A protocol whose sockets can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, also the subflows of MPTCP.
    Tcp,
    /// MPTCP: since Linux 5.9.
    Mptcp,
    /// SCTP: endpoints and associations.
    Sctp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Its number.
    const fn number(self) -> i32 {
        match self {
            Self::Tcp => libc::IPPROTO_TCP,
            Self::Mptcp => libc::IPPROTO_MPTCP,
            Self::Sctp => libc::IPPROTO_SCTP,
            Self::Udp => libc::IPPROTO_UDP,
        }
    }
}

/// A family of addresses. A socket of IPv6 may carry IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// One look at one socket, or at one association of SCTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its protocol.
    pub protocol: Protocol,
    /// The kernel's own number for the socket, never used again (`sock_gen_cookie`). Of MPTCP too.
    pub cookie: [u8; 8],
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's: port 0 without one.
    pub peer: SocketAddr,
    /// Whether it waits for connections.
    pub listening: bool,
    /// Whether it is an SCTP association, and not the endpoint that has it. Both have the same socket.
    pub association: bool,
    /// Whether it is a TCP connection that carries one of MPTCP.
    pub subflow: bool,
    /// Its buffers. `None` of a socket that has been closed.
    pub memory: Option<Memory>,
    /// TCP only.
    pub tcp: Option<TcpState>,
    /// MPTCP only.
    pub mptcp: Option<MptcpFacts>,
    /// SCTP associations only.
    pub sctp: Option<SctpFacts>,
    /// SCTP endpoints only: whether `SCTP_NODELAY` is set.
    pub nodelay: Option<bool>,
    /// Name of the congestion control, TCP only.
    pub congestion: Option<String>,
}

impl Seen {
    /// A socket of which nothing but its addresses is told.
    pub const fn new(protocol: Protocol, local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            protocol,
            cookie: [0; 8],
            local,
            peer,
            listening: false,
            association: false,
            subflow: false,
            memory: None,
            tcp: None,
            mptcp: None,
            sctp: None,
            nodelay: None,
            congestion: None,
        }
    }
}

/// A question and its attributes.
struct Request {
    inet: InetRequest,
    attributes: Vec<DefaultNla>,
}

impl NetlinkSerializable for Request {
    fn message_type(&self) -> u16 {
        SOCK_DIAG_BY_FAMILY
    }

    fn buffer_len(&self) -> usize {
        self.inet.buffer_len() + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (inet, attributes) = buffer.split_at_mut(self.inet.buffer_len());
        self.inet.emit(inet);
        self.attributes.as_slice().emit(attributes);
    }
}

/// A conversation with the kernel about the sockets of one network namespace.
#[derive(Debug)]
pub struct Diag {
    socket: Socket,
    room: Vec<u8>,
    sequence: u32,
}

impl Diag {
    /// Begins one with the namespace that the calling thread is in.
    ///
    /// # Errors
    /// What `socket(2)` and `connect(2)` say: `EPROTONOSUPPORT` from a kernel without `CONFIG_NETLINK_DIAG` and the like.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        Ok(Self { socket, room: Vec::with_capacity(ROOM), sequence: 0 })
    }

    /// All sockets of a protocol and a family. What it costs grows with the kernel's tables, not with the sockets in this namespace.
    ///
    /// # Errors
    /// `ENOENT` or `EINVAL` from a kernel that has no diagnosis of this protocol.
    pub fn dump(&mut self, protocol: Protocol, family: Family) -> io::Result<Vec<Seen>> {
        let socket_id = match family {
            Family::Ipv4 => SocketId::new_v4(),
            Family::Ipv6 => SocketId::new_v6(),
        };
        self.ask(protocol, family, socket_id, NLM_F_DUMP)
    }

    /// Looks again at a connection of TCP, at a cost that does not depend on tables. `None` if there is no such socket any more.
    ///
    /// # Errors
    /// What the kernel says, as for a dump.
    pub fn again(&mut self, seen: &Seen) -> io::Result<Option<Seen>> {
        let family = if seen.local.is_ipv6() { Family::Ipv6 } else { Family::Ipv4 };
        let socket_id = SocketId {
            source_port: seen.local.port(),
            destination_port: seen.peer.port(),
            source_address: seen.local.ip(),
            destination_address: seen.peer.ip(),
            interface_id: 0,
            cookie: seen.cookie,
        };
        match self.ask(seen.protocol, family, socket_id, 0) {
            Ok(found) => Ok(found.into_iter().next()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks, and reads the answers. The kernel has them ready when the question has been sent, or makes them while they are read
    /// (`netlink_dump`), so nothing is waited for.
    fn ask(&mut self, protocol: Protocol, family: Family, socket_id: SocketId, flags: u16) -> io::Result<Vec<Seen>> {
        let number = protocol.number();
        let attributes = match u8::try_from(number) {
            Ok(_) => Vec::new(),
            Err(_) => vec![DefaultNla::new(REQ_PROTOCOL, number.to_ne_bytes().to_vec())],
        };
        let inet = InetRequest {
            family: if family == Family::Ipv4 { AF_INET } else { AF_INET6 },
            // A kernel that does not know the attribute shall not take the low bits of the number for TCP's.
            protocol: u8::try_from(number).unwrap_or(u8::MAX),
            extensions: ExtensionFlags::INFO | ExtensionFlags::CONG | ExtensionFlags::SKMEMINFO,
            states: StateFlags::all().difference(NO_SOCKETS),
            socket_id,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(Request { inet, attributes }));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (mut found, mut done) = (Vec::new(), false);
        while !done {
            self.room.clear();
            self.socket.recv(&mut self.room, libc::MSG_DONTWAIT)?;
            for answer in Answers(&self.room) {
                let answer = answer?;
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                        found.push(seen(protocol, &response));
                        done |= flags == 0;
                    }
                    // What a dump failed with stands at its end (`netlink_dump_done`, `net/netlink/af_netlink.c`).
                    NetlinkPayload::Done(end) if end.code < 0 => return Err(io::Error::from_raw_os_error(-end.code)),
                    NetlinkPayload::Done(_) => done = true,
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
        Ok(found)
    }
}

/// TCP sockets that are closed for good, as they are: what their connections were at the very end.
#[derive(Debug)]
pub struct Closed {
    socket: Socket,
    room: Vec<u8>,
}

impl Closed {
    /// Begins to listen, for the namespace that the calling thread is in (`sock_diag_broadcast_destroy`, `net/core/sock_diag.c`; Linux 4.3).
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN` in the namespace's user namespace.
    pub fn listen() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.add_membership(TCP_DESTROY)?;
        socket.add_membership(TCP6_DESTROY)?;
        Ok(Self { socket, room: Vec::with_capacity(ROOM) })
    }

    /// Those that were closed since the last call, those of MPTCP's subflows among them.
    ///
    /// # Errors
    /// `ENOBUFS` where some could not be kept, once; the rest comes with the next call.
    pub fn take(&mut self) -> io::Result<Vec<Seen>> {
        let mut found = Vec::new();
        loop {
            self.room.clear();
            match self.socket.recv(&mut self.room, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error),
            }
            for answer in Answers(&self.room) {
                if let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) = answer?.payload
                    && response.nlas.contains(&Nla::Protocol(6))
                {
                    found.push(seen(Protocol::Tcp, &response));
                }
            }
        }
    }
}

/// The messages of one datagram.
struct Answers<'a>(&'a [u8]);

impl Iterator for Answers<'_> {
    type Item = io::Result<NetlinkMessage<SockDiagMessage>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let parsed = NetlinkMessage::<SockDiagMessage>::deserialize(self.0);
        // Each message begins at a multiple of four (`NLMSG_ALIGN`).
        let length = parsed.as_ref().map_or(usize::MAX, |message| message.header.length.max(1) as usize);
        self.0 = self.0.get(length.saturating_add(3) & !3..).unwrap_or(&[]);
        Some(parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string())))
    }
}

/// What an answer tells.
fn seen(protocol: Protocol, response: &InetResponse) -> Seen {
    let id = &response.header.socket_id;
    let mut seen = Seen {
        cookie: id.cookie,
        listening: response.header.state == LISTENING,
        ..Seen::new(
            protocol,
            SocketAddr::new(id.source_address, id.source_port),
            SocketAddr::new(id.destination_address, id.destination_port),
        )
    };
    let mut facts: &[u8] = &[];
    for attribute in &response.nlas {
        match attribute {
            Nla::MemInfo(memory) => {
                seen.memory = Some(Memory {
                    rmem_alloc: Some(memory.receive_queue),
                    rcvbuf: Some(memory.receive_queue_max),
                    wmem_alloc: Some(memory.bottom_send_queues),
                    sndbuf: Some(memory.send_queue_max),
                    wmem_queued: Some(memory.send_queue),
                    backlog: Some(memory.backlog_queue_length),
                    drops: Some(memory.drops),
                });
            }
            Nla::TcpInfo(bytes) => facts = bytes,
            Nla::Congestion(name) if protocol == Protocol::Tcp => seen.congestion = Some(name.clone()),
            // An endpoint has no peers.
            Nla::Other(other) if other.kind() == INET_DIAG_PEERS => seen.association = true,
            Nla::Other(other) if other.kind() == ULP_INFO => seen.subflow = is_subflow(other),
            _ => {}
        }
    }
    // An association's state is counted otherwise: there 10 is none.
    seen.listening &= !seen.association;
    match protocol {
        _ if facts.is_empty() => {}
        Protocol::Tcp => seen.tcp = Some(tcp_state_of(facts)),
        Protocol::Mptcp => seen.mptcp = Some(MptcpFacts::of(facts)),
        Protocol::Sctp if seen.association => seen.sctp = Some(SctpFacts::of(facts)),
        Protocol::Sctp => seen.nodelay = SctpFacts::nodelay(facts),
        Protocol::Udp => {}
    }
    seen
}

/// Whether what has been put on a TCP connection is MPTCP.
fn is_subflow(attribute: &DefaultNla) -> bool {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    NlasIterator::new(&value)
        .filter_map(Result::ok)
        .any(|inner| inner.kind() == ULP_NAME && inner.value().starts_with(b"mptcp"))
}
