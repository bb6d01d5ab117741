"""Classifiers are given checked input in batches, their output is checked, and a user's module is left as it was."""

import numpy as np
import pytest
import torch
from torch import nn

from sparcets.core.errors import FeatureMismatchError, ModelOutputError, NonFiniteError, ShapeError
from sparcets.core.series import Series
from sparcets.models.base import PREDICT_BATCH, Classifier, frozen

X = np.random.default_rng(0).normal(size=(5, 4, 2))


class Fixed(Classifier):
    """Returns the given output, and keeps its input."""

    def __init__(self, output):
        self.output = output
        self.given = []

    def _outputs(self, X, lengths):
        self.given.append((X, lengths))
        return self.output(X) if callable(self.output) else self.output


def even(X):
    return np.full((len(X), 2), 0.5)


def test_series_come_in_batches_and_the_answers_in_order():
    model = Fixed(lambda X: np.stack([X[:, 0, 0], 1 - X[:, 0, 0]], axis=1))
    n = 2 * PREDICT_BATCH + 3
    series = np.random.default_rng(1).uniform(size=(n, 4, 2))
    lengths = 1 + np.arange(n) % 4
    proba = model.predict_proba(series, lengths=lengths.tolist())
    assert [len(x) for x, _ in model.given] == [PREDICT_BATCH, PREDICT_BATCH, 3]
    np.testing.assert_array_equal(np.concatenate([steps for _, steps in model.given]), lengths)
    np.testing.assert_array_equal(proba[:, 0], series[:, 0, 0])
    np.testing.assert_array_equal(model.predict(series), (series[:, 0, 0] < 0.5).astype(int))
    # What was checked before gives the same, in the same batches.
    np.testing.assert_array_equal(model.outputs_unchecked(Series(series, lengths)), proba)
    assert max(len(x) for x, _ in model.given) == PREDICT_BATCH
    # Only the input goes unchecked.
    assert Fixed(even).outputs_unchecked(Series(np.full_like(X, np.nan))).tolist() == [[0.5, 0.5]] * 5
    with pytest.raises(ModelOutputError):
        Fixed(np.full((5, 3), 0.4)).outputs_unchecked(Series(X))


def test_the_first_prediction_tells_the_number_of_classes():
    model = Fixed(even)
    with pytest.raises(ModelOutputError, match=r"not known before the first prediction\. Pass n_classes="):
        _ = model.n_classes
    model.predict_proba(X)
    assert model.class_names == ("0", "1") and not model.named
    model.output = lambda X: np.full((len(X), 4), 0.25)
    with pytest.raises(ModelOutputError, match=r"returned 4 columns for 2 classes \(0, 1\)"):
        model.predict_proba(X)
    one_hot = Fixed(lambda X: np.tile([0, 1], (len(X), 1))).predict_proba(X)
    assert one_hot.dtype == np.float64 and one_hot[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros((5, 2, 2)), r"must return probabilities \(batch, classes\), got shape \(5, 2, 2\)"),
        (np.full((5, 2), "a"), "got shape .* dtype <U1"),
        (np.ones((5, 1)), "Fixed returned one column; return one probability per class, for two classes 1 - p and p"),
        (np.full((5, 3), 0.4), r"no probabilities \(the first is \[0.4, 0.4, 0.4\]\). Each number is between 0 and 1"),
        (np.tile([1.5, -0.5], (5, 1)), "no probabilities"),
        (np.full((5, 2), np.nan), "returned NaN or infinity as a probability"),
        (np.tile([np.inf, 0.5], (5, 1)), "returned NaN or infinity as a probability"),
    ],
)
def test_what_is_no_table_of_probabilities_is_refused_and_forgotten(output, message):
    model = Fixed(output)
    with pytest.raises(ModelOutputError, match=message):
        model.predict_proba(X)
    assert repr(model).endswith("classes not known yet)")


@pytest.mark.parametrize(
    ("series", "lengths", "error", "message"),
    [
        (X[0], None, ShapeError, "X must be"),
        (np.where(np.arange(40).reshape(5, 4, 2) == 13, np.nan, X), None, NonFiniteError, "NaN"),
        (np.zeros((2, 4, 3)), None, FeatureMismatchError, "Fixed was fitted on 2 features"),
        (np.zeros((2, 6, 2)), None, FeatureMismatchError, "Fixed was fitted on series of 4 steps"),
        (X, [1, 2, 5, 1, 1], ShapeError, "lengths must lie"),
    ],
)
def test_wrong_series_never_reach_the_model(series, lengths, error, message):
    model = Fixed(even)
    model.n_features, model.n_steps = 2, 4
    for call in (model.predict_proba, model.predict):
        with pytest.raises(error, match=message):
            call(series, lengths)
    assert model.given == []


def mixed():
    """A module with some parts in training and some in evaluation mode, some weights fixed, one with a gradient."""
    parts = {"lstm": nn.LSTM(2, 3, num_layers=2, dropout=0.4), "norm": nn.BatchNorm1d(3), "drop": nn.Dropout(0.5)}
    module = nn.ModuleDict({**parts, "inner": nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1))})
    module.train()
    module["norm"].eval()
    module["inner"][1].eval()
    module["norm"].weight.requires_grad_(False)
    module["inner"][0].weight.grad = torch.ones(3, 3)
    return module


def trace(module):
    return (
        [(name, m.training, getattr(m, "dropout", None), getattr(m, "p", None)) for name, m in module.named_modules()],
        [(n, p.requires_grad, None if p.grad is None else p.grad.tolist()) for n, p in module.named_parameters()],
        {name: value.clone().tolist() for name, value in module.state_dict().items()},
    )


def test_inside_everything_is_in_evaluation_mode_and_afterwards_as_it_was_also_after_an_exception():
    module = mixed()
    before = trace(module)
    with frozen(module):
        assert not any(m.training for m in module.modules())
        assert not any(p.requires_grad for p in module.parameters())
        module["norm"](torch.randn(4, 3))
    assert trace(module) == before
    module.train = module.eval = None  # which a class may have overridden
    with pytest.raises(RuntimeError, match=r"size|shape"), frozen(module):
        module["inner"](torch.randn(4, 17))
    assert trace(module) == before


@pytest.mark.parametrize("gradients", [True, False])
def test_recurrent_layers_on_a_gpu_stay_in_training_mode_without_dropout_for_gradients(gradients, monkeypatch):
    # Pretend: what the code looks at is is_cuda. The real thing is tested under the marker gpu in test_wrap.py.
    monkeypatch.setattr(nn.Parameter, "is_cuda", True, raising=False)
    module = mixed()
    before = trace(module)
    with torch.set_grad_enabled(gradients), frozen(module):
        assert module["lstm"].training == gradients
        assert module["lstm"].dropout == (0.0 if gradients else 0.4) and not module["drop"].training
    assert trace(module) == before
