//! The keys of [link]: each for both ends, for what the client sends, and for what the server sends.

use crate::settings::{Bytes, Key, Kind, Limit, LinkEnd, Qdisc, Value};
use crate::units::{BitRate, Percent, Span};

use super::{narrow, or_default, size};

/// Longest delay of a link.
pub const MAX_DELAY: Limit = Limit { name: "MAX_DELAY", max: 600 * 1_000_000_000 };
/// Fastest link: 1 Tbit/s.
pub const MAX_RATE: Limit = Limit { name: "MAX_RATE", max: 1_000_000_000_000 };
/// Most that a queue or a bucket holds: the kernel counts it in 32 bits.
pub const MAX_QUEUE: Limit = Limit { name: "MAX_QUEUE", max: 1 << 30 };
/// Most bytes beside a packet that the kernel can count.
pub const MAX_OVERHEAD: Limit = Limit { name: "MAX_OVERHEAD", max: 4096 };

/// Most segments in one packet (`GSO_MAX_SEGS`).
pub const MAX_SEGMENTS: Limit = Limit { name: "MAX_SEGMENTS", max: 65535 };

const SWITCH: Kind = Kind::Switch { or_default: true };
const RATE: Kind = Kind::Rate { min: 8, limit: MAX_RATE };
const DELAY: Kind = Kind::Span { min: 0, limit: MAX_DELAY, or_default: false };
const AIM: Kind = Kind::Span { min: 1000, limit: MAX_DELAY, or_default: false };
const QUEUE_BYTES: Kind = Kind::Size { min: 1, limit: MAX_QUEUE, or_default: true };

fn rate(value: &Value) -> Option<BitRate> {
    value.text().and_then(|text| text.parse().ok())
}

fn span(value: &Value) -> Option<Span> {
    value.text().and_then(|text| text.parse().ok())
}

fn delay(value: &Value) -> Span {
    span(value).unwrap_or_default()
}

fn number(value: &Value) -> Option<u32> {
    value.int().map(|_| narrow(value))
}

fn qdisc(value: &Value) -> Qdisc {
    value.text().and_then(Qdisc::named).unwrap_or_default()
}

