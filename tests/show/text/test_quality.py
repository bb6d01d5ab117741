"""Measures of a set in words: numbers and grades."""

from __future__ import annotations

import math

import pytest

from sparcets.show.verdict import quality_findings


def line(mean: float, n: int = 10, low: float = math.nan, high: float = math.nan) -> dict[str, float]:
    return {"mean": mean, "std": math.nan, "low": low, "high": high, "n": n}


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
def test_each_measure_has_a_grade_and_a_sentence(measure: str, values: tuple[float, float, float], words: str) -> None:
    findings = [quality_findings({measure: line(value)})[0] for value in values]
    assert [finding.grade for finding in findings] == ["good", "fair", "poor"]
    assert words in findings[0].sentence


def test_judges_of_families_that_the_method_did_not_use() -> None:
    (same,) = quality_findings({"transfer": line(0.9), "transfer_unseen": line(0.9)})
    assert "families" not in same.sentence
    (other,) = quality_findings({"transfer": line(0.9), "transfer_unseen": line(0.7)})
    assert other.sentence.endswith("Those of other families than the method used itself agree with 70 %.")


def test_intervals_segments_and_time() -> None:
    summary = {
        "valid": line(0.5, low=0.4, high=0.62),
        "sparsity": line(0.123),
        "segments": line(7.25),
        "segment_length": line(9.0),
        "seconds": line(3.0, n=20),
    }
    valid, sparsity, seconds = quality_findings(summary)
    assert valid.sentence.endswith("(95 % interval: 40 to 62 %).")
    assert sparsity.sentence == "12 % of the values that may change do, in 7.2 segments of 9.0 steps on average."
    assert seconds.sentence == "Explaining took 3 s in all, 0.15 s per answer." and seconds.grade == ""


def test_universality_says_no_more_than_was_measured() -> None:
    none, most = (quality_findings({"universality": line(value)})[0].sentence for value in (-0.3, 0.95))
    assert none == "The mean of the other answers predicts nothing of what an answer changes."
    assert "predicts 95 % of what an answer changes: much the same change for all" in most
