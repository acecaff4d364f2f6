//! What a network device takes off the protocols, asked and set with `SIOCETHTOOL` (include/uapi/linux/ethtool.h).

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::check;

/// Something that a device can take off the protocols: the commands that read and set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    get: u32,
    set: u32,
    /// The name of the command that sets it.
    pub name: &'static str,
}

/// Checksums checked on arrival.
pub const RX_CHECKSUM: Offload = Offload { get: 0x14, set: 0x15, name: "ETHTOOL_SRXCSUM" };
/// Checksums made when sending.
pub const TX_CHECKSUM: Offload = Offload { get: 0x16, set: 0x17, name: "ETHTOOL_STXCSUM" };
/// TCP's large packets cut by the device.
pub const TSO: Offload = Offload { get: 0x1e, set: 0x1f, name: "ETHTOOL_STSO" };
/// Large packets cut just before the device.
pub const GSO: Offload = Offload { get: 0x23, set: 0x24, name: "ETHTOOL_SGSO" };
/// Packets joined on arrival.
pub const GRO: Offload = Offload { get: 0x2b, set: 0x2c, name: "ETHTOOL_SGRO" };

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    cmd: u32,
    data: u32,
}

/// Devices of the network namespace that the thread was in when this was made.
#[derive(Debug)]
pub struct Devices {
    socket: UdpSocket,
}

impl Devices {
    /// Opens the way to the devices of the calling thread's namespace.
    ///
    /// # Errors
    /// When no socket can be opened.
    pub fn open() -> io::Result<Self> {
        // Any socket will do. That of an address which every namespace has needs no interface to be up.
        UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).map(|socket| Self { socket })
    }

    /// Whether the device does it.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the device or the kernel knows nothing of it, `ENODEV` where there is no such device.
    pub fn offload(&self, device: &str, offload: Offload) -> io::Result<bool> {
        self.ethtool(device, EthtoolValue { cmd: offload.get, data: 0 }).map(|data| data != 0)
    }

    /// Makes the device do it or not.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the device cannot be changed in this, `EPERM` without `CAP_NET_ADMIN`.
    pub fn set_offload(&self, device: &str, offload: Offload, on: bool) -> io::Result<()> {
        self.ethtool(device, EthtoolValue { cmd: offload.set, data: on.into() }).map(drop)
    }

    fn ethtool(&self, device: &str, mut value: EthtoolValue) -> io::Result<u32> {
        // SAFETY: all-zero is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        // One byte is left for the NUL at the end.
        if device.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request names a device and points to `value`, which is what these commands read and write; both outlive
        // the call.
        check(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
        Ok(value.data)
    }
}

#[cfg(test)]
mod tests {
    use super::{Devices, GRO, TSO};

    #[test]
    fn loopback_can_be_asked() {
        let devices = Devices::open().expect("a socket");
        devices.offload("lo", TSO).expect("loopback has TSO, on or off");
        devices.offload("lo", GRO).expect("and GRO");
        assert!(devices.offload("no-such-device", TSO).is_err());
        assert!(devices.offload("a-name-that-is-far-too-long", TSO).is_err());
    }
}
