//! `just bench`: what `sweep` itself costs, each figure beside another one taken in the same run.
//!
//! Nothing here fails when the machine is slow: figures are printed, with the target that they have.

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sweep::backend::Job;
use sweep::backend::native::Native;
use sweep::measurement::{Measurement, Outcome};
use sweep::settings::{Settings, Value, find};
use sweep::units::{BitRate, Span};

fn main() {
    // `cargo test --benches` and `cargo nextest` ask for a list, and there is none.
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return;
    }
    native_set_up();
    goodput();
    echo();
    evidence();
    guests();
}

fn settings(values: &[(&str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (path, value) in values {
        let Some(key) = find(path) else { panic!("{path} is no key") };
        match key.kind.check(value) {
            Ok(value) => key.put(&mut settings, &value),
            Err(error) => panic!("{path}: {error:?}"),
        }
    }
    settings
}

fn word(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn measure(native: &Native, values: &[(&str, Value)]) -> Measurement {
    measure_with(native, values, true)
}

fn measure_with(native: &Native, values: &[(&str, Value)], evidence: bool) -> Measurement {
    let job =
        Job { settings: settings(values), timeout: Span(60_000_000_000), phase: Span(0), evidence, capture: None };
    let measured = native.measure(&job, &AtomicBool::new(false));
    assert_eq!(measured.outcome, Outcome::Measured, "{:?}", measured.reason);
    measured
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn shell(script: &str) -> Option<String> {
    let output = Command::new("sh").args(["-c", script]).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Making and removing the namespaces and the link of a repeat.
fn native_set_up() {
    println!("== a repeat's namespaces and veth pair, set up and torn down");
    let native = Native::new("a benchmark").unwrap_or_else(|error| panic!("{error}"));
    let (mut set_up, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let mut measured = Measurement::default();
        let took = timed(|| measured = measure(&native, &[("chunk_count", Value::Int(1))]));
        set_up.push(Span(measured.setup_ns.unwrap_or(0)));
        whole.push(Span(Span::from(took).0 - measured.elapsed_ns.unwrap_or(0)));
    }
    println!("   set-up {}, with tear-down {} (median of 200; target at most 3 ms)", median(set_up), median(whole));
    let script = "ip netns add sweepa && ip netns add sweepb && ip link add v0 netns sweepa type veth peer name v1 netns sweepb \
        && ip -n sweepa addr add 198.18.0.1/24 dev v0 && ip -n sweepb addr add 198.18.0.2/24 dev v1 \
        && ip -n sweepa link set v0 up && ip -n sweepb link set v1 up; ip netns del sweepa; ip netns del sweepb";
    let with_ip: Vec<_> = (0..20).map(|_| Span::from(timed(|| drop(shell(script))))).collect();
    println!("   the same with `ip` commands {} (median of 20)", median(with_ip));
}

/// A TCP stream between two namespaces joined by a veth pair, ours and iperf3's in turn.
fn goodput() {
    println!("== goodput of a TCP stream between two namespaces joined by a veth pair, beside iperf3");
    let native = Native::new("a benchmark").unwrap_or_else(|error| panic!("{error}"));
    let script = "ip netns add sweepa && ip netns add sweepb && ip link add v0 netns sweepa type veth peer name v1 netns sweepb \
        && ip -n sweepa addr add 198.18.0.1/24 dev v0 && ip -n sweepb addr add 198.18.0.2/24 dev v1 \
        && ip -n sweepa link set v0 up && ip -n sweepb link set v1 up && sleep 0.5; \
        ip netns exec sweepa timeout 20 iperf3 -s -1 >/dev/null & sleep 0.3; \
        ip netns exec sweepb timeout 10 iperf3 -c 198.18.0.1 -t 1 -J; status=$?; \
        ip netns del sweepa; ip netns del sweepb; exit $status";
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let stream = [
            ("workload.kind", word("stream")),
            ("workload.duration", word("1s")),
            ("workload.direction", word("upload")),
            ("chunk_size", word("128KiB")),
            ("workload.read_size", word("128KiB")),
        ];
        ours.push(BitRate(measure(&native, &stream).goodput_bps.unwrap_or(0)));
        let Some(json) = shell(script).and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()) else {
            println!("   iperf3 does not run here (Debian: apt-get install iperf3 iproute2)");
            return;
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate in bits per second")]
        theirs.push(BitRate(json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0) as u64));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "   sweep {ours}, iperf3 {theirs}: ratio {:.3} (median of 11 each; target at least 0.95)",
        ratio(ours.0, theirs.0)
    );
}

/// One chunk back and forth, ours and sockperf's in turn.
fn echo() {
    println!("== one chunk of 64 bytes there and back over TCP loopback in a namespace, beside sockperf");
    let native = Native::new("a benchmark").unwrap_or_else(|error| panic!("{error}"));
    let script = "unshare -n sh -c 'ip link set lo up; sockperf server --tcp -i 127.0.0.1 -p 7001 >/dev/null 2>&1 & \
        server=$!; sleep 0.3; sockperf ping-pong --tcp -i 127.0.0.1 -p 7001 -m 64 -t 1 --full-rtt 2>&1; kill $server'";
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let echo = [
            ("chunk_count", Value::Int(1)),
            ("chunk_size", Value::Int(64)),
            ("nodelay", Value::Bool(true)),
            ("workload.bursts", Value::Int(20_000)),
            ("link.topology", word("loopback")),
        ];
        ours.push(Span(measure(&native, &echo).completion_ns.unwrap_or(0)));
        let Some(median) = shell(script).and_then(|text| sockperf_median(&text)) else {
            println!("   sockperf does not run here (Debian: apt-get install sockperf iproute2)");
            return;
        };
        theirs.push(median);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "   sweep {ours}, sockperf {theirs}: ratio {:.3} (median of 15 medians each; target at most 1.05)",
        ratio(ours.0, theirs.0)
    );
}

/// The same stream and the same echo with the kernel's evidence and without, in turn.
fn evidence() {
    println!("== what evidence costs (--no-evidence leaves it out)");
    let native = Native::new("a benchmark").unwrap_or_else(|error| panic!("{error}"));
    let stream = [
        ("workload.kind", word("stream")),
        ("workload.duration", word("500ms")),
        ("workload.direction", word("upload")),
    ];
    let echo = [
        ("chunk_count", Value::Int(1)),
        ("chunk_size", Value::Int(64)),
        ("nodelay", Value::Bool(true)),
        ("workload.bursts", Value::Int(5000)),
    ];
    let (mut goodputs, mut echoes) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..21 {
        for with in [true, false] {
            let place = usize::from(with);
            goodputs[place].push(measure_with(&native, &stream, with).goodput_bps.unwrap_or(0));
            echoes[place].push(measure_with(&native, &echo, with).completion_ns.unwrap_or(0));
        }
    }
    let [goodput, latency] = [goodputs, echoes].map(|[without, with]| ratio(median(with), median(without)));
    println!(
        "   goodput with over without {goodput:.3} (target at least 0.97), one-chunk echo {latency:.3} (target at most 1.03)"
    );
    println!("   (medians of 21 each)");
}

/// The line `---> percentile 50.000 =   12.345` of sockperf, in microseconds.
fn sockperf_median(text: &str) -> Option<Span> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"))?;
    let microseconds: f64 = line.rsplit('=').next()?.trim().parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency in nanoseconds")]
    Some(Span((microseconds * 1000.0) as u64))
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other as f64
}

/// Guests in virtual time: the whole program, as its users run it.
fn guests() {
    println!("== guests in virtual time");
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let run = |name: &str, text: &str, more: &[&str]| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{error}"));
        let output = Command::new(env!("CARGO_BIN_EXE_sweep"))
            .current_dir(folder.path())
            .arg("run")
            .arg(&file)
            .args(["--fresh"])
            .args(more)
            .output()
            .unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // The kernel of the reference figures; newer ones are larger and boot up to a second longer.
    let one = "name = \"one\"\n[run]\nrepeat = 1\n[kernel]\nimage = \"debian:6.1\"\nclock = \"virtual\"\n[workload]\nprotocol = \"sctp\"\n";
    let mut boots = Vec::new();
    for _ in 0..3 {
        let _ = Command::new(env!("CARGO_BIN_EXE_sweep")).args(["kernel", "prune"]).output();
        let cold = run("one.toml", one, &[]);
        let booted = cold.lines().find_map(|line| line.strip_prefix("note: booted in ")).unwrap_or("?");
        boots.push(booted.split(',').next().unwrap_or("?").to_owned());
    }
    println!("   cold boots of debian:6.1, of two guests side by side each: {} (target at most 4 s)", boots.join(", "));
    let mut load = Vec::new();
    for _ in 0..5 {
        let text = run("one.toml", one, &["-j", "1"]);
        let figure = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split(" (").next())
                .map(str::to_owned)
        };
        load.extend(figure("note: a frozen machine was loaded in "));
    }
    println!("   loads of a frozen machine: {} (target at most 0.2 s)", load.join(", "));
    let echo = "name = \"echo\"\n[run]\nrepeat = 3\ntimeout = \"180s\"\n[kernel]\nclock = \"virtual\"\n[link]\ntopology = \"loopback\"\n\
        [workload]\nprotocol = \"sctp\"\nstyle = \"one-to-many\"\n[axes]\nrcvbuf = [1024, \"64KiB\"]\nsndbuf = [\"64KiB\"]\nnodelay = [false, true]\n";
    let stream = "name = \"stream\"\n[run]\nrepeat = 3\n[kernel]\nclock = \"virtual\"\n[workload]\nkind = \"stream\"\nduration = \"500ms\"\n\
        [axes]\nrcvbuf = [\"32KiB\", \"default\"]\n";
    for (name, text, repeats) in [("echo", echo, 12.0), ("stream", stream, 6.0)] {
        let mut said = String::new();
        let took = timed(|| said = run(&format!("{name}.toml"), text, &[]));
        let ratio = said.lines().find(|line| line.contains("of virtual time took")).unwrap_or("?");
        println!("   {name}: {:.1} repeats a second; {ratio}", repeats / took.as_secs_f64());
    }
}
