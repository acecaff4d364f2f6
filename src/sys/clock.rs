//! The monotonic clock as a number, and sleeping up to an instant of it.

use std::mem::MaybeUninit;

use crate::units::Span;

/// Time since boot, without suspension (`CLOCK_MONOTONIC`).
pub fn monotonic() -> Span {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for writes of a `timespec`; the clock exists on every kernel, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr()) };
    // SAFETY: zeroed is a valid `timespec`, and the call has written one.
    let now = unsafe { now.assume_init() };
    Span(u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Sleeps until the monotonic clock shows `instant` (`clock_nanosleep(2)`, absolute). At once, if it has passed.
pub fn sleep_until(instant: Span) {
    let until = libc::timespec {
        tv_sec: libc::time_t::try_from(instant.0 / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(instant.0 % 1_000_000_000).unwrap_or(0),
    };
    // SAFETY: the pointer is to a valid `timespec`; nothing is written for an absolute sleep.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

#[cfg(test)]
mod tests {
    use super::{monotonic, sleep_until};
    use crate::units::Span;

    #[test]
    fn sleeping_ends_after_the_instant_and_not_long_before() {
        let until = Span(monotonic().0 + 2_000_000);
        sleep_until(until);
        assert!(monotonic() >= until);
        sleep_until(Span(0));
    }
}
