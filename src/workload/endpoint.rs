//! Makes the sockets of a cell: opens them, sets what was asked, reads it back, and connects them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol as IpProtocol, SockAddr, Socket, Type};

use crate::measurement::{Buffer, End};
use crate::settings::{self, Protocol, SetAt, Settings, Style, Value};
use crate::sys::option::{SO_RCVBUFFORCE, SO_SNDBUFFORCE};
use crate::sys::socket::{IPPROTO_MPTCP, IPPROTO_SCTP, set_int};
use crate::units::{Bytes, Span};

use super::channel::{Channel, nodelay_of, read};
use super::limits::Side;
use super::options;
use super::{
    Addresses, BufferLimits, CLIENT_PORT, ClientSeat, Control, Failure, Report, SERVER_PORT, SLICE, ServerSeat,
};

/// Connections that may wait at the listener: there is one.
const BACKLOG: i32 = 8;
/// Time between two questions whether a handshake is over.
const STILL_CONNECTING: Span = Span(1_000_000);
/// How far the ports of each further connection, such as the stream beside an echo, lie above those of the one before it.
const PORTS: u16 = 2;

/// One end's part of a cell: what it asks for, and what bounds it.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    work: &'a settings::Workload,
    asked: &'a settings::Socket,
    limits: &'a BufferLimits,
    addresses: Addresses,
    /// `client` or `server`, for messages.
    side: &'a str,
    /// Which connection of the repeat: its ports lie so far above those of the first.
    connection: u16,
}

impl<'a> Part<'a> {
    pub(super) const fn server(settings: &'a Settings, addresses: Addresses, limits: &'a BufferLimits) -> Self {
        Self { work: &settings.workload, asked: &settings.server, limits, addresses, side: "server", connection: 0 }
    }

    pub(super) const fn client(settings: &'a Settings, addresses: Addresses, limits: &'a BufferLimits) -> Self {
        Self { work: &settings.workload, asked: &settings.client, limits, addresses, side: "client", connection: 0 }
    }

    /// The same end of the stream that runs beside.
    pub(super) const fn beside(self, work: &'a settings::Workload) -> Self {
        Self { work, connection: PORTS, ..self }
    }

    /// The same end of the `number`th of several connections, from 0.
    pub(super) const fn nth(self, number: u16) -> Self {
        Self { connection: PORTS * number, ..self }
    }

    const fn server_port(&self) -> u16 {
        SERVER_PORT + self.connection
    }

    const fn client_port(&self) -> u16 {
        CLIENT_PORT + self.connection
    }

    fn connected(&self, socket: Socket) -> Channel {
        Channel::connected(socket, self.work.protocol).asking(self.asked)
    }

    /// Sets what was asked of a socket and reads back what the kernel made of it. What was not asked is not set.
    fn apply(&self, socket: &Socket, end: &mut End) -> Result<(), Failure> {
        if let (Some(nodelay), Some(option)) = (self.asked.nodelay, nodelay_of(self.work.protocol)) {
            set_int(socket.as_fd(), option, nodelay.into())
                .map_err(|error| Failure::setting(option.name, if nodelay { "on" } else { "off" }, self.side, error))?;
        }
        end.nodelay.asked = self.asked.nodelay;
        let target = options::Target { socket: socket.as_fd(), ipv6: self.addresses.server.is_ipv6(), side: self.side };
        options::apply(target, self.asked, end)
    }

    /// Sets the buffers, if this is the moment that was asked for.
    fn apply_buffers(&self, socket: &Socket, moment: SetAt, end: &mut End) -> Result<(), Failure> {
        if self.asked.set_at == moment {
            end.rcvbuf = self.set_buffer(socket, Side::Receive)?;
            end.sndbuf = self.set_buffer(socket, Side::Send)?;
        }
        Ok(())
    }

