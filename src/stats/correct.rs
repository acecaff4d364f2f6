//! Corrections for many tests at once.

/// Holm's correction: p values such that rejecting those at or below a level is wrong anywhere among them with at most that
/// probability, however the tests depend on each other (Holm 1979). In the order given.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut largest = 0.0_f64;
    adjusted(values, ascending(values), |rank, count, p| {
        largest = largest.max(p * super::rank::as_f64(count - rank));
        largest
    })
}

/// Benjamini and Hochberg's correction: p values such that, of those at or below a level, at most that share is expected to be wrong
/// (Benjamini and Hochberg 1995). In the order given.
pub fn benjamini_hochberg(values: &[f64]) -> Vec<f64> {
    let mut smallest = 1.0_f64;
    let mut order = ascending(values);
    order.reverse();
    adjusted(values, order, |rank, count, p| {
        smallest = smallest.min(p * (super::rank::as_f64(count) / super::rank::as_f64(count - rank)));
        smallest
    })
}

/// Indices of the values from the smallest.
fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    order
}

/// Each value adjusted in that order, by its rank in it, and put back to its place.
fn adjusted(values: &[f64], order: Vec<usize>, mut adjust: impl FnMut(usize, usize, f64) -> f64) -> Vec<f64> {
    let mut result = vec![1.0; values.len()];
    for (rank, index) in order.into_iter().enumerate() {
        result[index] = adjust(rank, values.len(), values[index]).min(1.0);
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{benjamini_hochberg, holm};

    #[test]
    fn benjamini_hochberg_rejects_two_of_five() {
        let rejected = |values: &[f64]| benjamini_hochberg(values).iter().filter(|&&p| p <= 0.05).count();
        assert_eq!(rejected(&[0.001, 0.008, 0.039, 0.041, 0.9]), 2);
        assert_eq!(rejected(&[0.9, 0.041, 0.001, 0.039, 0.008]), 2, "in any order");
    }

    #[test]
    fn nothing_to_correct() {
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
        assert_eq!((holm(&[0.03]), benjamini_hochberg(&[0.03])), (vec![0.03], vec![0.03]));
    }

    proptest! {
        #[test]
        fn corrected_values_grow_keep_their_order_and_holm_is_the_stricter(values in prop::collection::vec(0.0..=1.0_f64, 1..40)) {
            let (strict, lenient) = (holm(&values), benjamini_hochberg(&values));
            let smallest = values.iter().copied().fold(1.0, f64::min);
            let strictest = strict.iter().copied().fold(1.0, f64::min);
            prop_assert!((strictest - (smallest * crate::stats::rank::as_f64(values.len())).min(1.0)).abs() < 1e-12);
            for a in 0..values.len() {
                prop_assert!(values[a] <= lenient[a] && lenient[a] <= strict[a] + 1e-12 && strict[a] <= 1.0);
                for b in 0..values.len() {
                    prop_assert!(values[a] > values[b] || (strict[a] <= strict[b] && lenient[a] <= lenient[b]));
                }
            }
        }
    }
}
