"""Fits that cells share: trained once, loaded without any difference, trained again if damaged."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.methods.base import BaseExplainer
from sparcets.methods.folder import FILES
from sparcets.testing.data import make_series
from sparcets_paper.benchmark.cell import SECONDS, RunContext, find_explainer, run_cell
from sparcets_paper.benchmark.plan import Cell

pytestmark = pytest.mark.long

TINY = {"hidden": 8, "layers": 1, "dropout": 0.0, "epochs": 15, "lr": 0.01}
QUICK = ("believed_by=model",)
CONFIG = sp.ExplainerConfig.tiny().override(*QUICK, "device=cpu")


@pytest.fixture(scope="module")
def data():
    return sp.Dataset.from_arrays(*make_series(60, n_steps=9))


@pytest.fixture(scope="module")
def classifier(data):
    return sp.TorchClassifier("fcn", sp.ClassifierConfig(hidden=4, epochs=8, device="cpu")).fit(data)


@pytest.fixture
def trained(monkeypatch):
    """Return the methods that are fitted from now on, in order."""
    names = []
    fit = BaseExplainer.fit

    def recorded(self, *arguments, **named):
        names.append(self.method)
        return fit(self, *arguments, **named)

    monkeypatch.setattr(BaseExplainer, "fit", recorded)
    return names


def answers(explainer, data, **request):
    e = explainer.explain(data.X_test, **request)
    return e.counterfactual.tobytes(), e.proba_after.tobytes(), e.status.tobytes(), e.reason.tobytes()


def test_another_method_classifier_or_data_set_is_another_fit(data, classifier, trained, tmp_path):
    gan = sp.GanConfig.tiny().override("train.epochs=1", "generator.hidden=4", "device=cpu")
    reseeded = sp.TorchClassifier("fcn", replace(classifier.config, seed=5)).fit(data)
    other_kind = sp.TorchClassifier("tcn", classifier.config).fit(data)
    shifted = replace(data, X_train=data.X_train + np.float32(1e-3))
    find_explainer(sp.Explainer(classifier, CONFIG), data, classifier, tmp_path)
    trained.clear()
    for _ in range(2):
        find_explainer(sp.Gan(classifier, gan), data, classifier, tmp_path)
        find_explainer(sp.Explainer(reseeded, CONFIG), data, reseeded, tmp_path)
        find_explainer(sp.Explainer(other_kind, CONFIG), data, other_kind, tmp_path)
        find_explainer(sp.Explainer(classifier, CONFIG), shifted, classifier, tmp_path)
    assert trained == ["gan", "sparcets", "sparcets", "sparcets"]


def truncate(file):
    file.write_bytes(file.read_bytes()[:60])


DAMAGES = {
    "weights truncated": lambda kept: truncate(kept / FILES.file),
    "empty": lambda kept: (kept / FILES.file).write_text("") and None,
    "killed before the time was written": lambda kept: (kept / SECONDS).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_explainer_is_trained_again(damage, data, classifier, trained, tmp_path):
    first, _ = find_explainer(sp.Explainer(classifier, CONFIG), data, classifier, tmp_path)
    (kept,) = (path for path in tmp_path.iterdir() if path.is_dir())
    DAMAGES[damage](kept)
    second, seconds = find_explainer(sp.Explainer(classifier, CONFIG), data, classifier, tmp_path)
    assert trained == ["sparcets", "sparcets"] and seconds > 0
    third, same = find_explainer(sp.Explainer(classifier, CONFIG), data, classifier, tmp_path)  # it is whole again
    assert trained == ["sparcets", "sparcets"] and same == seconds
    assert answers(first, data, target=1) == answers(second, data, target=1) == answers(third, data, target=1)


@pytest.mark.usefixtures("no_judges")
def test_cells_that_differ_in_target_and_limit_share_a_fit(trained, tmp_path):
    X, y = make_series(60, n_steps=9)
    np.savez(tmp_path / "own.npz", X=X, y=np.array(["calm", "brisk", "wild"])[y])
    cell = Cell(
        dataset=str(tmp_path / "own.npz"), classifier="fcn", classifier_config=TINY, preset="tiny", settings=QUICK,
        target="brisk", keep=99,
    )  # fmt: skip
    variants = [cell, replace(cell, target="calm"), replace(cell, sparsity=0.1), replace(cell, target=None, queries=4)]
    context = RunContext(tmp_path / "runs", "cpu")
    rows = [run_cell(variant, context) for variant in variants]
    assert not any("error" in row for row in rows), [row.get("error") for row in rows]
    assert trained == ["sparcets"] and len({row["fit_s"] for row in rows}) == 1
    assert [row["sparsity"] for row in rows] == [None, None, 0.1, None]
    assert rows[2]["measures"]["sparsity_all"] <= 0.1 < rows[0]["measures"]["sparsity_all"]
    assert all(row["history"] == rows[0]["history"] and row["config"] == rows[0]["config"] for row in rows)

    for variant, row in zip(variants, rows, strict=True):  # each in its own folder, with its own fit
        own = RunContext(tmp_path / "alone" / variant.key, "cpu")
        alone = run_cell(variant, own)
        shared, fresh = (sp.load_explanation(p.folder / "explanations" / f"{variant.key}.npz") for p in (context, own))
        assert shared.counterfactual.tobytes() == fresh.counterfactual.tobytes()
        for name, value in row["measures"].items():
            if name != "seconds":
                assert value == pytest.approx(alone["measures"][name], rel=0, abs=0, nan_ok=True), name
    assert trained == ["sparcets"] * 5
    run_cell(replace(cell, seed=1), context)
    assert trained == ["sparcets"] * 6  # repetitions are not shared
