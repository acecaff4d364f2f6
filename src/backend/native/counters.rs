//! The counters of the network namespace that a thread is in: what `nstat` shows, those of SCTP and of the devices.

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
        devices(&text("dev"), &mut counters);
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

/// A line for each device: its name, and sixteen counters of which eight are of what it received (`dev_seq_printf_stats`, net/core/net-procfs.c).
/// Those of all devices of the namespace together. A packet that was not cut into segments yet counts once.
fn devices(text: &str, into: &mut BTreeMap<String, u64>) {
    const KEPT: [(&str, usize); 6] = [
        ("DevRxPackets", 1),
        ("DevRxErrors", 2),
        ("DevRxDrops", 3),
        ("DevTxPackets", 9),
        ("DevTxErrors", 10),
        ("DevTxDrops", 11),
    ];
    for (_, values) in text.lines().filter_map(|line| line.split_once(':')) {
        let values: Vec<u64> = values.split_whitespace().filter_map(|value| value.parse().ok()).collect();
        for (name, place) in KEPT {
            if let Some(value) = values.get(place) {
                *into.entry(name.to_owned()).or_insert(0) += value;
            }
        }
    }
}

/// Packets that this machine, in any namespace, has dropped because a processor's backlog was full: the second column of
/// `/proc/net/softnet_stat` (`softnet_seq_show`). `None` where it cannot be read.
pub(super) fn softnet_drops() -> Option<u64> {
    fs::read_to_string("/proc/net/softnet_stat").ok().map(|text| second_column(&text))
}

fn second_column(text: &str) -> u64 {
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}

#[cfg(test)]
mod tests {
    use super::{Counters, devices, paired, plain, second_column};
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
    fn devices_are_summed_and_processors_too() {
        let mut counters = BTreeMap::new();
        devices(
            "Inter-|   Receive\n face |bytes packets\n  lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\nsweep0: 9 7 0 3 0 0 0 0 8 5 1 4 0 0 0 0\n",
            &mut counters,
        );
        assert_eq!((counters["DevRxPackets"], counters["DevRxDrops"]), (9, 3));
        assert_eq!((counters["DevTxPackets"], counters["DevTxErrors"], counters["DevTxDrops"]), (7, 1, 4));
        assert_eq!(second_column("00000010 0000000a 00\n00000010 00000001 00\n"), 11);
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
