//! SCTP associations as /proc tells them, for a kernel with SCTP and without its diagnosis.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::{fs, io};

use crate::sys::diag::{Protocol, Seen};
use crate::sys::socket::Memory;

/// The file of the calling thread's namespace (`sctp_assocs_seq_show`, net/sctp/proc.c).
const FILE: &str = "/proc/thread-self/net/sctp/assocs";

/// Whether there is such a file.
pub(super) fn is_there() -> bool {
    Path::new(FILE).exists()
}

/// All associations, of both families.
pub(super) fn associations() -> io::Result<Vec<Seen>> {
    fs::read_to_string(FILE).map(|text| text.lines().filter_map(association).collect())
}

/// A line: thirteen columns, the addresses of both ends with `<->` between, seven more and the buffers. `None` of the header.
fn association(line: &str) -> Option<Seen> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    let last = |from_the_end: usize| number(words.len().checked_sub(from_the_end)?);
    let port = |at: usize| words.get(at)?.parse::<u16>().ok();
    // The primary address of a path has a star.
    let address = |at: usize| words.get(at)?.trim_start_matches('*').parse::<IpAddr>().ok();
    let between = words.iter().position(|word| *word == "<->")?;
    let [local, peer] =
        [address(13), address(between + 1)].map(|address| address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()));
    // The number of the association tells those of one socket apart, and the inode the sockets.
    let [id, inode] = [number(6)?, number(10)?].map(u32::to_ne_bytes);
    let mut cookie = [0; 8];
    cookie[..4].copy_from_slice(&inode);
    cookie[4..].copy_from_slice(&id);
    Some(Seen {
        cookie,
        association: true,
        memory: Some(Memory {
            rmem_alloc: number(8),
            rcvbuf: last(1),
            wmem_alloc: last(4),
            sndbuf: last(2),
            wmem_queued: last(3),
            backlog: None,
            drops: None,
        }),
        ..Seen::new(Protocol::Sctp, SocketAddr::new(local, port(11)?), SocketAddr::new(peer, port(12)?))
    })
}

#[cfg(test)]
mod tests {
    use super::association;

    #[test]
    fn a_line_tells_ports_and_buffers() {
        let header = " ASSOC     SOCK   STY SST ST HBKT ASSOC-ID TX_QUEUE RX_QUEUE UID INODE LPORT RPORT LADDRS <-> RADDRS HBINT INS OUTS \
                      MAXRT T1X T2X RTXC wmema wmemq sndbuf rcvbuf";
        assert_eq!(association(header), None);
        // As `sctp_assocs_seq_show` prints it, of an end with two addresses.
        let line = "       0        0 2   1   3  0       4      128     2048       0  1234 7001   7002  10.0.0.2 10.0.1.2 <-> *10.0.0.1 10.0.1.1 \
                    \t   30000    10    10   10    0    0        3        129      640   131072     2304";
        let seen = association(line).expect("an association");
        assert_eq!(
            (seen.local.to_string().as_str(), seen.peer.to_string().as_str()),
            ("10.0.0.2:7001", "10.0.0.1:7002")
        );
        let memory = seen.memory.expect("buffers");
        assert_eq!((memory.rcvbuf, memory.sndbuf), (Some(2304), Some(131_072)));
        assert_eq!((memory.rmem_alloc, memory.wmem_alloc, memory.wmem_queued), (Some(2048), Some(129), Some(640)));
        assert!(seen.association && memory.drops.is_none());
        assert_ne!(association(&line.replace(" 4      128", " 5      128")).expect("another").cookie, seen.cookie);
    }
}
