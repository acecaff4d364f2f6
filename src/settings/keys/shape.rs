//! The shape of a workload over time: patterns of requests, gaps, pauses, and how sends are made.

use super::{Key, Limit, narrow};
use crate::settings::{Beside, Kind, Pattern, Value};
use crate::units::Span;

/// Longest gap, pause or quiet period.
pub const MAX_PAUSE: Limit = Limit { name: "MAX_PAUSE", max: 600 * 1_000_000_000 };

/// Most connections at once.
pub const MAX_CONNECTIONS: Limit = Limit { name: "MAX_CONNECTIONS", max: 64 };

const PAUSE: Kind = Kind::Span { min: 0, limit: MAX_PAUSE, or_default: false };

fn span(value: &Value) -> Span {
    value.text().and_then(|text| text.parse().ok()).unwrap_or(Span(0))
}

pub(super) static SHAPE: [Key; 8] = [
    choice_key!(
        "workload.pattern",
        "echo only: burst sends chunks as fast as the socket takes them; write-read sends a chunk and waits for its echo; write-write-read does so in two halves",
        Pattern,
        workload.pattern
    ),
    Key {
        path: "workload.gap",
        short: None,
        kind: PAUSE,
        about: "echo only: time between two bursts, or between two requests of write-read and write-write-read",
        set: |settings, value| settings.workload.gap = span(value),
        get: Some(|settings| Value::Text(settings.workload.gap.exact())),
    },
    Key {
        path: "workload.connections",
        short: None,
        kind: Kind::Count { min: 1, limit: MAX_CONNECTIONS, or_default: false },
        about: "connections that do the whole workload at once, each on a socket and a thread of its own at each end; all start together",
        set: |settings, value| settings.workload.connections = narrow(value),
        get: Some(|settings| Value::Int(settings.workload.connections.into())),
    },
    choice_key!(
        "workload.beside",
        "echo only: a stream that runs meanwhile on a connection of its own with the same options: none, upload or download",
        Beside,
        workload.beside
    ),
    Key {
        path: "workload.beside_lead",
        short: None,
        kind: PAUSE,
        about: "echo only: how long the stream beside it runs before the echo begins",
        set: |settings, value| settings.workload.beside_lead = span(value),
        get: Some(|settings| Value::Text(settings.workload.beside_lead.exact())),
    },
    Key {
        path: "workload.read_pause",
        short: None,
        kind: PAUSE,
        about: "stream only: time that the receiver rests after each receive call",
        set: |settings, value| settings.workload.read_pause = span(value),
        get: Some(|settings| Value::Text(settings.workload.read_pause.exact())),
    },
    Key {
        path: "workload.quiet",
        short: None,
        kind: Kind::Span { min: 1_000_000, limit: MAX_PAUSE, or_default: false },
        about: "udp only: time without an arrival after which the chunks that are still missing count as lost",
        set: |settings, value| settings.workload.quiet = span(value),
        get: Some(|settings| Value::Text(settings.workload.quiet.exact())),
    },
    Key {
        path: "workload.zerocopy",
        short: None,
        kind: Kind::Switch { or_default: false },
        about: "stream over tcp only: the sender's pages are sent in place (SO_ZEROCOPY, MSG_ZEROCOPY)",
        set: |settings, value| settings.workload.zerocopy = value.bool().unwrap_or_default(),
        get: Some(|settings| Value::Bool(settings.workload.zerocopy)),
    },
];
