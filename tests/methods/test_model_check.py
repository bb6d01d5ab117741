"""A model that knows nothing of the labels, or contradicts itself: fit says so, and no answer is believed."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import ModelOutputError
from sparcets.core.evidence import PLAUSIBILITY, Evidence
from sparcets.core.info import ModelCheck
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.scripted import Scripted

X, Y = make_series(120)
NEW, NEW_Y = make_series(90, seed=5)
NAMES = np.array(["a", "b", "c"])


class Believing(Scripted):
    """Gives real series of the target, of which models of three kinds and discriminators are convinced."""

    def __init__(self, classifier, config=None):
        super().__init__(classifier, config)
        self.script = lambda request: X[[np.flatnonzero(t == Y)[3] for t in request.target]]

    def _evidence(self, answers, options):
        n = len(answers)
        looks = {name: np.zeros(n) for name in PLAUSIBILITY}
        return Evidence(families=("f", "g", "h", "real"), support=np.ones((n, 4)), plausibility=looks)


def untrained():
    torch.manual_seed(1)
    return sp.wrap(nn.Sequential(nn.Flatten(), nn.Linear(X[0].size, 3)), n_classes=3)


def shuffled_names(model=mean_proba):
    return sp.wrap(lambda Z: model(Z), class_names=["c", "b", "a"])


def fit_quietly(model, *data, method=Believing, **more):
    """Fit, and fail if anything is said against the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", sp.ModelWarning)
        return method(model).fit(*data, **more)


def test_a_model_that_agrees_with_the_labels_is_not_spoken_against():
    ex = fit_quietly(sp.wrap(MeanModule(), n_classes=3), X, Y)
    assert "The model agrees with 100 % of the labels of 120 training series (it may have been" in ex.summary()
    assert "Careful" not in ex.summary()
    assert set(ex.explain(X[Y == 0][:4], target=1).verdict) == {"believed"}


@pytest.mark.parametrize("method", [Believing, sp.Nearest])
@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (untrained, Y, r"Sequential: the model is not better than chance: it agrees with \d+ % of the labels of 120"),
        (lambda: sp.wrap(lambda Z: np.tile([0.2, 0.7, 0.1], (len(Z), 1))), Y, "predicts '1' for all of 120 training s"),
        (shuffled_names, NAMES[Y], r"class_names=\['a', 'b', 'c'\] would agree with 100 % of the labels, the given"),
    ],
    ids=["near chance", "one class", "another order"],
)
def test_a_model_that_knows_nothing_is_warned_of_and_never_believed(model, labels, message, method, tmp_path):
    model = model()
    with pytest.warns(sp.ModelWarning, match=message) as said:
        ex = method(model).fit(X, labels)
    assert [one.filename for one in said] == [__file__]
    assert "Careful: the " in ex.summary() and "No answer is believed." in ex.summary()
    e = ex.explain(X[Y == 0][:6], target=np.array([1, 2] * 3))
    ex.save(tmp_path / "fitted")
    e.save(tmp_path / "run.npz")
    again = sp.load(tmp_path / "fitted", classifier=model) if method is sp.Nearest else ex
    assert again.summary() == ex.summary()
    later = again.explain(X[Y == 0][:6], target=np.array([1, 2] * 3))
    for one in (e, sp.load_explanation(tmp_path / "run.npz"), later):
        assert "believed" not in one.verdict
        for i in np.flatnonzero(one.verdict == "doubtful"):
            doubt = one.info.model.doubts[0]
            assert doubt in one.text(int(i))
    doubts = one.info.model.doubts[0]
    assert "careful" in one._repr_html_() and doubts.split("'")[0] in one._repr_html_()


def test_the_series_that_a_model_was_not_trained_on_decide():
    ds = sp.Dataset.from_arrays(X, Y, test_size=0.4, seed=0)
    known = {series.tobytes(): y for series, y in zip(ds.X_train, ds.y_train, strict=True)}

    def learnt_by_heart(Z):
        return np.eye(3)[[known.get(series.tobytes(), i % 3) for i, series in enumerate(Z)]]

    fit_quietly(sp.wrap(learnt_by_heart), ds.X_train, ds.y_train)
    with pytest.warns(sp.ModelWarning, match="not better than chance: .* of 48 series that it was not trained on"):
        sp.Nearest(sp.wrap(learnt_by_heart)).fit(ds)


