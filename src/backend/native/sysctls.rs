//! Sysctls: those that bear on buffers, read where a cell would run, and those of a cell, set there.
//!
//! Most sysctls of the network belong to a namespace and are set in those of the cell. Others, such as `net.core.rmem_max`,
//! are one for the whole machine: a new namespace does not have them, or not to be written. On a host they are never written;
//! in a guest, which is there for nothing else, they are set before the repeat and set back after it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;

use crate::measurement::{Outcome, SysctlFacts};
use crate::settings::Sysctls;
use crate::sys::namespace;
use crate::workload::BufferLimits;

/// What is recorded, below /proc/sys, with dots for slashes. Absent keys are left out.
const KEYS: [&str; 27] = [
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_shrink_window",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.sctp.rto_initial",
    "net.sctp.rto_max",
    "net.sctp.rto_min",
    "net.sctp.sack_timeout",
    "net.sctp.sctp_mem",
    "net.sctp.sctp_rmem",
    "net.sctp.sctp_wmem",
];

/// How far a repeat may go with sysctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only its own namespaces: this is somebody's machine.
    Namespaces,
    /// The whole machine: this is a guest.
    Machine,
}

/// Why a sysctl could not be set.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The kernel has none of that name.
    #[error("this kernel has no sysctl `{0}`, or not until some module is loaded")]
    Absent(String),
    /// It is not per namespace, and this is no guest.
    #[error(
        "`{0}` is one for the whole machine in this kernel, and is never changed on the host: use kernel.image = \"auto\", or name a kernel such as \"debian:6.12\", to run this in a guest"
    )]
    OfTheMachine(String),
    /// What it is to be set to does not exist here, or may not be set by this user.
    #[error("`{name}` cannot be `{value}` here: {error}")]
    Unavailable {
        /// The sysctl.
        name: String,
        /// The value asked for.
        value: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel refuses the value.
    #[error("the kernel refuses `{name}` = `{value}` ({error})")]
    Refused {
        /// The sysctl.
        name: String,
        /// The value asked for.
        value: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// No namespace could be looked into.
    #[error("no network namespace could be made: {0}")]
    Namespace(io::Error),
}

impl SysctlError {
    /// Which outcome this is.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Absent(_) | Self::OfTheMachine(_) | Self::Unavailable { .. } | Self::Namespace(_) => Outcome::Skipped,
            Self::Refused { .. } => Outcome::Invalid,
        }
    }
}

/// Where a sysctl can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Namespace,
    Machine,
    Nowhere,
}

/// The file of a sysctl. Its name was checked when its key was made: it cannot lead out of /proc/sys/net.
fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/")))
}

/// The sysctls of a new network namespace: whether it copies the host's `tcp_rmem` differs by kernel, so they are read
/// there. Those that only the first namespace shows (`net.core.rmem_max` before 6.x) are read here.
pub(super) fn in_new_namespace() -> io::Result<BTreeMap<String, String>> {
    let outside = read(KEYS);
    let inside = apart(|| read(KEYS))?;
    Ok(outside.into_iter().chain(inside).collect())
}

/// Does something in a network namespace of its own.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        scope
            .spawn(|| namespace::enter_new_network().map(|()| work()))
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that looked panicked")))
    })
}

