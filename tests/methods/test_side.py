"""Models with side inputs, in every method: passed as they are, never changed, and shown beside the answers."""

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import CapabilityError, DataError, ShapeError, UnknownNameError
from sparcets.methods import EXPLAINERS
from sparcets.methods.adversarial import export_generator
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.losses import LossTerm
from tests.campaigns.material import quick

X, Y = make_series(36, n_steps=8)
AGE = np.linspace(20, 90, 36)  # in float64, which float32 does not hold
WARD = np.arange(36) % 5
SIDE = {"age": AGE, "ward": WARD}
BLACK_BOXES = [name for name in EXPLAINERS if not EXPLAINERS.load(name).needs_gradients]


def some(rows):
    return {name: values[rows] for name, values in SIDE.items()}


class Aged(MeanModule):
    """Logits also depend on the age, and on the ward by an embedding; keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.wards, self.seen = nn.Embedding(5, 3), []

    def forward(self, x, age, ward):
        assert x.shape[2] == 4
        self.seen += zip(age.tolist(), ward.tolist(), strict=True)
        return super().forward(x) + 0.05 * (age[:, None] - 55) + 0.1 * self.wards(ward)


class Function:
    """The same as a black box, without the ward's effect."""

    def __init__(self):
        self.seen = []

    def __call__(self, x, *, age, ward):
        assert x.shape[2] == 4 and ward.dtype == WARD.dtype
        self.seen += zip(age.tolist(), ward.tolist(), strict=True)
        return mean_proba(x + 0.02 * (age[:, None, None] - 55) * np.array([1, 0, 0, 0]))


@pytest.fixture(scope="module")
def fitted():
    """Return a fitted explainer of each method and kind of model, made once."""
    known = {}

    def get(method, kind):
        if (method, kind) not in known:
            torch.manual_seed(0)
            known[method, kind] = quick(method, sp.wrap(kind(), n_classes=3)).fit(X, Y, side=SIDE, progress=False)
        return known[method, kind]

    return get


CASES = [(name, Aged) for name in EXPLAINERS] + [(name, Function) for name in BLACK_BOXES]