fn percent(value: &Value) -> Percent {
    value.text().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn show_percent(share: Percent) -> Value {
    Value::Text(share.to_string())
}

fn show_rate(rate: Option<BitRate>) -> Value {
    or_default(rate, |rate| Value::Text(rate.exact()))
}

fn show_span(span: Option<Span>) -> Value {
    or_default(span, |span| Value::Text(span.exact()))
}

fn show_bytes(bytes: Option<Bytes>) -> Value {
    or_default(bytes, |bytes| Value::Int(bytes.0))
}

/// One property of an end as three keys: both ends, the client's, the server's.
macro_rules! end_keys {
    ($name:literal, $kind:expr, $about:literal, |$end:ident| $field:ident, $parse:expr, $show:expr) => {
        [
            Key {
                path: concat!("link.", $name),
                short: None,
                kind: $kind,
                about: concat!($about, "; for both directions"),
                set: |settings, value| {
                    let parse: fn(&Value) -> _ = $parse;
                    settings.link.client.$field = parse(value);
                    settings.link.server.$field = parse(value);
                },
                get: None,
            },
            end_keys!(@end "link.client.", $name, $kind, concat!($about, "; for what the client sends"), client, $field, $parse, $show),
            end_keys!(@end "link.server.", $name, $kind, concat!($about, "; for what the server sends"), server, $field, $parse, $show),
        ]
    };
    (@end $prefix:literal, $name:literal, $kind:expr, $about:expr, $end:ident, $field:ident, $parse:expr, $show:expr) => {
        Key {
            path: concat!($prefix, $name),
            short: None,
            kind: $kind,
            about: $about,
            set: |settings, value| {
                let parse: fn(&Value) -> _ = $parse;
                settings.link.$end.$field = parse(value);
            },
            get: Some(|settings| {
                let LinkEnd { $field: value, .. } = &settings.link.$end;
                let show: fn(_) -> Value = $show;
                show(*value)
            }),
        }
    };
}

/// A switch that may be left to the kernel.
macro_rules! switch_keys {
    ($name:literal, $about:literal, $field:ident) => {
        end_keys!($name, SWITCH, $about, |end| $field, Value::bool, |switch| or_default(switch, Value::Bool))
    };
}

/// A share of packets.
macro_rules! share_keys {
    ($name:literal, $about:literal, $field:ident) => {
        end_keys!($name, Kind::Percent, $about, |end| $field, percent, show_percent)
    };
}

pub(super) const RATES: [Key; 3] = end_keys!(
    "rate",
    RATE,
    "bits per second that leave the queue, Ethernet header included: tbf where nothing else is asked, else netem",
    |end| rate,
    rate,
    show_rate
);
pub(super) const BURST: [Key; 3] = end_keys!(
    "burst",
    QUEUE_BYTES,
    "size of tbf's bucket: what may leave at once after a pause (1 ms at the rate where it is not given)",
    |end| burst,
    size,
    show_bytes
);
pub(super) const OVERHEAD: [Key; 3] = end_keys!(
    "overhead",
    Kind::Count { min: 0, limit: MAX_OVERHEAD, or_default: false },
    "bytes that count against `rate` for each packet beside its own, such as 24 for Ethernet's preamble, checksum and gap; TCP needs gso_max_segs = 1 for it",
    |end| overhead,
    narrow,
    |bytes: u32| Value::Int(bytes.into())
);
pub(super) const DELAYS: [Key; 3] = end_keys!(
    "delay",
    DELAY,
    "time that each packet is held back, one way (netem)",
    |end| delay,
    delay,
    |span: Span| Value::Text(span.exact())
);
pub(super) const JITTER: [Key; 3] = end_keys!(
    "jitter",
    DELAY,
    "how far a packet's delay is from `delay` at most, evenly spread; reorders packets unless there is a `rate` (netem)",
    |end| jitter,
    delay,
    |span: Span| Value::Text(span.exact())
);
pub(super) const LOSS: [Key; 3] = share_keys!("loss", "share of packets lost, each by itself (netem)", loss);
pub(super) const LOSS_P: [Key; 3] = share_keys!(
    "loss_p",
    "loss in bursts: probability that a packet turns the link from good to bad (netem, Gilbert-Elliott p)",
    loss_p
);
pub(super) const LOSS_R: [Key; 3] = share_keys!(
    "loss_r",
    "loss in bursts: probability that a packet turns the link from bad to good (netem, Gilbert-Elliott r)",
    loss_r
);
pub(super) const LOSS_BAD: [Key; 3] = share_keys!(
    "loss_bad",
    "loss in bursts: share of packets lost while the link is bad, all unless given (netem, Gilbert-Elliott 1-h)",
    loss_bad
);
pub(super) const LOSS_GOOD: [Key; 3] = share_keys!(
    "loss_good",
    "loss in bursts: share of packets lost while the link is good, none unless given (netem, Gilbert-Elliott 1-k)",
    loss_good
);
pub(super) const DUPLICATE: [Key; 3] = share_keys!("duplicate", "share of packets sent twice (netem)", duplicate);
pub(super) const REORDER: [Key; 3] =
    share_keys!("reorder", "share of packets sent at once in place of after `delay` (netem)", reorder);
pub(super) const CORRUPT: [Key; 3] =
    share_keys!("corrupt", "share of packets with one bit turned over (netem)", corrupt);
pub(super) const LIMIT: [Key; 3] = end_keys!(
    "limit",
    Kind::Count { min: 1, limit: MAX_QUEUE, or_default: true },
    "most packets in the queue; netem counts those on their way too (1000 for netem where it is not given)",
    |end| limit,
    number,
    |limit: Option<u32>| or_default(limit, |limit| Value::Int(limit.into()))
);
pub(super) const LIMIT_BYTES: [Key; 3] = end_keys!(
    "limit_bytes",
    QUEUE_BYTES,
    "most bytes in the queue of a `rate` or of bfifo (50 ms at the rate where it is not given)",
    |end| limit_bytes,
    size,
    show_bytes
);
pub(super) const QDISC: [Key; 3] = end_keys!(
    "qdisc",
    Kind::Choice(Qdisc::NAMES),
    "queue discipline by its name, within tbf where there is a `rate`",
    |end| qdisc,
    qdisc,
    |qdisc: Qdisc| Value::Text(qdisc.name().to_owned())
);
pub(super) const TARGET: [Key; 3] =
    end_keys!("target", AIM, "delay that fq_codel, codel, pie or fq_pie aims at", |end| target, span, show_span);
pub(super) const INTERVAL: [Key; 3] =
    end_keys!("interval", AIM, "time after which fq_codel or codel begins to drop", |end| interval, span, show_span);
pub(super) const ECN: [Key; 3] =
    switch_keys!("ecn", "whether fq_codel, codel, pie or fq_pie marks packets before it drops them", ecn);
pub(super) const TSO: [Key; 3] = switch_keys!("tso", "TCP segmentation offload of that end (ETHTOOL_STSO)", tso);
pub(super) const GSO: [Key; 3] = switch_keys!("gso", "generic segmentation offload of that end (ETHTOOL_SGSO)", gso);
pub(super) const GSO_MAX_SEGS: [Key; 3] = end_keys!(
    "gso_max_segs",
    Kind::Count { min: 1, limit: MAX_SEGMENTS, or_default: true },
    "most segments in a packet that TCP hands to that end's queue; 1 for one by one (IFLA_GSO_MAX_SEGS)",
    |end| gso_max_segs,
    number,
    |segments: Option<u32>| or_default(segments, |segments| Value::Int(segments.into()))
);
pub(super) const GRO: [Key; 3] = switch_keys!("gro", "generic receive offload of that end (ETHTOOL_SGRO)", gro);
pub(super) const TX_CHECKSUM: [Key; 3] =
    switch_keys!("tx_checksum", "checksum offload of that end's sending side (ETHTOOL_STXCSUM)", tx_checksum);
pub(super) const RX_CHECKSUM: [Key; 3] =
    switch_keys!("rx_checksum", "checksum offload of that end's receiving side (ETHTOOL_SRXCSUM)", rx_checksum);
