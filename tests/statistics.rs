//! The statistics of `src/stats` beside those of `SciPy`: figures stored in `tests/reference/figures.json`, made by the script beside it.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use sweep::settings::Precision;
use sweep::stats::{Shape, benjamini_hochberg, holm, mann_whitney, median_interval, ratio, reached};

fn reference(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("reference/figures.json")).expect("JSON");
    let cases = all[name].as_array().expect("cases").clone();
    assert!(!cases.is_empty(), "{name}");
    cases
}

fn figures(of: &Value) -> Vec<u64> {
    of.as_array().expect("figures").iter().map(|figure| figure.as_u64().expect("a figure")).collect()
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().expect("numbers").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Within a millionth of what the reference says.
#[track_caller]
fn same(found: f64, reference: f64, case: &Value) {
    assert!((found - reference).abs() <= 1e-6 * reference.abs() + 1e-12, "{found} is not {reference}: {case}");
}

#[test]
fn mann_whitney_with_and_without_ties_small_and_large() {
    let mut methods = std::collections::BTreeSet::new();
    for case in reference("mann_whitney") {
        let found = mann_whitney(&figures(&case["first"]), &figures(&case["second"])).expect("both sides");
        same(found.u, case["u"].as_f64().expect("u"), &case);
        same(found.p, case["p"].as_f64().expect("p"), &case);
        let method = case["method"].as_str().expect("a method").to_owned();
        assert_eq!(found.exact, method != "asymptotic", "{case}");
        methods.insert(method);
    }
    assert_eq!(methods.len(), 3, "each method is compared");
}

#[test]
fn intervals_of_a_factor() {
    for case in reference("factor_intervals") {
        let confidence = case["confidence"].as_f64().expect("a confidence");
        let found = ratio(&figures(&case["first"]), &figures(&case["second"]), confidence).expect("both sides");
        same(found.pairs.expect("no zeros"), case["pairs"].as_f64().expect("a factor"), &case);
        match (found.interval, case["low"].as_f64().zip(case["high"].as_f64())) {
            (Some(interval), Some((low, high))) => {
                same(interval.low, low, &case);
                same(interval.high.expect("no zeros"), high, &case);
            }
            (None, None) => {}
            (found, _) => panic!("{found:?}: {case}"),
        }
    }
}

#[test]
fn intervals_of_the_median() {
    for case in reference("median_intervals") {
        let confidence = case["confidence"].as_f64().expect("a confidence");
        let found = median_interval(&figures(&case["figures"]), confidence);
        let (low, high) = (case["low"].as_u64(), case["high"].as_u64());
        assert_eq!(found.map(|interval| (interval.low, interval.high)), low.zip(high), "{case}");
    }
}

#[test]
fn corrections_for_many_tests() {
    for case in reference("corrections") {
        let values = numbers(&case["p"]);
        for (found, name) in [(holm(&values), "holm"), (benjamini_hochberg(&values), "benjamini_hochberg")] {
            assert_eq!(found.len(), values.len());
            found.iter().zip(numbers(&case[name])).for_each(|(found, reference)| same(*found, reference, &case));
        }
    }
}

#[test]
fn trends_are_told_where_the_reference_has_them() {
    let mut told = 0;
    for case in reference("trends") {
        let figures = figures(&case["figures"]);
        let (p, slope) = (case["p"].as_f64().expect("p"), case["slope"].as_f64().expect("a slope"));
        let drift = Shape::of(&figures).drift;
        assert_eq!(drift.is_some(), p <= 0.001, "{case}");
        if let Some(drift) = drift {
            told += 1;
            same(drift.p, p, &case);
            let mut sorted = figures.clone();
            sorted.sort_unstable();
            let median = f64::from(u32::try_from(sorted[(sorted.len() - 1) / 2]).expect("small"));
            let steps = f64::from(u32::try_from(figures.len() - 1).expect("few"));
            same(drift.change, slope * steps / median, &case);
        }
    }
    assert!(told >= 2);
}

#[test]
fn outliers_lie_beyond_the_same_fences() {
    let mut found = 0;
    for case in reference("outliers") {
        let outliers: Vec<u64> =
            Shape::of(&figures(&case["figures"])).outliers.iter().map(|outlier| outlier.index as u64).collect();
        assert_eq!(outliers, figures(&case["outliers"]), "{case}");
        found += outliers.len();
    }
    assert!(found > 0);
}

/// How often the interval of a cell that was repeated until it was narrow enough (from 6 to 50 times, ±`share` at 95 %) holds the true
/// median, of figures that `draw` makes of two uniform numbers, around a million.
fn coverage(share: &str, draw: fn(f64, f64) -> f64) -> f64 {
    let text = |text: &str| text.parse().expect("a share");
    let precision = Precision { min: 6, share: text(share), confidence: text("95%") };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cells = 2000;
    let holding = (0..cells).filter(|_| {
        let (mut figures, mut look): (Vec<u64>, u32) = (Vec::new(), precision.min);
        loop {
            while figures.len() < look.min(50) as usize {
                let factor = draw(rng.random_range(0.0..1.0), rng.random_range(0.0..1.0));
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "about a million")]
                figures.push((1e6 * factor) as u64);
            }
            if look >= 50 || reached("completion", &figures, &precision).enough {
                let interval = median_interval(&figures, 0.95).expect("six or more");
                return interval.low <= 1_000_000 && 1_000_000 <= interval.high;
            }
            look = precision.next_look(look);
        }
    });
    f64::from(u32::try_from(holding.count()).expect("few")) / f64::from(cells)
}

/// Box and Muller.
fn normal(a: f64, b: f64) -> f64 {
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

#[test]
fn stopping_when_an_interval_is_narrow_costs_some_of_its_coverage_and_no_more() {
    // docs/gate.md has the figures.
    for (share, draw) in [
        ("2%", (|a, b| 1.0 + 0.02 * normal(a, b)) as fn(f64, f64) -> f64),
        ("2%", |a, b| 1.0 + 0.05 * normal(a, b)),
        ("10%", |a, b| (0.3 * normal(a, b)).exp()),
    ] {
        let found = coverage(share, draw);
        assert!(found > 0.88, "{share}: {found}");
    }
    assert!(coverage("50%", |a, b| 1.0 + 0.01 * normal(a, b)) > 0.95, "one look costs nothing");
}
