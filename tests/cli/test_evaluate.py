"""``sparcets evaluate`` as a user types it."""

import json
from dataclasses import replace

import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.evaluation import judges
from sparcets.evaluation.families import check_families

from .conftest import run, save_series, user_error


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with data, a fitted model and an explanation."""
    folder = tmp_path_factory.mktemp("folder")
    save_series(folder / "own.npz")
    data = ["-d", str(folder / "own.npz"), "-m", "nearest", "-c", "fcn", "--preset", "tiny"]
    assert main(["fit", *data, "--out", str(folder / "model"), "--json"]) == 0
    run = ["explain", str(folder / "model"), "-t", "brisk", "--rows", "0:12", "--out", str(folder / "run.npz")]
    assert main([*run, "--json"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _quick_judges(monkeypatch):
    monkeypatch.setattr(judges, "JUDGE_CONFIG", replace(judges.JUDGE_CONFIG, hidden=4, epochs=2))


def test_with_the_model_all_is_measured(capsys, folder, tmp_path):
    out = tmp_path / "scores.json"
    code, text, _ = run(capsys, "evaluate", str(folder / "run.npz"), "-m", str(folder / "model"), "--out", str(out))
    assert code == 0 and f"saved to {out}" in text
    lines = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    assert lines["valid"].startswith("1.000\t0.000\t1.000\t1.000\t") and lines["valid"].endswith("higher")
    scores = sp.Scores.load(out)
    assert len(scores.per_query) == 12 and scores.per_query["row"].tolist() == list(range(12))
    assert tuple(scores.judges) == check_families(None) and lines["coverage"].startswith("1.000\t\t\t\t")
    assert "nan" not in text and "judges and their test accuracy" in text


def test_data_are_split_as_the_model_had_them(capsys, folder, tmp_path):
    own, model, answers = str(folder / "own.npz"), str(tmp_path / "m5"), str(tmp_path / "run.npz")
    assert main(["fit", "-d", own, *"-m nearest -c fcn --preset tiny --seed 5 --out".split(), model]) == 0
    assert main(["explain", model, "-t", "brisk", "--rows", "0:12", "--out", answers]) == 0
    for name in (own, str(folder / ".." / folder.name / "own.npz")):
        code, text, _ = run(capsys, "evaluate", answers, "-m", model, "-d", name)
        assert code == 0 and "test part" not in text
    _, text, _ = run(capsys, "evaluate", answers, "-m", model, "-d", own, "-o", "seed=0")  # as given
    assert "queries are not in the test part of" in text and "in its training part" in text


def test_json_and_data_by_name(capsys, folder):
    code, text, _ = run(capsys, "evaluate", str(folder / "run.npz"), "-d", str(folder / "own.npz"), "--json")
    found = json.loads(text)
    assert code == 0 and found["summary"]["valid"]["mean"] == 1.0 and "transfer_neural" in found["summary"]
    assert "per_query" not in found and "knn_ratio" in found["summary"]


def test_without_data_what_needs_none(capsys, folder):
    code, text, _ = run(capsys, "evaluate", str(folder / "run.npz"))
    assert code == 0 and "sparsity\t" in text and "transfer\t" not in text
    assert "\nnote: " in text and "need a data set" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.npz"], "no file nothing.npz"),
        (["RUN", "-d", "no_such_set"], "no data set 'no_such_set'"),
        (["RUN", "-d", "catching"], "Pass the data set its queries come from"),
        (["RUN", "-m", "nowhere"], "run.json"),
        (["RUN", "-o", "seed=1"], "give --dataset too"),
    ],
)
def test_a_user_error_is_one_line(capsys, folder, arguments, message):
    given = [str(folder / "run.npz") if a == "RUN" else a for a in arguments]
    assert message in user_error(capsys, "evaluate", *given)
