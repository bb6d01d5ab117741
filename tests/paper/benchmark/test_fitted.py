"""Fits that cells share: trained once, and loaded without any difference."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.methods.base import BaseExplainer
from sparcets.testing.data import make_series
from sparcets_paper.benchmark.cell import RunContext, run_cell
from sparcets_paper.benchmark.plan import Cell

pytestmark = pytest.mark.long

TINY = {"hidden": 8, "layers": 1, "dropout": 0.0, "epochs": 15, "lr": 0.01}
QUICK = ("believed_by=model",)


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
