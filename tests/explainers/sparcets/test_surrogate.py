"""A student copies a black box, on real series and on perturbed ones."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.classifiers import student as module
from sparcets.explainers.sparcets.surrogate import STUDENT_CONFIG, distill, perturbed
from sparcets.errors import CapabilityError, ShapeError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(60, n_steps=12)
NEW, _ = make_series(60, n_steps=12, seed=1)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "STUDENT_CONFIG", replace(STUDENT_CONFIG, hidden=4, epochs=2))


def changed(parents, lengths=None, series=X):
    return perturbed(series, np.asarray(parents), lengths, np.random.default_rng(0))


def test_a_forest_is_copied_with_gradients():
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(30, random_state=0).fit(X.reshape(60, -1), Y)
    black_box = sp.wrap(forest, layout="flat")
    student = distill(black_box, X, device="cpu")
    assert (student.predict(NEW) == black_box.predict(NEW)).mean() > 0.95
    fresh = perturbed(NEW, np.repeat(np.arange(60), 4), None, np.random.default_rng(5))
    assert (student.predict(fresh) == black_box.predict(fresh)).mean() > 0.9
    x = torch.tensor(NEW[:3], requires_grad=True)
    student.log_proba(x)[:, 1].sum().backward()
    assert x.grad.abs().sum() > 0


def test_probabilities_are_copied_not_only_classes():
    black_box = sp.wrap(lambda series: mean_proba(series, sharpness=2.0))
    proba, certain = black_box.predict_proba(NEW), np.eye(3)[black_box.predict(NEW)]
    student = distill(black_box, X, device="cpu").predict_proba(NEW)
    assert np.abs(student - proba).mean() < 0.2 * np.abs(certain - proba).mean()


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_student_and_nothing_is_left_behind():
    series, state = X.copy(), torch.get_rng_state()
    a, b, c = (distill(sp.wrap(mean_proba), series, seed=seed, device="cpu").predict_proba(NEW) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert np.array_equal(series, X) and torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("largest", "expected"), [(20_000, 360), (100, 100)])
def test_the_black_box_is_asked_in_batches_about_six_times_the_data_at_most_so_many(monkeypatch, largest, expected):
    asked = []

    def black_box(series):
        asked.append(series)
        return mean_proba(series)

    monkeypatch.setattr(module, "LARGEST", largest)
    monkeypatch.setattr(module, "BATCH", 50)
    distill(sp.wrap(black_box), X, device="cpu")
    assert max(map(len, asked)) == 50 and sum(map(len, asked)) == expected
    rows = {series.tobytes() for part in asked for series in part}
    assert len(rows & {series.tobytes() for series in X}) == min(60, largest // 2)


@pytest.mark.usefixtures("quick")
def test_a_class_that_is_never_said_is_a_log_line(caplog):
    with caplog.at_level(logging.INFO, logger="sparcets"):
        constant = sp.wrap(lambda s: np.tile([0.7, 0.3, 0.0], (len(s), 1)))
        student = distill(constant, X, class_names=list("abc"), device="cpu")
    assert "never says b, c, so neither will its student" in caplog.text
    assert student.class_names == ("a", "b", "c") and student.named
    assert (student.predict(NEW) == 0).all()


@pytest.mark.usefixtures("quick")
def test_names_are_the_black_box_s_own_and_mistakes_show_first():
    black_box = sp.wrap(mean_proba, class_names=["x", "y", "z"])
    assert distill(black_box, X, device="cpu").class_names == ("x", "y", "z")
    with pytest.raises(ShapeError, match="class_names must be 3 names, got 2"):
        distill(black_box, X, class_names=["x", "y"])
    with pytest.raises(CapabilityError, match="no device 'tpu9'"):
        distill(black_box, X, device="tpu9")


def test_rows_of_sum_one_that_are_a_little_below_zero_are_mended():
    proba = module._ask(sp.wrap(lambda s: np.tile([1.00005, -0.00005], (len(s), 1))), X, None, False)
    np.testing.assert_array_equal(proba, np.tile(np.float32([1, 0]), (60, 1)))


def test_noise_changes_everything_by_its_size():
    scale = np.array([1, 100, 0, 0.01], dtype=np.float32)  # the third feature never varies
    parents = np.zeros(4000, dtype=int)
    delta = (changed(parents, series=X * scale) - X[0] * scale)[::4]
    assert delta.dtype == np.float32 and not delta[..., 2].any()
    spread = np.delete((X * scale).reshape(-1, 4).std(0), 2)
    sizes = (np.delete(delta, 2, axis=2) / spread).std((1, 2))
    for size in module.NOISES:
        close = np.abs(sizes / size - 1) < 0.5
        assert 0.25 < close.mean() < 0.42
        assert sizes[close].mean() == pytest.approx(size, rel=0.05)


def test_mixes_lie_between_two_series():
    pair = np.stack([np.zeros((6, 2)), np.ones((6, 2))])
    mixes = changed(np.zeros(400, dtype=int), series=pair)[1::4]
    assert (mixes == mixes[:, :1, :1]).all()
    partnered = mixes[:, 0, 0][mixes[:, 0, 0] > 0]  # about half have themselves as partner
    assert 30 < len(partnered) < 70 and partnered.max() < 1
    assert partnered.mean() == pytest.approx(0.5, abs=0.15)


def test_crossovers_take_a_window_of_some_features():
    pair = np.stack([np.zeros((6, 3)), np.ones((6, 3))])
    crossed = changed(np.zeros(800, dtype=int), series=pair)[2::4]
    assert set(np.unique(crossed)) == {0.0, 1.0}
    shapes = set()
    for series in crossed:
        steps, features = series.any(1), series.any(0)
        np.testing.assert_array_equal(series, np.outer(steps, features))
        assert (np.diff(np.flatnonzero(steps)) == 1).all()  # one window
        shapes.add((steps.sum(), features.sum()))
    assert len(shapes) > 10


def test_turned_series_hold_the_same_steps_in_turn():
    ramp = np.arange(10.0)[None, :, None] + np.zeros((1, 1, 2))
    turned = changed(np.zeros(400, dtype=int), series=ramp)[3::4]
    for series in turned:
        np.testing.assert_array_equal(series, np.roll(ramp[0], -int(series[0, 0]), axis=0))
    assert len({series[0, 0] for series in turned}) == 10


def test_padding_is_kept_and_never_spreads():
    lengths = np.where(np.arange(60) % 2, 12, 7)
    loud = X.copy()
    loud[lengths == 7, 7:] = 1e6
    parents = np.arange(60).repeat(8)
    result = changed(parents, lengths, loud)
    short = lengths[parents] == 7
    assert (result[short, 7:] == 1e6).all()
    assert np.abs(result[short, :7]).max() < 20 and np.abs(result[~short]).max() < 20
    assert (result[short, :7] != loud[parents][short, :7]).any()


@pytest.mark.usefixtures("quick")
def test_a_student_of_padded_series_is_blind_to_padding():
    lengths = np.where(np.arange(60) % 2, 12, 7)

    class Blind(sp.TorchClassifier):
        """Any model that looks at lengths."""

    black_box = Blind("fcn", replace(sp.ClassifierConfig.tiny(), epochs=1, device="cpu")).fit(X, Y, lengths=lengths)
    student = distill(black_box, X, lengths=lengths, device="cpu")
    loud = X.copy()
    loud[lengths == 7, 7:] = 1e3
    np.testing.assert_array_equal(student.predict_proba(loud, lengths), student.predict_proba(X, lengths))
    other = distill(black_box, loud, lengths=lengths, device="cpu")
    np.testing.assert_array_equal(other.predict_proba(X, lengths), student.predict_proba(X, lengths))