    fn set_buffer(&self, socket: &Socket, which: Side) -> Result<Buffer, Failure> {
        let (usual, force, forced) = match which {
            Side::Receive => (self.asked.rcvbuf, SO_RCVBUFFORCE, "rcvbuf_force"),
            Side::Send => (self.asked.sndbuf, SO_SNDBUFFORCE, "sndbuf_force"),
        };
        let forced = self.asked.options.get(forced).and_then(Value::int).map(Bytes);
        let option = if forced.is_some() { force } else { which.option() };
        let asked = forced.or(usual);
        if let Some(asked) = asked {
            let value = i32::try_from(asked.0).unwrap_or(i32::MAX);
            set_int(socket.as_fd(), option, value)
                .map_err(|error| Failure::setting(option.name, &asked.to_string(), self.side, error))?;
        }
        let asked = asked.map(|bytes| bytes.0);
        let initial = read(socket.as_fd(), which.option());
        let unbounded;
        let limits = if forced.is_some() {
            unbounded = self.limits.unbounded();
            &unbounded
        } else {
            self.limits
        };
        Ok(Buffer {
            asked,
            initial,
            end: None,
            peak: None,
            verdict: initial.map(|given| limits.verdict(which, asked, given)),
        })
    }
}

/// Makes the server's socket, waits for the client, and returns the connected end; `None` where the report says why not. No socket is closed
/// before that is noted: the client would see that as well, and might be the first to say so.
pub(super) fn accept(part: Part<'_>, seat: &ServerSeat<'_>, report: &mut Report) -> Option<Channel> {
    let (work, control) = (part.work, seat.control);
    let listener = report.note(open(work, part.addresses.server), control)?;
    let result = listen(part, &listener, seat, &mut report.end);
    report.note(result, control)?;
    if work.protocol == Protocol::Udp {
        return Some(part.connected(listener));
    }
    if one_to_many(work) {
        return Some(Channel::one_to_many(listener, None));
    }
    let socket = report.note(next_connection(&listener, control), control)?;
    let result = take_over(part, &socket, seat, &mut report.end);
    report.note(result, control)?;
    Some(part.connected(socket))
}

/// Sets the server's socket up and lets the client connect.
fn listen(part: Part<'_>, listener: &Socket, seat: &ServerSeat<'_>, end: &mut End) -> Result<(), Failure> {
    let Part { work, addresses, .. } = part;
    part.apply_buffers(listener, SetAt::Before, end)?;
    part.apply(listener, end)?;
    bind(listener, addresses.server, part.server_port())?;
    if work.protocol == Protocol::Udp {
        // Only the client's datagrams are let in.
        let client: SockAddr = SocketAddr::new(addresses.client, part.client_port()).into();
        listener.connect(&client).map_err(|error| call("connecting to the client", error))?;
        part.apply_buffers(listener, SetAt::After, end)?;
        seat.listening()?;
        return seat.ready();
    }
    listener.listen(BACKLOG).map_err(|error| call("listening", error))?;
    seat.listening()?;
    if one_to_many(work) { seat.ready() } else { Ok(()) }
}

fn next_connection(listener: &Socket, control: &Control<'_>) -> Result<Socket, Failure> {
    loop {
        match listener.accept() {
            Ok((socket, _)) => return Ok(socket),
            Err(error) if retry(&error) => control.check(|| "no connection came".to_owned())?,
            Err(error) => return Err(call("accepting a connection", error)),
        }
    }
}

/// Sets the socket up that was accepted.
fn take_over(part: Part<'_>, socket: &Socket, seat: &ServerSeat<'_>, end: &mut End) -> Result<(), Failure> {
    slice(socket)?;
    if part.work.protocol == Protocol::Sctp {
        // A listener's options do not reach the association it accepts: they are set and read there.
        part.apply_buffers(socket, SetAt::Before, end)?;
        part.apply(socket, end)?;
    } else if !part.asked.options.is_empty() {
        // Some are not handed down to the connection that is accepted: a priority, a quick acknowledgement.
        part.apply(socket, end)?;
    }
    part.apply_buffers(socket, SetAt::After, end)?;
    seat.ready()
}

/// Makes the client's socket, connects it, and returns the connected end; `None` where the report says why not, as for [`accept`].
pub(super) fn connect(part: Part<'_>, seat: &ClientSeat<'_>, report: &mut Report) -> Option<Channel> {
    let (work, control) = (part.work, seat.control);
    let socket = report.note(open(work, part.addresses.client), control)?;
    let server: SockAddr = SocketAddr::new(part.addresses.server, part.server_port()).into();
    let result = reach(part, &socket, &server, seat, &mut report.end);
    report.note(result, control)?;
    Some(if one_to_many(work) { Channel::one_to_many(socket, Some(server)) } else { part.connected(socket) })
}

