//! A distribution of latencies: quantiles where the count supports them, and the whole histogram beside them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Significant decimal digits that the histogram keeps.
const DIGITS: u8 = 3;

/// Quantiles of a set of latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many latencies there are.
    pub count: u64,
    /// Smallest, exact.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// `None` with fewer than 10 latencies.
    pub p90: Option<u64>,
    /// `None` with fewer than 100 latencies.
    pub p99: Option<u64>,
    /// `None` with fewer than 1000 latencies.
    pub p99_9: Option<u64>,
    /// Largest, exact.
    pub max: u64,
    /// The histogram (`HdrHistogram` V2, deflated, base 64), three significant digits.
    pub histogram: String,
}

/// Collects latencies while a repeat runs. All its memory is taken when it is made.
#[derive(Debug)]
pub struct Recorder {
    latencies: Vec<u64>,
}

impl Recorder {
    /// Room for `count` latencies.
    pub fn with_capacity(count: usize) -> Self {
        Self { latencies: Vec::with_capacity(count) }
    }

    /// Adds one latency, in nanoseconds.
    pub fn add(&mut self, latency_ns: u64) {
        self.latencies.push(latency_ns);
    }

    /// Adds all that another has collected.
    pub fn append(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
    }

    /// The distribution of what was added, or `None` if nothing was.
    pub fn finish(mut self) -> Option<Distribution> {
        self.latencies.sort_unstable();
        let (&min, &max) = (self.latencies.first()?, self.latencies.last()?);
        let mut histogram = Histogram::<u64>::new_with_bounds(1, max.max(2), DIGITS).ok()?;
        for &latency in &self.latencies {
            histogram.saturating_record(latency);
        }
        let mut packed = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut packed).ok()?;
        Some(Distribution {
            count: self.latencies.len() as u64,
            min,
            p50: quantile(&self.latencies, 1, 2)?,
            p90: quantile(&self.latencies, 9, 10),
            p99: quantile(&self.latencies, 99, 100),
            p99_9: quantile(&self.latencies, 999, 1000),
            max,
            histogram: STANDARD.encode(packed),
        })
    }
}

/// The smallest latency that at least `part / whole` of all do not exceed, where the count supports it: beyond the median,
/// at least one latency must lie above the quantile in expectation.
fn quantile(sorted: &[u64], part: usize, whole: usize) -> Option<u64> {
    let count = sorted.len();
    if part * 2 > whole && count * (whole - part) < whole {
        return None;
    }
    sorted.get((count * part).div_ceil(whole).max(1) - 1).copied()
}

impl Distribution {
    /// The histogram, unpacked: `None` if its text was damaged.
    pub fn unpack(&self) -> Option<Histogram<u64>> {
        let packed = STANDARD.decode(&self.histogram).ok()?;
        Deserializer::new().deserialize(&mut packed.as_slice()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Recorder;

    #[test]
    fn quantiles_only_where_the_count_supports_them() {
        let mut recorder = Recorder::with_capacity(100);
        for latency in 1..=9 {
            recorder.add(latency * 1000);
        }
        let nine = recorder.finish().expect("nine latencies");
        assert_eq!((nine.min, nine.p50, nine.max, nine.p90), (1000, 5000, 9000, None));

        let mut recorder = Recorder::with_capacity(100);
        for latency in (1..=100).rev() {
            recorder.add(latency * 1000);
        }
        let hundred = recorder.finish().expect("a hundred latencies");
        assert_eq!((hundred.p90, hundred.p99, hundred.p99_9), (Some(90_000), Some(99_000), None));
        assert_eq!(Recorder::with_capacity(0).finish(), None);
        let mut recorder = Recorder::with_capacity(1);
        recorder.add(7000);
        let one = recorder.finish().expect("one latency");
        assert_eq!((one.p50, one.p90, one.p99, one.p99_9), (7000, None, None, None), "one sample has no p99.9");
    }

    #[test]
    fn the_histogram_survives_its_packing() {
        let mut recorder = Recorder::with_capacity(3);
        for latency in [1_390_000, 202_346_000, 31_250_359_000] {
            recorder.add(latency);
        }
        let histogram = recorder.finish().and_then(|d| d.unpack()).expect("a histogram");
        assert_eq!(histogram.len(), 3);
        assert!(histogram.max().abs_diff(31_250_359_000) < 31_250_359_000 / 500);
    }
}
