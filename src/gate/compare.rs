//! Two runs beside each other, for a person who explores: what changed, and how sure that is.

use serde::Serialize;

use super::baseline::Baseline;
use super::cells::{Matching, Side, matched};
use super::environment::{Difference as EnvironmentDifference, differences};
use super::error::GateError;
use super::judge::metric_of;
use super::metric::{Metric, Worse};
use crate::settings::Axes;
use crate::stats::{MannWhitney, Ratio, benjamini_hochberg, minimum_p};
use crate::units::{Better, choice};

/// The expected share of wrong findings among those of a comparison.
const LEVEL: f64 = 0.05;
choice! {
    /// What a comparison says of a cell.
    Difference {
        /// In real time: none was found, which does not say that there is none. In virtual time: there is none.
        #[default] None = "no difference",
        /// The second side is worse.
        Worse = "worse",
        /// The second side is better.
        Better = "better",
        /// So few repeats that no difference could have been found.
        TooFew = "too few repeats",
        /// One side has no figures.
        NoFigures = "no figures",
        /// Only the first side has it.
        OnlyFirst = "only in the first",
        /// Only the second side has it.
        OnlySecond = "only in the second",
    }
}

/// A cell of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its id on the second side, or on the first if only that has it.
    pub cell: String,
    /// Where it lies on the axes.
    pub axes: Axes,
    /// Whether both sides were measured in virtual time and compared as they are.
    pub exact: bool,
    /// The first side.
    pub first: Option<Side>,
    /// The second side.
    pub second: Option<Side>,
    /// The second side over the first.
    pub ratio: Option<Ratio>,
    /// The test, in real time.
    pub test: Option<MannWhitney>,
    /// Its p, corrected for all cells (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// What it says.
    pub difference: Difference,
}

/// Two runs beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The sweeps' names.
    pub sweeps: [String; 2],
    /// What is compared.
    pub metric: Metric,
    /// The unit of its figures; empty for a program's number that has none.
    pub unit: String,
    /// Which direction of it is an improvement.
    pub better: Better,
    /// What differs between the places where both sides were measured.
    pub differences: Vec<EnvironmentDifference>,
    /// The cells.
    pub cells: Vec<Compared>,
}

impl Comparison {
    /// Compares two sides. A median that changed by no more than the share `least` of the first is no difference: 0.05 is 5 %. Two kernels
    /// differ in virtual time in every cell, if only by some instructions.
    ///
    /// # Errors
    /// If no cell has the figures that are to be compared.
    pub fn new(
        first: &Baseline,
        second: &Baseline,
        metric: Option<&Metric>,
        matching: Matching,
        least: f64,
    ) -> Result<Self, GateError> {
        let metric = metric_of(metric, first, second)?;
        let matched = matched(first, second, matching);
        // Nothing is refused to a person who looks.
        let differences = differences(first, second, &matched, &super::environment::Aspect::REFUSED.into());
        let mut cells: Vec<Compared> = matched
            .iter()
            .map(|matched| {
                let (first, second) = matched.sides(&metric);
                let (test, ratio) = matched.contrast(first.as_ref(), second.as_ref());
                Compared {
                    cell: matched.id(),
                    axes: matched.axes(),
                    exact: matched.exact(),
                    ratio,
                    test,
                    adjusted_p: None,
                    difference: Difference::default(),
                    first,
                    second,
                }
            })
            .collect();
        let tested: Vec<&mut Compared> = cells.iter_mut().filter(|cell| cell.test.is_some()).collect();
        let values: Vec<f64> = tested.iter().filter_map(|cell| cell.test).map(|test| test.p).collect();
        let corrected = benjamini_hochberg(&values);
        tested.into_iter().zip(corrected).for_each(|(cell, p)| cell.adjusted_p = Some(p));
        for cell in &mut cells {
            cell.difference = cell.says(&metric, least);
        }
        Ok(Self {
            sweeps: [first.sweep.clone(), second.sweep.clone()],
            unit: metric.unit().to_owned(),
            better: metric.better(),
            metric,
            differences,
            cells,
        })
    }
}

impl Compared {
    fn says(&self, metric: &Metric, least: f64) -> Difference {
        let (first, second) = match (&self.first, &self.second) {
            (Some(first), Some(second)) => (first, second),
            (Some(_), None) => return Difference::OnlyFirst,
            _ => return Difference::OnlySecond,
        };
        let Some((before, after)) = first.median.zip(second.median) else { return Difference::NoFigures };
        let more = match after.cmp(&before) {
            std::cmp::Ordering::Equal => return Difference::None,
            order => order.is_gt(),
        };
        let (before, after) = (before.get(), after.get());
        let small = (after - before).abs() <= least * before.abs();
        let found = self.exact || self.adjusted_p.is_some_and(|p| p <= LEVEL);
        if found && small {
            return Difference::None;
        }
        if found {
            return if more == (metric.worse() == Worse::Up) { Difference::Worse } else { Difference::Better };
        }
        let hopeless = minimum_p(first.figures.len(), second.figures.len()) > LEVEL;
        if hopeless { Difference::TooFew } else { Difference::None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Difference};
    use crate::gate::baseline::tests::of_completions;
    use crate::gate::cells::Matching;
    use crate::gate::metric::Metric;
    use crate::settings::Clock;

    fn of(clock: Clock, first: &[Vec<u64>], second: &[Vec<u64>], metric: &Metric) -> Vec<Difference> {
        let (first, second) = (of_completions(clock, first), of_completions(clock, second));
        let found = Comparison::new(&first, &second, Some(metric), Matching::Id, 0.0).expect("compared");
        found.cells.iter().map(|cell| cell.difference).collect()
    }

    #[test]
    fn each_cell_says_what_it_can() {
        let first = [vec![100, 101, 102, 103, 104], vec![100, 120, 140, 160, 180], vec![100, 101], vec![1]];
        let second = [vec![200, 201, 202, 203, 204], vec![101, 121, 141, 161, 181], vec![200, 201]];
        assert_eq!(
            of(Clock::Real, &first, &second, &Metric::Completion),
            [Difference::Worse, Difference::None, Difference::TooFew, Difference::OnlyFirst]
        );
        assert_eq!(
            of(Clock::Real, &first[..1], &second[..1], &Metric::Goodput),
            [Difference::Worse],
            "slower is less goodput"
        );
    }

    #[test]
    fn virtual_time_is_exact() {
        assert_eq!(
            of(Clock::Virtual, &[vec![1000], vec![5]], &[vec![999], vec![5]], &Metric::Completion),
            [Difference::Better, Difference::None]
        );
    }

    #[test]
    fn a_change_below_what_counts_is_no_difference() {
        let first = of_completions(Clock::Virtual, &[vec![1000], vec![1000], vec![1000]]);
        let second = of_completions(Clock::Virtual, &[vec![1050], vec![1051], vec![940]]);
        let found = Comparison::new(&first, &second, Some(&Metric::Completion), Matching::Id, 0.05).expect("compared");
        let differences: Vec<_> = found.cells.iter().map(|cell| cell.difference).collect();
        assert_eq!(differences, [Difference::None, Difference::Worse, Difference::Better]);
    }
}
