//! The part of `docs/sweep-file.md` that follows from the table of keys: every key, what it takes, its default, and the option of the
//! kernel behind it.

use crate::settings::{KEYS, Kind, PRESETS, Value, find};

use super::exec::{METRIC_KEYS, PROGRAM_KEYS, PartKey};
use super::run::{RUN_KEYS, RunOptions};
use super::schema::default;
use super::unknown::split;

/// What stands behind a key in the kernel, and since which version: `2.6.12` where it is older than the kernel's history in git,
/// which begins there. Empty where the key is the program's own. A key for one end has the entry of the key for both.
const BEHIND: &[(&str, &str, &str)] = &[
    ("preset", "", ""),
    ("kernel.image", "", ""),
    ("kernel.clock", "", ""),
    ("link.topology", "veth: `IFLA_INFO_KIND` \"veth\"; loopback: `lo`", "2.6.24"),
    ("link.family", "`AF_INET`, `AF_INET6`", "2.6.12"),
    ("link.mtu", "`IFLA_MTU`", "2.6.12"),
    ("workload.kind", "", ""),
    ("workload.protocol", "`IPPROTO_TCP`, `IPPROTO_SCTP`, `IPPROTO_UDP`; `IPPROTO_MPTCP`: 5.6", "2.6.12"),
    ("workload.style", "`SOCK_STREAM`, `SOCK_SEQPACKET`", "2.6.12"),
    ("workload.chunk_count", "", ""),
    ("workload.bursts", "", ""),
    ("workload.chunk_size", "", ""),
    ("workload.read_size", "", ""),
    ("workload.direction", "", ""),
    ("workload.duration", "", ""),
    ("workload.bytes", "", ""),
    ("workload.omit", "", ""),
    ("workload.port", "", ""),
    ("link.rate", "tbf: `TCA_TBF_RATE64`; netem: `TCA_NETEM_RATE`", "3.3"),
    ("link.burst", "tbf: `TCA_TBF_BURST`", "3.13"),
    ("link.overhead", "tbf: `tc_ratespec.overhead`; netem: `tc_netem_rate.packet_overhead`", "3.3"),
    ("link.delay", "netem: `TCA_NETEM_LATENCY64`", "4.15"),
    ("link.jitter", "netem: `TCA_NETEM_JITTER64`", "4.15"),
    ("link.loss", "netem: `tc_netem_qopt.loss`", "2.6.12"),
    ("link.loss_p", "netem: `NETEM_LOSS_GE`, p", "3.3"),
    ("link.loss_r", "netem: `NETEM_LOSS_GE`, r", "3.3"),
    ("link.loss_bad", "netem: `NETEM_LOSS_GE`, h", "3.3"),
    ("link.loss_good", "netem: `NETEM_LOSS_GE`, k1", "3.3"),
    ("link.duplicate", "netem: `tc_netem_qopt.duplicate`", "2.6.12"),
    ("link.reorder", "netem: `TCA_NETEM_REORDER`", "2.6.14"),
    ("link.corrupt", "netem: `TCA_NETEM_CORRUPT`", "2.6.16"),
    ("link.limit", "netem: `tc_netem_qopt.limit`; pfifo: `tc_fifo_qopt.limit`; others: their own", "2.6.12"),
    ("link.limit_bytes", "tbf: `tc_tbf_qopt.limit`; bfifo: `tc_fifo_qopt.limit`", "2.6.12"),
    ("link.qdisc", "`TCA_KIND`", "2.6.12"),
    ("link.target", "`TCA_CODEL_TARGET` and its like", "3.5"),
    ("link.interval", "`TCA_CODEL_INTERVAL` and its like", "3.5"),
    ("link.ecn", "`TCA_CODEL_ECN` and its like", "3.5"),
    ("link.tso", "`ETHTOOL_STSO`", "2.6.12"),
    ("link.gso", "`ETHTOOL_SGSO`", "2.6.18"),
    ("link.gso_max_segs", "`IFLA_GSO_MAX_SEGS`", "4.16"),
    ("link.gro", "`ETHTOOL_SGRO`", "2.6.29"),
    ("link.tx_checksum", "`ETHTOOL_STXCSUM`", "2.6.12"),
    ("link.rx_checksum", "`ETHTOOL_SRXCSUM`", "2.6.12"),
    ("placement.client_cpu", "`sched_setaffinity(2)`", "2.6.12"),
    ("placement.server_cpu", "`sched_setaffinity(2)`", "2.6.12"),
    ("placement.policy", "`sched_setscheduler(2)`", "2.6.12"),
    ("workload.pattern", "", ""),
    ("workload.gap", "", ""),
    ("workload.read_pause", "", ""),
    ("workload.connections", "", ""),
    ("workload.beside", "", ""),
    ("workload.beside_lead", "", ""),
    ("workload.quiet", "", ""),
    ("workload.zerocopy", "`SO_ZEROCOPY`, `MSG_ZEROCOPY`", "4.14"),
    ("socket.set_at", "", ""),
    ("socket.rcvbuf_force", "`SO_RCVBUFFORCE`", "2.6.14"),
    ("socket.sndbuf_force", "`SO_SNDBUFFORCE`", "2.6.14"),
    ("socket.rcvlowat", "`SO_RCVLOWAT`", "2.6.12"),
    ("socket.busy_poll", "`SO_BUSY_POLL`", "3.11"),
    ("socket.priority", "`SO_PRIORITY`", "2.6.12"),
    ("socket.tos", "`IP_TOS`, `IPV6_TCLASS`", "2.6.14"),
    ("socket.tcp.cork", "`TCP_CORK`", "2.6.12"),
    ("socket.tcp.quickack", "`TCP_QUICKACK`", "2.6.12"),
    ("socket.tcp.notsent_lowat", "`TCP_NOTSENT_LOWAT`", "3.12"),
    ("socket.tcp.user_timeout", "`TCP_USER_TIMEOUT`", "2.6.37"),
    ("socket.tcp.congestion", "`TCP_CONGESTION`", "2.6.13"),
    ("socket.tcp.window_clamp", "`TCP_WINDOW_CLAMP`", "2.6.12"),
    ("socket.tcp.maxseg", "`TCP_MAXSEG`", "2.6.12"),
    ("socket.sctp.sack_delay", "`SCTP_DELAYED_SACK`", "2.6.26"),
    ("socket.sctp.sack_frequency", "`SCTP_DELAYED_SACK`", "2.6.26"),
    ("socket.sctp.rto_initial", "`SCTP_RTOINFO`", "2.6.12"),
    ("socket.sctp.rto_min", "`SCTP_RTOINFO`", "2.6.12"),
    ("socket.sctp.rto_max", "`SCTP_RTOINFO`", "2.6.12"),
    ("socket.sctp.max_burst", "`SCTP_MAX_BURST`", "2.6.23"),
    ("socket.sctp.maxseg", "`SCTP_MAXSEG`", "2.6.12"),
    ("socket.sctp.fragment_interleave", "`SCTP_FRAGMENT_INTERLEAVE`", "2.6.23"),
    ("socket.sctp.streams_out", "`SCTP_INITMSG`", "2.6.12"),
    ("socket.sctp.streams_in", "`SCTP_INITMSG`", "2.6.12"),
    ("socket.sctp.unordered", "`SCTP_DEFAULT_SNDINFO`", "3.17"),
    ("socket.sctp.lifetime", "`SCTP_DEFAULT_PRINFO`", "3.17"),
    ("socket.sctp.autoclose", "`SCTP_AUTOCLOSE`", "2.6.12"),
    ("socket.sctp.heartbeat", "`SCTP_PEER_ADDR_PARAMS`", "2.6.12"),
    ("socket.sctp.events", "`SCTP_EVENTS`", "2.6.12"),
    ("socket.rcvbuf", "`SO_RCVBUF`", "2.6.12"),
    ("socket.sndbuf", "`SO_SNDBUF`", "2.6.12"),
    ("socket.nodelay", "`TCP_NODELAY`, `SCTP_NODELAY`", "2.6.12"),
];

