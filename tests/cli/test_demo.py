"""``sparcets demo``: the whole road, with data and settings so small that the answers are worth nothing."""

from pathlib import Path

import pytest

import sparcets.evaluation.evaluate  # noqa: F401  # it, too, must have its own names before they are replaced
from sparcets.__main__ import main
from sparcets.classifiers import torch_classifier
from sparcets.config.explainers import SparceConfig
from sparcets.config.models import ClassifierConfig
from sparcets.datasets import catching
from sparcets.explainers import sparce

TINY = {
    (sparce, "Sparce"): SparceConfig.tiny().override("train.epochs=1"),
    (torch_classifier, "TorchClassifier"): ClassifierConfig(epochs=8),
}


def test_it_leaves_everything_and_says_where_the_report_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching, "COUNTS", (60, 60, 60))
    for (module, name), config in TINY.items():
        made = getattr(module, name)
        monkeypatch.setattr(module, name, lambda what, _, made=made, config=config: made(what, config))
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    pictures = {f"answer-{i:03d}.png" for i in range(4)}
    files = {file.name for file in (tmp_path / "demo").iterdir()}
    assert files == {"explanation.npz", "explanation.txt", "report.html", *pictures}
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {tmp_path / 'demo' / 'report.html'}"
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert page.count("<article") == 4 and "<h1>What a control would have done differently</h1>" in page
