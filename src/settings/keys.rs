//! The table of keys that set a cell.

mod link;
mod placement;

pub use link::{MAX_DELAY, MAX_OVERHEAD, MAX_QUEUE, MAX_RATE, MAX_SEGMENTS};
pub use placement::MAX_PROCESSOR;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::units::{Bytes, Span};

use super::kind::nearest;
use super::presets::{self, Preset};
use super::{Clock, Direction, Family, Kind, Limit, Protocol, Settings, Socket, Style, Topology, Value, Work};
use super::{sysctl, vars};

/// The words of a choice, by its own table of names.
macro_rules! choice_key {
    ($path:literal, $about:literal, $choice:ident, $($field:ident).+) => {
        Key {
            path: $path,
            short: None,
            kind: Kind::Choice($choice::NAMES),
            about: $about,
            set: |settings, value| {
                settings.$($field).+ = value.text().and_then($choice::named).unwrap_or_default();
            },
            get: Some(|settings| Value::Text(settings.$($field).+.name().to_owned())),
        }
    };
}

mod option;
mod shape;

pub use option::OPTIONS;
pub use shape::{MAX_CONNECTIONS, MAX_PAUSE};

/// One thing that can be set, on its own or as an axis.
#[derive(Debug)]
pub struct Key {
    /// Dotted path in a sweep file, such as `link.mtu`.
    pub path: &'static str,
    /// Short name as an axis, for the common five.
    pub short: Option<&'static str>,
    /// What it accepts.
    pub kind: Kind,
    /// What it sets, in one line, with the option or rule behind it.
    pub about: &'static str,
    /// Puts a checked value into the settings. To be called through [`Key::put`], which knows keys beyond the table too.
    pub(super) set: fn(&mut Settings, &Value),
    /// Reads the value back; `None` for a key that only stands for others. To be called through [`Key::read`].
    pub(super) get: Option<fn(&Settings) -> Value>,
}

impl Key {
    /// The name that records, tables and pictures use: the short one where there is one.
    pub fn name(&self) -> &'static str {
        self.short.unwrap_or(self.path)
    }

    /// How specific the key is: a preset is applied first, then keys for both ends, then keys for one end, so that the latter win.
    pub fn specificity(&self) -> u8 {
        match self.path {
            PRESET_PATH => 0,
            path if path.split('.').any(|part| part == "client" || part == "server") && !self.is_made() => 2,
            _ => 1,
        }
    }

    /// The preset of that name, if this is the key that names one.
    pub fn preset(&self, value: &Value) -> Option<&'static Preset> {
        value.text().filter(|_| self.path == PRESET_PATH).and_then(Preset::named)
    }

    /// Whether the key was made for its name, and is not one of the table.
    fn is_made(&self) -> bool {
        self.path.starts_with(sysctl::PREFIX) || self.path.starts_with(vars::PREFIX)
    }

    /// Puts a checked value into the settings.
    pub fn put(&self, settings: &mut Settings, value: &Value) {
        if let Some(name) = self.path.strip_prefix(sysctl::PREFIX) {
            settings.sysctls.put(name, value);
        } else if let Some(name) = self.path.strip_prefix(vars::PREFIX) {
            vars::put(settings, name, value);
        } else {
            (self.set)(settings, value);
        }
    }

    /// Reads the value back; `None` for a key that only stands for others (`socket.rcvbuf` for both ends).
    pub fn read(&self, settings: &Settings) -> Option<Value> {
        if let Some(name) = self.path.strip_prefix(sysctl::PREFIX) {
            Some(settings.sysctls.value(name))
        } else if let Some(name) = self.path.strip_prefix(vars::PREFIX) {
            Some(vars::value(settings, name))
        } else {
            self.get.map(|get| get(settings))
        }
    }
}

/// Most chunks in one burst.
pub const MAX_CHUNKS: Limit = Limit { name: "MAX_CHUNKS", max: 1_000_000 };
/// Most bursts on one connection.
pub const MAX_BURSTS: Limit = Limit { name: "MAX_BURSTS", max: 100_000 };
/// Largest chunk, and largest read.
pub const MAX_CHUNK_SIZE: Limit = Limit { name: "MAX_CHUNK_SIZE", max: 16 << 20 };
/// Largest buffer that can be asked for: the option is a C `int`.
pub const MAX_BUFFER: Limit = Limit { name: "MAX_BUFFER", max: i32::MAX as u64 };
/// Largest port.
pub const MAX_PORT: Limit = Limit { name: "MAX_PORT", max: 65535 };
/// Longest stream.
pub const MAX_DURATION: Limit = Limit { name: "MAX_DURATION", max: 600 * 1_000_000_000 };
/// Most bytes in one stream.
pub const MAX_STREAM_BYTES: Limit = Limit { name: "MAX_STREAM_BYTES", max: 100 << 30 };
/// Largest MTU: what a veth device takes (`ETH_MAX_MTU` less headers is checked by the kernel).
pub const MAX_MTU: Limit = Limit { name: "MAX_MTU", max: 65535 };