def test_labels_of_one_class_show_nothing_and_two_exchanged_classes_of_many_are_named():
    only = ModelCheck.of_classes(np.array([0, 1, 1]), np.ones(3, dtype=int), "ab", held_out=True)
    told = "all of 3 series that it was not trained on are of class 'b', which cannot show what the model knows"
    assert only.doubts == (told,)
    y = np.arange(200) % 5
    said = np.array([0, 1, 3, 2, 4])[y]
    doubts = ModelCheck.of_classes(said, y, "abcde", held_out=True).doubts
    assert "class_names=['a', 'b', 'd', 'c', 'e'] would" in doubts[0]
    assert ModelCheck.of_classes(np.where(np.arange(200) < 20, said, y), y, "abcde", held_out=True).doubts == ()
    assert "not better than chance" in ModelCheck.of_classes(y[:2], y[:2], "abcde", held_out=True).doubts[0]


def test_numbers_that_are_no_better_than_their_mean():
    level = X[:, :, 0].mean(1)
    sound = sp.wrap(lambda Z: Z[:, :, 0].mean(1), task="regression")
    ex = fit_quietly(sound, X, level, method=sp.Nearest)
    assert "The model explains 1.00 of the variance of the labels of 120 training series" in ex.summary()
    assert ex.explain(X[:3], target=sp.AtLeast(0.9)).valid.all()
    with pytest.warns(sp.ModelWarning, match="not better than chance: of 120 training series, it explains -1.* of the"):
        ex = sp.Nearest(sp.wrap(lambda Z: Z[:, 0, 3], task="regression")).fit(X, level)
    assert ex.explain(X[:3], target=sp.AtLeast(0.1)).info.model.doubts
    with pytest.warns(sp.ModelWarning, match="labels of 120 training series are all equal"):
        sp.Nearest(sound).fit(X, np.ones(120))


# A model that contradicts itself.


def random_model():
    noise = np.random.default_rng(0)
    return lambda Z: mean_proba(Z + noise.normal(0, 1.0, (len(Z), 1, Z.shape[2])))


def stateful():
    calls = itertools.count()
    return lambda Z: np.roll(mean_proba(Z), next(calls) % 2, axis=1)


def of_the_batch(Z):
    levels = np.asarray(Z, dtype=float)[..., :3].mean(1)
    weights = np.exp(9 * (levels - levels.mean(0)))
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("model", [random_model, stateful, lambda: of_the_batch], ids=["random", "stateful", "batch"])
def test_a_model_that_contradicts_itself_is_warned_of(model):
    with pytest.warns(sp.ModelWarning, match=r"the model contradicts itself: asked .* for \d+ of (64|16) series"):
        ex = Believing(sp.wrap(model())).fit(X, Y)
    e = ex.explain(NEW[:30], target=1)
    assert "believed" not in e.verdict
    contradicted = np.array(["contradicts itself" in reason for reason in e.reason])
    assert contradicted.any() and not e.valid[contradicted].any()
    assert set(e.status[contradicted]) == {"not_found"}
    i = int(np.flatnonzero(contradicted)[0])
    assert "the model contradicts itself: asked twice about the same series, it predicts 1, then" in e.text(i)


def test_what_depends_on_the_batch_is_asked_alone():
    with pytest.warns(sp.ModelWarning, match="contradicts itself"):
        ex = sp.Nearest(sp.wrap(of_the_batch)).fit(X, Y)
    e = ex.explain(NEW[:30], target=1)
    alone = np.array([of_the_batch(series[None]).argmax(1)[0] for series in e.counterfactual])
    assert (alone[e.valid] == 1).all()


def test_rounding_is_no_contradiction():
    sizes = itertools.count()

    def tie(Z):  # 0 and 1 are equally probable, but for last bits
        return np.stack([0.5 + 1e-9 * (-1) ** next(sizes) + 0 * Z[:, 0, 0], 0.5 - 0 * Z[:, 0, 0]], axis=1)

    def model(Z):
        return np.where((Z[:, :, 0].mean(1) > 0.3)[:, None], tie(Z), [[0.1, 0.9]])

    y = (X[:, :, 0].mean(1) <= 0.3).astype(int)
    ex = Believing(sp.wrap(model)).fit(X, y)
    assert ex.info_.model.consistent


def test_an_answer_whose_second_prediction_differs_is_not_valid_even_if_the_fit_saw_nothing():
    moody = {"on": False}
    calls = itertools.count()

    def model(Z):
        proba = mean_proba(Z)
        return np.roll(proba, 1, axis=1) if moody["on"] and next(calls) % 3 == 2 else proba

    ex = fit_quietly(sp.wrap(model), X, Y)
    moody["on"] = True
    e = ex.explain(X[Y == 0][:5], target=1)  # queries, answers, answers again
    assert not e.valid.any() and all("contradicts itself" in reason for reason in e.reason)
    moody["on"] = False
    assert ex.explain(X[Y == 0][:5], target=1).valid.all()


