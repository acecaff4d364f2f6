#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used)]
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use sweep::backend::{Backend, Event, Job, guest::kernel::*, guest::*};
use sweep::settings::{Settings, Value, find};
use sweep::units::Span;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let store = KernelStore::open_default().unwrap();
    let kernel = store.find(&a[1].parse().unwrap()).unwrap().unwrap();
    let acc = match a[2].as_str() {
        "v" => Accelerator::TcgVirtual,
        "t" => Accelerator::Tcg,
        _ => Accelerator::Kvm,
    };
    let mut jobs = vec![];
    for (r, n) in [(1024, false), (1024, true), (65536, true), (65536, false)] {
        for i in 0..2u64 {
            let mut s = Settings::default();
            for (p, v) in [
                ("workload.protocol", Value::Text("sctp".into())),
                ("workload.style", Value::Text("one-to-many".into())),
                ("link.topology", Value::Text("loopback".into())),
                ("rcvbuf", Value::Int(r)),
                ("sndbuf", Value::Int(65536)),
                ("nodelay", Value::Bool(n)),
            ] {
                (find(p).unwrap().set)(&mut s, &v);
            }
            jobs.push(Job { settings: s, timeout: Span(180_000_000_000), phase: Span(i * 1_234_567) });
        }
    }
    let t = std::time::Instant::now();
    let mut g = Guest::new(
        Qemu::find().unwrap(),
        &kernel,
        &store,
        GuestOptions {
            asked: a[1].clone(),
            accelerator: acc,
            why: String::new(),
            program: a[3].clone().into(),
            consoles: "/tmp/consoles".into(),
            parallel: 2,
        },
    )
    .unwrap();
    println!("{:?} packed", t.elapsed());
    let r = g.run(&jobs, &AtomicBool::new(false), &mut |e| {
        match e {
            Event::Machine(m) => println!(
                "{:?} machine {} {} {:?} {:?}",
                t.elapsed(),
                m.release,
                m.name,
                m.limits,
                m.sysctls.get("net.ipv4.tcp_rmem")
            ),
            Event::Started(i) => println!("{:?} start {i}", t.elapsed()),
            Event::Ended(i, m) => println!(
                "{:?} end {i} {:?} {:?} {:?} rcv {:?} cpu {:?} setup {:?}",
                t.elapsed(),
                m.outcome,
                m.reason,
                m.completion_ns,
                m.client.rcvbuf,
                m.client.cpu_system_ns,
                m.setup_ns
            ),
            Event::Note(n) => println!("{:?} note {n}", t.elapsed()),
        }
        ControlFlow::Continue(())
    });
    println!("{:?} {:?}", t.elapsed(), r);
}
