//! What `INET_DIAG_INFO` carries for SCTP and MPTCP: structures that grow from kernel to kernel, read from their begin as far as they go.

/// Reads numbers one after the other, in the kernel's byte order. `None` beyond the end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn half(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn wide(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }

    fn skip<const N: usize>(&mut self) {
        let _ = self.bytes::<N>();
    }
}

/// `struct sctp_info` (include/uapi/linux/sctp.h; `sctp_get_sctp_info`, net/sctp/socket.c), as far as it is used. Linux 4.7 and later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SctpFacts {
    /// `enum sctp_state`: 3 is established.
    pub state: Option<u32>,
    /// Chunks sent and not acknowledged.
    pub unacked: Option<u16>,
    /// Chunks received and not read.
    pub pending: Option<u16>,
    /// Streams of the peer.
    pub streams_in: Option<u16>,
    /// Streams to the peer.
    pub streams_out: Option<u16>,
    /// Bytes beyond which a message is cut into chunks (`sctpi_maxseg`).
    pub fragmentation_point: Option<u32>,
    /// The peer's receive window in bytes.
    pub peer_rwnd: Option<u32>,
    /// Acknowledgements received.
    pub sacks_in: Option<u64>,
    /// Acknowledgements sent.
    pub sacks_out: Option<u64>,
    /// Packets sent.
    pub packets_out: Option<u64>,
    /// Packets received.
    pub packets_in: Option<u64>,
    /// Chunks sent again.
    pub retransmitted: Option<u64>,
    /// Chunks received out of sequence.
    pub out_of_sequence: Option<u64>,
    /// Chunks received twice.
    pub duplicates_in: Option<u64>,
    /// Gaps reported by the peer.
    pub gaps: Option<u64>,
    /// Chunks sent without an order.
    pub unordered_out: Option<u64>,
    /// Chunks received without an order.
    pub unordered_in: Option<u64>,
    /// Chunks sent in order.
    pub ordered_out: Option<u64>,
    /// Chunks received in order.
    pub ordered_in: Option<u64>,
    /// Control chunks sent.
    pub control_out: Option<u64>,
    /// Control chunks received.
    pub control_in: Option<u64>,
    /// Congestion window of the primary path in bytes.
    pub cwnd: Option<u32>,
    /// Smoothed round trip of the primary path in milliseconds.
    pub srtt: Option<u32>,
    /// Retransmission timeout of the primary path in milliseconds.
    pub rto: Option<u32>,
}

impl SctpFacts {
    /// From the bytes of the structure, field by field in the kernel's order.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut from = Reader(bytes);
        from.skip::<4>(); // tag
        let state = from.word();
        from.skip::<4>(); // rwnd, this end's
        let (unacked, pending, streams_in, streams_out) = (from.half(), from.half(), from.half(), from.half());
        from.skip::<20>(); // fragmentation_point, which no kernel fills; inqueue, outqueue, overall_error, max_burst
        let fragmentation_point = from.word(); // maxseg
        let peer_rwnd = from.word();
        from.skip::<8>(); // peer_tag, peer_capable, peer_sack, reserved
        let (sacks_in, sacks_out) = (from.wide(), from.wide());
        let (packets_out, packets_in) = (from.wide(), from.wide());
        let (retransmitted, out_of_sequence) = (from.wide(), from.wide());
        let (duplicates_in, gaps) = (from.wide(), from.wide());
        let (unordered_out, unordered_in) = (from.wide(), from.wide());
        let (ordered_out, ordered_in) = (from.wide(), from.wide());
        let (control_out, control_in) = (from.wide(), from.wide());
        from.skip::<132>(); // p_address, p_state
        let (cwnd, srtt, rto) = (from.word(), from.word(), from.word());
        Self {
            state,
            unacked,
            pending,
            streams_in,
            streams_out,
            fragmentation_point,
            peer_rwnd,
            sacks_in,
            sacks_out,
            packets_out,
            packets_in,
            retransmitted,
            out_of_sequence,
            duplicates_in,
            gaps,
            unordered_out,
            unordered_in,
            ordered_out,
            ordered_in,
            control_out,
            control_in,
            cwnd,
            srtt,
            rto,
        }
    }

    /// Whether `SCTP_NODELAY` is set. Only what is told of an endpoint says it; of an association it is 0 always.
    pub(super) fn nodelay(bytes: &[u8]) -> Option<bool> {
        bytes.get(356).map(|&nodelay| nodelay != 0)
    }

    /// Data chunks sent and received.
    pub fn chunks(&self) -> u64 {
        [self.unordered_out, self.unordered_in, self.ordered_out, self.ordered_in].into_iter().flatten().sum()
    }
}

