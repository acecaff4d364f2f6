//! The watcher and real sockets, in a network namespace made for the test.

use super::history::Whose;
use super::{Due, Pace, SHARE, Sockets};
use crate::measurement::{End, Verdict, Watched};
use crate::settings::{Protocol, Side};
use crate::sys::diag;
use crate::sys::namespace;
use crate::sys::socket::{IPPROTO_MPTCP, SO_RCVBUF, get_int, set_int};
use crate::workload::Watch;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// What both ends of a namespace were seen to be, and when the watch began.
struct Both {
    client: Sockets,
    server: Sockets,
    begun: Instant,
}

impl Both {
    fn tell(&mut self, server_port: u16) -> (End, End) {
        let tell = |sockets: &mut Sockets| {
            let mut end = End::default();
            sockets.whose.server_port = server_port;
            sockets.tell(self.begun, &mut end);
            end
        };
        (tell(&mut self.client), tell(&mut self.server))
    }
}

/// Runs `work` in a new namespace while the sockets of both ends are watched, and tells what was seen. `work` returns the server's port
/// besides. `None` where this user may make no namespace.
fn watched<T: Send>(protocol: Protocol, work: impl FnOnce() -> (u16, T) + Send) -> Option<(T, End, End)> {
    watched_by(protocol, |_| (), work)
}

/// The same by watchers that `set` has changed.
fn watched_by<T: Send>(
    protocol: Protocol,
    set: impl Fn(&mut Sockets) + Sync,
    work: impl FnOnce() -> (u16, T) + Send,
) -> Option<(T, End, End)> {
    if !namespace::may_unshare_network() {
        eprintln!("not tried: this user may not make network namespaces");
        return None;
    }
    let run = || {
        namespace::enter_new_network().expect("a namespace");
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip");
        assert!(up.success());
        let whose = |side| Whose { side, shared: true, server_port: 0 };
        let begin = |side| {
            let mut sockets = Sockets::begin(protocol, whose(side), Pace::REAL);
            set(&mut sockets);
            sockets
        };
        let mut both = Both { begun: Instant::now(), client: begin(Side::Client), server: begin(Side::Server) };
        let working = thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                let wait = both.client.look().min(both.server.look());
                thread::sleep(wait);
            }
            working.join()
        });
        let (port, done) = working.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (client, server) = both.tell(port);
        (done, client, server)
    };
    Some(thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn seen(end: &End) -> &Watched {
    end.watched.as_deref().expect("told")
}

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    (client, listener.accept().expect("accepted").0)
}

/// Sends so many bytes one way, the reader beside the writer.
fn carry(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = bytes;
            let mut buffer = vec![0; 1 << 16];
            while left > 0 {
                left -= to.read(&mut buffer).expect("read");
            }
        });
        from.write_all(&vec![7; bytes]).expect("written");
    });
}

/// Whether all bytes were received. The peer's end counts as one more (`tcp_rcv_nxt_update`).
fn is_all(received: Option<u64>, sent: usize) -> bool {
    received.is_some_and(|bytes| bytes == sent as u64 || bytes == sent as u64 + 1)
}

/// Longer than several looks, however few the processor's share allows.
fn rest() {
    thread::sleep(Duration::from_millis(300));
}

#[test]
fn what_a_connection_was_given_at_first_at_the_end_and_at_the_most() {
    const BYTES: usize = 64 << 20;
    let work = || {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let given = get_int(listener.as_fd(), SO_RCVBUF).expect("read");
        // One that says little, as programs have them to agree on what they do.
        let (mut control, mut controlled) = pair(&listener);
        carry(&mut control, &mut controlled, 100);
        let (mut client, mut server) = pair(&listener);
        set_int(client.as_fd(), SO_RCVBUF, 30000).expect("set");
        rest();
        let data_port = client.local_addr().expect("an address").port();
        carry(&mut client, &mut server, BYTES);
        let grown = get_int(server.as_fd(), SO_RCVBUF).expect("read");
        rest();
        (port, (port, data_port, given, grown))
    };
    let Some(((port, data_port, given, grown), client, server)) = watched(Protocol::Tcp, work) else { return };
    let wide = |size: i32| u64::try_from(size).ok();

    let told = (client.rcvbuf.asked, client.rcvbuf.end, client.rcvbuf.peak, client.rcvbuf.verdict);
    assert_eq!(told.1, Some(60000), "twice what was asked for: {client:?}");
    assert_eq!((told.0, told.3), (None, Some(Verdict::Unknown)), "what was asked for is not known");
    assert_eq!(server.rcvbuf.initial, wide(given), "the listener's");
    assert_eq!(server.rcvbuf.end, wide(grown), "{server:?}");
    assert!(server.rcvbuf.peak >= server.rcvbuf.end && server.rcvbuf.peak > server.rcvbuf.initial, "{server:?}");

    for (end, local, peer) in [(&client, data_port, port), (&server, port, data_port)] {
        let seen = seen(end);
        assert_eq!((seen.local_port, seen.peer_port), (Some(local), Some(peer)), "the one that carried the most");
        assert_eq!((seen.protocol.as_deref(), seen.connections), (Some("tcp"), 2));
        assert_eq!(seen.reasons, [""; 0]);
        assert!(seen.looks > 0 && seen.cost_ns > 0 && seen.congestion.is_some(), "{seen:?}");
        let tcp = end.evidence.as_ref().and_then(|evidence| evidence.tcp.as_ref()).expect("facts");
        assert!(tcp.mss_bytes.is_some() && tcp.rtt_ns.is_some(), "{tcp:?}");
    }
    assert_eq!((seen(&client).listeners, seen(&server).listeners), (0, 1));
    assert_eq!(seen(&client).sent_bytes, Some(BYTES as u64));
    assert!(is_all(seen(&server).received_bytes, BYTES), "{server:?}");

    let samples = server.samples.expect("samples");
    assert!(samples.len() > 3 && samples.t_ns.is_sorted(), "{samples:?}");
    let sizes = samples.rcvbuf_bytes.expect("sizes");
    assert!(sizes.iter().max().copied() <= server.rcvbuf.peak);
    assert!(samples.rtt_ns.is_some() && samples.cwnd_bytes.is_some());
}

