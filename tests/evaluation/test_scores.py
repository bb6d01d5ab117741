"""Scores: summary, representations, and saving and loading without NaN in the JSON."""

import math

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.evaluation.scores import summarise


@pytest.fixture
def scores():
    frame = pd.DataFrame(
        {
            "query": [0, 1, 2],
            "answer": [0, 0, 0],
            "row": [4, 5, -1],
            "target": ["walk", "walk", "jog"],
            "status": ["generated", "unchanged", "not_found"],
            "valid": [1.0, np.nan, 0.0],
            "transfer": [0.5, np.nan, 1.0],
            "sparsity": [0.25, np.nan, 0.75],
        }
    )
    summary = summarise(frame, {"coverage": (0.5, 2), "universality": (math.nan, 1)}, seed=0)
    return sp.Scores(per_query=frame, summary=summary, judges={"fcn": 0.9, "odd": math.nan}, notes=("one | two",))


def test_summary_by_hand(scores):
    names = "valid transfer transfer_valid sparsity sparsity_all coverage universality"
    assert list(scores.summary) == names.split()
    assert scores.summary["valid"] == {"mean": 0.5, "std": math.sqrt(0.5), "low": 0.0, "high": 1.0, "n": 2}
    assert math.isnan(scores.summary["sparsity"]["std"])  # of one value
    assert scores.summary["transfer"]["mean"] == 0.75 and scores.summary["transfer_valid"]["mean"] == 0.5
    assert scores.summary["sparsity"]["mean"] == 0.25 and scores.summary["sparsity_all"]["mean"] == 0.5
    assert scores.summary["coverage"]["mean"] == 0.5 and math.isnan(scores.summary["coverage"]["std"])


def test_markdown_has_a_line_per_measure_and_no_nan(scores):
    text = scores.to_markdown()
    assert "| sparsity_all | 0.500 | 0.354 | 0.250 to 0.750 | 2 | lower |" in text
    assert "| coverage | 0.500 |  |  | 2 | higher |" in text
    assert "nan" not in text and "test accuracy: fcn 0.900, odd not known." in text and "Note: one | two" in text
    assert sum(line.startswith("| ") for line in text.splitlines()) == 1 + len(scores.summary)


def test_saved_and_read_again(scores, tmp_path):
    scores.save(tmp_path / "scores.json")
    again = sp.Scores.load(tmp_path / "scores.json")
    pd.testing.assert_frame_equal(again.per_query, scores.per_query)
    assert again.to_dict() == scores.to_dict() and math.isnan(again.summary["coverage"]["std"])
    assert again.to_markdown() == scores.to_markdown() and again.notes == scores.notes
    assert sp.compare(again, scores, measures=["valid"]).loc["valid", "p"] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "contains no scores"),
        ("{", "is not saved scores"),
        ('{"schema": 9}', "has layout 9"),
        ('{"schema": 1, "summary": {}, "judges": {}, "notes": [], "per_query": {"valid": ["x"]}}', "damaged"),
    ],
)
def test_invalid_files_raise(tmp_path, text, words):
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(FileFormatError, match=words):
        sp.Scores.load(tmp_path / "scores.json")
