//! `sweep doctor`: what this machine can do, and for each "no" what to do about it.

use std::fs;
use std::sync::atomic::AtomicBool;

use clap::Args;
use serde::Serialize;

use crate::backend::Job;
use crate::backend::guest::{Qemu, probe_kvm};
use crate::backend::native::Native;
use crate::measurement::{CaptureLimits, Measurement, Outcome};
use crate::settings::{Protocol, Settings, Style, Topology};
use crate::units::{Bytes, Span};
use crate::{sys, workload};

use super::exit::Exit;
use super::{become_native, print, print_json, store};

/// Arguments of `sweep doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    /// Whether it is there.
    works: bool,
    /// What was seen.
    seen: String,
    /// What to do about it, where it is not there.
    remedy: Option<String>,
}

fn yes(what: &'static str, seen: impl Into<String>) -> Finding {
    Finding { what, works: true, seen: seen.into(), remedy: None }
}

fn no(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what, works: false, seen: seen.into(), remedy: Some(remedy.into()) }
}

pub(super) fn doctor(arguments: &DoctorArgs) -> Result<Exit, Exit> {
    let root = sys::namespace::may_unshare_network();
    let refused = become_native();
    let mut findings = vec![kernel(), namespaces(root, refused.as_deref())];
    findings.push(cell("veth", Topology::Veth, refused.as_deref()));
    findings.push(cell("loopback", Topology::Loopback, refused.as_deref()));
    findings.push(captures(refused.as_deref()));
    findings.extend(protocols());
    findings.push(queues());
    findings.push(congestion_controls());
    findings.extend(guests());
    findings.push(disk());
    if arguments.json {
        return print_json(&findings);
    }
    for finding in &findings {
        print(&format!("{} {:20} {}\n", if finding.works { "yes" } else { "no " }, finding.what, finding.seen))?;
        if let Some(remedy) = &finding.remedy {
            print(&format!("{:25}{remedy}\n", ""))?;
        }
    }
    Ok(Exit::Done)
}

fn kernel() -> Finding {
    match sys::process::kernel_name() {
        Ok(name) => yes("kernel", format!("{} on {}", name.release, name.machine)),
        Err(error) => no("kernel", error.to_string(), "uname(2) failed: this is no Linux that is known"),
    }
}

fn namespaces(root: bool, refused: Option<&str>) -> Finding {
    match (root, refused) {
        (true, _) => yes("namespaces", "this user may make network namespaces"),
        (false, None) => yes("namespaces", "an ordinary user may, inside a user namespace"),
        (false, Some(reason)) => no("namespaces", "no network namespace can be made natively", reason),
    }
}

/// Runs a small echo for real.
fn echo(
    what: &'static str,
    topology: Topology,
    capture: Option<CaptureLimits>,
    refused: Option<&str>,
) -> Result<Measurement, Finding> {
    if refused.is_some() {
        return Err(no(
            what,
            "not without namespaces",
            "see above; a guest does it meanwhile: kernel.image = \"debian:6.12\"",
        ));
    }
    let native = Native::new("sweep doctor")
        .map_err(|error| no(what, error.to_string(), "run as root, or use a guest: kernel.image = \"debian:6.12\""))?;
    let mut settings = Settings::default();
    settings.link.topology = topology;
    let job = Job { settings, timeout: Span(5_000_000_000), phase: Span(0), evidence: false, capture };
    Ok(native.measure(&job, &AtomicBool::new(false)))
}

/// A cell over such a link.
fn cell(what: &'static str, topology: Topology, refused: Option<&str>) -> Finding {
    let measured = match echo(what, topology, None, refused) {
        Ok(measured) => measured,
        Err(finding) => return finding,
    };
    match (measured.outcome, measured.completion_ns) {
        (Outcome::Measured, Some(completion)) => {
            yes(what, format!("an echo of 32 chunks over it took {}", Span(completion)))
        }
        (outcome, _) => {
            let reason = measured.reason.unwrap_or_default();
            no(what, format!("{outcome}: {reason}"), "use a guest: kernel.image = \"debian:6.12\"")
        }
    }
}

/// What `sweep run --capture` needs natively: packet sockets, for which the kernel wants `CAP_NET_RAW`.
fn captures(refused: Option<&str>) -> Finding {
    let what = "captures";
    let limits = CaptureLimits { packets: 1024, snap_bytes: 128 };
    let capture = match echo(what, Topology::Loopback, Some(limits), refused) {
        Ok(measured) => measured.capture.unwrap_or_default(),
        Err(finding) => return finding,
    };
    match (capture.error, capture.client) {
        (None, Some(end)) => yes(what, format!("{} packets of an echo were captured (CAP_NET_RAW)", end.packets)),
        (error, _) => no(
            what,
            error.unwrap_or_else(|| "the echo that was to be captured did not run".to_owned()),
            "--capture needs CAP_NET_RAW natively: run as root, in a container with --cap-add NET_RAW, or capture in a guest, which has it",
        ),
    }
}

