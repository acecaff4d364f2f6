//! Buffers that are not twice what was asked: the size that the kernel gave instead.

use crate::measurement::{Buffer, Verdict};
use crate::stats::CellSummary;
use crate::units::Bytes;

/// Which end a buffer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Client,
    Server,
}

/// A size that the kernel gave against the rule that it doubles what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: &'static str,
    pub(super) side: Side,
    pub(super) size: u64,
    pub(super) verdict: Verdict,
}

fn of_one(name: &'static str, side: Side, buffer: &Buffer) -> Option<Given> {
    let verdict = buffer.verdict?;
    match verdict {
        Verdict::Default | Verdict::Doubled | Verdict::Unknown => None,
        Verdict::Raised | Verdict::ClampedRmem | Verdict::ClampedWmem | Verdict::Unlike => {
            Some(Given { name, side, size: buffer.initial.or(buffer.end)?, verdict })
        }
    }
}

/// A size: exact, but for large ones that no unit divides.
pub(super) fn size(bytes: u64) -> String {
    let exact = Bytes(bytes).to_string();
    if bytes >= 1 << 20 && exact.ends_with(" B") { Bytes(bytes).short() } else { exact }
}

/// All such sizes of a cell. One that both ends have in common stands once.
pub(super) fn of(cell: &CellSummary) -> Vec<Given> {
    let pairs = [
        ("rcvbuf", &cell.client.rcvbuf.buffer, &cell.server.rcvbuf.buffer),
        ("sndbuf", &cell.client.sndbuf.buffer, &cell.server.sndbuf.buffer),
    ];
    pairs
        .into_iter()
        .flat_map(|(name, client, server)| {
            let client = of_one(name, Side::Client, client);
            let server = of_one(name, Side::Server, server);
            match (client, server) {
                (Some(a), Some(b)) if (a.size, a.verdict) == (b.size, b.verdict) => {
                    vec![Given { side: Side::Both, ..a }]
                }
                (client, server) => client.into_iter().chain(server).collect(),
            }
        })
        .collect()
}

impl Given {
    /// Whether this is what an axis of that name asked for.
    pub(super) fn is_of(&self, axis: &str) -> bool {
        match axis.strip_prefix("socket.") {
            None => axis == self.name && self.side == Side::Both,
            Some(path) => match path.split_once('.') {
                Some(("client", name)) => name == self.name && self.side == Side::Client,
                Some(("server", name)) => name == self.name && self.side == Side::Server,
                _ => false,
            },
        }
    }

    /// For a cell: `rcvbuf gets 2304 B`.
    pub(super) fn in_a_cell(&self) -> String {
        let side = match self.side {
            Side::Both => "",
            Side::Client => "client's ",
            Side::Server => "server's ",
        };
        format!("{side}{} {}", self.name, size(self.size))
    }

    /// In a sentence at the foot.
    pub(super) fn verdict(&self) -> &'static str {
        self.verdict.name()
    }
}
