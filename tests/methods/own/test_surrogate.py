"""A surrogate matches a black box, on real series and on perturbed ones."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.series import Series
from sparcets.methods.own import surrogate as module
from sparcets.methods.own.surrogate import NOISES, SURROGATE_CONFIG, distill, perturb
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(60, n_steps=12)
NEW, _ = make_series(60, n_steps=12, seed=1)
NAMES = ("a", "b", "c")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "SURROGATE_CONFIG", replace(SURROGATE_CONFIG, hidden=4, epochs=2))


def of(black_box, **kwargs):
    return distill(black_box, Series(X), class_names=NAMES, device="cpu", **kwargs)


def test_a_forest_is_matched_and_the_surrogate_has_gradients():
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(30, random_state=0).fit(X.reshape(60, -1), Y)
    black_box = sp.wrap(forest, layout="flat")
    surrogate = of(black_box)
    assert (surrogate.predict(NEW) == black_box.predict(NEW)).mean() > 0.95
    fresh = perturb(Series(NEW), np.repeat(np.arange(60), 4), np.random.default_rng(5))
    assert (surrogate.predict(fresh) == black_box.predict(fresh)).mean() > 0.9
    x = torch.tensor(NEW[:3], requires_grad=True)
    surrogate.log_proba(x)[:, 1].sum().backward()
    assert x.grad.abs().sum() > 0


def test_probabilities_are_matched_and_not_only_classes():
    black_box = sp.wrap(lambda series: mean_proba(series, sharpness=2.0))
    proba, certain = black_box.predict_proba(NEW), np.eye(3)[black_box.predict(NEW)]
    assert np.abs(of(black_box).predict_proba(NEW) - proba).mean() < 0.2 * np.abs(certain - proba).mean()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("max_series", "expected"), [(20_000, 360), (100, 100)])
def test_the_black_box_predicts_six_times_the_data_up_to_a_maximum_in_batches(monkeypatch, max_series, expected):
    batches = []

    def black_box(series):
        batches.append(series)
        return mean_proba(series)

    monkeypatch.setattr(module, "MAX_SERIES", max_series)
    monkeypatch.setattr(module, "PREDICT_BATCH", 50)
    of(sp.wrap(black_box))
    assert max(map(len, batches)) == 50 and sum(map(len, batches)) == expected
    rows = {series.tobytes() for batch in batches for series in batch}
    assert len(rows & {series.tobytes() for series in X}) == min(60, max_series // 2)


@pytest.mark.usefixtures("quick")
def test_a_class_that_is_never_predicted_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="sparcets"):
        surrogate = of(sp.wrap(lambda s: np.tile([0.7, 0.3, 0.0], (len(s), 1))))
    assert "never predicts b, c, so neither will its surrogate" in caplog.text
    assert surrogate.class_names == NAMES and surrogate.named
    assert (surrogate.predict(NEW) == 0).all()


# Perturbed series, four kinds in turn.


def perturbed(series, n, kind):
    """Return the perturbed copies of one kind of the first series."""
    return perturb(Series(series), np.zeros(n, dtype=int), np.random.default_rng(0))[kind::4]


def test_noise_has_one_of_its_sizes_relative_to_each_feature():
    series = X * np.array([1, 100, 0, 0.01], dtype=np.float32)  # the third feature is constant
    delta = perturbed(series, 4000, 0) - series[0]
    assert delta.dtype == np.float32 and not delta[..., 2].any()
    spread = np.delete(series.reshape(-1, 4).std(0), 2)
    sizes = (np.delete(delta, 2, axis=2) / spread).std((1, 2))
    for size in NOISES:
        close = np.abs(sizes / size - 1) < 0.5
        assert 0.25 < close.mean() < 0.42 and sizes[close].mean() == pytest.approx(size, rel=0.05)


def test_mixed_series_lie_between_two_series():
    pair = np.stack([np.zeros((6, 2)), np.ones((6, 2))])
    mixed = perturbed(pair, 400, 1)
    assert (mixed == mixed[:, :1, :1]).all()
    shares = mixed[:, 0, 0][mixed[:, 0, 0] > 0]  # about half are mixed with themselves
    assert 30 < len(shares) < 70 and shares.max() < 1
    assert shares.mean() == pytest.approx(0.5, abs=0.15)


def test_crossed_series_take_a_window_of_some_features():
    pair = np.stack([np.zeros((6, 3)), np.ones((6, 3))])
    crossed = perturbed(pair, 800, 2)
    assert set(np.unique(crossed)) == {0.0, 1.0}
    shapes = set()
    for series in crossed:
        steps, features = series.any(1), series.any(0)
        np.testing.assert_array_equal(series, np.outer(steps, features))
        assert (np.diff(np.flatnonzero(steps)) == 1).all()  # one window
        shapes.add((steps.sum(), features.sum()))
    assert len(shapes) > 10


def test_rotated_series_hold_the_same_steps_in_the_same_order():
    ramp = np.arange(10.0)[None, :, None] + np.zeros((1, 1, 2))
    rotated = perturbed(ramp, 400, 3)
    for series in rotated:
        np.testing.assert_array_equal(series, np.roll(ramp[0], -int(series[0, 0]), axis=0))
    assert len({series[0, 0] for series in rotated}) == 10