/// `struct mptcp_info` (include/uapi/linux/mptcp.h; `mptcp_diag_fill_info`, net/mptcp/sockopt.c), as far as it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpFacts {
    /// Whether the connection has fallen back to TCP.
    pub fell_back: Option<bool>,
    /// Bytes of data sent. Since Linux 6.5, as the one that follows.
    pub bytes_sent: Option<u64>,
    /// Bytes of data received.
    pub bytes_received: Option<u64>,
}

impl MptcpFacts {
    /// From the bytes of the structure.
    pub(super) fn of(bytes: &[u8]) -> Self {
        const FLAG_FALLBACK: u32 = 1;
        let mut from = Reader(bytes);
        from.skip::<8>(); // six counts in a byte each, and a gap
        let flags = from.word();
        from.skip::<4>(); // token
        from.skip::<24>(); // write_seq, snd_una, rcv_nxt
        from.skip::<8>(); // local_addr_used, local_addr_max, csum_enabled, a gap, retransmits
        from.skip::<8>(); // bytes_retrans
        let (bytes_sent, bytes_received) = (from.wide(), from.wide());
        Self { fell_back: flags.map(|flags| flags & FLAG_FALLBACK != 0), bytes_sent, bytes_received }
    }
}

#[cfg(test)]
mod tests {
    use super::{MptcpFacts, SctpFacts};

    #[test]
    fn fields_stand_where_the_kernel_puts_them() {
        let mut bytes = [0u8; 368];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        // Offsets as a C compiler has them for include/uapi/linux/sctp.h.
        put(4, &3u32.to_ne_bytes());
        put(16, &5u16.to_ne_bytes());
        put(40, &1452u32.to_ne_bytes());
        put(44, &1500u32.to_ne_bytes());
        put(56, &7u64.to_ne_bytes());
        put(144, &9u64.to_ne_bytes());
        put(160, &11u64.to_ne_bytes());
        put(300, &4380u32.to_ne_bytes());
        put(308, &1000u32.to_ne_bytes());
        put(356, &[1]);
        let facts = SctpFacts::of(&bytes);
        assert_eq!((facts.state, facts.streams_in, facts.peer_rwnd), (Some(3), Some(5), Some(1500)));
        assert_eq!((facts.sacks_in, facts.ordered_in, facts.control_in), (Some(7), Some(9), Some(11)));
        assert_eq!((facts.cwnd, facts.rto, facts.fragmentation_point), (Some(4380), Some(1000), Some(1452)));
        assert_eq!(SctpFacts::nodelay(&bytes), Some(true));
        assert_eq!(facts.chunks(), 9);
        let cut = SctpFacts::of(&bytes[..300]);
        assert_eq!((cut.control_in, cut.cwnd), (Some(11), None), "an older kernel's structure");
        assert_eq!(SctpFacts::nodelay(&bytes[..356]), None);
    }

    #[test]
    fn a_shorter_structure_tells_less_of_mptcp() {
        let mut bytes = [0u8; 80];
        bytes[8] = 1;
        bytes[56..64].copy_from_slice(&70u64.to_ne_bytes());
        bytes[64..72].copy_from_slice(&80u64.to_ne_bytes());
        let facts = MptcpFacts::of(&bytes);
        assert_eq!(facts, MptcpFacts { fell_back: Some(true), bytes_sent: Some(70), bytes_received: Some(80) });
        assert_eq!(MptcpFacts::of(&bytes[..56]).bytes_sent, None);
        assert_eq!(MptcpFacts::of(&[]).fell_back, None);
    }
}