/// Reads sysctls as the calling thread sees them.
fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    names
        .into_iter()
        .filter_map(|name| {
            let text = fs::read_to_string(file(name)).ok()?;
            Some((name.to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

/// Where each of these can be set, found by opening them: nothing is written.
fn scopes<'a>(names: impl IntoIterator<Item = &'a String>) -> io::Result<Vec<(&'a str, Scope)>> {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    let writable = |name: &str| fs::OpenOptions::new().write(true).open(file(name)).is_ok();
    let inside = apart(|| names.iter().map(|name| writable(name)).collect::<Vec<_>>())?;
    let scope = |name: &str, inside: bool| match inside {
        true => Scope::Namespace,
        false if file(name).is_file() => Scope::Machine,
        false => Scope::Nowhere,
    };
    Ok(names.into_iter().zip(inside).map(|(name, inside)| (name, scope(name, inside))).collect())
}

/// The first of these sysctls that this machine has not, or not for a namespace alone.
pub(super) fn lack<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<SysctlError> {
    match scopes(names) {
        Ok(scopes) => scopes.into_iter().find_map(|(name, scope)| match scope {
            Scope::Namespace => None,
            Scope::Machine => Some(SysctlError::OfTheMachine(name.to_owned())),
            Scope::Nowhere => Some(SysctlError::Absent(name.to_owned())),
        }),
        Err(error) => Some(SysctlError::Namespace(error)),
    }
}

/// The sysctls of a cell, those of the whole machine set. They are set back when this is dropped.
#[derive(Debug)]
pub(super) struct Applied<'a> {
    asked: &'a Sysctls,
    in_namespaces: BTreeSet<&'a str>,
    /// What the machine had before.
    before: Vec<(&'a str, String)>,
}

impl<'a> Applied<'a> {
    /// Sorts the sysctls of a cell by where they belong, and sets those of the machine, if this may be.
    pub(super) fn set(asked: &'a Sysctls, reach: Reach) -> Result<Self, SysctlError> {
        let mut applied = Self { asked, in_namespaces: BTreeSet::new(), before: Vec::new() };
        if asked.is_empty() {
            return Ok(applied);
        }
        let mut of_the_machine = Vec::new();
        for (name, scope) in scopes(asked.0.keys()).map_err(SysctlError::Namespace)? {
            match scope {
                Scope::Namespace => {
                    applied.in_namespaces.insert(name);
                }
                Scope::Nowhere => return Err(SysctlError::Absent(name.to_owned())),
                Scope::Machine if reach == Reach::Namespaces => {
                    return Err(SysctlError::OfTheMachine(name.to_owned()));
                }
                Scope::Machine => of_the_machine.push(name),
            }
        }
        for name in of_the_machine {
            let before = fs::read_to_string(file(name)).unwrap_or_default();
            write(name, &asked.0[name])?;
            applied.before.push((name, before));
        }
        Ok(applied)
    }

    /// Sets those of a namespace in that of the calling thread.
    pub(super) fn set_here(&self) -> Result<(), SysctlError> {
        self.in_namespaces.iter().try_for_each(|name| write(name, &self.asked.0[*name]))
    }

    /// Reads what a record tells, as the calling thread sees it. Nothing where the cell sets nothing: the manifest has it then.
    pub(super) fn read_here(&self) -> BTreeMap<String, SysctlFacts> {
        if self.asked.is_empty() {
            return BTreeMap::new();
        }
        let names: BTreeSet<&str> = KEYS.into_iter().chain(self.asked.0.keys().map(String::as_str)).collect();
        let mut read = read(names.iter().copied());
        let facts = |name: &str| SysctlFacts { asked: self.asked.0.get(name).cloned(), given: read.remove(name) };
        names.iter().copied().map(facts).zip(&names).map(|(facts, name)| ((*name).to_owned(), facts)).collect()
    }

    /// The bounds of buffers as they are for the calling thread, if this cell changes them. `known` are the machine's.
    pub(super) fn limits_here(&self, known: &BufferLimits) -> BufferLimits {
        if !["net.core.rmem_max", "net.core.wmem_max"].iter().any(|name| self.asked.0.contains_key(*name)) {
            return known.clone();
        }
        match BufferLimits::probe() {
            // A namespace that hides them has the machine's.
            Ok(here) => BufferLimits {
                rmem_max: here.rmem_max.or(known.rmem_max),
                wmem_max: here.wmem_max.or(known.wmem_max),
                ..here
            },
            Err(_) => known.clone(),
        }
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        for (name, before) in self.before.drain(..).rev() {
            if let Err(error) = fs::write(file(name), before) {
                // Nobody may be left to read it.
                let _ = writeln!(io::stderr(), "sweep: the sysctl {name} cannot be set back: {error}");
            }
        }
    }
}

/// Fills what the namespace does not show from what the machine does.
pub(super) fn merge(
    inside: BTreeMap<String, SysctlFacts>,
    outside: &BTreeMap<String, SysctlFacts>,
) -> BTreeMap<String, SysctlFacts> {
    let fill = |(name, mut facts): (String, SysctlFacts)| {
        facts.given = facts.given.or_else(|| outside.get(&name).and_then(|outside| outside.given.clone()));
        (name, facts)
    };
    // What neither has is not a sysctl of this kernel.
    inside.into_iter().map(fill).filter(|(_, facts)| facts.given.is_some() || facts.asked.is_some()).collect()
}

/// Writes a sysctl.
fn write(name: &str, value: &str) -> Result<(), SysctlError> {
    fs::write(file(name), value).map_err(|error| {
        let (name, value) = (name.to_owned(), value.to_owned());
        match error.raw_os_error() {
            // The value names something that is not there, such as a congestion control whose module is missing.
            Some(libc::ENOENT | libc::EPERM | libc::EACCES) => SysctlError::Unavailable { name, value, error },
            _ => SysctlError::Refused { name, value, error },
        }
    })
}
