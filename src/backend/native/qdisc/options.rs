//! The options of queue disciplines as the kernel has them (`TCA_OPTIONS`; `include/uapi/linux/pkt_sched.h`), both ways.

use std::collections::BTreeMap;

use rtnetlink::packet_core::{NLA_HEADER_SIZE, NlasIterator};

use crate::settings::{LinkEnd, NETEM_LIMIT, Qdisc};
use crate::units::{BitRate, Percent, Span};

/// The kernel's tick of traffic control: 64 ns (`PSCHED_SHIFT`, `include/net/pkt_sched.h`).
const TICK_NS: u64 = 64;
/// `TC_LINKLAYER_ETHERNET`: frames, not cells.
const ETHERNET: u8 = 1;

/// Attributes of tbf.
const TBF_PARMS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_BURST: u16 = 6;
/// Attributes of netem.
const NETEM_REORDER: u16 = 3;
const NETEM_CORRUPT: u16 = 4;
const NETEM_LOSS: u16 = 5;
const NETEM_RATE: u16 = 6;
const NETEM_RATE64: u16 = 8;
const NETEM_LATENCY64: u16 = 10;
const NETEM_JITTER64: u16 = 11;
/// Within `TCA_NETEM_LOSS`: the Gilbert-Elliott model.
const LOSS_GE: u16 = 2;
/// Size of `struct tc_netem_qopt`, which attributes follow.
const NETEM_QOPT: usize = 24;

/// What an option of a queue discipline is called in a sweep file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Limit,
    /// In microseconds.
    Target,
    /// In microseconds.
    Interval,
    Ecn,
}

/// Options that are attributes of 32 bits, by queue discipline.
const fn attributes(qdisc: Qdisc) -> &'static [(Name, u16)] {
    match qdisc {
        Qdisc::Fq => &[(Name::Limit, 1)],
        Qdisc::FqCodel | Qdisc::Codel => &[(Name::Target, 1), (Name::Limit, 2), (Name::Interval, 3), (Name::Ecn, 4)],
        Qdisc::Pie => &[(Name::Target, 1), (Name::Limit, 2), (Name::Ecn, 6)],
        Qdisc::FqPie => &[(Name::Limit, 1), (Name::Target, 3), (Name::Ecn, 10)],
        Qdisc::Default | Qdisc::Pfifo | Qdisc::Bfifo | Qdisc::PfifoFast | Qdisc::Sfq | Qdisc::Cake => &[],
    }
}

