"""A model that predicts numbers on the command line: from a table to a report, and the mistakes one can make."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.testing.data import make_series

from .conftest import output, user_error

MODEL = """
import numpy as np

FACTOR = np.array([10.0, 8.0])


def load():
    return lambda X: 100 + FACTOR * X[:, :, :2].mean(1)


def classes():
    return lambda X: np.full((len(X), 2), 0.5)
"""
TABLE = tuple("-d own.csv -o series=id -o time=t -o label=systolic,diastolic -o output_units=mmHg".split())
FIT = ("fit", *TABLE, "-o", "task=regression", "-m", "nearest", "--out", "fitted")
OWN = ("--model", "pressure.py:load")
EXPLAIN = ("explain", "fitted", *OWN)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Yield a folder with a table of two numbers per series, and a fit of a model of them."""
    folder = tmp_path_factory.mktemp("regression")
    X, _ = make_series(60, n_steps=8)
    numbers = (100 + np.array([10.0, 8.0]) * X[:, :, :2].mean(1)).round(2)
    rows = [(f"p{i}", t, *numbers[i], *X[i, t]) for i in range(60) for t in range(8)]
    columns = ["id", "t", "systolic", "diastolic", "left", "right", "top", "idle"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "own.csv", index=False)
    (folder / "pressure.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*FIT, *OWN]) == 0
    yield folder
    sys.modules.pop("pressure", None)


@pytest.fixture(autouse=True)
def here(place, monkeypatch):
    monkeypatch.chdir(place)


def test_fit_says_how_good_the_model_is_and_what_to_ask(capsys):
    said = output(capsys, *FIT, *OWN, "--force")
    assert "pressure.py:load: explained test variance 1.000" in said
    assert "numbers systolic (mmHg), diastolic (mmHg)" in said
    assert "next: sparcets explain fitted --model pressure.py:load --at-least 1" in said and "--of 'systolic'" in said
    result = json.loads(output(capsys, *FIT, *OWN, "--force", "--json"))
    assert result["explained_test_variance"] > 0.999 and "test_accuracy" not in result


@pytest.mark.parametrize(
    ("options", "target"),
    [
        (("--at-least", "102", "--of", "systolic"), sp.AtLeast(102, output="systolic")),
        (("--at-most", "101.5", "--of", "1"), sp.AtMost(101.5, output=1)),
        (("--between", "100:104"), sp.Between(100, 104)),
        (("--change", "-2", "--of", "systolic"), sp.Change(-2, output=0)),
    ],
)
def test_every_question_is_that_of_python(capsys, options, target):
    told = json.loads(output(capsys, *EXPLAIN, *options, "--rows", "0:4", "--out", "run.npz", "--json"))
    e = sp.load_explanation("run.npz")
    bounds = target.bounds(e.prediction_before, ("systolic", "diastolic"))
    np.testing.assert_array_equal(e.numbers.bounds, bounds)
    assert [one["valid"] for one in told] == e.valid.tolist() and e.valid.any()
    assert told[0]["prediction"] == {"systolic": e.prediction[0, 0], "diastolic": e.prediction[0, 1]}
    assert "probability" not in told[0] and told[0]["target"] == e.target[0]


def test_tables_scores_and_reports_speak_of_numbers(capsys, monkeypatch):
    import sparcets.evaluation.evaluate as evaluation

    judge = sp.wrap(lambda X: 100 + 9 * X[:, :, :2].mean(1), task="regression")
    monkeypatch.setattr(evaluation, "find_judges", lambda *_, **__: {"statistics": judge})
    said = output(capsys, *EXPLAIN, "--at-least", "105", "--of", "0", "--rows", "0:2", "--out", "run.npz")
    assert "\treached\t" in said and "systolic at least 105 mmHg" in said
    assert "The model's prediction of systolic goes from " in said
    scores = output(capsys, "evaluate", "run.npz", "--model", "fitted", *OWN, "--out", "scores.json")
    line = next(line for line in scores.splitlines() if line.startswith("direction_statistics"))
    assert line.endswith("higher") and "judges and the share of the variance that they explain" in scores
    output(capsys, "report", "run.npz", "--scores", "scores.json", "--out", "report.html")
    page = Path("report.html").read_text()
    assert "The numbers of the judges move towards the target" in page and "numbers systolic (mmHg)" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (EXPLAIN, "the model predicts numbers systolic (mmHg), diastolic (mmHg): say where they have to"),
        ((*EXPLAIN, "-t", "1"), "it has no classes for --target. Give --at-least 30"),
        ((*EXPLAIN, "--not", "1"), "it has no classes for --not"),
        ((*EXPLAIN, "--at-least", "3", "--change", "4"), "give --at-least or --change, not both"),
        ((*EXPLAIN, "--between", "3"), "--between must be two numbers, as LOW:HIGH, got '3'"),
        ((*EXPLAIN, "--at-least", "3", "--of", "sistolic"), "no output 'sistolic'. Did you mean 'systolic'"),
        ((*EXPLAIN, "--at-least", "3", "-o", "seed=1"), "--option belongs to a data set"),
        (("fit", *TABLE, "-o", "task=regression", "--out", "no"), "A model that predicts numbers is your own"),
        ((*FIT[:-1], "no", *OWN, "--classes", "a,b"), "are for classes; a regressor has none"),
        (("export", "fitted", "--out", "no.onnx", *OWN), "the model predicts numbers: there is no generator to export"),
    ],
)
def test_mistakes(capsys, arguments, message):
    assert message in user_error(capsys, *arguments)
    assert not Path("no").exists()


def test_questions_about_numbers_are_none_for_a_classifier(capsys):
    X, y = make_series(30, n_steps=8)
    np.savez("classes.npz", X=X, y=y % 2)
    output(capsys, "fit", "-d", "classes.npz", "-m", "nearest", "--model", "pressure.py:classes", "--out", "classes")
    for option in ("--at-least", "--of"):
        assert f"{option} is for a model that predicts numbers; this one predicts the classes 0, 1" in user_error(
            capsys, "explain", "classes", "--model", "pressure.py:classes", option, "1"
        )
