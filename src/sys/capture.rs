//! Packet sockets: what passes a device, kept in a ring that is shared with the kernel (packet(7), `PACKET_RX_RING`).
//!
//! The kernel fills the ring by itself, so nobody is woken while packets pass; a ring that is full keeps what it has, and the kernel
//! counts what it leaves out.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::check;

/// From `include/uapi/linux/if_packet.h`.
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
/// Since Linux 4.20.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V2: libc::c_int = 1;
const PACKET_OUTGOING: u8 = 4;
const TP_STATUS_USER: u32 = 1;
const TPACKET_ALIGNMENT: usize = 16;

/// Bytes of an Ethernet header, which loopback devices have too.
const MAC_BYTES: usize = 14;
/// Where a packet begins in its slot: `tpacket_rcv` puts the network header behind both headers (`TPACKET2_HDRLEN`, 52 bytes) and
/// room for 16 bytes of the link's, aligned, and the link's header before it.
const PACKET_OFFSET: usize = (52 + 16usize).next_multiple_of(TPACKET_ALIGNMENT) - MAC_BYTES;
/// Where a slot says which way the packet went: in the `sockaddr_ll` that stands behind the header.
const KIND: usize = size_of::<Header>() + std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
/// Smallest block of a ring: a multiple of any page size in use.
const BLOCK: usize = 64 << 10;

/// What is asked of the ring (`struct tpacket_req`).
#[repr(C)]
struct Request {
    block_size: libc::c_uint,
    block_count: libc::c_uint,
    frame_size: libc::c_uint,
    frame_count: libc::c_uint,
}

/// What stands at the beginning of a slot (`struct tpacket2_hdr`).
#[repr(C)]
struct Header {
    status: AtomicU32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    sec: u32,
    nsec: u32,
    vlan: u32,
    padding: [u8; 4],
}

/// A packet that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When, by the machine's wall clock, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Its length, in bytes with the link's header.
    pub length: u32,
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// Whether this device sent it; else it arrived.
    pub outgoing: bool,
}

/// All packets that passed a device while it was tapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The first ones, as many as were asked for.
    pub packets: Vec<Packet>,
    /// Packets after them, of which nothing is kept.
    pub dropped: u64,
}

/// A device that is listened to.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    ring: NonNull<u8>,
    length: usize,
    block: usize,
    frame: usize,
    packets: usize,
    snap: usize,
    both_ways: bool,
}

