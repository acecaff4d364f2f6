//! The stored form of one repeat. Other tools rely on its names: a field keeps its name and meaning within a format, and
//! fields may be added.

use jiff::Timestamp;
use serde::de::{self, Deserializer};
use serde::ser::{self, Serializer};
use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;
use crate::settings::{Axes, Clock};

/// The format that this program writes. It reads this one and, on purpose, each older one.
///
/// Fields that were added to format 1, which its older records lack: `client.samples` and `server.samples` of streams
/// ([`crate::measurement::Samples`]), and of an end's `evidence` the silences, the most in its buffers, the tick and drops of the machine, and the
/// windows of its TCP connection ([`crate::measurement::Evidence`]).
pub const FORMAT: u32 = 1;

/// One repeat of one cell: a line of `records.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Stable id of the cell.
    pub cell: String,
    /// Which repeat, from 0. Warm-ups are counted apart.
    pub repeat: u32,
    /// Whether it only warmed up: kept, and left out of every summary.
    pub warmup: bool,
    /// Place in the order in which the run was carried out, from 0.
    pub sequence: u64,
    /// Where the cell lies on the axes of its sweep.
    pub axes: Axes,
    /// How it ended, and its figures.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// The clock that measured: real or virtual. `auto` is neither written nor read.
    #[serde(serialize_with = "write_clock", deserialize_with = "read_clock")]
    pub clock: Clock,
    /// The kernel that it ran on.
    pub kernel: KernelFacts,
    /// What ran it: `native`, `guest:tcg`, `guest:kvm` or `fake`.
    pub machine: String,
    /// When it started (UTC, by the host's clock).
    pub started: Timestamp,
    /// Where the figures come from, if this repeat was not run but taken over from an earlier run.
    #[serde(default)]
    pub reused_from: Option<String>,
}

/// The kernel that a repeat ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    /// As `uname -r` says. `None` where no machine came up to say it.
    pub release: Option<String>,
    /// As `uname -v` says.
    pub version: Option<String>,
    /// The image that was asked for, as resolved: `host`, `debian:6.12`, a path.
    pub image: String,
    /// Version of the package that the image came from.
    pub package_version: Option<String>,
}

/// Why a line is not a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineError {
    /// It is not even JSON: cut off, or overwritten.
    NotJson(String),
    /// It is JSON and no record.
    NotARecord(String),
    /// It is of a newer format.
    Newer(u32),
}

