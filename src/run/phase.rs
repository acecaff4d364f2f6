//! The start phase of a repeat in virtual time.

use crate::units::Span;

/// The period over which repeats spread their starts: one tick of a kernel with HZ=100, the slowest in use, and a whole
/// number of ticks of those with HZ=250 and HZ=1000.
const PERIOD_NS: u64 = 10_000_000;

/// 2^64 divided by the golden ratio: multiples of it spread evenly over 2^64, however many there are.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How long after its fixed starting point a repeat begins. Repeats sample the phase of the timer tick evenly, and a
/// repeat of the same number and seed always begins in the same phase.
pub(super) fn of(seed: u64, repeat: u32, warmup: bool) -> Span {
    let number = u64::from(repeat) | u64::from(warmup) << 32;
    let fraction = GOLDEN.wrapping_mul(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
    Span(u64::try_from((u128::from(fraction) * u128::from(PERIOD_NS)) >> 64).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{PERIOD_NS, of};
    use proptest::prelude::*;

    #[test]
    fn a_few_repeats_sample_every_quarter_of_the_tick() {
        let mut quarters = [false; 4];
        for repeat in 0..7 {
            quarters[usize::try_from(of(1, repeat, false).0 / (PERIOD_NS / 4)).expect("small")] = true;
        }
        assert_eq!(quarters, [true; 4]);
    }

    proptest! {
        #[test]
        fn phases_stay_within_the_period_and_differ(seed in any::<u64>(), repeat in 0u32..1000) {
            let phase = of(seed, repeat, false);
            prop_assert!(phase.0 < PERIOD_NS);
            prop_assert_ne!(phase, of(seed, repeat + 1, false));
            prop_assert_ne!(phase, of(seed, repeat, true));
        }
    }
}