#[test]
fn a_connection_too_short_for_any_look_is_told_of_when_it_is_closed() {
    let work = || {
        rest();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let (mut client, mut server) = pair(&listener);
        carry(&mut client, &mut server, 12345);
        drop((client, server, listener));
        rest();
        (port, ())
    };
    let Some(((), client, server)) = watched(Protocol::Tcp, work) else { return };
    for (end, seen) in [(&client, seen(&client)), (&server, seen(&server))] {
        assert!(seen.told_when_closed, "{seen:?}");
        assert_eq!(seen.connections, 1, "{seen:?}");
        assert!(end.evidence.as_ref().is_some_and(|evidence| evidence.tcp.is_some()));
        if end.rcvbuf.initial.is_none() {
            assert_eq!(seen.reasons, ["the connection was closed before its buffers were looked at"]);
        }
    }
    assert_eq!(seen(&client).sent_bytes, Some(12345));
    assert!(is_all(seen(&server).received_bytes, 12345), "{server:?}");
}

#[test]
fn datagrams_that_find_no_room_are_seen() {
    let work = || {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        set_int(server.as_fd(), SO_RCVBUF, 8192).expect("set");
        let address = server.local_addr().expect("an address");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        client.connect(address).expect("connected");
        for _ in 0..100 {
            client.send(&[7; 1000]).expect("sent");
        }
        rest();
        (address.port(), address.port())
    };
    let Some((port, client, server)) = watched(Protocol::Udp, work) else { return };
    assert_eq!(server.rcvbuf.end, Some(16384), "twice what was asked for: {server:?}");
    let drops = |end: &End| end.evidence.as_ref().and_then(|evidence| evidence.socket_drops);
    assert!(drops(&server).is_some_and(|drops| (80..100).contains(&drops)), "{server:?}");
    assert_eq!(drops(&client), Some(0));
    assert_eq!((seen(&server).peer_port, seen(&client).peer_port), (None, Some(port)));
    let samples = server.samples.expect("samples");
    assert!(samples.rcvbuf_used_bytes.is_some_and(|used| used.iter().any(|&used| used > 8192)), "it lies unread");
}

#[test]
fn a_connection_of_mptcp_hides_its_subflow() {
    const BYTES: usize = 1 << 20;
    let open = || Socket::new(Domain::IPV4, Type::STREAM, Some(socket2::Protocol::from(IPPROTO_MPTCP)));
    let Ok(listener) = open() else {
        eprintln!("not tried: this kernel has no MPTCP");
        return;
    };
    drop(listener);
    let work = || {
        let listener = open().expect("a socket");
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("bound");
        listener.listen(1).expect("listening");
        let address = listener.local_addr().expect("an address");
        let client = open().expect("a socket");
        client.connect(&address).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        set_int(client.as_fd(), SO_RCVBUF, 30000).expect("set");
        let (mut client, mut server) = (TcpStream::from(client), TcpStream::from(server));
        carry(&mut client, &mut server, BYTES);
        rest();
        (address.as_socket().expect("an address").port(), ())
    };
    // On its own a busy machine would not ask for MPTCP in time where the cell names TCP: the subflow makes it ask.
    let late = |sockets: &mut Sockets| {
        for question in &mut sockets.questions {
            if question.protocol == diag::Protocol::Mptcp {
                question.due.next += Duration::from_hours(1);
            }
        }
    };
    // Where the cell names TCP the subflow is no connection of its own either.
    for named in [Protocol::Mptcp, Protocol::Tcp] {
        let Some(((), client, server)) = watched_by(named, late, work) else { return };
        assert_eq!(client.rcvbuf.end, Some(60000), "{client:?}");
        for (end, carried) in [(&client, seen(&client).sent_bytes), (&server, seen(&server).received_bytes)] {
            let seen = seen(end);
            assert_eq!((seen.protocol.as_deref(), seen.connections), (Some("mptcp"), 1), "{seen:?}");
            assert_eq!(end.fell_back, Some(false));
            assert!(carried.is_none_or(|bytes| bytes == BYTES as u64), "told since Linux 6.5: {seen:?}");
        }
    }
}

#[test]
fn nothing_seen_is_said_and_is_no_figure() {
    let work = || {
        rest();
        (7001, ())
    };
    let Some(((), client, _)) = watched(Protocol::Tcp, work) else { return };
    assert_eq!((client.rcvbuf.initial, client.rcvbuf.peak), (None, None));
    assert_eq!(seen(&client).reasons, ["no tcp connection of the program was seen"]);
    assert_eq!((seen(&client).protocol.as_deref(), seen(&client).connections), (None, 0));
}

#[test]
fn looking_costs_no_more_than_its_share() {
    let now = Instant::now();
    let mut due = Due { next: now, period: Duration::from_millis(2), share: SHARE };
    due.perform(now, || {});
    assert_eq!(due.next, now + Duration::from_millis(2), "what costs little is done at the pace");
    let busy = || {
        let begun = crate::sys::clock::thread_time();
        while crate::sys::clock::thread_time().0 < begun.0 + 1_000_000 {}
    };
    let ((), cost) = due.perform(now, busy);
    assert!(cost >= Duration::from_millis(1));
    assert_eq!(due.next, now + cost * SHARE);
}
