//! Sysctls that bear on buffers, read where a cell would run.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::thread;

use crate::sys::namespace;

/// What is recorded, below /proc/sys, with dots for slashes. Absent keys are left out.
const KEYS: [&str; 22] = [
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
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
    "net.sctp.rto_initial",
    "net.sctp.rto_max",
    "net.sctp.rto_min",
    "net.sctp.sack_timeout",
    "net.sctp.sctp_rmem",
    "net.sctp.sctp_wmem",
];

/// The sysctls of a new network namespace: whether it copies the host's `tcp_rmem` differs by kernel, so they are read
/// there. Those that only the first namespace shows (`net.core.rmem_max` before 6.x) are read here.
pub(super) fn in_new_namespace() -> io::Result<BTreeMap<String, String>> {
    let outside = read();
    let inside = thread::scope(|scope| {
        scope
            .spawn(|| namespace::enter_new_network().map(|()| read()))
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that looked panicked")))
    })?;
    Ok(outside.into_iter().chain(inside).collect())
}

fn read() -> BTreeMap<String, String> {
    KEYS.iter()
        .filter_map(|key| {
            let text = fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/"))).ok()?;
            Some(((*key).to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}
