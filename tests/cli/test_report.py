"""``sparcets report`` and ``sparcets demo``: pages, and figures of answers; a user error is one line."""

import json
import re

import pytest

import sparcets as sp
import sparcets.evaluation.evaluate
from sparcets.__main__ import main
from sparcets.core.settings import ClassifierConfig, ExplainerConfig
from sparcets.methods.own import explainer
from sparcets.models import network as torch_classifier
from sparcets.motion import catching
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

from .conftest import run, user_error


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("run") / "run.npz")
    X, y = make_series(60)
    sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:3], target=1, n=2).save(path)
    return path


def test_a_page_with_what_can_be_measured(capsys, run_file, tmp_path):
    page = tmp_path / "new folder" / "r.html"
    code, out, err = run(capsys, "report", run_file, "--out", str(page), "--title", "Mine")
    assert code == 0 and err == "" and out.startswith(f"saved to {page} (")
    text = page.read_text(encoding="utf-8")
    assert text.count("<article") == 6 and "<h1>Mine</h1>" in text and "100 % of the 6 answers" in text


def test_scores_bring_the_judges(capsys, run_file, tmp_path):
    e = sp.load_explanation(run_file)
    X, y = make_series(60)
    judges = {"blunt": sp.wrap(lambda X: mean_proba(X, sharpness=1.0))}
    sp.evaluate(e, sp.Dataset.from_arrays(X, y), judges=judges).save(tmp_path / "scores.json")
    page = tmp_path / "r.html"
    scores = str(tmp_path / "scores.json")
    code, out, _ = run(capsys, "report", run_file, "--out", str(page), "--scores", scores, "--json")
    assert code == 0 and json.loads(out)["answers"] == 6
    assert "The one independent judge says 1 too (blunt)." in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("suffix", "magic", "more"),
    [("png", b"\x89PNG", ["--picture", "several"]), ("pdf", b"%PDF", []), ("svg", b"<?xml", [])],
)
def test_one_answer_as_a_picture(capsys, run_file, tmp_path, suffix, magic, more):
    file = tmp_path / f"answer.{suffix}"
    code, _, err = run(capsys, "report", run_file, "--answer", "2", "--out", str(file), *more)
    assert code == 0 and err == "" and file.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "r.pdf"], "--out must end in .html, .htm, got 'r.pdf'. For a figure, choose an answer: --answer 0."),
        (["--out", "r.html", "-a", "0"], "--out must end in .pdf, .png, .svg, got 'r.html'."),
        (["--out", "r.png", "-a", "6"], "no answer 6: this explanation holds 6"),
        (["--out", "r.png", "-a", "0", "--picture", "body"], "a stick figure needs features that name points"),
        (["--out", "r.html", "--scores", "none.json"], "no file none.json"),
    ],
)
def test_user_errors_are_one_line(capsys, monkeypatch, run_file, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in user_error(capsys, "report", run_file, *arguments)
    assert list(tmp_path.iterdir()) == [], "no incomplete file is left"


TINY = {(explainer, "Explainer"): ExplainerConfig.tiny()}
TINY[torch_classifier, "TorchClassifier"] = ClassifierConfig(epochs=8)


def test_it_writes_all_files_and_prints_the_path_of_the_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(catching, "COUNTS", (90, 90, 90))
    for (module, name), config in TINY.items():
        made = getattr(module, name)
        monkeypatch.setattr(module, name, lambda what, _, made=made, config=config: made(what, config))
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    texts = (tmp_path / "demo" / "explanation.txt").read_text(encoding="utf-8")
    numbers = re.findall(r"^series (\d+): ", texts, re.MULTILINE)
    files = {file.name for file in (tmp_path / "demo").iterdir()}
    pictures = {f"series-{int(number):03d}.png" for number in numbers}
    assert len(numbers) == 4 and files == {"explanation.npz", "explanation.txt", "report.html", *pictures}
    assert [line.split("\t")[0] for line in printed.splitlines() if line[0:1].isdigit() and "\t" in line] == numbers
    assert printed.splitlines()[-1] == f"report: {tmp_path / 'demo' / 'report.html'}"
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert all(f"(series {number}, " in page for number in numbers)
    assert page.count("<article") == 4 and "<h1>What makes the model say Control</h1>" in page
    assert main(["demo", "--out", str(tmp_path / "demo"), "--json"]) == 0  # over an earlier one
    told = json.loads(capsys.readouterr().out)
    assert told["answers"] == 4 and told["report"].endswith("report.html")


@pytest.mark.parametrize("name", ["report.html", "explanation.txt", "explanation.npz"])
def test_files_of_others_are_not_replaced(name, tmp_path, capsys):
    (tmp_path / name).write_text("theirs")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"{name} is in the way: it is not of an earlier demo" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1
