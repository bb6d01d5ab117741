"""``sparcets demo`` from end to end, with few data and short training."""

import re
from pathlib import Path

import pytest

import sparcets.evaluation.evaluate  # noqa: F401 - imported before the classes below are replaced
from sparcets.__main__ import main
from sparcets.core.settings import ClassifierConfig, ExplainerConfig
from sparcets.methods.own import explainer
from sparcets.models import network as torch_classifier
from sparcets.motion import catching

TINY = {
    (explainer, "Explainer"): ExplainerConfig.tiny().override("train.epochs=1"),
    (torch_classifier, "TorchClassifier"): ClassifierConfig(epochs=8),
}


def test_it_writes_all_files_and_prints_the_path_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize("name", ["report.html", "explanation.txt", "explanation.npz"])
def test_files_of_others_are_not_replaced(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text("theirs")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"{name} is in the way: it is not of an earlier demo" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1