impl Tap {
    /// Listens to the device of that index in the calling thread's network namespace. Keeps the first `packets` packets that pass, of each
    /// the first `snap` bytes. A loopback device passes each packet twice, out and in: there one is left out, unless `both_ways`.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW` in the namespace's user namespace; `ENOMEM` where there is no room for the ring.
    pub fn open(index: u32, packets: u32, snap: u32, both_ways: bool) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed. Protocol 0 receives nothing until the socket is bound.
        let socket = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        set(&socket, PACKET_VERSION, &TPACKET_V2)?;
        if !both_ways {
            // A kernel without it leaves them to be told by their mark.
            let _ = set(&socket, PACKET_IGNORE_OUTGOING, &1);
        }
        let (packets, snap) = (packets.max(1) as usize, snap as usize);
        let frame = (PACKET_OFFSET + snap).next_multiple_of(TPACKET_ALIGNMENT);
        let block = BLOCK.max(frame.next_power_of_two());
        let blocks = packets.div_ceil(block / frame);
        let small = |number: usize| libc::c_uint::try_from(number).map_err(|_| io::ErrorKind::InvalidInput);
        let request = Request {
            block_size: small(block)?,
            block_count: small(blocks)?,
            frame_size: small(frame)?,
            frame_count: small(blocks * (block / frame))?,
        };
        set(&socket, PACKET_RX_RING, &request)?;
        let length = blocks * block;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice, of the length that the ring was just given.
        let ring = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(ring.cast()).ok_or(io::ErrorKind::Other)?;
        let tap = Self { socket, ring, length, block, frame, packets, snap, both_ways };
        // SAFETY: all-zero is a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
        address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be();
        address.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or_default();
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        check(unsafe { libc::bind(tap.socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        Ok(tap)
    }

    /// What has passed until now.
    ///
    /// # Errors
    /// When the kernel does not say how many packets it left out.
    pub fn take(self) -> io::Result<Passed> {
        let mut statistics = [0 as libc::c_uint; 2];
        let mut length = libc::socklen_t::try_from(size_of_val(&statistics)).unwrap_or_default();
        let fd = self.socket.as_raw_fd();
        // SAFETY: the pointers are to `statistics`, whose size is `length`, and to `length`; both outlive the call.
        check(unsafe {
            libc::getsockopt(fd, libc::SOL_PACKET, PACKET_STATISTICS, statistics.as_mut_ptr().cast(), &raw mut length)
        })?;
        let [_, dropped] = statistics;
        let mut passed = Passed { packets: Vec::new(), dropped: dropped.into() };
        let in_block = self.block / self.frame;
        for slot in 0..self.length / self.block * in_block {
            let Some(packet) = self.slot(slot / in_block * self.block + slot % in_block * self.frame) else { break };
            if packet.outgoing && !self.both_ways {
                continue;
            }
            if passed.packets.len() < self.packets {
                passed.packets.push(packet);
            } else {
                // Blocks are whole: there may be more slots than were asked for.
                passed.dropped += 1;
            }
        }
        Ok(passed)
    }

    /// The packet in the slot at that offset, if the kernel has put one there.
    fn slot(&self, offset: usize) -> Option<Packet> {
        // SAFETY: the slot lies within the mapping, is aligned to 16 bytes, and the kernel has zeroed it or written a header there.
        let header = unsafe { self.ring.add(offset).cast::<Header>().as_ref() };
        // The kernel writes the status last.
        if header.status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        let kept = (header.snaplen as usize).min(self.snap).min(self.frame.saturating_sub(header.mac.into()));
        // SAFETY: the packet's bytes lie within its slot, by the line above, and the kernel writes no more to a slot that it gave away.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.ring.add(offset + usize::from(header.mac)).as_ptr(), kept) };
        // SAFETY: as for the header: the address stands in the same slot.
        let kind = unsafe { self.ring.add(offset + KIND).read() };
        Some(Packet {
            time_ns: u64::from(header.sec) * 1_000_000_000 + u64::from(header.nsec),
            length: header.len,
            bytes: bytes.to_vec(),
            outgoing: kind == PACKET_OUTGOING,
        })
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and nothing refers into it any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.length) };
    }
}

/// Sets an option of packet sockets.
fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, std::ptr::from_ref(value).cast(), length)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::Tap;
    use crate::sys::namespace;
    use std::net::UdpSocket;

    #[test]
    fn the_first_packets_are_kept_and_the_others_counted() {
        if !namespace::may_unshare_network() {
            eprintln!("SKIPPED: network namespaces need root");
            return;
        }
        let look = || {
            namespace::enter_new_network().expect("a namespace");
            assert!(std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip").success());
            let tap = Tap::open(1, 3, 60, false).expect("a packet socket");
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let to = socket.local_addr().expect("an address");
            for number in 0..400u16 {
                socket.send_to(&[u8::try_from(number % 251).expect("small"); 100], to).expect("sent");
            }
            tap.take().expect("told")
        };
        let passed = std::thread::spawn(look).join().expect("no panic");
        assert_eq!(passed.packets.len(), 3);
        assert_eq!(passed.dropped, 397, "each packet once, though it passes out and in");
        for (number, packet) in (0u8..).zip(&passed.packets) {
            assert_eq!((packet.length, packet.bytes.len(), packet.outgoing), (14 + 20 + 8 + 100, 60, false));
            assert_eq!(packet.bytes[12..15], [8, 0, 0x45], "IPv4 in Ethernet");
            assert_eq!(packet.bytes[42..], [number; 18], "the payload");
        }
        let times: Vec<u64> = passed.packets.iter().map(|packet| packet.time_ns).collect();
        assert!(times.is_sorted() && times[0] > 1_700_000_000_000_000_000, "{times:?}");
    }
}
