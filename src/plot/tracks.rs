//! What is drawn of a cell's samples, on a picture and on the page alike: the lines of the end that receives and of the end
//! that sends, of one repeat.

use super::facts;
use super::repeats::float;
use super::scale::Scale;
use crate::measurement::{End, Outcome, Samples};
use crate::record::{Manifest, Record};
use crate::stats::CellSummary;

/// What a line shows. Its place here is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The size that the kernel gives the buffer.
    Size,
    /// What is in it.
    Used,
    /// The window that this end offers to the other.
    Window,
    /// The congestion window, of the end that sends.
    Congestion,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Size, Self::Used, Self::Window, Self::Congestion];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size of the buffer",
            Self::Used => "in use",
            Self::Window => "advertised window of this end",
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
    /// Whether a window is the one that the peer heard.
    pub(super) heard: bool,
    /// Whether a program's sockets were looked at from outside.
    pub(super) watched: bool,
    pub(crate) ends: [Track; 2],
}

/// The tracks of a cell's first measured repeat, or where none was measured of its first repeat with samples at all: what
/// a stream did until it was given up is told too.
pub(crate) fn of(manifest: &Manifest, cell: &CellSummary, repeats: &[&Record]) -> Option<Tracks> {
    let sampled =
        |record: &&&Record| [&record.measurement.client, &record.measurement.server].iter().any(|end| has(end));
    let measured = |record: &&&Record| record.measurement.outcome == Outcome::Measured;
    let record = repeats.iter().filter(measured).find(sampled).or_else(|| repeats.iter().find(sampled))?;
    let (client, server) = (&record.measurement.client, &record.measurement.server);
    let download = downloads(client, server).unwrap_or_else(|| {
        facts::setting(manifest, cell, "workload.direction").is_none_or(|to| to.text() == Some("download"))
    });
    let ends = if download {
        [
            receiver("client receives: receive buffer", client, server),
            sender("server sends: send buffer", server, client),
        ]
    } else {
        [
            receiver("server receives: receive buffer", server, client),
            sender("client sends: send buffer", client, server),
        ]
    };
    let silent = |end: &End| end.samples.as_ref().is_some_and(|samples| samples.rcv_wnd_bytes.is_none());
    let heard = [client, server].into_iter().any(silent) && ends.iter().any(Track::has_window);
    let watched = client.watched.is_some() || server.watched.is_some();
    Some(Tracks { repeat: record.repeat, heard, watched, ends })
}

/// Whether the client of two programs received more than it sent, where that was seen.
fn downloads(client: &End, server: &End) -> Option<bool> {
    let sent = |end: &End| end.watched.as_ref()?.sent_bytes;
    Some(sent(client)? < sent(server)?)
}

fn receiver(title: &'static str, end: &End, peer: &End) -> Track {
    Track {
        title,
        lines: end.samples.as_ref().map_or_else(Vec::new, |samples| {
            let own = [(Kind::Size, &samples.rcvbuf_bytes), (Kind::Used, &samples.rcvbuf_used_bytes)];
            told(samples, own).chain(window(end, peer)).collect()
        }),
    }
}

fn sender(title: &'static str, end: &End, peer: &End) -> Track {
    Track {
        title,
        lines: end.samples.as_ref().map_or_else(Vec::new, |samples| {
            let own = [
                (Kind::Size, &samples.sndbuf_bytes),
                (Kind::Used, &samples.sndbuf_used_bytes),
                (Kind::Congestion, &samples.cwnd_bytes),
            ];
            told(samples, own).chain(window(end, peer)).collect()
        }),
    }
}

/// Columns as lines, as far as they are told.
fn told<'a, const N: usize>(
    samples: &'a Samples,
    columns: [(Kind, &'a Option<Vec<u64>>); N],
) -> impl Iterator<Item = (Kind, Points)> + 'a {
    columns.into_iter().filter_map(|(kind, column)| Some((kind, samples.points(Some(column.as_ref()?)).collect())))
}

/// The window that an end offers: as it says itself, or where its kernel does not say, as its peer heard it.
fn window(end: &End, peer: &End) -> Option<(Kind, Points)> {
    let own =
        end.samples.as_ref().and_then(|samples| Some(samples.points(Some(samples.rcv_wnd_bytes.as_ref()?)).collect()));
    let heard = || {
        let samples = peer.samples.as_ref()?;
        Some(samples.points(Some(samples.snd_wnd_bytes.as_ref()?)).collect())
    };
    Some((Kind::Window, own.or_else(heard)?))
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

    /// The last instant.
    pub(crate) fn last(&self) -> u64 {
        self.all().flat_map(|(_, points)| points).map(|point| point.0).max().unwrap_or(0)
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

impl Track {
    fn has_window(&self) -> bool {
        self.lines.iter().any(|(kind, _)| *kind == Kind::Window)
    }

    /// The scale of its sizes, from 0 on.
    pub(crate) fn scale(&self) -> Scale {
        let most = self.lines.iter().flat_map(|(_, points)| points).map(|point| point.1).max().unwrap_or(0);
        Scale { low: 0.0, high: float(most.max(1)) * 1.06, log: false }
    }
}

/// The scale of instants up to the last one.
pub(crate) fn time_scale(last: u64) -> Scale {
    Scale { low: 0.0, high: float(last.max(1)), log: false }
}