def test_numbers_that_change_when_they_are_asked_for_again():
    level, noise = X[:, :, 0].mean(1), np.random.default_rng(0)
    model = sp.wrap(lambda Z: Z[:, :, 0].mean(1) + noise.normal(0, 0.05, len(Z)), task="regression")
    with pytest.warns(sp.ModelWarning, match="asked again, in another batch, it predicts other numbers for 6. of 64"):
        ex = sp.Nearest(model).fit(X, level)
    e = ex.explain(X[level < 0.1][:30], target=sp.AtLeast(0.65))
    contradicted = np.array(["contradicts itself" in reason for reason in e.reason])
    assert contradicted.any() and not e.valid[contradicted].any() and set(e.status[contradicted]) == {"not_found"}


class TwoMinds:
    """An estimator whose ``predict`` says the first class wherever feature 3 begins above 0.3."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, Z):
        return mean_proba(Z)

    def predict(self, Z):
        return self.classes_[np.where(Z[:, 0, 3] > 0.3, 0, mean_proba(Z).argmax(1))]


def test_predict_that_disagrees_with_predict_proba_is_told_and_not_believed():
    with pytest.warns(sp.ModelWarning, match=r"predict and predict_proba disagree on 1\d % of 120 series;.*Calibrated"):
        ex = sp.Nearest(sp.wrap(TwoMinds())).fit(X, NAMES[Y])
    assert "Careful: predict and predict_proba disagree" in ex.summary()
    ex = Believing(sp.wrap(TwoMinds())).fit(X, NAMES[Y])
    ex.script = lambda request: X[np.flatnonzero((Y == 1) & (X[:, 0, 3] > 0.3))[: len(request.X)]]
    e = ex.explain(X[Y == 0][:3], target="b")
    assert e.valid.all() and set(e.verdict) == {"doubtful"}
    assert set(e.reason) == {"the model's predict says a, its predict_proba b"}
    assert "predict says a" in e.text(0)
    ex.script = lambda request: X[np.flatnonzero((Y == 1) & (X[:, 0, 3] < 0.3))[: len(request.X)]]
    assert set(ex.explain(X[Y == 0][:3], target="b").verdict) == {"believed"}


# Time and features exchanged: in the model's layout, or in the array.


def walks(n=90, seed=0):
    """Return series of 30 smooth steps and 3 features; the largest feature is the class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    walk = np.cumsum(rng.normal(0, 0.1, (n, 30, 3)), axis=1)
    walk[np.arange(n), :, y] += 1.5
    return walk.astype(np.float32), y


def strict(Z):
    assert Z.shape[2] == 3, f"shape mismatch: 3 features, got {Z.shape[2]}"
    return mean_proba(Z)


def test_an_array_that_is_transposed_is_named_beside_the_layout_and_tried_on_the_labels():
    Z, y = walks()
    with pytest.raises(ModelOutputError, match=r"layout='btf'.*Or the array itself is transposed: .*X.swapaxes\(1, 2"):
        sp.wrap(strict).predict(Z.swapaxes(1, 2))
    wanted = r"axes of X exchanged it agrees with 100 % of the labels. .*along the last axis .*: pass X.swapaxes"
    with pytest.raises(ModelOutputError, match=wanted):
        sp.Nearest(sp.wrap(strict)).fit(Z.swapaxes(1, 2), y)
    wanted = (
        r"axes of X exchanged it agrees with 100 % of the labels. .*along the middle axis .*: wrap with layout='bft'"
    )
    with pytest.raises(ModelOutputError, match=wanted):
        sp.Nearest(sp.wrap(lambda given: strict(given.swapaxes(1, 2)))).fit(Z, y)
    with pytest.raises(ModelOutputError, match=r"axes of X exchanged it explains 1\.00 of the variance"):
        sp.Nearest(sp.wrap(lambda given: strict(given)[:, 0], task="regression")).fit(Z.swapaxes(1, 2), 1.0 * (y == 0))


def test_a_layout_that_hides_a_transposed_array_is_noticed():
    Z, y = walks()
    with pytest.warns(sp.ModelWarning, match=r"X may be \(batch, features, time\)"):
        sp.Nearest(sp.wrap(strict, layout="bft")).fit(Z.swapaxes(1, 2), y)
    fit_quietly(sp.wrap(lambda given: strict(given.swapaxes(1, 2)), layout="bft"), Z, y, method=sp.Nearest)