fn protocols() -> Vec<Finding> {
    [
        ("TCP", Protocol::Tcp, Style::OneToOne),
        ("MPTCP", Protocol::Mptcp, Style::OneToOne),
        ("SCTP", Protocol::Sctp, Style::OneToMany),
    ]
    .into_iter()
    .map(|(what, protocol, style)| {
        let mut settings = Settings::default();
        settings.workload.protocol = protocol;
        settings.workload.style = style;
        match workload::probe(&settings) {
            Ok(()) => yes(what, "in this kernel"),
            Err(failure) => no(
                what,
                failure.to_string().split(": use").next().unwrap_or_default(),
                if protocol == Protocol::Sctp {
                    "load the module as root (modprobe sctp), if the kernel has it; else a guest is used by itself"
                } else {
                    "a guest is used by itself where a sweep needs it"
                },
            ),
        }
    })
    .collect()
}

fn queues() -> Finding {
    let default = fs::read_to_string("/proc/sys/net/core/default_qdisc").unwrap_or_default();
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let known = [
        ("netem", "netem_enqueue"),
        ("tbf", "tbf_enqueue"),
        ("htb", "htb_enqueue"),
        ("fq", "fq_enqueue"),
        ("fq_codel", "fq_codel_enqueue"),
    ];
    let (there, absent): (Vec<_>, Vec<_>) = known
        .iter()
        .partition(|(_, symbol)| symbols.lines().any(|line| line.split_whitespace().nth(2) == Some(symbol)));
    let names = |list: &[&(&str, &str)]| list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if symbols.is_empty() {
        return yes(
            "queue disciplines",
            format!("default {}; the others are not visible (/proc/kallsyms)", default.trim()),
        );
    }
    yes(
        "queue disciplines",
        format!("default {}; loaded: {}; not loaded: {}", default.trim(), names(&there), names(&absent)),
    )
}

fn congestion_controls() -> Finding {
    let read =
        |file: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")).unwrap_or_default().trim().to_owned();
    yes(
        "congestion controls",
        format!("{} (default {})", read("tcp_available_congestion_control"), read("tcp_congestion_control")),
    )
}

fn guests() -> Vec<Finding> {
    let mut findings = Vec::new();
    let qemu = match Qemu::find() {
        Ok(qemu) => {
            findings.push(yes("QEMU", qemu.version.clone()));
            Some(qemu)
        }
        Err(error) => {
            findings.push(no("QEMU", "not found", error));
            None
        }
    };
    let store = store();
    let newest = store.as_ref().ok().and_then(|store| store.newest().ok().flatten());
    match &store {
        Err(error) => findings.push(no("kernel store", "not usable", error.clone())),
        Ok(store) => {
            let kernels = store.list().map(|listing| listing.kernels).unwrap_or_default();
            let names: Vec<String> = kernels.iter().map(|kernel| kernel.image.to_string()).collect();
            findings.push(if names.is_empty() {
                no(
                    "kernel store",
                    "empty",
                    "`sweep kernel add debian:6.12`; a run that needs a kernel fetches one by itself",
                )
            } else {
                yes("kernel store", names.join(", "))
            });
        }
    }
    if let (Some(qemu), Some(kernel), Ok(store)) = (&qemu, &newest, &store) {
        let cache = store.path().parent().unwrap_or_else(|| store.path());
        let verdict = probe_kvm(qemu, &kernel.vmlinuz, cache, &AtomicBool::new(false));
        findings.push(if verdict.works {
            yes("KVM", verdict.reason)
        } else {
            no("KVM", verdict.reason, "guests are emulated, and measure in virtual time, which needs no KVM")
        });
    } else {
        findings.push(no("KVM", "not tried", "it is tried with a kernel of the store, under QEMU"));
    }
    findings
}

fn disk() -> Finding {
    let what = "disk";
    let folder = std::env::current_dir().unwrap_or_default();
    match sys::process::free_space(&folder) {
        Ok(bytes) if bytes >= 1 << 30 => yes(what, format!("{} free in {}", Bytes(bytes).short(), folder.display())),
        Ok(bytes) => no(
            what,
            format!("{} free in {}", Bytes(bytes).short(), folder.display()),
            "a kernel and its frozen machine take about 300 MiB",
        ),
        Err(error) => no(what, error.to_string(), "the current folder cannot be looked at"),
    }
}
