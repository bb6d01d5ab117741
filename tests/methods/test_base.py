"""What the words of an explanation mean, one by one, on a method with scripted answers.

The model predicts the feature with the highest mean: class k lifts feature k.
"""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import TargetError
from sparcets.methods.request import Answers
from sparcets.testing.mocks import mean_proba
from tests.scripted import Scripted


def lifted(*classes, n_steps=2, n_features=4, height=1.0):
    """Return one series per class given, in which that feature stands at ``height`` and all else at 0."""
    X = np.zeros((len(classes), n_steps, n_features), dtype=np.float32)
    for i, k in enumerate(classes):
        X[i, :, k] = height
    return X


TRAIN, LABELS = lifted(0, 1, 2, 0, 1, 2), np.array([0, 1, 2, 0, 1, 2])


def lift_target(request):
    """Answer by lifting the target's feature above all others."""
    cf = np.repeat(request.X, request.n, axis=0)
    for i, k in enumerate(np.repeat(request.target, request.n)):
        cf[i, :, k] = 5 + i % request.n
    return cf


def fitted(script=lift_target, *, model=None, **config):
    model = model if model is not None else sp.wrap(mean_proba, n_classes=3)
    return Scripted(model, sp.NearestConfig(**config), script=script).fit(TRAIN, LABELS)


def test_numbers_as_names_of_classes_are_not_indices():
    ex = Scripted(sp.wrap(mean_proba, class_names=["1", "2", "3"])).fit(TRAIN, np.array(["1", "2", "3"])[LABELS])
    assert ex.explain(lifted(0, 2), target=np.array([1, 0])).target.tolist() == [1, 0], "an array holds indices"
    with pytest.raises(TargetError, match=r"target=1 is ambiguous.*1, 2, 3.*target='1'"):
        ex.explain(lifted(0, 2), target=1)


def test_valid_is_decided_by_the_classifier_never_by_the_method():
    half = fitted(lambda r: np.where(np.arange(len(r.X))[:, None, None] == 0, lift_target(r), r.X))
    e = half.explain(lifted(0, 2), target=1)
    assert e.valid.tolist() == [True, False] and e.status.tolist() == ["generated", "not_found"]
    assert e.reason[0] == "" and "did not convince the classifier" in e.reason[1]
    assert "p(1) reached 0.00" in e.reason[1]  # of the target, not of the winner


def test_the_status_of_a_method_stands_where_the_classifier_agrees():
    def script(request):
        return Answers(
            counterfactual=np.concatenate([lift_target(request)[:2], request.X[2:]]),
            status=np.array(["refined", "neighbour", "not_found"]),
            reason=np.array(["", "", "no way, however long one looks for it"]),
        )

    e = fitted(script).explain(lifted(0, 2, 0), target=1)
    assert e.status.tolist() == ["refined", "neighbour", "not_found"]
    assert e.reason.tolist() == ["", "", "no way, however long one looks for it"]
    assert e.valid.tolist() == [True, True, False]


def test_a_wrapped_model_is_given_exactly_the_users_numbers():
    given_ = []

    def spy(X):
        given_.append(X.copy())
        return mean_proba(X)

    ex = Scripted(sp.wrap(spy), script=lift_target).fit(TRAIN * 1e3 + 7, LABELS)
    X = (lifted(0, 2).astype(np.float64) + 1e-13) * 1e3
    given_.clear()
    e = ex.explain(X, target=1)
    before, after = given_
    assert before.tobytes() == X.tobytes() and after.tobytes() == e.counterfactual.tobytes()


def test_without_a_target_it_is_the_second_most_probable_class():
    X = np.zeros((3, 2, 4), dtype=np.float32)
    X[:, :, :3] = np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3]])[:, None]
    e = fitted().explain(X)
    assert e.predicted.tolist() == [0, 1, 2] and e.target.tolist() == [1, 2, 0]
    assert (e.status == "generated").all()


@pytest.mark.parametrize(
    ("proba", "runner_up"),
    [([0.4, 0.4, 0.2], 1), ([0.2, 0.4, 0.4], 2), ([1 / 3, 1 / 3, 1 / 3], 1), ([1.0, 0.0, 0.0], 1)],
)
def test_among_equals_the_runner_up_is_never_the_prediction_itself(proba, runner_up):
    ex = Scripted(sp.wrap(lambda X: np.tile(proba, (len(X), 1)), n_classes=3)).fit(TRAIN, LABELS)
    e = ex.explain(TRAIN[:2])
    assert e.target.tolist() == [runner_up] * 2 and (e.status == "not_found").all()


@pytest.mark.parametrize("own", [1, "brisk"])
def test_a_target_of_the_settings_is_the_only_one(own):
    ex = fitted(model=sp.wrap(mean_proba, class_names=["calm", "brisk", "wild"]), target=own)
    for target in (None, 1, "brisk", [1, "brisk"]):
        assert ex.explain(lifted(0, 2), target=target).target.tolist() == [1, 1]
    for target in (0, "wild", [1, 0]):
        with pytest.raises(TargetError, match=r"this Scripted was fitted for the target 'brisk' alone. Ask for that"):
            ex.explain(lifted(0, 2), target=target)


def test_sparsity_caps_the_number_of_entries_of_each_query():
    ex, X = fitted(batch_size=4), lifted(0, 2, 0)  # 2 steps of 4 features: 8 entries
    for share, entries in ((1.0, 8), (0.5, 4), (0.49, 3), (0.125, 1), (0.1, 0), (np.float32(0.25), 2)):
        ex.explain(X, target=1, sparsity=share)
        assert ex.requests[-1].at_most.tolist() == [entries] * 3
    ex.explain(X, target=1)
    assert ex.requests[-1].at_most is None
    ex.explain(X, target=1, sparsity=0.5, constraints=sp.Constraints(immutable=[3]), lengths=[1, 2, 2])
    assert ex.requests[-1].at_most.tolist() == [1, 3, 3]  # of 3 and 6 mutable entries that are no padding