impl Record {
    /// The line for this record, with its newline.
    pub(super) fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line, without its newline. Fields that this format does not know are passed over.
    pub(super) fn from_line(line: &[u8]) -> Result<Self, LineError> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let versioned: Versioned = serde_json::from_slice(line).map_err(|error| {
            if error.is_data() {
                LineError::NotARecord(error.to_string())
            } else {
                LineError::NotJson(error.to_string())
            }
        })?;
        match versioned.format {
            FORMAT => serde_json::from_slice(line).map_err(|error| LineError::NotARecord(error.to_string())),
            0 => Err(LineError::NotARecord("there is no format 0".to_owned())),
            newer => Err(LineError::Newer(newer)),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn write_clock<S: Serializer>(clock: &Clock, serializer: S) -> Result<S::Ok, S::Error> {
    if *clock == Clock::Auto {
        return Err(ser::Error::custom("no clock is called `auto`: it is real or virtual once a repeat has run"));
    }
    clock.serialize(serializer)
}

fn read_clock<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Clock, D::Error> {
    match Clock::deserialize(deserializer)? {
        Clock::Auto => Err(de::Error::custom("`auto` is not a clock that measures: expected `real` or `virtual`")),
        clock => Ok(clock),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value as Json, json};

    use super::{FORMAT, KernelFacts, LineError, Record};
    use crate::measurement::{Buffer, End, Measurement, Outcome, Recorder, Samples, Switch, Verdict};
    use crate::settings::{Axes, Clock, Value};
    use crate::units::{BitRate, Span};

    /// A record as the first report of the design has it.
    pub(crate) fn example(cell: &str, repeat: u32, completion_ns: u64) -> Record {
        let buffer = Buffer {
            asked: Some(1024),
            initial: Some(2304),
            end: Some(2304),
            peak: Some(2304),
            verdict: Some(Verdict::Raised),
        };
        let mut latencies = Recorder::with_capacity(32);
        for chunk in 1..=32 {
            latencies.add(completion_ns / 32 * chunk);
        }
        let end = End {
            rcvbuf: buffer.clone(),
            sndbuf: Buffer {
                asked: Some(65536),
                initial: Some(131_072),
                end: Some(131_072),
                peak: None,
                verdict: Some(Verdict::Doubled),
            },
            nodelay: Switch { asked: Some(false), given: Some(false) },
            cpu_user_ns: Some(120_000),
            cpu_system_ns: Some(340_000),
            voluntary_switches: Some(40),
            involuntary_switches: None,
            ..End::default()
        };
        Record {
            format: FORMAT,
            cell: cell.to_owned(),
            repeat,
            warmup: false,
            sequence: u64::from(repeat),
            axes: Axes(vec![("rcvbuf".into(), Value::Int(1024)), ("nodelay".into(), Value::Bool(false))]),
            measurement: Measurement {
                outcome: Outcome::Measured,
                reason: None,
                completion_ns: Some(completion_ns),
                goodput_bps: BitRate::of(2048, Span(completion_ns)).map(|rate| rate.0),
                delivered_bytes: Some(2048),
                chunk_latency_ns: latencies.finish(),
                elapsed_ns: None,
                setup_ns: Some(3_000_000),
                client: end.clone(),
                server: end,
                ..Measurement::default()
            },
            clock: Clock::Virtual,
            kernel: KernelFacts {
                release: Some("6.12.117+deb13-cloud-amd64".into()),
                version: None,
                image: "debian:6.12".into(),
                package_version: None,
            },
            machine: "guest:tcg".into(),
            started: "2026-11-30T14:05:01Z".parse().expect("a time"),
            reused_from: None,
        }
    }

    fn json_of(record: &Record) -> Json {
        serde_json::from_slice(&record.to_line().expect("a line")).expect("JSON")
    }

    #[test]
    fn names_are_those_of_the_design() {
        let line = json_of(&example("9f2c", 0, 4_670_470_000));
        for (pointer, value) in [
            ("/format", json!(1)),
            ("/cell", json!("9f2c")),
            ("/repeat", json!(0)),
            ("/warmup", json!(false)),
            ("/axes/rcvbuf", json!(1024)),
            ("/axes/nodelay", json!(false)),
            ("/outcome", json!("measured")),
            ("/reason", Json::Null),
            ("/clock", json!("virtual")),
            ("/kernel/release", json!("6.12.117+deb13-cloud-amd64")),
            ("/kernel/image", json!("debian:6.12")),
            ("/completion_ns", json!(4_670_470_000_u64)),
            ("/goodput_bps", json!(3508)),
            ("/chunk_latency_ns/count", json!(32)),
            (
                "/client/rcvbuf",
                json!({"asked": 1024, "initial": 2304, "final": 2304, "peak": 2304,
                "verdict": "raised to the minimum"}),
            ),
            ("/client/cpu_user_ns", json!(120_000)),
            ("/server/sndbuf/peak", Json::Null),
            ("/started", json!("2026-11-30T14:05:01Z")),
            ("/reused_from", Json::Null),
        ] {
            assert_eq!(line.pointer(pointer), Some(&value), "{pointer}");
        }
    }

    #[test]
    fn a_record_survives_its_line_and_unknown_fields_do_no_harm() {
        let record = example("9f2c", 3, 4_670_470_000);
        assert_eq!(Record::from_line(&record.to_line().expect("a line")), Ok(record.clone()));
        let mut line = json_of(&record);
        line["counters"] = json!({"TcpRetransSegs": 3});
        line["client"]["mood"] = json!("good");
        assert_eq!(Record::from_line(line.to_string().as_bytes()), Ok(record));
    }

    #[test]
    fn samples_are_columns_and_records_from_before_them_are_read() {
        let mut record = example("9f2c", 0, 1);
        assert_eq!(json_of(&record)["client"].get("samples"), None, "an echo's record is as it always was");
        record.measurement.server.samples = Some(Samples {
            t_ns: vec![1000, 2_000_000],
            rcvbuf_bytes: Some(vec![131_072, 262_144]),
            ..Samples::default()
        });
        let line = json_of(&record);
        assert_eq!(line["server"]["samples"]["t_ns"], json!([1000, 2_000_000]));
        assert_eq!(line["server"]["samples"]["rcvbuf_bytes"], json!([131_072, 262_144]));
        assert_eq!(line["server"]["samples"].get("rcv_wnd_bytes"), Some(&Json::Null), "not told, and never 0");
        assert_eq!(Record::from_line(line.to_string().as_bytes()), Ok(record));
    }

    #[test]
    fn a_newer_format_is_refused_even_where_it_looks_different() {
        let error = Record::from_line(br#"{"format": 2, "cells": ["9f2c"]}"#).expect_err("newer");
        assert_eq!(error, LineError::Newer(2));
    }

    #[test]
    fn half_a_line_is_told_from_a_wrong_one() {
        let line = example("9f2c", 0, 1).to_line().expect("a line");
        assert!(matches!(Record::from_line(&line[..line.len() / 2]), Err(LineError::NotJson(_))));
        assert!(matches!(Record::from_line(br#"{"format": 1}"#), Err(LineError::NotARecord(_))));
        assert!(matches!(Record::from_line(b"{}"), Err(LineError::NotARecord(_))));
        assert!(matches!(Record::from_line(&[0; 40]), Err(LineError::NotJson(_))));
    }

    #[test]
    fn auto_is_no_clock() {
        let mut record = example("9f2c", 0, 1);
        let mut line = json_of(&record);
        line["clock"] = json!("auto");
        assert!(matches!(Record::from_line(line.to_string().as_bytes()), Err(LineError::NotARecord(_))));
        record.clock = Clock::Auto;
        assert!(record.to_line().is_err());
    }
}
