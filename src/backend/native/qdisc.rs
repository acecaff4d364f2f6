//! Queue disciplines, set up and read over netlink.

mod options;

use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::Handle;
use rtnetlink::packet_core::{
    DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};

use crate::measurement::QueueFacts;
use crate::settings::{LinkEnd, Qdisc, Queue};

use super::link::LinkError;

/// `TCA_OPTIONS`. Built here, since its content is a bare structure for some queue disciplines.
const TCA_OPTIONS: u16 = 2;

/// Handle of an end's outermost queue discipline, and of the one within.
const OUTER: TcHandle = TcHandle { major: 1, minor: 0 };
const INNER: TcHandle = TcHandle { major: 2, minor: 0 };
/// The class of the outermost one that the inner one takes the place of.
const WITHIN: TcHandle = TcHandle { major: 1, minor: 1 };

/// One queue discipline to set up.
#[derive(Debug)]
struct Step {
    parent: TcHandle,
    handle: TcHandle,
    kind: &'static str,
    options: Vec<u8>,
}

/// What an end needs, the outermost first.
fn steps(end: &LinkEnd, mtu: u32) -> Vec<Step> {
    let outer = |kind, options| Step { parent: TcHandle::ROOT, handle: OUTER, kind, options };
    let inner =
        |qdisc: Qdisc| Step { parent: WITHIN, handle: INNER, kind: qdisc.name(), options: options::named(qdisc, end) };
    match end.queue() {
        Queue::Default => Vec::new(),
        Queue::Netem => vec![outer("netem", options::netem(end))],
        Queue::Plain(qdisc) => vec![outer(qdisc.name(), options::named(qdisc, end))],
        Queue::Tbf(qdisc) => {
            let rate = end.rate.unwrap_or_default();
            let mut steps = vec![outer("tbf", options::tbf(end, rate, mtu))];
            match (qdisc, end.limit) {
                (Qdisc::Default, None) => {}
                // tbf itself counts bytes only.
                (Qdisc::Default, Some(_)) => steps.push(inner(Qdisc::Pfifo)),
                (qdisc, _) => steps.push(inner(qdisc)),
            }
            steps
        }
    }
}

/// The kinds of queue discipline that an end needs.
pub(super) fn kinds(end: &LinkEnd) -> Vec<&'static str> {
    steps(end, 1500).iter().map(|step| step.kind).collect()
}

/// Sets up an end's queue on the device of that index.
pub(super) async fn set_up(handle: &Handle, index: u32, end: &LinkEnd, mtu: u32) -> Result<(), LinkError> {
    for step in steps(end, mtu) {
        let kind = step.kind;
        put(handle, index, step).await.map_err(|error| LinkError::Queue { kind, error })?;
    }
    Ok(())
}

/// Asks for a queue discipline without any options, to see whether the kernel has it.
pub(super) async fn try_out(handle: &Handle, index: u32, kind: &'static str) -> Result<(), rtnetlink::Error> {
    put(handle, index, Step { parent: TcHandle::ROOT, handle: OUTER, kind, options: Vec::new() }).await
}

async fn put(handle: &Handle, index: u32, step: Step) -> Result<(), rtnetlink::Error> {
    let mut message = TcMessage::with_index(index.cast_signed());
    message.header.parent = step.parent;
    message.header.handle = step.handle;
    message.attributes.push(TcAttribute::Kind(step.kind.to_owned()));
    if !step.options.is_empty() {
        message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, step.options)));
    }
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut answers = handle.clone().request(request)?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload
            && error.code.is_some()
        {
            return Err(rtnetlink::Error::NetlinkError(error));
        }
    }
    Ok(())
}

/// What stands on the device of that index, the outermost first. A device without a queue has none.
pub(super) async fn read(handle: &Handle, index: u32) -> Result<Vec<QueueFacts>, LinkError> {
    let asked = |error| LinkError::Refused { what: "to be asked for its queues".to_owned(), error };
    let mut found = Vec::new();
    let mut messages = std::pin::pin!(handle.qdisc().get().index(index.cast_signed()).execute());
    while let Some(message) = messages.try_next().await.map_err(asked)? {
        if message.header.index == index.cast_signed() {
            found.push((message.header.parent != TcHandle::ROOT, facts(message)));
        }
    }
    found.retain(|(_, queue)| queue.kind != "noqueue");
    found.sort_by_key(|(within, _)| *within);
    let mut queues: Vec<QueueFacts> = found.into_iter().map(|(_, queue)| queue).collect();
    if let [outer, _, ..] = queues.as_mut_slice() {
        // The limit of the queue that the inner one took the place of.
        outer.given.remove("limit_bytes");
    }
    Ok(queues)
}

fn facts(message: TcMessage) -> QueueFacts {
    let mut queue = QueueFacts::default();
    let mut given = Vec::new();
    for attribute in message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => queue.kind = kind,
            TcAttribute::Options(options) => given = bytes(&options),
            TcAttribute::Stats2(stats) => stats.iter().for_each(|part| add(&mut queue, part)),
            _ => {}
        }
    }
    queue.given = options::given(&queue.kind, &given);
    queue
}

/// The content of `TCA_OPTIONS`, as it came: the library keeps what it does not know as one attribute that is the whole.
fn bytes(options: &[TcOption]) -> Vec<u8> {
    if let [TcOption::Other(whole)] = options {
        let mut bytes = vec![0; whole.buffer_len()];
        whole.emit(&mut bytes);
        let length = rtnetlink::packet_core::Nla::value_len(whole);
        return bytes[rtnetlink::packet_core::NLA_HEADER_SIZE..].iter().copied().take(length).collect();
    }
    let mut bytes = vec![0; options.buffer_len()];
    options.emit(&mut bytes);
    bytes
}

fn add(queue: &mut QueueFacts, part: &TcStats2) {
    match part {
        TcStats2::Basic(basic) => {
            queue.bytes = basic.bytes;
            queue.packets = basic.packets.into();
        }
        TcStats2::Queue(counts) => {
            queue.drops = counts.drops.into();
            queue.overlimits = counts.overlimits.into();
            queue.requeues = counts.requeues.into();
            queue.backlog_bytes = counts.backlog.into();
            queue.backlog_packets = counts.qlen.into();
        }
        _ => {}
    }
}