/// One row of the documentation.
struct Row {
    path: &'static str,
    short: Option<&'static str>,
    kind: Kind,
    about: &'static str,
    default: Option<Value>,
}

/// The entry of a key in [`BEHIND`].
fn behind(path: &str) -> Option<(&'static str, &'static str)> {
    let both = path.replacen(".client.", ".", 1).replacen(".server.", ".", 1);
    BEHIND.iter().find(|(behind, ..)| *behind == both).map(|(_, option, since)| (*option, *since))
}

/// Every key and every preset, as Markdown.
pub fn reference() -> String {
    let run = RUN_KEYS.iter().map(|key| Row {
        path: key.path,
        short: None,
        kind: key.kind,
        about: key.about,
        default: Some((key.get)(&RunOptions::default())),
    });
    let own = KEYS.iter().copied().flatten().map(|key| Row {
        path: key.path,
        short: key.short,
        kind: key.kind,
        about: key.about,
        default: default(key),
    });
    let rows: Vec<Row> = own.chain(run).collect();
    let mut tables: Vec<&str> = Vec::new();
    for row in &rows {
        let table = split(row.path).0;
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let mut lines: Vec<String> =
        vec!["## Keys\n".to_owned(), "A name in brackets is the short name of an axis.".to_owned()];
    for table in tables {
        let title = if table.is_empty() { "At the top of the file".to_owned() } else { format!("`[{table}]`") };
        lines.push(format!("\n### {title}\n"));
        lines.push("| key | sets | takes | unit | default | in the kernel | since |".to_owned());
        lines.push("| --- | --- | --- | --- | --- | --- | --- |".to_owned());
        if table.is_empty() {
            let text = "a text in quotes";
            lines.push(format!("| `name` | the sweep's name; results are filed under it | {text} |  | needed |  |  |"));
            lines.push(format!("| `description` | what the sweep asks, and what it found | {text} |  |  |  |  |"));
        }
        for row in rows.iter().filter(|row| split(row.path).0 == table) {
            let short = row.short.map(|short| format!(" (`{short}`)")).unwrap_or_default();
            let default =
                row.default.as_ref().map(|value| format!("`{}`", typed(&row.kind, value))).unwrap_or_default();
            let (option, since) = behind(row.path).unwrap_or_default();
            lines.push(format!(
                "| `{}`{short} | {} | {} | {} | {default} | {option} | {since} |",
                split(row.path).1,
                cell(row.about),
                cell(row.kind.expected().trim_start_matches("write ")),
                unit(&row.kind),
            ));
        }
    }
    lines.extend(parts());
    lines.push("\n## Presets\n\n| preset | stands for | sets |\n| --- | --- | --- |".to_owned());
    for preset in PRESETS {
        let sets = preset.values().0;
        let sets = sets.iter().map(|(path, value)| {
            let value = find(path).map_or_else(|| value.to_string(), |key| typed(&key.kind, value));
            format!("`{path} = {value}`")
        });
        let sets = sets.collect::<Vec<_>>().join(", ");
        lines.push(format!("| `\"{}\"` | {} | {sets} |", preset.name, cell(preset.about)));
    }
    lines.join("\n") + "\n"
}

/// The keys of the two programs and of metrics, as Markdown.
fn parts() -> Vec<String> {
    let row =
        |key: &PartKey| format!("| `{}` | {} | {} | {} |", key.name, cell(key.about), cell(key.takes), key.default);
    let table = |title: &str, keys: &mut dyn Iterator<Item = &PartKey>| {
        let head = [
            format!("\n### {title}\n"),
            "| key | says | takes | default |".to_owned(),
            "| --- | --- | --- | --- |".to_owned(),
        ];
        head.into_iter().chain(keys.map(row)).collect::<Vec<_>>()
    };
    let mut lines =
        table("`[workload.client]` and `[workload.server]`", &mut PROGRAM_KEYS.iter().filter(|key| key.of_client));
    lines.extend(table("`[workload.server]` only", &mut PROGRAM_KEYS.iter().filter(|key| !key.of_client)));
    lines.extend(table("`[[workload.metric]]`", &mut METRIC_KEYS.iter()));
    lines
}

/// What a number of the kind counts.
fn unit(kind: &Kind) -> &'static str {
    match kind {
        Kind::Size { .. } => "bytes",
        Kind::Span { .. } => "as written",
        _ => "",
    }
}

/// A value as it would be typed in a sweep file.
fn typed(kind: &Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Size { .. }, Value::Int(bytes)) if *bytes >= 1024 && bytes.is_multiple_of(1024) => {
            format!("\"{}\"", kind.show(value).replace(' ', ""))
        }
        (_, Value::Text(text)) => format!("\"{text}\""),
        _ => value.to_string(),
    }
}

/// A text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::{BEHIND, behind};
    use crate::settings::KEYS;

    #[test]
    fn every_key_says_what_is_behind_it_in_the_kernel() {
        let keys: Vec<_> = KEYS.iter().copied().flatten().collect();
        for key in &keys {
            assert!(behind(key.path).is_some(), "{}: add it to BEHIND in src/spec/reference.rs", key.path);
        }
        for (path, option, since) in BEHIND {
            assert!(keys.iter().any(|key| key.path == *path), "{path} is no key");
            assert_eq!(option.is_empty(), since.is_empty(), "{path}: an option has a version, and only that");
        }
    }
}
