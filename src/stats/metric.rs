//! Numbers that programs printed, put into order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measurement::{Metric, Number};
use crate::units::Better;

/// What the repeats of a cell say of one metric, in its own unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// Its name.
    pub name: String,
    /// Its unit, which may be empty.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// How many repeats have it.
    pub count: u64,
    /// Smallest; `None` where no repeat has it.
    pub min: Option<f64>,
    /// The middle one; of an even count the mean of the middle two.
    pub median: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl MetricSummary {
    /// The metrics of some repeats, by their names.
    pub(super) fn of_all<'a>(repeats: impl Iterator<Item = &'a BTreeMap<String, Metric>>) -> Vec<Self> {
        let mut found: BTreeMap<&str, (&Metric, Vec<f64>)> = BTreeMap::new();
        for (name, metric) in repeats.flatten() {
            let (_, values) = found.entry(name).or_insert((metric, Vec::new()));
            values.extend(metric.value.map(Number::get));
        }
        found.into_iter().map(|(name, (metric, values))| Self::of(name, metric, values)).collect()
    }

    fn of(name: &str, metric: &Metric, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let middle = |at: usize| values.get(at).copied();
        let median = middle(values.len().saturating_sub(1) / 2).zip(middle(values.len() / 2));
        Self {
            name: name.to_owned(),
            unit: metric.unit.clone(),
            better: metric.better,
            count: values.len() as u64,
            min: values.first().copied(),
            median: median.map(|(below, above)| f64::midpoint(below, above)),
            max: values.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MetricSummary;
    use crate::measurement::{Metric, Number};
    use crate::units::Better;
    use std::collections::BTreeMap;

    fn repeat(value: Option<f64>) -> BTreeMap<String, Metric> {
        let value = value.and_then(Number::new);
        let metric = Metric { value, unit: "ms".into(), better: Better::Lower, reason: None };
        BTreeMap::from([("rtt".to_owned(), metric)])
    }

    #[test]
    fn a_missing_number_is_not_counted_as_nothing() {
        let repeats = [repeat(Some(4.0)), repeat(None), repeat(Some(1.5)), repeat(Some(2.5)), repeat(Some(3.0))];
        let [summary] = &MetricSummary::of_all(repeats.iter())[..] else { panic!("one metric") };
        assert_eq!((summary.count, summary.unit.as_str()), (4, "ms"));
        assert_eq!((summary.min, summary.median, summary.max), (Some(1.5), Some(2.75), Some(4.0)));
        let [none] = &MetricSummary::of_all([repeat(None)].iter())[..] else { panic!("one metric") };
        assert_eq!((none.count, none.min, none.median), (0, None, None));
        assert!(MetricSummary::of_all(std::iter::empty()).is_empty());
    }
}