/// Numbers one after the other, in the machine's order.
fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// Appends an attribute.
fn push(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(NLA_HEADER_SIZE + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The rate in bytes per second as the kernel counts it.
const fn bytes_per_second(rate: BitRate) -> u64 {
    rate.0 / 8
}

/// Options of tbf. Its limit is used only where no queue discipline is put within.
pub(super) fn tbf(end: &LinkEnd, rate: BitRate, mtu: u32) -> Vec<u8> {
    let rate = bytes_per_second(rate);
    let (burst, limit) = (narrow(end.burst_bytes(mtu)), narrow(end.queue_bytes(mtu)));
    let overhead = u16::try_from(end.overhead).unwrap_or(u16::MAX);
    // struct tc_tbf_qopt: two tc_ratespec (rate and peak rate), limit, buffer, mtu.
    let mut parameters = vec![0, ETHERNET];
    parameters.extend(overhead.to_ne_bytes());
    parameters.extend([0; 4]);
    parameters.extend(narrow(rate).to_ne_bytes());
    parameters.extend([0; 12]);
    parameters.extend(words([limit, narrow(ticks_for(burst.into(), rate)), 0]));
    let mut options = Vec::new();
    push(&mut options, TBF_PARMS, &parameters);
    push(&mut options, TBF_BURST, &burst.to_ne_bytes());
    if rate > u32::MAX.into() {
        push(&mut options, TBF_RATE64, &rate.to_ne_bytes());
    }
    options
}

/// How many ticks so many bytes take.
fn ticks_for(bytes: u64, rate: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / rate.max(1) / TICK_NS
}

/// Options of netem.
pub(super) fn netem(end: &LinkEnd) -> Vec<u8> {
    let ticks = |span: Span| narrow(span.0 / TICK_NS);
    let none = Percent::default();
    // With a gap of one each packet may overtake. The probability follows as an attribute.
    let gap = u32::from(end.reorder != none);
    let limit = end.limit.unwrap_or(NETEM_LIMIT);
    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
    let mut options =
        words([ticks(end.delay), limit, end.loss.scaled(), gap, end.duplicate.scaled(), ticks(end.jitter)]);
    push(&mut options, NETEM_LATENCY64, &end.delay.0.to_ne_bytes());
    push(&mut options, NETEM_JITTER64, &end.jitter.0.to_ne_bytes());
    if end.reorder != none {
        push(&mut options, NETEM_REORDER, &words([end.reorder.scaled(), 0]));
    }
    if end.corrupt != none {
        push(&mut options, NETEM_CORRUPT, &words([end.corrupt.scaled(), 0]));
    }
    if end.loss_p != none {
        // struct tc_netem_gemodel: p, r, h, k1. In the kernel h is what arrives while bad, and k1 what is lost while good.
        let model = [end.loss_p, end.loss_r, end.loss_bad.rest(), end.loss_good].map(Percent::scaled);
        let mut nested = Vec::new();
        push(&mut nested, LOSS_GE, &words(model));
        push(&mut options, NETEM_LOSS, &nested);
    }
    if let Some(rate) = end.rate {
        let rate = bytes_per_second(rate);
        // struct tc_netem_rate: rate, overhead of a packet, size and overhead of a cell.
        push(&mut options, NETEM_RATE, &words([narrow(rate), end.overhead, 0, 0]));
        if rate > u32::MAX.into() {
            push(&mut options, NETEM_RATE64, &rate.to_ne_bytes());
        }
    }
    options
}

/// Options of a queue discipline by name; empty where none is asked for.
pub(super) fn named(qdisc: Qdisc, end: &LinkEnd) -> Vec<u8> {
    let limit = match qdisc {
        Qdisc::Bfifo => end.limit_bytes.map(|bytes| narrow(bytes.0)),
        _ => end.limit,
    };
    let micros = |span: Span| narrow(span.0 / 1000);
    match (qdisc, limit) {
        (Qdisc::Pfifo | Qdisc::Bfifo, Some(limit)) => words([limit]),
        // struct tc_sfq_qopt: quantum, perturb_period, limit, divisor, flows; what is 0 stays as it is.
        (Qdisc::Sfq, Some(limit)) => words([0, 0, limit, 0, 0]),
        _ => {
            let mut options = Vec::new();
            for &(name, kind) in attributes(qdisc) {
                let value = match name {
                    Name::Limit => limit,
                    Name::Target => end.target.map(micros),
                    Name::Interval => end.interval.map(micros),
                    Name::Ecn => end.ecn.map(u32::from),
                };
                if let Some(value) = value {
                    push(&mut options, kind, &value.to_ne_bytes());
                }
            }
            options
        }
    }
}

/// The number at an index of numbers of 32 bits.
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(4 * index..4 * index + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn wide(bytes: &[u8]) -> Option<u64> {
    bytes.get(..8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// The attributes in some bytes, by kind. What cannot be read is left out.
fn parse(bytes: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|nla| (nla.kind(), nla.value().to_vec())).collect()
}

/// What the kernel says a queue discipline is set to, by the names and in the form of a sweep file's [link].
pub(super) fn given(kind: &str, options: &[u8]) -> BTreeMap<String, String> {
    let found = match kind {
        "tbf" => given_tbf(options),
        "netem" => given_netem(options),
        _ => Qdisc::named(kind).map(|qdisc| given_named(qdisc, options)),
    };
    found.unwrap_or_default().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

type Given = Vec<(&'static str, String)>;

fn given_tbf(options: &[u8]) -> Option<Given> {
    let attributes = parse(options);
    let parameters = attributes.get(&TBF_PARMS)?;
    let overhead = u16::from_ne_bytes(parameters.get(2..4)?.try_into().ok()?);
    let rate = attributes.get(&TBF_RATE64).and_then(|rate| wide(rate)).or(word(parameters, 2).map(u64::from))?;
    let (limit, buffer) = (word(parameters, 6)?, word(parameters, 7)?);
    // The kernel keeps the time that a bucket takes, in ticks.
    let burst = u128::from(buffer) * u128::from(TICK_NS) * u128::from(rate) / 1_000_000_000;
    Some(vec![
        ("rate", BitRate(rate * 8).exact()),
        ("burst", burst.to_string()),
        ("limit_bytes", limit.to_string()),
        ("overhead", overhead.to_string()),
    ])
}

fn given_netem(options: &[u8]) -> Option<Given> {
    let (fixed, rest) = options.split_at_checked(NETEM_QOPT)?;
    let attributes = parse(rest);
    let share = |scaled: u32| Percent::of_scaled(scaled);
    let span = |kind: u16, index: usize| {
        let exact = attributes.get(&kind).and_then(|span| wide(span)).map(Span);
        exact.or_else(|| word(fixed, index).map(|ticks| Span(u64::from(ticks) * TICK_NS)))
    };
    let mut found = vec![
        ("delay", span(NETEM_LATENCY64, 0)?.exact()),
        ("jitter", span(NETEM_JITTER64, 5)?.exact()),
        ("limit", word(fixed, 1)?.to_string()),
        ("loss", share(word(fixed, 2)?).to_string()),
        ("duplicate", share(word(fixed, 4)?).to_string()),
    ];
    for (kind, name) in [(NETEM_REORDER, "reorder"), (NETEM_CORRUPT, "corrupt")] {
        let probability = attributes.get(&kind).and_then(|value| word(value, 0)).unwrap_or(0);
        found.push((name, share(probability).to_string()));
    }
    if let Some(model) = attributes.get(&NETEM_LOSS).map(|loss| parse(loss))
        && let Some(model) = model.get(&LOSS_GE)
    {
        let part = |index| word(model, index).map(share);
        found.push(("loss_p", part(0)?.to_string()));
        found.push(("loss_r", part(1)?.to_string()));
        found.push(("loss_bad", part(2)?.rest().to_string()));
        found.push(("loss_good", part(3)?.to_string()));
    }
    if let Some(rate) = attributes.get(&NETEM_RATE) {
        let exact = attributes.get(&NETEM_RATE64).and_then(|rate| wide(rate));
        let bytes = exact.or_else(|| word(rate, 0).map(u64::from))?;
        if bytes > 0 {
            found.push(("rate", BitRate(bytes * 8).exact()));
            found.push(("overhead", word(rate, 1)?.to_string()));
        }
    }
    Some(found)
}

fn given_named(qdisc: Qdisc, options: &[u8]) -> Given {
    let limit = |limit: Option<u32>, name| limit.map(|limit| vec![(name, limit.to_string())]).unwrap_or_default();
    match qdisc {
        Qdisc::Pfifo => limit(word(options, 0), "limit"),
        Qdisc::Bfifo => limit(word(options, 0), "limit_bytes"),
        Qdisc::Sfq => limit(word(options, 2), "limit"),
        _ => {
            let found = parse(options);
            let value = |kind: u16| found.get(&kind).and_then(|value| word(value, 0));
            let shown = attributes(qdisc).iter().filter_map(|&(name, kind)| {
                let value = value(kind)?;
                let micros = || Span(u64::from(value) * 1000).exact();
                Some(match name {
                    Name::Limit => ("limit", value.to_string()),
                    Name::Target => ("target", micros()),
                    Name::Interval => ("interval", micros()),
                    Name::Ecn => ("ecn", (value != 0).to_string()),
                })
            });
            shown.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{given, named, netem, tbf};
    use crate::settings::{LinkEnd, Qdisc};
    use crate::units::{BitRate, Bytes, Percent, Span};

    fn share(text: &str) -> Percent {
        text.parse().expect("a percentage")
    }

    #[test]
    fn what_is_asked_of_netem_reads_back_the_same() {
        let end = LinkEnd {
            delay: Span(10_000_001),
            jitter: Span(1_000_000),
            loss_p: share("1%"),
            loss_r: share("25%"),
            loss_bad: share("80%"),
            loss_good: share("0.1%"),
            duplicate: share("0.5%"),
            reorder: share("2%"),
            corrupt: share("0.02%"),
            rate: Some(BitRate(40_000_000_000)),
            overhead: 24,
            limit: Some(5000),
            ..LinkEnd::default()
        };
        let given = given("netem", &netem(&end));
        for (name, value) in [
            ("delay", "10ms 1ns"),
            ("jitter", "1ms"),
            ("loss", "0%"),
            ("loss_p", "1%"),
            ("loss_r", "25%"),
            ("loss_bad", "80%"),
            ("loss_good", "0.1%"),
            ("duplicate", "0.5%"),
            ("reorder", "2%"),
            ("corrupt", "0.02%"),
            ("rate", "40Gbit/s"),
            ("overhead", "24"),
            ("limit", "5000"),
        ] {
            assert_eq!(given.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn what_is_asked_of_tbf_reads_back_the_same() {
        let end = LinkEnd { limit_bytes: Some(Bytes(300_000)), overhead: 24, ..LinkEnd::default() };
        let options = |rate| given("tbf", &tbf(&LinkEnd { rate: Some(rate), ..end.clone() }, rate, 1500));
        let gigabit = options(BitRate(1_000_000_000));
        assert_eq!(gigabit["rate"], "1Gbit/s");
        assert_eq!(gigabit["limit_bytes"], "300000");
        assert_eq!(gigabit["overhead"], "24");
        assert_eq!(gigabit["burst"], "125000");
        assert_eq!(options(BitRate(100_000_000_000))["rate"], "100Gbit/s");
    }

    #[test]
    fn what_is_asked_of_a_qdisc_reads_back_the_same() {
        let end = LinkEnd {
            limit: Some(100),
            limit_bytes: Some(Bytes(65536)),
            target: Some(Span(5_000_000)),
            interval: Some(Span(100_000_000)),
            ecn: Some(true),
            ..LinkEnd::default()
        };
        for (qdisc, expected) in [
            (Qdisc::Pfifo, &[("limit", "100")][..]),
            (Qdisc::Bfifo, &[("limit_bytes", "65536")]),
            (Qdisc::Sfq, &[("limit", "100")]),
            (Qdisc::Fq, &[("limit", "100")]),
            (Qdisc::FqCodel, &[("limit", "100"), ("target", "5ms"), ("interval", "100ms"), ("ecn", "true")]),
            (Qdisc::FqPie, &[("limit", "100"), ("target", "5ms"), ("ecn", "true")]),
            (Qdisc::Cake, &[]),
        ] {
            let given = given(qdisc.name(), &named(qdisc, &end));
            let expected: Vec<_> = expected.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(given.into_iter().collect::<std::collections::BTreeSet<_>>(), expected.into_iter().collect());
        }
        assert!(named(Qdisc::FqCodel, &LinkEnd::default()).is_empty());
    }
}
