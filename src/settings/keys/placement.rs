//! The keys of [placement]: which processor runs what, and how it is scheduled.

use crate::settings::{Key, Kind, Limit, Policy, Value};

use super::{narrow, or_default};

/// Largest number of a processor (`CPU_SETSIZE` - 1).
pub const MAX_PROCESSOR: Limit = Limit { name: "MAX_PROCESSOR", max: 1023 };

const PROCESSOR: Kind = Kind::Count { min: 0, limit: MAX_PROCESSOR, or_default: true };

pub(super) const PLACEMENT: [Key; 3] = [
    Key {
        path: "placement.client_cpu",
        short: None,
        kind: PROCESSOR,
        about: "processor that the client's thread is kept on (sched_setaffinity)",
        set: |settings, value| settings.placement.client_cpu = value.int().map(|_| narrow(value)),
        get: Some(|settings| or_default(settings.placement.client_cpu, |cpu| Value::Int(cpu.into()))),
    },
    Key {
        path: "placement.server_cpu",
        short: None,
        kind: PROCESSOR,
        about: "processor that the server's thread is kept on (sched_setaffinity)",
        set: |settings, value| settings.placement.server_cpu = value.int().map(|_| narrow(value)),
        get: Some(|settings| or_default(settings.placement.server_cpu, |cpu| Value::Int(cpu.into()))),
    },
    Key {
        path: "placement.policy",
        short: None,
        kind: Kind::Choice(Policy::NAMES),
        about: "how both threads are scheduled (sched_setscheduler); fifo and rr run with priority 1",
        set: |settings, value| {
            settings.placement.policy = value.text().and_then(Policy::named).unwrap_or_default();
        },
        get: Some(|settings| Value::Text(settings.placement.policy.name().to_owned())),
    },
];
