"""Warnings about weak answers, of which a good answer has none; measures of a set in words."""

import math

import numpy as np
import pytest

from sparcets.core.evidence import Evidence
from sparcets.show.text import narrate
from sparcets.show.verdict import find_doubts, quality_findings

SMALL = {(3, 0): 1.0}


def test_a_good_answer_has_none(answer):
    good = {"transfer_a": 1.0, "transfer_b": 1.0, "transfer_c": 0.0, "knn_ratio": 1.4, "oracle": 1.0}
    assert find_doubts(answer(SMALL), {}) == find_doubts(answer(SMALL), good) == []


@pytest.mark.parametrize(
    ("votes", "words"),
    [([0, 0, 0], "none of 3 independent judges agrees"), ([1, 0, 0], "only 1 of 3"), ([1, 1, 0, 0], "only 2 of 4")],
)
def test_few_judges_agree(answer, votes, words):
    measures = {f"transfer_{i}": float(vote) for i, vote in enumerate(votes)} | {"transfer_unseen": 1.0}
    (doubt,) = find_doubts(answer(SMALL), measures)
    assert doubt.startswith(words) and "fool the model" in doubt
    assert f"Careful: {doubt}" in narrate(answer(SMALL), measures=measures)
    assert narrate(answer(SMALL), short=True, measures=measures).endswith(f"Careful: {doubt}")


@pytest.mark.parametrize(("flips_at", "fragile"), [(0.03, True), (0.1, False)])
def test_the_model_flips_before_the_others(answer, flips_at, fragile):
    curve = {name: np.array([v]) for name, v in (("share", [flips_at, 0.2]), ("support", [0, 1]), ("valid", [1, 1]))}
    known = Evidence(families=("a",), support=np.ones((1, 1)), curve=curve)
    expected = (
        "the model is fragile here: it flips when 3 % of the values that may change do, but other models of every kind "
        "follow only at 20 %."
    )
    assert find_doubts(answer(SMALL, evidence=known), {}) == [expected] * fragile


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ({"knn_ratio": 1.81}, "1.8 times as far from the training series of well as real series are"),
        ({"oracle": 0.0}, "does not put the result into well"),
    ],
)
def test_what_an_evaluation_found(answer, measures, words):
    (doubt,) = find_doubts(answer(SMALL), measures)
    assert words in doubt


def test_what_an_answer_itself_gives_to_doubt(answer):
    (doubt,) = find_doubts(answer({(3, 1): 20.0}), {})
    assert doubt.startswith("pressure is moved to 4.1 standard deviations"), "(0.5 + 20 - 4) / 4 = 4.125"
    far = answer({(3, 1): 20.0})
    far.query[0, 0, 1] = far.counterfactual[0, 0, 1] = 30.0  # the query itself has such values
    assert find_doubts(far, {}) == []
    (doubt,) = find_doubts(answer(SMALL, proba_after=np.array([[0.45, 0.55]])), {})
    assert "leads by 0.10 only" in doubt
    assert find_doubts(answer(SMALL, proba_after=np.array([[0.35, 0.65]])), {}) == []
    # A whole real series is one; parts of it put into the query were never recorded together.
    (doubt,) = find_doubts(answer(SMALL, status=np.array(["neighbour"])), {})
    assert doubt.startswith("it combines a real well series with this one, and as a whole may never have been recorded")
    everywhere = {(t, f): 1.0 for t in range(10) for f in range(2)}
    whole, _ = find_doubts(answer(everywhere, status=np.array(["neighbour"])), {})
    assert whole.startswith("every value is taken from a real well series")
    (doubt,) = find_doubts(answer({(t, 0): 1.0 for t in range(6)}, mutable=np.array([True, False])), {})
    assert doubt == "more than half of the values that may change do (60 %)."


@pytest.mark.parametrize(
    ("measure", "values", "words"),
    [
        ("valid", (0.96, 0.9, 0.5), "96 % of the 10 answers"),
        ("transfer", (0.85, 0.6, 0.3), "judges agree with 85 %"),
        ("oracle", (0.85, 0.6, 0.3), "puts 85 % into the target class"),
        ("sparsity", (0.1, 0.4, 0.9), "10 % of the values"),
        ("knn_ratio", (1.1, 1.4, 2.0), "1.1 times that of real series"),
        ("universality", (0.2, 0.6, 0.95), "predicts 20 % of what an answer changes; the rest is its own"),
        ("limb_deviation", (0.02, 0.1, 0.4), "by 2 %"),
    ],
)
def test_each_measure_has_a_grade_and_a_sentence(measure, values, words):
    line = {"std": math.nan, "low": math.nan, "high": math.nan, "n": 10}
    findings = [quality_findings({measure: {**line, "mean": value}})[0] for value in values]
    assert [finding.grade for finding in findings] == ["good", "fair", "poor"]
    assert words in findings[0].sentence
