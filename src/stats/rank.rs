//! Whether two sets of figures differ: the Mann-Whitney test, exact where counts are small, with and without ties.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::factorial::ln_binomial;

use super::interval::binomial_half;

/// Up to this product of all figures and the smaller side's, a test is exact: 31 against 31, 5 against 395. It bounds the work at
/// some ten million additions.
const EXACT_LIMIT: usize = 2000;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MannWhitney {
    /// Pairs in which the second side's figure is larger, ties counted half.
    pub u: f64,
    /// Two-sided: how often figures that come from one distribution would lie at least this far apart, either way.
    pub p: f64,
    /// Whether every arrangement was counted. If not, `p` is from the normal approximation, corrected for ties and continuity.
    pub exact: bool,
}

/// The test of two sides, in any order each. `None` if one is empty.
///
/// It is exact given the ties: the ranks of all figures, shared among those that tie, are dealt to the sides in every possible
/// way, and those at least as far out on the nearer tail are counted, twice.
pub fn mann_whitney<T: Copy + Ord>(first: &[T], second: &[T]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let ranks = Ranks::of(first, second);
    let (n, m) = (first.len(), second.len());
    let u = (as_f64(ranks.second) - as_f64(m * (m + 1))) / 2.0;
    let exact = (n + m) * n.min(m) <= EXACT_LIMIT;
    let p = if exact { ranks.exact_p(n, m) } else { ranks.normal_p(n, m, u) };
    Some(MannWhitney { u, p: p.clamp(0.0, 1.0), exact })
}

/// The smallest two-sided p that so many figures against so many can ever reach: two fully separated sides.
/// 1 where a side is empty.
pub fn minimum_p(first: usize, second: usize) -> f64 {
    if first == 0 || second == 0 {
        return 1.0;
    }
    (2.0 * (-ln_binomial((first + second) as u64, first as u64)).exp()).min(1.0)
}

/// How often so many changes one way and so many the other, or a more uneven split, would happen by chance, two-sided: the sign test.
/// 1 where nothing changed.
pub fn sign_test(one_way: usize, other_way: usize) -> f64 {
    let count = one_way + other_way;
    (2.0 * (0..=one_way.min(other_way)).map(|fewer| binomial_half(count, fewer)).sum::<f64>()).min(1.0)
}

/// How many figures the second side needs so that it can reach that p against so many of the first; `None` if a thousand
/// are not enough.
pub fn repeats_needed(first: usize, p: f64) -> Option<usize> {
    (1..=1000).find(|&second| minimum_p(first, second) <= p)
}

/// Ranks of both sides together, doubled, so that ranks shared among ties are whole numbers.
struct Ranks {
    /// Of each figure, in ascending order.
    doubled: Vec<usize>,
    /// Sizes of the groups of equal figures.
    ties: Vec<usize>,
    /// Sum of the first side's.
    first: usize,
    /// Sum of the second side's.
    second: usize,
}