@pytest.mark.parametrize(("method", "kind"), CASES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_every_method_passes_them_as_they_are_also_after_loading(fitted, method, kind, tmp_path):
    ex = fitted(method, kind)
    e = ex.explain(X[:5], side=some(slice(5)), n=2)
    assert np.array_equal(e.query, np.repeat(X[:5], 2, 0)) and e.query.shape == (10, 8, 4) and e.changed.any()
    assert np.array_equal(e.side["age"], np.repeat(AGE[:5], 2)) and e.side["ward"].dtype == WARD.dtype
    assert e.feature_names == ex.feature_names == ("f0", "f1", "f2", "f3") and e.mutable.all()
    model = getattr(ex.classifier, "module", None) or ex.classifier.model
    clf = sp.wrap(model, n_classes=3)
    assert np.allclose(clf.predict_proba(e.counterfactual, side=e.side), e.proba_after, atol=1e-6)
    assert np.array_equal(clf.predict(e.counterfactual, side=e.side) == e.target, e.valid)
    # Each pair is one of those given: neither another row's, nor a mixture, nor with noise.
    given = {round(age, 3): ward for age, ward in zip(AGE.tolist(), WARD.tolist(), strict=True)}
    assert {(round(age, 3), ward) for age, ward in model.seen} <= set(given.items())
    if kind is Function:
        assert {age for age, _ in model.seen} <= set(AGE.tolist())
    ex.save(tmp_path)
    again = sp.load(tmp_path, classifier=clf)
    f = again.explain(X[:5], side=some(slice(5)), n=2)
    assert np.array_equal(e.counterfactual, f.counterfactual) and np.array_equal(e.proba_after, f.proba_after)
    with pytest.raises(DataError, match=r"was fitted with side inputs: pass side=\{'age': …, 'ward': …\}"):
        again.explain(X[:3], 1)
    with pytest.raises(CapabilityError, match="MeanModule has no argument 'age'"):
        sp.load(tmp_path, classifier=sp.wrap(MeanModule(), n_classes=3))


def test_a_neighbour_is_predicted_with_the_side_input_of_the_query():
    def above(x, offset):
        return np.eye(2)[(x[:, :, 0].mean(1) + offset > 1).astype(int)]

    train = np.array([[[0.9]], [[3.0]], [[0.0]]])
    ex = sp.Nearest(sp.wrap(above)).fit(train, [1, 1, 0], side={"offset": [0.5, 0.0, 0.0]})
    # The first is the nearest, and above 1 with its own offset; with that of the query it is not.
    e = ex.explain([[[0.5]]], target=1, side={"offset": [0.0]})
    assert e.counterfactual.ravel().tolist() == [3.0] and e.valid.all() and e.side["offset"].tolist() == [0.0]
    assert ex.explain([[[0.5]]], target=1, side={"offset": [0.3]}).counterfactual.ravel().tolist() == [0.9]


@pytest.fixture(scope="module")
def nearest():
    return sp.Nearest(sp.wrap(Function())).fit(X, Y, side=SIDE)


@pytest.mark.parametrize("form", [lambda: X[:10], lambda: iter(X[:10])], ids=["array", "iterator"])
def test_there_is_a_row_for_every_query(nearest, tmp_path, form):
    for rows in (9, 11):
        with pytest.raises(ShapeError, match=rf"must have 10 rows|{rows}"):
            nearest.explain(form(), 1, side=some(slice(rows)), out=tmp_path / f"other {rows}")
    with pytest.raises(DataError, match="was fitted with side inputs"):
        nearest.explain(form(), 1, out=tmp_path / "none")


def test_constraints_concern_the_series_alone(nearest):
    shapes = set()

    def halved(made, query):
        shapes.add((made.shape[2], query.shape[2]))
        return np.clip(made, query - 1, query + 1)

    e = nearest.explain(X[:4], 1, side=some(slice(4)), constraints=sp.Constraints(project=halved, immutable=[3]))
    assert shapes == {(4, 4)} and e.mutable.tolist() == [True, True, True, False] and not e.changed[..., 3].any()
    assert "immutable" not in " ".join(nearest.explain(X[:4], 1, side=some(slice(4)), sparsity=0.01).reason)
    frozen = nearest.explain(X[:4], 1, side=some(slice(4)), constraints=sp.Constraints(frozen=[(2, None)]))
    moved = frozen.status != "unchanged"
    assert frozen.may_change.sum((1, 2)).tolist() == [2 * 4] * 4 and (frozen.share_changed[moved] == 1).all()
    for feature in ("side.age", "age", 4):
        with pytest.raises((UnknownNameError, sp.SparcetsError), match="no feature"):
            nearest.explain(X[:4], 1, side=some(slice(4)), constraints=sp.Constraints(immutable=[feature]))
    assert nearest._defaults.constraints.active_kinds() == []


def test_loss_terms_of_the_user_are_given_the_series_alone():
    shapes = set()

    def term(query, made):
        shapes.add((query.shape[2], made.shape[2]))
        return (made - query).abs().mean((1, 2))

    ex = quick("sparce", sp.wrap(Aged(), n_classes=3))
    ex.domain_losses = {"own": LossTerm(0.1, term)}
    ex.fit(X, Y, side=SIDE, progress=False)
    assert shapes == {(4, 4)}
    with pytest.raises(CapabilityError, match=r"side inputs \(age, ward\) is not exported"):
        export_generator(ex, "unwritten.onnx")


@pytest.mark.parametrize("method", ["nearest", "ics", "sparcets"])
def test_regressors(method):
    class Number(nn.Module):
        def forward(self, x, age):
            return x[:, :, 0].mean(1, keepdim=True) + 0.01 * age[:, None]

    z = X[:, :, 0].mean(1) + 0.01 * AGE
    reg = sp.wrap(Number(), task="regression")
    ex = quick(method, reg).fit(X, z, side={"age": AGE}, progress=False)
    e = ex.explain(X[:4], sp.AtLeast(float(np.median(z))), side={"age": AGE[:4]})
    assert e.query.shape == (4, 8, 4) and np.array_equal(e.side["age"], AGE[:4])
    assert np.allclose(reg.predict(e.counterfactual, side=e.side), e.prediction, atol=1e-5)
    scores = sp.evaluate(e, classifier=reg)
    assert scores.summary["valid"]["mean"] == e[e.status != "unchanged"].valid.mean()


def test_a_data_set_carries_them():
    ds = sp.Dataset.from_arrays(X, Y, side=SIDE, feature_names=["a", "b", "c", "d"], units="g", seed=1)
    pairs = dict(zip(X[:, 0, 0].tolist(), AGE.tolist(), strict=True))
    assert [pairs[x] for x in ds.X_test[:, 0, 0].tolist()] == ds.side_test["age"].tolist()
    assert not ds.side_train["ward"].flags.writeable and "side inputs: age, ward" in ds._repr_html_()
    clf = sp.wrap(Function())
    ex = sp.Nearest(clf).fit(ds)
    e = ex.explain(ds)
    assert np.array_equal(e.side["ward"], ds.side_test["ward"]) and e.feature_names == ("a", "b", "c", "d")
    scores = sp.evaluate(e, ds, classifier=clf, judges={"blunt": sp.wrap(mean_proba)})
    assert any("judges see the series alone, and not the side inputs (age, ward)" in note for note in scores.notes)
    with pytest.raises(DataError, match="is not the model that was explained"):
        sp.evaluate(e, ds, classifier=sp.wrap(lambda x, age, ward: mean_proba(x)))
    with pytest.raises(DataError, match="the data set has side inputs of its own"):
        ex.explain(ds, side=ds.side_test)
    with pytest.raises(ShapeError, match=r"side\['age'\] must have 36 rows"):
        sp.Dataset.from_arrays(X, Y, side={"age": AGE[:5]})
