"""Every method on float64 series near 1e9, of which float32 could not hold a single change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sparcets as sp
from sparcets.explainers import EXPLAINERS
from sparcets.testing.data import make_series

SHIFT = 1e9


class Shifted(nn.Module):
    """Class k if feature k is the highest on average, of series shifted by ``SHIFT``."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(10.0, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.sharpness * (x[..., :3] - SHIFT).mean(1)


@pytest.fixture(scope="module")
def data() -> sp.Dataset:
    X, y = make_series(120)
    return sp.Dataset.from_arrays(X.astype(np.float64) + SHIFT, y)


@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_answers_are_exact_from_fit_to_load(method: str, data: sp.Dataset, tmp_path: Path) -> None:
    kind = EXPLAINERS.load(method)
    clf = sp.wrap(Shifted(), n_classes=3)
    queries = data.X_test[data.y_test != 1][:8]
    explainer = kind(clf, kind.config_class.tiny()).fit(data, progress=False)
    e = explainer.explain(queries, target=1, progress=False)

    assert e.query.dtype == e.counterfactual.dtype == np.float64
    np.testing.assert_array_equal(e.query, queries)
    moved = e.counterfactual.view(np.int64) != e.query.view(np.int64)
    np.testing.assert_array_equal(moved, e.changed)
    np.testing.assert_array_equal(e.valid, clf.predict(e.counterfactual) == 1)
    if method in ("sparcets", "nearest"):
        assert e.valid.all()
    scores = sp.evaluate(e, data, classifier=clf, judges={})
    assert scores.summary["valid"]["mean"] == e.valid.mean() and (scores.per_query["row"] >= 0).all()

    e.save(tmp_path / "e.npz")
    np.testing.assert_array_equal(sp.load_explanation(tmp_path / "e.npz").counterfactual, e.counterfactual)
    explainer.save(tmp_path / "explainer")
    again = sp.load(tmp_path / "explainer", classifier=clf).explain(queries, target=1, progress=False)
    np.testing.assert_array_equal(again.counterfactual, e.counterfactual)
