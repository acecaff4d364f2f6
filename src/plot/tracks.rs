//! What is drawn of a cell's samples, on a picture and on the page alike: the lines of the end that receives and of the end
//! that sends, of one repeat.

use super::facts;
use crate::measurement::{End, Outcome};
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;

/// What a line shows. Its place here is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The size that the kernel gives the buffer.
    Size,
    /// What is in it.
    Used,
    /// The window that the receiver offers: as it says at its own end, as it was heard at the other.
    Window,
    /// The congestion window of the sender.
    Congestion,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Size, Self::Used, Self::Window, Self::Congestion];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size of the buffer",
            Self::Used => "in use",
            Self::Window => "advertised window of the receiver",
            Self::Congestion => "congestion window",
        }
    }
}

/// Instants in nanoseconds since the start, and bytes.
pub(crate) type Points = Vec<(u64, u64)>;

/// The lines of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    /// Which end it is, and which of its buffers matters.
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<(Kind, Points)>,
}

/// Both ends of one repeat: the one that receives, then the one that sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracks {
    pub(crate) repeat: u32,
    pub(crate) ends: [Track; 2],
}

/// The tracks of a cell's first measured repeat, or where none was measured of its first repeat with samples at all: what
/// a stream did until it was given up is told too.
pub(crate) fn of(manifest: &Manifest, cell: &CellSummary, repeats: &[&Record]) -> Option<Tracks> {
    let sampled =
        |record: &&&Record| [&record.measurement.client, &record.measurement.server].iter().any(|end| has(end));
    let measured = |record: &&&Record| record.measurement.outcome == Outcome::Measured;
    let record = repeats.iter().filter(measured).find(sampled).or_else(|| repeats.iter().find(sampled))?;
    let download = facts::setting(manifest, cell, "workload.direction").is_none_or(|to| to.text() == Some("download"));
    let (client, server) = (&record.measurement.client, &record.measurement.server);
    let ends = if download {
        [
            (client, "client receives: receive buffer", Role::Receiver),
            (server, "server sends: send buffer", Role::Sender),
        ]
    } else {
        [
            (server, "server receives: receive buffer", Role::Receiver),
            (client, "client sends: send buffer", Role::Sender),
        ]
    };
    let ends = ends.map(|(end, title, role)| Track { title, lines: lines(end, role) });
    Some(Tracks { repeat: record.repeat, ends })
}

/// What an end does in a stream.
#[derive(Clone, Copy)]
enum Role {
    Receiver,
    Sender,
}

/// The lines of an end, as far as it tells them.
fn lines(end: &End, role: Role) -> Vec<(Kind, Points)> {
    let Some(samples) = &end.samples else { return Vec::new() };
    let columns = match role {
        Role::Receiver => [
            (Kind::Size, &samples.rcvbuf_bytes),
            (Kind::Used, &samples.rcvbuf_used_bytes),
            (Kind::Window, &samples.rcv_wnd_bytes),
            (Kind::Congestion, &None),
        ],
        Role::Sender => [
            (Kind::Size, &samples.sndbuf_bytes),
            (Kind::Used, &samples.sndbuf_used_bytes),
            (Kind::Window, &samples.snd_wnd_bytes),
            (Kind::Congestion, &samples.cwnd_bytes),
        ],
    };
    let told = columns.into_iter().filter(|(_, column)| column.is_some());
    told.map(|(kind, column)| (kind, samples.points(column.as_ref()).collect())).collect()
}

fn has(end: &End) -> bool {
    end.samples.as_ref().is_some_and(|samples| !samples.is_empty())
}

impl Tracks {
    fn all(&self) -> impl Iterator<Item = &(Kind, Points)> {
        self.ends.iter().flat_map(|end| &end.lines)
    }

    /// Which kinds of lines there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        Kind::ALL.into_iter().filter(|kind| self.all().any(|(of, _)| of == kind))
    }

    /// The last instant and the most bytes.
    pub(crate) fn extent(&self) -> (u64, u64) {
        let points = || self.all().flat_map(|(_, points)| points);
        (points().map(|point| point.0).max().unwrap_or(0), points().map(|point| point.1).max().unwrap_or(0))
    }

    /// By how much the size of a buffer changed, at most.
    pub(super) fn growth(&self) -> u64 {
        let sizes = self.all().filter(|(kind, _)| *kind == Kind::Size);
        let change = sizes.map(|(_, points)| {
            let bytes = || points.iter().map(|point| point.1);
            bytes().max().unwrap_or(0) - bytes().min().unwrap_or(0)
        });
        change.max().unwrap_or(0)
    }
}