const BUFFER: Kind = Kind::Size { min: 0, limit: MAX_BUFFER, or_default: true };
const SWITCH_OR_DEFAULT: Kind = Kind::Switch { or_default: true };
const CHUNK: Kind = Kind::Size { min: 1, limit: MAX_CHUNK_SIZE, or_default: false };

/// Asked bytes, or `None` for `"default"`.
fn size(value: &Value) -> Option<Bytes> {
    value.int().map(Bytes)
}

/// An option that may be left to the kernel, as a value.
fn or_default<T>(option: Option<T>, show: impl Fn(T) -> Value) -> Value {
    option.map_or_else(Value::kernel_default, show)
}

/// A checked number as 32 bits. The kind's limit keeps it in range.
pub(crate) fn narrow(value: &Value) -> u32 {
    value.int().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

/// One socket option as three keys: both ends, the client's, the server's.
macro_rules! socket_keys {
    ($name:literal, $short:expr, $kind:expr, $about:literal, $field:ident, $parse:expr, $show:expr) => {
        [
            Key {
                path: concat!("socket.", $name),
                short: $short,
                kind: $kind,
                about: concat!($about, ", on both ends"),
                set: |settings, value| {
                    let parse: fn(&Value) -> _ = $parse;
                    settings.client.$field = parse(value);
                    settings.server.$field = parse(value);
                },
                get: None,
            },
            socket_keys!(@side "socket.client.", $name, $kind, concat!($about, ", on the client's end"), client, $field, $parse, $show),
            socket_keys!(@side "socket.server.", $name, $kind, concat!($about, ", on the server's end"), server, $field, $parse, $show),
        ]
    };
    (@side $prefix:literal, $name:literal, $kind:expr, $about:expr, $side:ident, $field:ident, $parse:expr, $show:expr) => {
        Key {
            path: concat!($prefix, $name),
            short: None,
            kind: $kind,
            about: $about,
            set: |settings, value| {
                let parse: fn(&Value) -> _ = $parse;
                settings.$side.$field = parse(value);
            },
            get: Some(|settings| {
                let Socket { $field: value, .. } = &settings.$side;
                or_default(*value, $show)
            }),
        }
    };
}

/// The key that names a preset. It stands for the keys that the preset sets, and is no part of a cell's id itself.
const PRESET_PATH: &str = "preset";

const PRESET: [Key; 1] = [Key {
    path: PRESET_PATH,
    short: None,
    kind: Kind::Choice(presets::NAMES),
    about: "settings of a known program to begin from; any key that is set or varied wins over it",
    set: |settings, value| {
        if let Some(preset) = value.text().and_then(Preset::named) {
            preset.apply(settings);
        }
    },
    get: None,
}];

const KERNEL: [Key; 2] = [
    Key {
        path: "kernel.image",
        short: None,
        kind: Kind::Text,
        about: "kernel to measure on: \"auto\" (the host's own if it can do the sweep, else a guest), \"host\", \"debian:6.12\", an exact package version, or a path",
        set: |settings, value| settings.kernel.image = value.to_string(),
        get: Some(|settings| Value::Text(settings.kernel.image.clone())),
    },
    choice_key!(
        "kernel.clock",
        "clock to measure by: \"auto\" is virtual in an emulated guest and real elsewhere",
        Clock,
        kernel.clock
    ),
];

const LINK: [Key; 3] = [
    choice_key!("link.topology", "a veth pair between two namespaces, or loopback in one", Topology, link.topology),
    choice_key!("link.family", "version of the Internet protocol", Family, link.family),
    Key {
        path: "link.mtu",
        short: None,
        kind: Kind::Count { min: 68, limit: MAX_MTU, or_default: true },
        about: "largest packet in bytes, on both ends of the link (IFLA_MTU)",
        set: |settings, value| settings.link.mtu = value.int().map(|_| narrow(value)),
        get: Some(|settings| or_default(settings.link.mtu, |mtu| Value::Int(mtu.into()))),
    },
];

const WORKLOAD: [Key; 12] = [
    choice_key!(
        "workload.kind",
        "echo: a burst of chunks, each sent back; stream: bytes one way for a time; exec: two programs of your own",
        Work,
        workload.kind
    ),
    choice_key!("workload.protocol", "transport protocol", Protocol, workload.protocol),
    choice_key!("workload.style", "sctp only: one-to-one or one-to-many socket (RFC 6458)", Style, workload.style),
    Key {
        path: "workload.chunk_count",
        short: Some("chunk_count"),
        kind: Kind::Count { min: 1, limit: MAX_CHUNKS, or_default: false },
        about: "echo only: chunks in the burst",
        set: |settings, value| settings.workload.chunk_count = narrow(value),
        get: Some(|settings| Value::Int(settings.workload.chunk_count.into())),
    },
    Key {
        path: "workload.bursts",
        short: None,
        kind: Kind::Count { min: 1, limit: MAX_BURSTS, or_default: false },
        about: "echo only: bursts on the connection, one after the other; the completion is the median one's",
        set: |settings, value| settings.workload.bursts = narrow(value),
        get: Some(|settings| Value::Int(settings.workload.bursts.into())),
    },
    Key {
        path: "workload.chunk_size",
        short: Some("chunk_size"),
        kind: CHUNK,
        about: "bytes handed to each send call (64 for an echo and 16 KiB for a stream where it is not given)",
        set: |settings, value| settings.workload.chunk_size = Some(narrow(value)),
        // The usual size written out is the same cell as the usual size left out.
        get: Some(|settings| Value::Int(settings.workload.chunk_bytes().into())),
    },
    Key {
        path: "workload.read_size",
        short: None,
        kind: CHUNK,
        about: "bytes offered to each receive call",
        set: |settings, value| settings.workload.read_size = narrow(value),
        get: Some(|settings| Value::Int(settings.workload.read_size.into())),
    },
    choice_key!(
        "workload.direction",
        "stream only: upload is client to server, download is server to client",
        Direction,
        workload.direction
    ),
    Key {
        path: "workload.duration",
        short: None,
        kind: Kind::Span { min: 1_000_000, limit: MAX_DURATION, or_default: false },
        about: "stream only: how long the sender sends (1s where neither this nor bytes is given)",
        set: |settings, value| settings.workload.duration = value.text().and_then(|text| text.parse().ok()),
        // The default written out is the same cell as the default left out.
        get: Some(|settings| or_default(settings.workload.stream_duration(), |span| Value::Text(span.exact()))),
    },
    Key {
        path: "workload.bytes",
        short: None,
        kind: Kind::Size { min: 1, limit: MAX_STREAM_BYTES, or_default: false },
        about: "stream only: how much the sender sends, instead of for how long",
        set: |settings, value| settings.workload.bytes = size(value),
        get: Some(|settings| or_default(settings.workload.bytes, |bytes| Value::Int(bytes.0))),
    },
    Key {
        path: "workload.port",
        short: Some("port"),
        kind: Kind::Count { min: 1, limit: MAX_PORT, or_default: false },
        about: "exec only: port that the server listens on, which stands in commands as `{port}`",
        set: |settings, value| {
            settings.workload.port = value.int().and_then(|port| port.try_into().ok()).unwrap_or(u16::MAX);
        },
        get: Some(|settings| Value::Int(settings.workload.port.into())),
    },
    Key {
        path: "workload.omit",
        short: None,
        kind: Kind::Span { min: 0, limit: MAX_DURATION, or_default: false },
        about: "stream only: time from the first arrival that is left out of the goodput",
        set: |settings, value| {
            settings.workload.omit = value.text().and_then(|text| text.parse().ok()).unwrap_or(Span(0));
        },
        get: Some(|settings| Value::Text(settings.workload.omit.exact())),
    },
];

const RCVBUF: [Key; 3] = socket_keys!(
    "rcvbuf",
    Some("rcvbuf"),
    BUFFER,
    "receive buffer asked for (SO_RCVBUF)",
    rcvbuf,
    size,
    |bytes: Bytes| Value::Int(bytes.0)
);
const SNDBUF: [Key; 3] = socket_keys!(
    "sndbuf",
    Some("sndbuf"),
    BUFFER,
    "send buffer asked for (SO_SNDBUF)",
    sndbuf,
    size,
    |bytes: Bytes| Value::Int(bytes.0)
);
const NODELAY: [Key; 3] = socket_keys!(
    "nodelay",
    Some("nodelay"),
    SWITCH_OR_DEFAULT,
    "on (true) turns Nagle's algorithm off, off (false) turns it on (TCP_NODELAY, SCTP_NODELAY)",
    nodelay,
    Value::bool,
    Value::Bool
);

/// All keys, in the order in which documentation lists them: one slice for each table of a sweep file.
///
/// Sysctls and values of the user's own are not among them: [`find`] knows a key for each name below `sysctl.net` and `var`.
pub static KEYS: &[&[Key]] = &[
    &PRESET,
    &KERNEL,
    &LINK,
    &link::RATES,
    &link::BURST,
    &link::OVERHEAD,
    &link::DELAYS,
    &link::JITTER,
    &link::LOSS,
    &link::LOSS_P,
    &link::LOSS_R,
    &link::LOSS_BAD,
    &link::LOSS_GOOD,
    &link::DUPLICATE,
    &link::REORDER,
    &link::CORRUPT,
    &link::LIMIT,
    &link::LIMIT_BYTES,
    &link::QDISC,
    &link::TARGET,
    &link::INTERVAL,
    &link::ECN,
    &link::TSO,
    &link::GSO,
    &link::GSO_MAX_SEGS,
    &link::GRO,
    &link::TX_CHECKSUM,
    &link::RX_CHECKSUM,
    &WORKLOAD,
    &shape::SHAPE,
    &RCVBUF,
    &SNDBUF,
    &NODELAY,
    &option::SET_AT_KEYS,
    option::OPTION_KEYS,
    &placement::PLACEMENT,
];

/// A key that is made for a path: once, and kept as long as the program runs, like those of the table.
pub(super) fn made(path: &str, kind: Kind, about: &'static str) -> &'static Key {
    static MADE: Mutex<BTreeMap<&'static str, &'static Key>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(key) = made.get(path) {
        return key;
    }
    let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
    // Key::put and Key::read know it by its path.
    let key: &'static Key = Box::leak(Box::new(Key { path, short: None, kind, about, set: |_, _| {}, get: None }));
    made.insert(path, key);
    key
}

/// Every key.
fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().copied().flatten()
}

/// The key of that path or short name.
pub fn find(name: &str) -> Option<&'static Key> {
    all()
        .find(|key| key.path == name || key.short == Some(name))
        .or_else(|| sysctl::find(name))
        .or_else(|| vars::find(name))
}

