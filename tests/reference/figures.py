#!/usr/bin/env python3
"""Writes tests/reference/figures.json: what SciPy says of figures that tests/statistics.rs then gives to src/stats.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1
    /tmp/venv/bin/python tests/reference/figures.py > tests/reference/figures.json

Where SciPy has no such figure (intervals of a factor, Holm's correction) it is counted here by brute force or by the definition.
"""

import itertools
import json
import math
import random

import numpy
import scipy
from scipy import stats

random.seed(20261130)


def lognormal(count, centre, sigma):
    return [round(centre * math.exp(random.gauss(0, sigma))) for _ in range(count)]


def pair(first, second):
    """Mann-Whitney of two sides, and the interval of the factor between them."""
    ties = len(set(first + second)) < len(first) + len(second)
    count = len(first) + len(second)
    if count * min(len(first), len(second)) > 2000:
        method = "asymptotic"
        p = stats.mannwhitneyu(second, first, alternative="two-sided", method="asymptotic", use_continuity=True).pvalue
    elif ties:
        method = "exact, every permutation"
        # SciPy's own exact method does not know ties, so every way to deal the figures is counted.
        p = stats.mannwhitneyu(
            second, first, alternative="two-sided", method=stats.PermutationMethod(n_resamples=numpy.inf)
        ).pvalue
    else:
        method = "exact"
        p = stats.mannwhitneyu(second, first, alternative="two-sided", method="exact").pvalue
    u = stats.mannwhitneyu(second, first).statistic
    return {"first": first, "second": second, "u": float(u), "p": float(p), "method": method}


def interval(first, second, confidence):
    """Every factor that the exact test of two sides without ties does not reject: by brute force over the pairs' ratios."""
    ratios = sorted(b / a for a in first for b in second)
    kept = []
    for low, high in zip([0.0] + ratios, ratios + [math.inf]):
        factor = high / 2 if low == 0.0 else (low * 2 if math.isinf(high) else math.sqrt(low * high))
        p = stats.mannwhitneyu(second, [a * factor for a in first], alternative="two-sided", method="exact").pvalue
        if p > 1 - confidence:
            kept.append((low, high))
    low, high = kept[0][0], kept[-1][1]
    return {
        "first": first,
        "second": second,
        "confidence": confidence,
        "low": None if low == 0.0 else low,
        "high": None if math.isinf(high) else high,
        "pairs": float(numpy.median(ratios)),
    }


def median(figures, confidence):
    """The distribution-free interval of the median, by the quantile test (Conover)."""
    result = stats.quantile_test(figures, q=float(numpy.median(figures)), p=0.5).confidence_interval(confidence)
    low, high = result.low, result.high
    known = not (math.isnan(low) or math.isnan(high))
    return {
        "figures": figures,
        "confidence": confidence,
        "low": int(low) if known else None,
        "high": int(high) if known else None,
    }


def trend(figures):
    """Kendall's tau of figures against their order."""
    ties = len(set(figures)) < len(figures)
    method = "asymptotic" if ties or len(figures) > 50 else "exact"
    order = list(range(len(figures)))
    return {
        "figures": figures,
        "p": float(stats.kendalltau(order, figures, method=method, variant="b").pvalue),
        "slope": float(stats.theilslopes(figures, order).slope),
    }


def holm(values):
    """By the definition: the k-th smallest of n, times n - k + 1, never below an earlier one."""
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, values[index] * (len(values) - rank)))
        adjusted[index] = largest
    return adjusted


def outliers(figures):
    """Places of figures beyond Tukey's far fences."""
    lower, upper = numpy.percentile(figures, [25, 75])
    reach = 3 * (upper - lower)
    return {"figures": figures, "outliers": [i for i, x in enumerate(figures) if x < lower - reach or x > upper + reach]}


pairs = [pair(list(range(1, n + 1)), list(range(101, 101 + n))) for n in range(3, 9)]
for n, m, shift in [(1, 1, 1), (2, 5, 1.1), (5, 5, 1.03), (5, 20, 1.05), (8, 8, 1.1), (10, 7, 0.9), (20, 20, 1.02), (31, 31, 1.0)]:
    pairs.append(pair(lognormal(n, 1e6, 0.05), lognormal(m, 1e6 * shift, 0.05)))
for n, m in [(3, 3), (4, 5), (5, 5), (6, 7), (8, 8)]:
    # Few distinct values: many ties, within a side and across.
    pairs.append(pair([random.randrange(5) for _ in range(n)], [random.randrange(1, 6) for _ in range(m)]))
for n, m, digits in [(60, 60, 1e6), (200, 150, 50), (40, 400, 10)]:
    pairs.append(pair(lognormal(n, digits, 0.2), lognormal(m, digits * 1.02, 0.2)))

intervals = []
for n, m, shift in [(4, 4, 1.5), (5, 5, 1.1), (5, 20, 1.05), (8, 8, 1.0), (10, 12, 0.8)]:
    for confidence in (0.9, 0.95, 0.99):
        first, second = lognormal(n, 1e9, 0.05), lognormal(m, 1e9 * shift, 0.05)
        assert len(set(first + second)) == n + m
        intervals.append(interval(first, second, confidence))

families = [[0.001, 0.008, 0.039, 0.041, 0.9], [0.01], [0.04, 0.04, 0.04], [1.0, 1e-9, 0.5, 0.02, 0.02, 0.3]]
families.append([round(random.random() ** 3, 6) for _ in range(40)])

result = {
    "made_by": f"tests/reference/figures.py with SciPy {scipy.__version__}, NumPy {numpy.__version__}",
    "mann_whitney": pairs,
    "factor_intervals": intervals,
    "median_intervals": [
        median(lognormal(n, 1e6, 0.3), confidence)
        for n in (1, 5, 6, 7, 8, 10, 15, 16, 50, 101)
        for confidence in (0.9, 0.95, 0.99)
    ],
    "corrections": [
        {"p": family, "holm": holm(family), "benjamini_hochberg": [float(p) for p in stats.false_discovery_control(family)]}
        for family in families
    ],
    "trends": [
        trend(figures)
        for figures in [
            list(range(7)),
            [5, 3, 4, 1, 2],
            lognormal(12, 1e6, 0.1),
            [round(1e6 + 2e4 * i + random.gauss(0, 3e4)) for i in range(20)],
            lognormal(50, 1e6, 0.1),
            lognormal(80, 1e6, 0.1),
            [random.randrange(6) for _ in range(30)],
        ]
    ],
    "outliers": [outliers(lognormal(n, 1e4, sigma)) for n in (5, 8, 13, 40) for sigma in (0.02, 1.5)]
    + [outliers([900, 101, 103, 102, 100, 104])],
}
lines = []
for name, value in result.items():
    if isinstance(value, list):
        rows = ",\n".join("    " + json.dumps(row) for row in value)
        lines.append(f"  {json.dumps(name)}: [\n{rows}\n  ]")
    else:
        lines.append(f"  {json.dumps(name)}: {json.dumps(value)}")
print("{\n" + ",\n".join(lines) + "\n}")
