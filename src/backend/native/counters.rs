//! The counters of the network namespace that a thread is in: what `nstat` shows, and those of SCTP.

use std::collections::BTreeMap;
use std::fs;

/// Files below `/proc/thread-self/net`. `/proc/net` would be the namespace of the process's first thread.
const PAIRED: [&str; 2] = ["snmp", "netstat"];
const PLAIN: [&str; 2] = ["snmp6", "sctp/snmp"];

/// What stands among the counters and is none: settings, and how many there are just now.
const NO_COUNTERS: [&str; 8] = [
    "IpForwarding",
    "IpDefaultTTL",
    "TcpRtoAlgorithm",
    "TcpRtoMin",
    "TcpRtoMax",
    "TcpMaxConn",
    "TcpCurrEstab",
    "SctpCurrEstab",
];

/// All counters of a namespace at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Those of the calling thread's namespace.
    pub(super) fn read() -> Self {
        let mut counters = BTreeMap::new();
        let text = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        for file in PAIRED {
            paired(&text(file), &mut counters);
        }
        for file in PLAIN {
            plain(&text(file), &mut counters);
        }
        counters.retain(|name, _| !NO_COUNTERS.contains(&name.as_str()));
        Self(counters)
    }

    /// What moved since an `earlier` instant, by how much.
    pub(super) fn since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .filter_map(|(name, &now)| {
                let moved = now.wrapping_sub(earlier.0.get(name).copied().unwrap_or(0));
                (moved != 0).then(|| (name.clone(), moved))
            })
            .collect()
    }
}

/// Two lines for a section: `Tcp: RtoAlgorithm RtoMin …` and `Tcp: 1 200 …`.
fn paired(text: &str, into: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((section, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':')) else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // `TcpMaxConn` may be -1, and is no counter.
            if let Ok(value) = value.parse() {
                into.insert(format!("{section}{name}"), value);
            }
        }
    }
}

/// A line for each: `Ip6InReceives   0`.
fn plain(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(char::is_whitespace)
            && let Ok(value) = value.trim().parse()
        {
            into.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, paired, plain};
    use std::collections::BTreeMap;
    use std::net::UdpSocket;

    #[test]
    fn both_forms_are_read_and_what_did_not_move_is_left_out() {
        let mut before = BTreeMap::new();
        paired("Tcp: RtoMin RetransSegs InSegs\nTcp: 200 3 10\nUdp: InErrors\nUdp: 0\n", &mut before);
        plain("SctpT3RtxExpireds               \t2\nIp6InReceives  7\n", &mut before);
        assert_eq!(before["TcpRetransSegs"], 3);
        assert_eq!(before["SctpT3RtxExpireds"], 2);
        let mut after = before.clone();
        after.insert("TcpInSegs".to_owned(), 15);
        after.insert("SctpT3RtxExpireds".to_owned(), 4);
        let moved = Counters(after).since(&Counters(before));
        assert_eq!(moved, BTreeMap::from([("SctpT3RtxExpireds".to_owned(), 2), ("TcpInSegs".to_owned(), 5)]));
    }

    #[test]
    fn the_counters_of_this_namespace_move() {
        let before = Counters::read();
        let one = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        one.send_to(b"hello", one.local_addr().expect("an address")).expect("sent");
        let moved = Counters::read().since(&before);
        assert!(moved.get("UdpOutDatagrams").is_some_and(|&sent| sent >= 1), "{moved:?}");
        assert!(!moved.contains_key("TcpRtoMin"));
    }
}
