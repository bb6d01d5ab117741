"""Any class but one, and how sure the classifier has to be."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.scripted import Scripted

X, Y = make_series(60, n_steps=8)
NAMES = ["calm", "brisk", "wild"]
METHODS = ["Nearest", "Ics", "Explainer"]


class Unsure(MeanModule):
    """A model with probabilities far from 0 and 1."""

    def forward(self, x):
        return 0.3 * super().forward(x)


@pytest.fixture(scope="module")
def explainers():
    clf = sp.wrap(Unsure(), class_names=NAMES)
    return {name: (kind := getattr(sp, name))(clf, kind.config_class.tiny()).fit(X, Y) for name in METHODS}


def test_the_easiest_class_is_taken():
    def script(request):
        made = request.X.copy()
        for series, k in zip(made, request.target, strict=True):
            series[:, k] = 9
            series[:, 3] += k == 0  # one more feature than towards the other class
        return made

    ex = Scripted(sp.wrap(mean_proba, n_classes=3), script=script).fit(X, Y)
    e = ex.explain(X[ex.classifier.predict(X) == 1][:6], target=sp.Not(1))
    assert e.valid.all() and (e.target == 2).all() and (e.share_changed == 0.25).all()


@pytest.mark.parametrize("method", METHODS)
def test_confidence_is_kept(explainers, method, tmp_path):
    ex = explainers[method]
    queries = X[Y == 0][:10]
    loose = ex.explain(queries, target="brisk")
    level = float(np.median(loose.probability))
    sure = ex.explain(queries, target="brisk", confidence=level)
    p = ex.classifier.predict_proba(sure.counterfactual)[:, 1]
    assert (sure.valid == ((p >= level) & (ex.classifier.predict(sure.counterfactual) == 1))).all()
    assert sure.valid.mean() > 0.3 and (loose.probability[loose.valid] < level).any()
    assert ((sure.status == "not_found") == ~sure.valid).all()
    sure.save(tmp_path / "e.npz")
    again = sp.load_explanation(tmp_path / "e.npz")
    assert again.confidence == level
    assert (again.valid == sure.valid).all() and (sure[2:4].valid == sure.valid[2:4]).all()


def test_a_series_of_which_nothing_may_change(explainers):
    for method in METHODS:
        ex = explainers[method]
        if ex.supports_lengths:
            lengths = np.array([3, 8])
            e = ex.explain(X[Y == 0][:2], "brisk", lengths=lengths, constraints=sp.Constraints(frozen=[(0, 3)]))
            assert e.status[0] == "not_found"
            assert e.share_changed[0] == 0 and e.may_change.sum((1, 2)).tolist() == [0, 20]
            assert "may change" in e.reason[0] or "undo every change" in e.reason[0]
