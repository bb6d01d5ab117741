"""RidgeHead: scikit-learn's ridge regression, with leave-one-out predictions as if each series had been left out."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge, RidgeCV

from sparcets.methods.own.family import PENALTIES, TEMPERATURES, RidgeHead

# More inputs than series, and fewer: two ways to the same result.
SHAPES = {"wide": (24, 60), "tall": (60, 5)}
each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def data(n, d, *, signal=1.0, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    inputs = rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, d) + rng.uniform(-5.0, 5.0, d)
    inputs[:, 0] += 3 * signal * inputs[:, 0].std() * y
    return torch.tensor(inputs, dtype=torch.float32), y


def standardised(inputs):
    """Return inputs as the head sees them: of mean 0, and together of variance 1."""
    values = inputs.double().numpy()
    return (values - values.mean(0)) / values.std(0, ddof=1) / values.shape[1] ** 0.5


def left_out_by_refitting(Z, Y, penalty):
    """Return the prediction of each row by a ridge regression on the others."""
    others = [np.arange(len(Z)) != i for i in range(len(Z))]
    return np.stack([Ridge(alpha=penalty).fit(Z[rest], Y[rest]).predict(Z[~rest])[0] for rest in others])


@each_shape
def test_the_fit_is_that_of_scikit_learn_with_the_penalty_of_least_leave_one_out_error(shape):
    inputs, y = data(*shape)
    Z, Y = standardised(inputs), 2 * np.eye(3)[y] - 1
    expected = RidgeCV(alphas=PENALTIES).fit(Z, Y).predict(Z)
    factor = RidgeHead.fit(inputs, y, 3)[0](inputs).numpy() / expected
    temperature = np.median(factor)
    np.testing.assert_allclose(factor, temperature, rtol=2e-3)
    assert np.isclose(TEMPERATURES, temperature, rtol=1e-3).any()


@each_shape
def test_the_accuracy_is_that_of_series_left_out(shape):
    inputs, y = data(*shape, signal=0.4)
    Z, Y = standardised(inputs), 2 * np.eye(3)[y] - 1
    penalty = RidgeCV(alphas=PENALTIES).fit(Z, Y).alpha_
    expected = (left_out_by_refitting(Z, Y, penalty).argmax(1) == y).mean()
    head = RidgeHead.fit(inputs, y, 3)[0]
    assert expected < 1 and head.accuracy.item() == pytest.approx(expected)
    assert (head(inputs).argmax(1).numpy() == y).mean() > expected  # of the series it was fitted on


def test_it_is_surer_the_better_the_classes_are_separated():
    def sureness(signal):
        inputs, y = data(60, 40, signal=signal)
        return RidgeHead.fit(inputs, y, 3)[0](inputs).softmax(1).amax(1).mean().item()

    assert sureness(0.0) < sureness(1.0) < sureness(3.0)
    assert sureness(0.0) < 0.6  # on labels that mean nothing, although it has as many inputs as it likes


def test_constant_inputs_are_left_out():
    inputs, y = data(30, 6)
    inputs[:, 2] = 7.0
    head = RidgeHead.fit(inputs, y, 3)[0]
    moved = inputs.clone()
    moved[:, 2] = 1000.0
    assert torch.equal(head(moved), head(inputs)) and torch.isfinite(head(inputs)).all()