impl Ranks {
    fn of<T: Copy + Ord>(first: &[T], second: &[T]) -> Self {
        let mut all: Vec<(T, bool)> =
            first.iter().map(|&figure| (figure, false)).chain(second.iter().map(|&figure| (figure, true))).collect();
        all.sort_unstable();
        let mut ranks = Self { doubled: Vec::with_capacity(all.len()), ties: Vec::new(), first: 0, second: 0 };
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            // Places from `before + 1` to `before + length`; twice their mean.
            let before = ranks.doubled.len();
            let rank = 2 * before + group.len() + 1;
            for &(_, of_second) in group {
                ranks.doubled.push(rank);
                *if of_second { &mut ranks.second } else { &mut ranks.first } += rank;
            }
            ranks.ties.push(group.len());
        }
        ranks
    }

    /// Deals the ranks out in every way and counts.
    fn exact_p(&self, n: usize, m: usize) -> f64 {
        // The smaller side decides: the other gets the rest.
        let (dealt, observed) = if n <= m { (n, self.first) } else { (m, self.second) };
        let untied = self.ties.len() == n + m;
        let (sums, observed) = if untied {
            (untied_sums(n, m), observed / 2)
        } else {
            (Arc::new(sums_of(&self.doubled, dealt)), observed)
        };
        let all: f64 = sums.iter().sum();
        let below: f64 = sums.iter().take(observed + 1).sum();
        let above: f64 = sums.iter().skip(observed).sum();
        2.0 * below.min(above) / all
    }

    fn normal_p(&self, n: usize, m: usize, u: f64) -> f64 {
        let (count, pairs) = (as_f64(n + m), as_f64(n) * as_f64(m));
        let ties: f64 = self.ties.iter().map(|&size| as_f64(size).powi(3) - as_f64(size)).sum();
        let variance = pairs / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        let distance = ((u - pairs / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
        2.0 * Normal::standard().sf(distance)
    }
}

/// In how many ways `dealt` of these numbers sum to each total. Counts beyond 2^53 are rounded as any `f64` is.
fn sums_of(numbers: &[usize], dealt: usize) -> Vec<f64> {
    // The largest possible sum: that of the last `dealt`, since they ascend.
    let largest: usize = numbers.iter().rev().take(dealt).sum();
    let mut ways = vec![vec![0.0_f64; largest + 1]; dealt + 1];
    ways[0][0] = 1.0;
    for (index, &number) in numbers.iter().enumerate() {
        for taken in (1..=dealt.min(index + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(taken);
            let (from, to) = (&fewer[taken - 1], &mut more[0]);
            for (sum, count) in from[..=largest.saturating_sub(number)].iter().enumerate() {
                if *count > 0.0 && sum + number <= largest {
                    to[sum + number] += count;
                }
            }
        }
    }
    ways.pop().unwrap_or_default()
}

/// In how many ways the ranks from 1 of so many against so many figures without ties sum to each total on the smaller side. The cells of
/// a run mostly have the same counts, so it is kept.
fn untied_sums(n: usize, m: usize) -> Arc<Vec<f64>> {
    type Known = HashMap<(usize, usize), Arc<Vec<f64>>>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let key = (n + m, n.min(m));
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sums) = known().as_ref().and_then(|known| known.get(&key)) {
        return Arc::clone(sums);
    }
    let ranks: Vec<usize> = (1..=key.0).collect();
    let sums = Arc::new(sums_of(&ranks, key.1));
    known().get_or_insert_default().insert(key, Arc::clone(&sums));
    sums
}

/// The largest number of pairs that may lie beyond each end of an interval of that confidence for so many against so many
/// figures, which is how many values of U the test rejects on one side. 0 where the counts support no interval.
pub(super) fn pairs_outside(n: usize, m: usize, confidence: f64) -> usize {
    let tail = (1.0 - confidence) / 2.0;
    if (n + m) * n.min(m) > EXACT_LIMIT {
        let spread = (as_f64(n * m) * as_f64(n + m + 1) / 12.0).sqrt();
        let outside = as_f64(n * m) / 2.0 - Normal::standard().inverse_cdf(1.0 - tail) * spread;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped, and rounded down on purpose"
        )]
        return outside.max(0.0) as usize;
    }
    let dealt = n.min(m);
    let sums = untied_sums(n, m);
    let all: f64 = sums.iter().sum();
    let mut below = 0.0;
    sums.iter()
        .skip(dealt * (dealt + 1) / 2)
        .take_while(|&&ways| {
            below += ways;
            below / all <= tail
        })
        .count()
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ranks, as_f64, mann_whitney, minimum_p, pairs_outside, repeats_needed, sign_test};

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-3)
    }

    #[test]
    fn the_smallest_p_of_so_many_against_so_many() {
        for (count, p) in [(3, 0.1), (4, 0.0286), (5, 0.0079), (6, 0.0022), (7, 0.00058), (8, 0.00016)] {
            let below: Vec<u64> = (0..count as u64).collect();
            let above: Vec<u64> = (100..100 + count as u64).collect();
            let reached = mann_whitney(&below, &above).expect("both sides").p;
            assert!(close(reached, minimum_p(count, count)), "{count}");
            assert!((reached / p - 1.0).abs() < 0.03, "{count}: {reached}");
        }
        assert!(close(minimum_p(20, 5), 2.0 / 53130.0));
        assert!(close(minimum_p(1, 1), 1.0) && close(minimum_p(0, 9), 1.0));
    }

    #[test]
    fn a_split_of_changes() {
        assert!(close(sign_test(0, 0), 1.0) && close(sign_test(3, 3), 1.0));
        assert!(close(sign_test(0, 10), 2.0 / 1024.0) && close(sign_test(9, 1), 22.0 / 1024.0));
    }

    #[test]
    fn how_many_repeats_reach_a_p() {
        assert_eq!(repeats_needed(5, 0.01), Some(5));
        assert_eq!(repeats_needed(5, 0.01 / 40.0), Some(13));
        assert_eq!(repeats_needed(8, 0.01 / 40.0), Some(8));
        assert_eq!(repeats_needed(20, 0.01 / 40.0), Some(4));
        assert_eq!(repeats_needed(1, 1e-9), None);
    }

    #[test]
    fn figures_that_are_all_the_same_do_not_differ() {
        for count in [1, 5, 200] {
            assert!(close(mann_whitney(&vec![7; count], &vec![7; count]).expect("both").p, 1.0), "{count}");
        }
        assert_eq!(mann_whitney(&[], &[1]), None);
    }

    #[test]
    fn exact_and_approximate_agree_where_both_can_be_had() {
        let first: Vec<u64> = (0..30).map(|i| (i * 7919) % 1009).collect();
        let second: Vec<u64> = (0..30).map(|i| (i * 6007) % 1013 + 150).collect();
        let exact = mann_whitney(&first, &second).expect("both");
        let normal = Ranks::of(&first, &second).normal_p(30, 30, exact.u);
        assert!(exact.exact && (exact.p / normal - 1.0).abs() < 0.02, "{} {normal}", exact.p);
    }

    #[test]
    fn an_interval_leaves_out_as_many_pairs_as_the_tables_say() {
        // Conover, Practical Nonparametric Statistics, table A7: w(0.025) - n(n+1)/2.
        for ((n, m), outside) in [((5, 5), 3), ((10, 10), 24), ((5, 20), 21), ((3, 3), 0), ((4, 4), 1)] {
            assert_eq!(pairs_outside(n, m, 0.95), outside, "{n} against {m}");
            assert_eq!(pairs_outside(m, n, 0.95), outside, "{m} against {n}");
        }
    }

    proptest! {
        #[test]
        fn the_sides_can_be_swapped_and_the_unit_does_not_matter(
            first in prop::collection::vec(0..40_u64, 1..12),
            second in prop::collection::vec(0..40_u64, 1..12)
        ) {
            let there = mann_whitney(&first, &second).expect("both");
            let back = mann_whitney(&second, &first).expect("both");
            prop_assert!(close(there.p, back.p));
            prop_assert!(close(there.u + back.u, as_f64(first.len() * second.len())));
            prop_assert!(there.p > 0.0 && there.p <= 1.0);
            prop_assert!(there.p >= minimum_p(first.len(), second.len()) - 1e-12);
            let scaled = |side: &[u64]| side.iter().map(|figure| figure * 1000).collect::<Vec<_>>();
            prop_assert_eq!(mann_whitney(&scaled(&first), &scaled(&second)), Some(there));
        }

        #[test]
        fn it_counts_what_a_count_by_hand_counts(
            first in prop::collection::vec(0..6_u64, 1..5),
            second in prop::collection::vec(0..6_u64, 1..5)
        ) {
            prop_assert!(close(mann_whitney(&first, &second).expect("both").p, by_hand(&first, &second)));
        }
    }

    /// Every way to deal the figures to the sides, one by one.
    fn by_hand(first: &[u64], second: &[u64]) -> f64 {
        let all: Vec<u64> = first.iter().chain(second).copied().collect();
        let pairs = |taken: &dyn Fn(usize) -> bool| -> f64 {
            let of = |wanted| (0..all.len()).filter(move |&i| taken(i) == wanted);
            of(true)
                .flat_map(|i| of(false).map(move |j| (i, j)))
                .map(|(i, j)| match all[j].cmp(&all[i]) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                })
                .sum()
        };
        let observed = pairs(&|i| i < first.len());
        let mut counts = (0.0, 0.0, 0.0);
        for mask in 0_u32..1 << all.len() {
            if mask.count_ones() as usize == first.len() {
                let u = pairs(&|i| mask & (1 << i) != 0);
                counts.0 += f64::from(u8::from(u <= observed));
                counts.1 += f64::from(u8::from(u >= observed));
                counts.2 += 1.0;
            }
        }
        (2.0 * f64::min(counts.0, counts.1) / counts.2).min(1.0)
    }
}
