//! Makes the sockets of a cell: opens them, sets what was asked, reads it back, and connects them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol as IpProtocol, SockAddr, Socket, Type};

use crate::measurement::{Buffer, End};
use crate::settings::{self, Protocol, Settings, Style};
use crate::sys::socket::{IPPROTO_SCTP, set_int};
use crate::units::Bytes;

use super::channel::{Channel, nodelay_of, read};
use super::limits::Side;
use super::{Addresses, BufferLimits, CLIENT_PORT, ClientSeat, Failure, SERVER_PORT, SLICE, ServerSeat};

/// Connections that may wait at the listener: there is one.
const BACKLOG: i32 = 8;

/// Makes the server's socket, waits for the client, and returns the connected end.
pub(super) fn accept(
    settings: &Settings,
    addresses: Addresses,
    limits: &BufferLimits,
    seat: &ServerSeat<'_>,
    end: &mut End,
) -> Result<Channel, Failure> {
    let work = &settings.workload;
    let listener = open(work, addresses.server)?;
    apply(&listener, work.protocol, &settings.server, "server", limits, end)?;
    bind(&listener, addresses.server, SERVER_PORT)?;
    listener.listen(BACKLOG).map_err(|error| call("listening", error))?;
    seat.listening()?;
    if one_to_many(work) {
        seat.ready()?;
        return Ok(Channel::one_to_many(listener, None));
    }
    let socket = loop {
        match listener.accept() {
            Ok((socket, _)) => break socket,
            Err(error) if retry(&error) => seat.control.check(|| "no connection came".to_owned())?,
            Err(error) => return Err(call("accepting a connection", error)),
        }
    };
    slice(&socket)?;
    if work.protocol == Protocol::Sctp {
        // A listener's options do not reach the association it accepts: they are set and read there.
        apply(&socket, work.protocol, &settings.server, "server", limits, end)?;
    }
    seat.ready()?;
    Ok(Channel::connected(socket, work.protocol))
}

/// Makes the client's socket, connects it, and returns the connected end.
pub(super) fn connect(
    settings: &Settings,
    addresses: Addresses,
    limits: &BufferLimits,
    seat: &ClientSeat<'_>,
    end: &mut End,
) -> Result<Channel, Failure> {
    let work = &settings.workload;
    let socket = open(work, addresses.client)?;
    apply(&socket, work.protocol, &settings.client, "client", limits, end)?;
    bind(&socket, addresses.client, CLIENT_PORT)?;
    seat.until_listening()?;
    let server: SockAddr = SocketAddr::new(addresses.server, SERVER_PORT).into();
    loop {
        match socket.connect(&server) {
            Ok(()) => break,
            // The socket's own timeout passed, and the handshake goes on: the next call waits for it.
            Err(error) if retry(&error) => seat.control.check(|| "the connection was never answered".to_owned())?,
            Err(error) if error.raw_os_error() == Some(libc::EISCONN) => break,
            Err(error) => return Err(Failure::moving("connecting", error, || "no connection".to_owned())),
        }
    }
    seat.until_ready()?;
    Ok(if one_to_many(work) {
        Channel::one_to_many(socket, Some(server))
    } else {
        Channel::connected(socket, work.protocol)
    })
}

/// Whether a call gave up only because its time slice was over.
pub(super) fn retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EALREADY))
}

fn one_to_many(work: &settings::Workload) -> bool {
    work.protocol == Protocol::Sctp && work.style == Style::OneToMany
}

fn call(doing: &str, error: io::Error) -> Failure {
    Failure::Call { doing: doing.to_owned(), error }
}

/// Opens a socket whose blocking calls return after a slice of time.
fn open(work: &settings::Workload, address: IpAddr) -> Result<Socket, Failure> {
    let kind = if one_to_many(work) { Type::SEQPACKET } else { Type::STREAM };
    let protocol = match work.protocol {
        Protocol::Tcp => IpProtocol::TCP,
        Protocol::Sctp => IpProtocol::from(IPPROTO_SCTP),
    };
    let domain = if address.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, kind, Some(protocol)).map_err(|error| Failure::opening(work.protocol, error))?;
    slice(&socket)?;
    Ok(socket)
}

/// Opens the socket that a workload needs, and closes it.
pub(super) fn probe(settings: &Settings) -> Result<(), Failure> {
    let address: IpAddr = match settings.link.family {
        settings::Family::Ipv4 => std::net::Ipv4Addr::LOCALHOST.into(),
        settings::Family::Ipv6 => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    open(&settings.workload, address).map(drop)
}

/// Lets blocking calls on a socket return after a slice of time.
fn slice(socket: &Socket) -> Result<(), Failure> {
    socket
        .set_read_timeout(Some(SLICE))
        .and_then(|()| socket.set_write_timeout(Some(SLICE)))
        .map_err(|error| call("setting SO_RCVTIMEO and SO_SNDTIMEO", error))
}

fn bind(socket: &Socket, address: IpAddr, port: u16) -> Result<(), Failure> {
    socket
        .bind(&SocketAddr::new(address, port).into())
        .map_err(|error| call(&format!("binding to {address} port {port}"), error))
}

/// Sets what was asked of a socket and reads back what the kernel made of it. What was not asked is not set.
fn apply(
    socket: &Socket,
    protocol: Protocol,
    asked: &settings::Socket,
    side: &str,
    limits: &BufferLimits,
    end: &mut End,
) -> Result<(), Failure> {
    end.rcvbuf = set_buffer(socket, Side::Receive, asked.rcvbuf, side, limits)?;
    end.sndbuf = set_buffer(socket, Side::Send, asked.sndbuf, side, limits)?;
    let option = nodelay_of(protocol);
    if let Some(nodelay) = asked.nodelay {
        set_int(socket.as_fd(), option, nodelay.into())
            .map_err(|error| Failure::setting(option.name, if nodelay { "on" } else { "off" }, side, error))?;
    }
    end.nodelay.asked = asked.nodelay;
    Ok(())
}

fn set_buffer(
    socket: &Socket,
    which: Side,
    asked: Option<Bytes>,
    side: &str,
    limits: &BufferLimits,
) -> Result<Buffer, Failure> {
    let option = which.option();
    if let Some(asked) = asked {
        let value = i32::try_from(asked.0).unwrap_or(i32::MAX);
        set_int(socket.as_fd(), option, value)
            .map_err(|error| Failure::setting(option.name, &asked.to_string(), side, error))?;
    }
    let asked = asked.map(|bytes| bytes.0);
    let initial = read(socket.as_fd(), option);
    Ok(Buffer {
        asked,
        initial,
        end: None,
        peak: None,
        verdict: initial.map(|given| limits.verdict(which, asked, given)),
    })
}
