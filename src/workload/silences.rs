//! How long an end waited for something and nothing arrived: what waits for a timer shows here. The clock is not read for it: each arrival
//! is told with the instant that its own figures are made of.

use std::time::{Duration, Instant};

use crate::measurement::Silences;
use crate::units::Span;

/// Shortest time without an arrival that counts.
const SHORTEST: Duration = Duration::from_millis(10);
/// Most that are kept one by one: the longest ones.
const MOST: usize = 64;

/// Watches one end.
#[derive(Debug)]
pub(super) struct Watch {
    /// Since when something is to arrive.
    since: Instant,
    told: Silences,
}

impl Watch {
    /// Something is to arrive from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, told: Silences::default() }
    }

    /// Something is to arrive from now on, and before it was not.
    pub(super) const fn again(&mut self, now: Instant) {
        self.since = now;
    }

    /// Something arrived, or it was given up.
    pub(super) fn heard(&mut self, now: Instant) {
        let silence = now.saturating_duration_since(self.since);
        self.since = now;
        let length = Span::from(silence).0;
        self.told.watched_ns += length;
        if silence >= SHORTEST {
            self.add(length);
        }
    }

    fn add(&mut self, length: u64) {
        self.told.count += 1;
        self.told.sum_ns += length;
        let longest = &mut self.told.longest_ns;
        let place = longest.partition_point(|other| *other >= length);
        longest.insert(place, length);
        longest.truncate(MOST);
    }

    /// Nothing arrived for so long that a blocked call returned. Notes what the peer's window is then.
    pub(super) fn look(&mut self, window: Option<u32>) {
        if let Some(window) = window {
            *self.told.looks.get_or_insert(0) += 1;
            *self.told.closed.get_or_insert(0) += u64::from(window == 0);
        }
    }

    /// All of it.
    pub(super) fn finish(self) -> Silences {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Watch};
    use std::time::{Duration, Instant};

    #[test]
    fn only_long_silences_are_kept_the_longest_first_and_gaps_are_left_out() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut watch = Watch::new(start);
        watch.heard(at(9));
        watch.heard(at(29));
        watch.again(at(100));
        watch.heard(at(130));
        let told = watch.finish();
        assert_eq!((told.count, told.sum_ns), (2, 50_000_000));
        assert_eq!(told.longest_ns, [30_000_000, 20_000_000]);
        assert_eq!((told.watched_ns, told.looks), (59_000_000, None));
    }

    #[test]
    fn a_bounded_number_is_kept_and_all_are_counted() {
        let mut now = Instant::now();
        let mut watch = Watch::new(now);
        for extra in 0..100 {
            now += Duration::from_millis(10 + extra);
            watch.heard(now);
        }
        watch.look(Some(0));
        watch.look(Some(5));
        watch.look(None);
        let told = watch.finish();
        assert_eq!((told.count, told.longest_ns.len()), (100, MOST));
        assert_eq!((told.longest_ns[0], told.longest_ns[MOST - 1]), (109_000_000, 46_000_000));
        assert_eq!((told.looks, told.closed), (Some(2), Some(1)));
    }
}
