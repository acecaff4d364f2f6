//! The kernel's rule for buffer sizes, discovered on the machine that measures.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::measurement::Verdict;
use crate::sys::socket::{IntOption, SO_RCVBUF, SO_SNDBUF, get_int, set_int};

/// Bounds of buffer sizes on this kernel, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferLimits {
    /// `net.core.rmem_max`, or `None` where it cannot be read (older kernels hide it in namespaces).
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`, likewise.
    pub wmem_max: Option<u64>,
    /// What a request of 0 becomes: `SOCK_MIN_RCVBUF`, 2304 on common 64-bit kernels.
    pub rcvbuf_min: Option<u64>,
    /// What a request of 0 becomes: `SOCK_MIN_SNDBUF`, 4608 on common 64-bit kernels.
    pub sndbuf_min: Option<u64>,
}

/// Which of the two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Receive.
    Receive,
    /// Send.
    Send,
}

impl Side {
    pub(super) const fn option(self) -> IntOption {
        match self {
            Self::Receive => SO_RCVBUF,
            Self::Send => SO_SNDBUF,
        }
    }
}

impl BufferLimits {
    /// Reads the sysctls and tries what the smallest request becomes. To be called in the machine's first namespace.
    ///
    /// # Errors
    /// When not even a UDP socket can be opened.
    pub fn probe() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        let smallest = |option: IntOption| {
            set_int(socket.as_fd(), option, 0).ok()?;
            get_int(socket.as_fd(), option).ok().and_then(|given| u64::try_from(given).ok())
        };
        Ok(Self {
            rmem_max: sysctl("rmem_max"),
            wmem_max: sysctl("wmem_max"),
            rcvbuf_min: smallest(SO_RCVBUF),
            sndbuf_min: smallest(SO_SNDBUF),
        })
    }

    /// The same for requests that the sysctls do not bound (`SO_RCVBUFFORCE`): only the option's C type does
    /// (`__sock_set_rcvbuf`).
    pub(super) fn unbounded(&self) -> Self {
        let most = Some(u64::from(i32::MAX.unsigned_abs() / 2));
        Self { rmem_max: most, wmem_max: most, ..self.clone() }
    }

    /// What the kernel made of a request, by the rule `max(2 × min(asked, limit), minimum)` of `sock_setsockopt`.
    ///
    /// A size at or above what was asked may still have been clamped (300 KiB asked, 425984 given at a limit of 212992),
    /// so the rule is applied, not the two sizes compared.
    pub(super) fn verdict(&self, side: Side, asked: Option<u64>, given: u64) -> Verdict {
        let Some(asked) = asked else {
            return Verdict::Default;
        };
        let (limit, smallest, clamped) = match side {
            Side::Receive => (self.rmem_max, self.rcvbuf_min, Verdict::ClampedRmem),
            Side::Send => (self.wmem_max, self.sndbuf_min, Verdict::ClampedWmem),
        };
        let within = limit.map_or(asked, |limit| asked.min(limit));
        if given == 2 * within {
            return if within < asked { clamped } else { Verdict::Doubled };
        }
        if smallest == Some(given) && given > 2 * within {
            return Verdict::Raised;
        }
        // Where the limit is hidden, less than twice the request can only be the limit's work.
        if limit.is_none() && given < 2 * asked && given.is_multiple_of(2) && smallest < Some(given) {
            return clamped;
        }
        Verdict::Unlike
    }
}

/// A key below `net.core`.
fn sysctl(key: &str) -> Option<u64> {
    fs::read_to_string(format!("/proc/sys/net/core/{key}")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{BufferLimits, Side};
    use crate::measurement::Verdict;
    use proptest::prelude::*;

    const DEBIAN: BufferLimits = BufferLimits {
        rmem_max: Some(212_992),
        wmem_max: Some(106_496),
        rcvbuf_min: Some(2304),
        sndbuf_min: Some(4608),
    };

    /// C02, C03, C04, and C07 in the last: what follows another rule is told so and is no failure (libsg#38, gvisor#674).
    #[test]
    fn requests_around_the_limit_and_the_minimum() {
        for (side, asked, given, verdict) in [
            (Side::Receive, None, 131_072, Verdict::Default),
            (Side::Receive, Some(0), 2304, Verdict::Raised),
            (Side::Receive, Some(1024), 2304, Verdict::Raised),
            (Side::Receive, Some(1152), 2304, Verdict::Doubled),
            (Side::Receive, Some(1153), 2306, Verdict::Doubled),
            (Side::Send, Some(1153), 4608, Verdict::Raised),
            (Side::Send, Some(4608), 9216, Verdict::Doubled),
            (Side::Receive, Some(300 << 10), 425_984, Verdict::ClampedRmem),
            (Side::Receive, Some(212_992), 425_984, Verdict::Doubled),
            (Side::Send, Some(212_992), 212_992, Verdict::ClampedWmem),
            (Side::Receive, Some(65_536), 65_536, Verdict::Unlike),
        ] {
            assert_eq!(DEBIAN.verdict(side, asked, given), verdict, "{side:?} {asked:?} -> {given}");
        }
    }

    #[test]
    fn this_kernel_follows_the_rule_it_was_probed_for() {
        use crate::sys::socket::{get_int, set_int};
        use std::os::fd::AsFd;
        let limits = BufferLimits::probe().expect("a socket");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let smallest = limits.rcvbuf_min.expect("a minimum");
        for (asked, verdict) in [(smallest / 4, Verdict::Raised), (smallest, Verdict::Doubled)] {
            let request = i32::try_from(asked).expect("small");
            set_int(socket.as_fd(), Side::Receive.option(), request).expect("set");
            let given = get_int(socket.as_fd(), Side::Receive.option()).expect("read");
            let given = u64::try_from(given).expect("a size");
            assert_eq!(limits.verdict(Side::Receive, Some(asked), given), verdict, "{asked} -> {given}");
        }
    }

    proptest! {
        #[test]
        fn the_rule_is_never_unlike_itself(asked in 0u64..1 << 31) {
            let limit = DEBIAN.rmem_max.unwrap_or(u64::MAX);
            let given = (2 * asked.min(limit)).max(2304);
            prop_assert_ne!(DEBIAN.verdict(Side::Receive, Some(asked), given), Verdict::Unlike);
        }
    }
}
