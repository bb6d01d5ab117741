"""How evidence comes into an explanation: by two hooks of the method, once per block, whatever way the queries come."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.evidence import Evidence
from sparcets.io import explanations as shards
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from tests.scripted import Scripted

X, Y = make_series(30)  # ten of each class
N_OTHERS = int((Y != 1).sum())


def lift_target(request):
    cf = np.repeat(request.X, request.n, axis=0)
    for i, k in enumerate(np.repeat(request.target, request.n)):
        cf[i, :, k] = 9
    return cf


class Supported(Scripted):
    """A scripted method with evidence that shows which answers it is of; it keeps what it is given."""

    supports_curve = True

    def __init__(self, classifier, config=None):
        super().__init__(classifier, config, script=lift_target)
        self.asked, self.asked_for_curves = [], []

    def _evidence(self, answers, options):
        self.asked.append((answers, options))
        return Evidence(families=("even", "odd"), support=np.stack([answers.query_index, answers.target], 1) / 100)

    def _curve(self, answers, options):
        self.asked_for_curves.append(answers)
        share = answers.query_index[:, None] / 100 + np.array([[0.5, 0.25]])
        return {"share": share, "support": np.ones_like(share), "valid": np.ones_like(share)}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "MAX_SHARD_BYTES", X[0].size * 8 * 7)  # seven queries each


def fitted(**settings):
    return Supported(sp.wrap(mean_proba, n_classes=3), sp.NearestConfig(**settings)).fit(X, Y)


def assert_evidence_of(e):
    """Check that every answer has the evidence on itself."""
    assert e.families == ("even", "odd")
    np.testing.assert_array_equal(e.support, np.stack([e.query_index, e.target], 1) / 100)


@pytest.mark.parametrize("into", ["memory", "a folder"])
@pytest.mark.parametrize("source", [lambda: X, lambda: iter(X)], ids=["array", "iterator"])
def test_every_answer_has_its_evidence_and_a_curve_where_something_changed(tmp_path, source, into):
    out = None if into == "memory" else tmp_path / "out"
    e = fitted(batch_size=4).explain(source(), target=1, n=2, curve=True, out=out)
    unchanged = e.status == "unchanged"
    assert len(e) == 2 * len(X) and unchanged.sum() == 20 and np.isnan(e.curve["share"][unchanged]).all()
    np.testing.assert_array_equal(e.flips_at[~unchanged], e.query_index[~unchanged] / 100 + 0.25)
    np.testing.assert_array_equal(e.least_believed, e.flips_at)
    assert_evidence_of(e)
    e[[7, 3]].save(tmp_path / "run.npz")
    assert_evidence_of(sp.load_explanation(tmp_path / "run.npz"))


def test_a_method_is_asked_once_per_block_about_finished_answers():
    ex = fitted(batch_size=4)
    e = ex.explain(X, target=1, n=2, sparsity=0.5, curve=True)
    ((answers, options),) = ex.asked
    for name in ("query", "counterfactual", "target", "status", "proba_after"):
        np.testing.assert_array_equal(getattr(answers, name), getattr(e, name))
    assert options.n == 2 and options.sparsity == 0.5 and options.curve
    ((curve_of),) = ex.asked_for_curves
    assert len(curve_of) == 2 * N_OTHERS and (curve_of.status != "unchanged").all()
    assert ex.explain(X, target=1).curve["share"].shape == (len(X), 0)
    assert len(ex.asked) == 2 and len(ex.asked_for_curves) == 1, "no curve unless it is requested"
