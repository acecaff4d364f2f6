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

/// The kernel's timer tick, `1 / CONFIG_HZ`: what the coarse clock moves by. `None` where there is no such clock.
pub fn tick() -> Option<Span> {
    let mut grain = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for writes of a `timespec`.
    let told = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, grain.as_mut_ptr()) };
    // SAFETY: zeroed is a valid `timespec`, whether or not the call has written one.
    let grain = unsafe { grain.assume_init() };
    let nanoseconds = u64::try_from(grain.tv_nsec).ok().filter(|&nanoseconds| nanoseconds > 0)?;
    (told == 0).then_some(Span(nanoseconds))
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
    use super::{monotonic, sleep_until, thread_time, tick};
    use crate::units::Span;

    #[test]
    fn a_tick_is_that_of_one_of_the_rates_that_a_kernel_can_be_built_with() {
        let tick = tick().expect("a coarse clock");
        // HZ is 100, 250, 300 or 1000, and 24 to 1200 on other architectures.
        assert!((800_000..=42_000_000).contains(&tick.0), "{tick:?}");
    }

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
