//! Whether figures rise or fall in the order in which they were measured: Kendall's test against time (Mann 1945), and Theil and
//! Sen's slope.

use statrs::distribution::{ContinuousCDF, Normal};

use super::figures::Figure;
use super::rank::as_f64;

/// Up to so many figures without ties the test is exact.
const EXACT_LIMIT: usize = 50;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Two-sided: how often figures in random order would rise or fall as much.
    pub(super) p: f64,
    /// The median of the slopes of all pairs: the rise per figure.
    pub(super) slope: f64,
}

/// The trend of figures in their order; `None` for fewer than two. Without ties it is exact for up to 50 figures; else `p` is from
/// the normal approximation, corrected for ties.
pub(super) fn trend<T: Figure>(figures: &[T]) -> Option<Trend> {
    let count = figures.len();
    if count < 2 {
        return None;
    }
    let (mut rises, mut falls) = (0_usize, 0_usize);
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    for (place, &earlier) in figures.iter().enumerate() {
        for (steps, &later) in figures.iter().skip(place + 1).enumerate() {
            rises += usize::from(later > earlier);
            falls += usize::from(later < earlier);
            slopes.push((later.float() - earlier.float()) / as_f64(steps + 1));
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let (low, high) = (slopes.get((slopes.len() - 1) / 2)?, slopes.get(slopes.len() / 2)?);
    let slope = f64::midpoint(*low, *high);
    let ties = rises + falls < slopes.len();
    let p =
        if ties || count > EXACT_LIMIT { normal_p(figures, rises, falls) } else { exact_p(count, rises.min(falls)) };
    Some(Trend { p: p.min(1.0), slope })
}

/// Twice the share of the orders of `count` figures in which at most `falls` pairs are out of order.
fn exact_p(count: usize, falls: usize) -> f64 {
    // Orders of 1, 2, … figures by their number of pairs out of order, as shares, so that nothing overflows.
    let mut shares = vec![1.0_f64];
    for size in 2..=count {
        let mut next = vec![0.0; shares.len() + size - 1];
        for (pairs, share) in shares.iter().enumerate() {
            for more in 0..size {
                next[pairs + more] += share / as_f64(size);
            }
        }
        shares = next;
    }
    2.0 * shares.iter().take(falls + 1).sum::<f64>()
}

fn normal_p<T: Figure>(figures: &[T], rises: usize, falls: usize) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let term = |size: usize| as_f64(size) * (as_f64(size) - 1.0) * (2.0 * as_f64(size) + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|group| term(group.len())).sum();
    let variance = (term(figures.len()) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    2.0 * Normal::standard().sf(as_f64(rises.abs_diff(falls)) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::trend;

    #[test]
    fn the_strongest_trend_of_so_many() {
        // Two of n! orders are sorted.
        for (count, orders) in [(5, 120.0), (6, 720.0), (7, 5040.0)] {
            let rising: Vec<u64> = (1..=count).collect();
            let found = trend(&rising).expect("two or more");
            assert!((found.p - 2.0 / orders).abs() < 1e-12 && (found.slope - 1.0).abs() < 1e-12);
        }
        assert_eq!(trend(&[1]), None);
        assert!((trend(&[7; 9]).expect("nine").p - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn backwards_it_falls_as_much_as_it_rose(figures in prop::collection::vec(0..1000_u64, 2..60)) {
            let there = trend(&figures).expect("two or more");
            let back = trend(&figures.iter().rev().copied().collect::<Vec<_>>()).expect("two or more");
            prop_assert!((there.p - back.p).abs() < 1e-9 && (there.slope + back.slope).abs() < 1e-9);
            prop_assert!(there.p > 0.0 && there.p <= 1.0);
        }
    }
}
