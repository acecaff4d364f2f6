//! The start phase of a repeat in virtual time.

use crate::units::Span;

/// The fine period: one tick of a kernel with HZ=100, the slowest in use, and a whole number of ticks of those with HZ=250
/// and HZ=1000.
const TICK_NS: u64 = 10_000_000;

/// Fine periods in the coarse one, which is 2.56 s. The kernel sorts timers into a wheel whose slots grow with their distance
/// (kernel/time/timer.c): from 64 ticks on a timer is late by up to 8 ticks, from 512 on by up to 64, which at HZ=250 are
/// 256 ms. Which slot a retransmission timer falls into depends on when within that the repeat begins.
const TICKS: u64 = 256;

/// 2^64 divided by the golden ratio: multiples of it spread evenly over 2^64, however many there are.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2^64 times the fraction of the square root of 2: its multiples spread almost as evenly, and out of step with the first.
const ROOT: u64 = 0x6a09_e667_f3bc_c909;

/// How long after its fixed starting point a repeat begins. Repeats sample evenly where in the timer tick they begin, and where
/// in the slots of the timer wheel. A repeat of the same number and seed always begins at the same moment.
pub(super) fn of(seed: u64, repeat: u32, warmup: bool) -> Span {
    let number = u64::from(repeat) | u64::from(warmup) << 32;
    let number = seed.wrapping_mul(0x1_0000_0001).wrapping_add(number);
    let part =
        |step: u64, of: u64| u64::try_from((u128::from(step.wrapping_mul(number)) * u128::from(of)) >> 64).unwrap_or(0);
    Span(part(ROOT, TICKS) * TICK_NS + part(GOLDEN, TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::{TICK_NS, TICKS, of};
    use proptest::prelude::*;

    #[test]
    fn a_few_repeats_sample_the_tick_and_the_timer_wheel() {
        let mut quarters = [false; 4];
        for repeat in 0..7 {
            quarters[usize::try_from(of(1, repeat, false).0 % TICK_NS / (TICK_NS / 4)).expect("small")] = true;
        }
        assert_eq!(quarters, [true; 4]);
        let mut eighths = [false; 8];
        for repeat in 0..16 {
            eighths[usize::try_from(of(1, repeat, false).0 / (TICKS * TICK_NS / 8)).expect("small")] = true;
        }
        assert_eq!(eighths, [true; 8], "and of the timer wheel");
    }

    proptest! {
        #[test]
        fn phases_stay_within_the_period_and_differ(seed in any::<u64>(), repeat in 0u32..1000) {
            let phase = of(seed, repeat, false);
            prop_assert!(phase.0 < TICKS * TICK_NS);
            prop_assert_ne!(phase, of(seed, repeat + 1, false));
            prop_assert_ne!(phase, of(seed, repeat, true));
        }
    }
}