/// Sets the client's socket up and connects it.
fn reach(
    part: Part<'_>,
    socket: &Socket,
    server: &SockAddr,
    seat: &ClientSeat<'_>,
    end: &mut End,
) -> Result<(), Failure> {
    part.apply_buffers(socket, SetAt::Before, end)?;
    part.apply(socket, end)?;
    bind(socket, part.addresses.client, part.client_port())?;
    seat.until_listening()?;
    until_connected(|| socket.connect(server), seat.control)?;
    part.apply_buffers(socket, SetAt::After, end)?;
    seat.until_ready()
}

/// Calls `connect` until the connection stands. It gives up when the socket's own timeout has passed, and the handshake goes on: the next call
/// waits for it, or says at once that it goes on (`__sctp_connect`).
fn until_connected(mut connect: impl FnMut() -> io::Result<()>, control: &Control<'_>) -> Result<(), Failure> {
    let progress = || "the connection was never answered".to_owned();
    loop {
        match connect() {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EISCONN) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EALREADY) => {
                control.check(progress)?;
                control.pause(STILL_CONNECTING, progress)?;
            }
            Err(error) if retry(&error) => control.check(progress)?,
            Err(error) => return Err(Failure::moving("connecting", error, || "no connection".to_owned())),
        }
    }
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
    let (kind, protocol) = match work.protocol {
        Protocol::Tcp => (Type::STREAM, IpProtocol::TCP),
        Protocol::Sctp if one_to_many(work) => (Type::SEQPACKET, IpProtocol::from(IPPROTO_SCTP)),
        Protocol::Sctp => (Type::STREAM, IpProtocol::from(IPPROTO_SCTP)),
        Protocol::Udp => (Type::DGRAM, IpProtocol::UDP),
        Protocol::Mptcp => (Type::STREAM, IpProtocol::from(IPPROTO_MPTCP)),
    };
    let domain = if address.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, kind, Some(protocol)).map_err(|error| Failure::opening(work.protocol, error))?;
    slice(&socket)?;
    Ok(socket)
}

/// Opens the socket that a workload needs, sets its options on it, and closes it. Only a protocol or an option that the kernel lacks is
/// a failure: what else keeps an option from being set, such as its value, is the cell's to tell.
pub(super) fn probe(settings: &Settings) -> Result<(), Failure> {
    let address: IpAddr = match settings.link.family {
        settings::Family::Ipv4 => std::net::Ipv4Addr::LOCALHOST.into(),
        settings::Family::Ipv6 => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    for (asked, side) in [(&settings.client, "client"), (&settings.server, "server")] {
        let socket = open(&settings.workload, address)?;
        let target = options::Target { socket: socket.as_fd(), ipv6: address.is_ipv6(), side };
        match options::apply(target, asked, &mut End::default()) {
            Err(failure @ Failure::NoOption { .. }) => return Err(failure),
            _ if settings.client.options == settings.server.options => break,
            _ => {}
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::{Control, until_connected};
    use crate::units::Span;
    use std::io;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    /// SCTP's handshake takes two round trips, and seconds where a packet of it is lost: the call that waits for it is cut off after a slice
    /// of time, and each later one comes back at once.
    #[test]
    fn a_handshake_is_waited_for_and_not_asked_after_all_the_time() {
        let interrupted = AtomicBool::new(false);
        let control = Control::new(Span(5_000_000_000), &interrupted);
        control.begin();
        let begun = Instant::now();
        let mut calls = 0;
        let connect = || {
            calls += 1;
            let code = if calls == 1 { libc::EINPROGRESS } else { libc::EALREADY };
            if begun.elapsed() < Duration::from_millis(100) { Err(io::Error::from_raw_os_error(code)) } else { Ok(()) }
        };
        until_connected(connect, &control).expect("connected");
        assert!((3..=110).contains(&calls), "{calls}");
    }
}
