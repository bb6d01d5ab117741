"""Bootstrap intervals, paired tests and Holm's correction: by hand, invariants, and compared with SciPy."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon as scipy_wilcoxon

import sparcets as sp
from sparcets.core.errors import DataError
from sparcets.evaluation.statistics import bootstrap_intervals, compare, holm, mcnemar, wilcoxon
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba


def scores(valid, *, target="b", row=None, digest=None, **measures):
    """Return scores with one answer per query, as far as compare looks at them."""
    n = len(valid)
    labels = {"query": np.arange(n), "answer": 0, "row": np.arange(n) if row is None else row, "target": target}
    labels |= {} if digest is None else {"digest": digest}
    frame = pd.DataFrame(labels | {"status": "generated", "valid": np.array(valid, dtype=float)} | measures)
    return sp.Scores(per_query=frame, summary={}, judges={})


def bootstrap_interval(values, groups=None, **options):
    """Return the interval of one column."""
    low, high = bootstrap_intervals(np.asarray(values, dtype=float)[:, None], groups, **options)
    return float(low[0]), float(high[0])


def test_the_interval_of_normal_values_and_of_groups():
    values = np.random.default_rng(0).normal(5, 2, 400)
    low, high = bootstrap_interval(values, n=4000)
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)
    # Ten copies of each of 40 values contain no more information than the values themselves.
    values = np.random.default_rng(2).normal(size=40)
    copies, groups = np.repeat(values, 10), np.repeat(np.arange(40), 10)
    alone, grouped = bootstrap_interval(values), bootstrap_interval(copies, groups)
    assert grouped == pytest.approx(alone)
    low, high = bootstrap_interval(copies)
    assert high - low < 0.5 * (alone[1] - alone[0])


def test_nan_does_not_count():
    values = np.random.default_rng(3).normal(size=300)
    with_gaps = np.append(values, np.full(300, np.nan))
    low, high = bootstrap_interval(with_gaps)
    # Draws of 600 groups hold about 300 numbers: the interval is as wide as that of the 300 alone.
    assert high - low == pytest.approx(np.ptp(bootstrap_interval(values)), rel=0.15)
    assert all(math.isnan(v) for v in bootstrap_interval([math.nan, math.nan]))
    assert all(math.isnan(v) for v in bootstrap_interval([]))


def test_mcnemar_and_holm_by_hand_and_wilcoxon_as_scipys():
    # 6 for, 1 against: 2 · (C(7,0) + C(7,1)) / 2⁷ = 2 · 8 / 128
    assert mcnemar(np.array([1] * 6 + [-1] + [0] * 50)) == pytest.approx(0.125)
    assert mcnemar(np.array([1, -1])) == 1.0 and mcnemar(np.zeros(9)) == 1.0
    assert math.isnan(mcnemar(np.zeros(0)))
    # 4 · 0.005; 3 · 0.01; 2 · 0.03; 1 · 0.04, raised to the previous value
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.5, np.nan, 0.9])), [1.0, np.nan, 1.0])
    difference = np.random.default_rng(6).normal(0.3, 1, 60)
    assert wilcoxon(difference) == scipy_wilcoxon(difference).pvalue
    assert wilcoxon(np.append(difference, [0.0, 0.0])) == wilcoxon(difference)  # equal pairs are left out
    assert wilcoxon(np.zeros(5)) == 1.0 and math.isnan(wilcoxon(np.zeros(0)))


def test_compare_by_hand():
    a = scores([1, 1, 1, 1, 1, 1, 0], sparsity=np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 9.0]))
    b = scores([1, 1, 1, 1, 0, 0, 0], sparsity=np.array([0.2, 0.4, 0.6, 0.8, 9.0, 9.0, 9.0]))
    found = compare(a, b)
    assert found.index.tolist() == ["valid", "sparsity"]
    valid, sparsity = found.loc["valid"], found.loc["sparsity"]
    assert (valid["test"], valid["n"]) == ("mcnemar", 7) and valid["difference"] == pytest.approx(2 / 7)
    assert valid["p"] == pytest.approx(0.5)  # two for, none against
    # Only the four queries to which both have a valid answer can be compared by the size of the change.
    assert (sparsity["test"], sparsity["n"]) == ("wilcoxon", 4)
    assert (sparsity["a"], sparsity["b"]) == pytest.approx((0.25, 0.5))
    assert sparsity["p"] == pytest.approx(2 / 2**4)
    assert found["p_holm"].tolist() == pytest.approx([0.5, 0.25])
    assert sparsity["low"] <= -0.25 <= sparsity["high"] < 0


def test_several_answers_count_by_their_mean_and_unchanged_ones_are_not_paired():
    a = scores([1, 1, 1, 0], transfer=np.array([1.0, 0.0, 1.0, 1.0]))
    a.per_query["query"] = [0, 0, 1, 1]
    a.per_query["row"] = [0, 0, 1, 1]
    found = compare(a, scores([1, 1], transfer=np.array([1.0, 1.0])))
    assert found.loc["valid", "a"] == 0.75 and found.loc["transfer", "a"] == 0.75
    assert found["n"].tolist() == [2, 2]
    a = scores([1, math.nan, 0], transfer=np.array([1.0, math.nan, 0.0]))
    assert compare(a, scores([1, 1, 1], transfer=np.ones(3)))["n"].tolist() == [2, 2]


def test_scores_that_cannot_be_paired_raise():
    one = scores([1, 1])
    with pytest.raises(DataError, match="query 0 has different targets"):
        compare(one, scores([1, 1], target="c"))
    with pytest.raises(DataError, match=r"query 1 has different test series \(1 and 4\)"):
        compare(one, scores([1, 1], row=[0, 4]))
    compare(one, scores([1, 1], row=[0, -1]))  # not known, so it may be the same
    other = scores([1, 1])
    other.per_query["query"] = [5, 6]
    with pytest.raises(DataError, match="no query in common"):
        compare(one, other)
    with pytest.raises(DataError, match="no measure 'sparsty' in both"):
        compare(one, one, measures=["sparsty"])


def test_scores_are_paired_by_digest_and_measure():
    one = scores([1, 1], row=[-1, -1], digest=["ab", "cd"])
    with pytest.raises(DataError, match=r"query 1 has different series \(cd and ef\)"):
        compare(one, scores([1, 1], row=[-1, -1], digest=["ab", "ef"]))
    compare(one, scores([1, 1], row=[0, -1], digest=["ab", "cd"]))
    compare(one, scores([1, 1]))  # saved without digests
    assert compare(one, one).index.tolist() == ["valid"]
    one = scores([1, 1], sparsity=np.ones(2))
    assert compare(one, one, measures="valid").index.tolist() == ["valid"]
    with pytest.raises(DataError):
        compare(one, one, measures="vald")
    for empty in ([], ()):
        with pytest.raises(DataError, match="measures is empty"):
            compare(one, one, measures=empty)


@pytest.mark.parametrize("name", ["coverage", "universality", "seconds"])
def test_measures_of_the_whole_set_cannot_be_paired(name):
    X, y = make_series(60)
    s = sp.evaluate(sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0], target=1))
    with pytest.raises(DataError, match=f"{name!r} is a measure of the whole set"):
        compare(s, s, measures=[name])
    with pytest.raises(DataError):
        compare(s, s, measures=["sparsity_all"])


def test_no_pairs():
    a, b = scores([1, 0], sparsity=np.ones(2)), scores([0, 1], sparsity=np.ones(2))
    found = compare(a, b).loc["sparsity"]  # no query to which both have a valid answer
    assert (found["test"], found["n"]) == ("", 0) and math.isnan(found["p"])
    with pytest.raises(DataError, match="no query was measured in both scores"):
        compare(scores([1, math.nan]), scores([math.nan, 1]))
