//! What is told of the sockets of two programs that are not ours, on the kernel that the tests run on. The programs are this test itself, started
//! again.

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use common::Workshop;
use common::cells::{settings, word};
use serde_json::Value as Json;
use socket2::{Domain, Protocol, Socket, Type};
use sweep::backend::Job;
use sweep::backend::native::Native;
use sweep::measurement::{End, Measurement, Outcome, Verdict, Watched};
use sweep::settings::{Exec, Program, Settings, Value};
use sweep::sys::socket::{IPPROTO_SCTP, IntOption, SCTP_NODELAY, SO_RCVBUF, SO_SNDBUF, get_int, set_int};
use sweep::units::Span;

/// Which of the two programs this process is, and where it finds the other.
const ROLE: &str = "SWEEP_TEST_ROLE";
/// How long the client sends.
const SENDS: Duration = Duration::from_millis(400);
/// Messages that the client sends over SCTP, one every millisecond.
const MESSAGES: u64 = 300;

/// All programs. Over TCP the server reads what comes over two connections, and the client says little over one and much over the other.
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
            set_int(data.as_fd(), SO_SNDBUF, 32768).expect("set");
            let begun = Instant::now();
            while begun.elapsed() < SENDS {
                data.write_all(&[7; 16 << 10]).expect("sent");
            }
        }
        ["sctp-server", port] => {
            let listener = sctp();
            let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port.parse().expect("a port")));
            listener.bind(&any.into()).expect("bound");
            listener.listen(1).expect("listening");
            let (mut socket, _) = listener.accept().expect("accepted");
            let mut buffer = [0; 1000];
            while socket.read(&mut buffer).expect("read") > 0 {}
        }
        ["sctp-client", server, port] => {
            let mut socket = sctp();
            set_int(socket.as_fd(), SO_RCVBUF, 1024).expect("set");
            set_int(socket.as_fd(), SCTP_NODELAY, 1).expect("set");
            let server: IpAddr = server.parse().expect("an address");
            socket.connect(&SocketAddr::from((server, port.parse().expect("a port"))).into()).expect("connected");
            for _ in 0..MESSAGES {
                socket.write_all(&[7; 100]).expect("sent");
                thread::sleep(Duration::from_millis(1));
            }
        }
        _ => panic!("no such role: {role}"),
    }
}

fn sctp() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(IPPROTO_SCTP))).expect("a socket")
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
    let job = Job { settings, timeout: Span(30_000_000_000), phase: Span(0), evidence, capture: None };
    let measured = native.measure(&job, &AtomicBool::new(false));
    assert_eq!(measured.outcome, Outcome::Measured, "{measured:#?}");
    measured
}

fn watched(end: &End) -> &Watched {
    end.watched.as_deref().unwrap_or_else(|| panic!("not watched: {end:#?}"))
}

/// What this kernel gives a socket for `option`, of which 32 KiB is asked where `ask`.
fn given(option: IntOption, ask: bool) -> Option<u64> {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let socket = socket.as_fd();
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
        // Unless both were told when they were closed, one end's last look may be older than the other's. A FIN counts as a byte.
        if seen.told_when_closed && peer.told_when_closed {
            assert!(peer.received_bytes.is_some_and(|received| Some(received) <= seen.sent_bytes.map(|sent| sent + 1)));
        }
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

/// SCTP, which the kernel that the tests run on may not have, and twice, so that looking changes nothing from run to run.
#[test]
fn an_association_of_programs_in_virtual_time_is_seen_the_same_way_every_time() {
    let this = std::env::current_exe().expect("this program");
    let command = |role: &str| {
        format!(
            "command = [\"{}\", \"--exact\", \"as_a_program\", \"--nocapture\"]\nenv = {{ {ROLE} = \"{role}\" }}",
            this.display()
        )
    };
    let workshop = Workshop::new(&format!(
        "name = \"seen\"\n[run]\nrepeat = 1\ntimeout = \"60s\"\n[kernel]\nclock = \"virtual\"\n\
         [workload]\nkind = \"exec\"\nprotocol = \"sctp\"\nport = 5201\n\
         [workload.server]\n{}\n[workload.client]\n{}\n[axes]\n\"link.topology\" = [\"veth\", \"loopback\"]\n",
        command("sctp-server {port}"),
        command("sctp-client {server_addr} {port}")
    ));
    let run = || {
        workshop.run(&["run", "sweep.toml", "--fresh", "--no-plot"]).expect(0);
        workshop.records("latest")
    };
    let first = run();
    for record in &first {
        let (client, server) = (&record["client"], &record["server"]);
        assert_eq!(record["outcome"], "measured", "{record:#}");
        let buffer = |size: &str| client["rcvbuf"][size].clone();
        assert_eq!(
            ["asked", "initial", "final", "peak"].map(buffer),
            [Json::Null, 2304.into(), 2304.into(), 2304.into()]
        );
        assert_eq!(client["nodelay"]["given"], true, "{client:#}");
        assert!(server["rcvbuf"]["initial"].as_u64() > Some(2304), "the server asked for nothing: {server:#}");
        for end in [client, server] {
            assert_eq!(end["watched"]["protocol"], "sctp", "{end:#}");
            assert_eq!(end["watched"]["connections"], 1, "{end:#}");
            assert_eq!(end["watched"]["reasons"], Json::Null, "{end:#}");
            assert!(end["association"]["state"].as_u64() >= Some(4), "established, or shut down since: {end:#}");
            assert!(end["samples"]["rcvbuf_bytes"].as_array().is_some_and(|sizes| sizes.len() > 10), "{end:#}");
        }
        assert_eq!(client["watched"]["local_port"], server["watched"]["peer_port"]);
        let count = |end: &Json, which: &str| end["association"][which].as_u64().expect("a count");
        // The last look is up to 10 ms before the end.
        let (sent, received) = (count(client, "ordered_chunks_out"), count(server, "ordered_chunks_in"));
        assert!(
            (MESSAGES / 2..=MESSAGES).contains(&sent) && (MESSAGES / 2..=MESSAGES).contains(&received),
            "{record:#}"
        );
        assert_eq!(count(server, "ordered_chunks_out"), 0);
    }
    let figures = |records: Vec<Json>| {
        let mut told: Vec<String> = records
            .iter()
            .map(|record| {
                format!("{} {} {} {}", record["cell"], record["completion_ns"], record["client"], record["server"])
            })
            .collect();
        told.sort_unstable();
        told
    };
    assert_eq!(figures(first), figures(run()));
}
