//! What is told of the sockets of two programs that are not ours, on the kernel that the tests run on. The programs are this test itself, started
//! again.

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use common::cells::{settings, word};
use sweep::backend::Job;
use sweep::backend::native::Native;
use sweep::measurement::{End, Measurement, Outcome, Verdict, Watched};
use sweep::settings::{Exec, Program, Settings, Value};
use sweep::sys::socket::{SO_RCVBUF, SO_SNDBUF, get_int, set_int};
use sweep::units::Span;

/// Which of the two programs this process is, and where it finds the other.
const ROLE: &str = "SWEEP_TEST_ROLE";
/// How long the client sends.
const SENDS: Duration = Duration::from_millis(400);

/// Both programs: the server reads what comes over two connections, the client says little over one and much over the other.
#[test]
fn as_a_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.split_whitespace().collect::<Vec<_>>()[..] {
        ["server", port] => {
            let port: u16 = port.parse().expect("a port");
            let listener = TcpListener::bind(("::", port)).expect("a listener");
            thread::scope(|scope| {
                for _ in 0..2 {
                    let (mut socket, _) = listener.accept().expect("accepted");
                    scope.spawn(move || {
                        let mut buffer = vec![0; 1 << 16];
                        while socket.read(&mut buffer).expect("read") > 0 {}
                    });
                }
            });
        }
        ["client", server, port] => {
            let port: u16 = port.parse().expect("a port");
            let mut control = TcpStream::connect((server, port)).expect("connected");
            control.write_all(b"hello").expect("said");
            let mut data = TcpStream::connect((server, port)).expect("connected");
            set_int(std::os::fd::AsFd::as_fd(&data), SO_SNDBUF, 32768).expect("set");
            let begun = Instant::now();
            while begun.elapsed() < SENDS {
                data.write_all(&[7; 16 << 10]).expect("sent");
            }
        }
        _ => panic!("no such role: {role}"),
    }
}

fn cell(topology: &str) -> Settings {
    let values = [
        ("workload.kind", word("exec")),
        ("workload.port", Value::Int(5201)),
        ("link.topology", word(topology)),
        ("workload.protocol", word("tcp")),
    ];
    let mut settings = settings(&values);
    let this = std::env::current_exe().expect("this program");
    let program = |role: &str| Program {
        command: [this.to_str().expect("a name"), "--exact", "as_a_program", "--nocapture"].map(str::to_owned).into(),
        env: BTreeMap::from([(ROLE.to_owned(), role.to_owned())]),
        ..Program::default()
    };
    settings.exec = Some(Box::new(Exec {
        server: program("server 5201"),
        client: program("client {server_addr} 5201"),
        dir: "/".to_owned(),
        ..Exec::default()
    }));
    settings
}

fn run(settings: Settings, evidence: bool) -> Measurement {
    let native = Native::new("for a test").expect("tests run as root, or where user namespaces are allowed");
    let job = Job { settings, timeout: Span(30_000_000_000), phase: Span(0), evidence };
    let measured = native.measure(&job, &AtomicBool::new(false));
    assert_eq!(measured.outcome, Outcome::Measured, "{measured:#?}");
    measured
}

fn watched(end: &End) -> &Watched {
    end.watched.as_deref().unwrap_or_else(|| panic!("not watched: {end:#?}"))
}

/// What this kernel gives a socket for `option`, of which 32 KiB is asked where `ask`.
fn given(option: sweep::sys::socket::IntOption, ask: bool) -> Option<u64> {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let socket = std::os::fd::AsFd::as_fd(&socket);
    if ask {
        set_int(socket, option, 32768).expect("set");
    }
    u64::try_from(get_int(socket, option).expect("read")).ok()
}

#[test]
fn buffers_of_programs_are_seen_from_outside() {
    for topology in ["veth", "loopback"] {
        let measured = run(cell(topology), true);
        let (client, server) = (&measured.client, &measured.server);
        assert_eq!(client.sndbuf.end, given(SO_SNDBUF, true), "{topology}: {client:#?}");
        assert_eq!((client.sndbuf.asked, client.sndbuf.verdict), (None, Some(Verdict::Unknown)));
        assert_eq!(server.rcvbuf.initial, given(SO_RCVBUF, false), "the listener's, {topology}: {server:#?}");
        assert!(server.rcvbuf.peak > server.rcvbuf.initial, "{topology}: {server:#?}");
        assert!(server.rcvbuf.peak >= server.rcvbuf.end);
        let (seen, peer) = (watched(client), watched(server));
        assert_eq!((seen.connections, peer.connections, peer.listeners), (2, 2, 1), "{topology}");
        assert_eq!((seen.peer_port, peer.local_port), (Some(5201), Some(5201)));
        assert_eq!(seen.local_port, peer.peer_port, "both ends tell of the same connection");
        assert!(seen.sent_bytes.is_some_and(|sent| sent > 16 << 10), "the one that carried the most: {seen:?}");
        assert!(peer.received_bytes.is_some_and(|received| Some(received) <= seen.sent_bytes.map(|sent| sent + 1)));
        assert_eq!((&seen.reasons, &peer.reasons), (&vec![], &vec![]), "{topology}");
        for end in [client, server] {
            let evidence = end.evidence.as_ref().expect("evidence");
            assert!(evidence.tcp.as_ref().is_some_and(|tcp| tcp.mss_bytes.is_some()), "{evidence:?}");
            assert!(evidence.cost_ns.is_some_and(|cost| cost >= watched(end).cost_ns), "{evidence:?}");
            let samples = end.samples.as_ref().expect("samples");
            assert!(samples.len() > 5, "{topology}: {samples:?}");
            assert!(samples.t_ns.last() < Some(&20_000_000_000), "counted from the client's start");
        }
        let share = |end: &End| watched(end).cost_ns * 10 < measured.elapsed_ns.unwrap_or(0);
        assert!(share(client) && share(server), "looking costs a small part of a processor: {seen:?} {peer:?}");
    }
}

#[test]
fn without_evidence_nothing_looks() {
    let measured = run(cell("veth"), false);
    for end in [&measured.client, &measured.server] {
        assert_eq!((&end.watched, &end.samples, end.rcvbuf.initial), (&None, &None, None));
    }
}
