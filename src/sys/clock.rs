//! Clocks as numbers, and sleeping up to an instant of the monotonic one.

use std::mem::MaybeUninit;

use crate::units::Span;

/// Time since boot, without suspension (`CLOCK_MONOTONIC`).
pub fn monotonic() -> Span {
    shows(libc::CLOCK_MONOTONIC)
}

/// Time that the calling thread has had a processor (`CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_time() -> Span {
    shows(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What a clock shows that exists on every kernel.
fn shows(clock: libc::clockid_t) -> Span {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for writes of a `timespec`; the clock exists on every kernel, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, now.as_mut_ptr()) };
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
    use super::{monotonic, sleep_until, thread_time};
    use crate::units::Span;

    #[test]
    fn sleeping_ends_after_the_instant_and_not_long_before() {
        let until = Span(monotonic().0 + 2_000_000);
        sleep_until(until);
        assert!(monotonic() >= until);
        sleep_until(Span(0));
    }

    #[test]
    fn sleep_is_not_time_of_the_thread() {
        let before = thread_time();
        sleep_until(Span(monotonic().0 + 50_000_000));
        let used = thread_time().0 - before.0;
        assert!((1..25_000_000).contains(&used), "{used}");
    }
}
