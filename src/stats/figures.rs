//! A few figures of one kind, put into order.

use serde::Serialize;

use crate::measurement::Number;

/// What can be put into order and calculated with: whole units of a built-in figure, or a number of a program's.
pub trait Figure: Copy + Ord + Default {
    /// The figure, exact below 2^53.
    fn float(self) -> f64;
    /// The mean of two; of whole ones rounded down.
    #[must_use]
    fn middle(self, other: Self) -> Self;
}

impl Figure for u64 {
    #[expect(clippy::cast_precision_loss, reason = "measurements, which have no 16 digits")]
    fn float(self) -> f64 {
        self as f64
    }

    fn middle(self, other: Self) -> Self {
        self.midpoint(other)
    }
}

impl Figure for Number {
    fn float(self) -> f64 {
        self.get()
    }

    fn middle(self, other: Self) -> Self {
        Self::new(f64::midpoint(self.get(), other.get())).unwrap_or(self)
    }
}

/// Median and range of some figures. All are in the unit of the figures themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figures<T = u64> {
    /// How many there are.
    pub count: u64,
    /// Smallest.
    pub min: T,
    /// The middle one; of an even count the mean of the middle two, rounded down.
    pub median: T,
    /// Largest.
    pub max: T,
}

impl<T: Figure> Figures<T> {
    /// The figures, in any order, or `None` if there are none.
    pub fn of(mut figures: Vec<T>) -> Option<Self> {
        figures.sort_unstable();
        let (&min, &max) = (figures.first()?, figures.last()?);
        let (below, above) = (figures.get((figures.len() - 1) / 2)?, figures.get(figures.len() / 2)?);
        Some(Self { count: figures.len() as u64, min, median: below.middle(*above), max })
    }

    /// The range over the median: 0.02 where all lie within 2 % of each other. `None` for a single figure, which cannot
    /// tell, and for a median that is not above 0.
    pub fn spread(&self) -> Option<f64> {
        let [min, median, max] = [self.min, self.median, self.max].map(T::float);
        (self.count > 1 && median > 0.0).then(|| (max - min) / median)
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;
    use proptest::prelude::*;

    #[test]
    fn odd_even_one_none() {
        let figures = Figures::of(vec![30, 10, 20]).expect("three");
        assert_eq!((figures.min, figures.median, figures.max), (10, 20, 30));
        assert_eq!(figures.spread(), Some(1.0));
        assert_eq!(Figures::of(vec![10, 40, 21, 20]).map(|f| f.median), Some(20), "20.5 rounded down");
        assert_eq!(Figures::of(vec![u64::MAX, u64::MAX]).map(|f| f.median), Some(u64::MAX));
        assert_eq!(Figures::of(vec![7]).and_then(|f| f.spread()), None);
        assert_eq!(Figures::of(vec![0, 0]).and_then(|f| f.spread()), None);
        assert_eq!(Figures::of(Vec::<u64>::new()), None);
    }

    proptest! {
        #[test]
        fn order_does_not_matter(
            (figures, shuffled) in prop::collection::vec(any::<u64>(), 1..20)
                .prop_flat_map(|figures| (Just(figures.clone()), Just(figures).prop_shuffle()))
        ) {
            prop_assert_eq!(Figures::of(figures), Figures::of(shuffled));
        }

        #[test]
        fn the_median_has_as_many_below_as_above(figures in prop::collection::vec(any::<u64>(), 1..20)) {
            let found = Figures::of(figures.clone()).expect("some");
            prop_assert!(found.min <= found.median && found.median <= found.max);
            let below = figures.iter().filter(|&&figure| figure < found.median).count();
            let above = figures.iter().filter(|&&figure| figure > found.median).count();
            prop_assert!(below <= figures.len() / 2 && above <= figures.len() / 2);
            prop_assert_eq!(found.count, figures.len() as u64);
        }

        #[test]
        fn spread_does_not_depend_on_the_unit(figures in prop::collection::vec(1..1_000_000_u64, 2..20)) {
            let odd = if figures.len() % 2 == 0 { figures[1..].to_vec() } else { figures };
            let scaled = odd.iter().map(|figure| figure * 1000).collect();
            prop_assert_eq!(Figures::of(odd).and_then(|f| f.spread()), Figures::of(scaled).and_then(|f| f.spread()));
        }
    }
}