/// Every path and short name, for suggestions; and the nearest of them to `typed`, if one is near.
pub fn names(typed: &str) -> (Vec<&'static str>, Option<&'static str>) {
    let names: Vec<_> = all().flat_map(|key| key.short.into_iter().chain([key.path])).collect();
    let near = nearest(typed, &names);
    (names, near)
}

/// The settings that differ from their defaults, as sorted lines `path=value`.
///
/// This decides the id of a cell. A key added later leaves the ids of cells that do not use it as they were.
pub fn canonical(settings: &Settings) -> String {
    let defaults = Settings::default();
    let mut lines: Vec<String> = all()
        .filter_map(|key| key.get.map(|get| (key, get)))
        .filter(|(_, get)| get(settings) != get(&defaults))
        .map(|(key, get)| format!("{}={}\n", key.path, get(settings)))
        .collect();
    lines.extend(settings.sysctls.0.iter().map(|(name, value)| format!("{}{name}={value}\n", sysctl::PREFIX)));
    lines.extend(settings.vars.iter().map(|(name, value)| format!("{}{name}={value}\n", vars::PREFIX)));
    lines.extend(settings.exec.iter().flat_map(|exec| exec.canonical()));
    lines.sort_unstable();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::{all, canonical, find};
    use crate::settings::{Kind, Settings, Value};

    /// A value other than the default one, for any key.
    fn other(kind: &Kind) -> Value {
        match kind {
            Kind::Switch { .. } => Value::Bool(true),
            Kind::Count { limit, .. } | Kind::Size { limit, .. } => Value::Int(limit.max.min(1300)),
            Kind::Span { .. } => Value::Text("25ms".into()),
            Kind::Rate { .. } => Value::Text("10Mbit/s".into()),
            Kind::Percent => Value::Text("0.5%".into()),
            Kind::Sysctl => Value::Int(1),
            Kind::Choice(names) => Value::Text(names[names.len() - 1].into()),
            Kind::Text | Kind::Free => Value::Text("debian:6.12".into()),
        }
    }

    #[test]
    fn every_key_sets_what_it_reads_and_changes_the_id() {
        let plain = canonical(&Settings::default());
        for key in all() {
            let mut settings = Settings::default();
            let value = key.kind.check(&other(&key.kind)).expect("a fitting value");
            (key.set)(&mut settings, &value);
            assert_ne!(canonical(&settings), plain, "{} does not reach the id", key.path);
            if let Some(get) = key.get {
                assert_eq!(get(&settings), value, "{}", key.path);
            }
        }
    }

    #[test]
    fn paths_and_short_names_are_unique() {
        for key in all() {
            assert!(std::ptr::eq(find(key.path).expect("its own path"), key));
            if let Some(short) = key.short {
                assert!(std::ptr::eq(find(short).expect("its own short name"), key));
            }
        }
    }

    #[test]
    fn a_key_for_both_ends_is_the_same_cell_as_its_two_sides() {
        let (mut both, mut sides) = (Settings::default(), Settings::default());
        let value = Value::Int(1024);
        (find("rcvbuf").expect("a key").set)(&mut both, &value);
        for path in ["socket.client.rcvbuf", "socket.server.rcvbuf"] {
            (find(path).expect("a key").set)(&mut sides, &value);
        }
        assert_eq!(canonical(&both), canonical(&sides));
    }
}
