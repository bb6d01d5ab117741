"""Discriminators: planted artefacts are recognised by the kind that sees them, and new recordings are not."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.series import Series
from sparcets.methods.own import discriminator as module
from sparcets.methods.own.discriminator import ORDINARY, Discriminators
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

N_CLASSES, STEPS = 3, 48
CONVOLUTIONS, MOVES = 0, 1


def recordings(n, seed):
    """Return smooth series (n, steps, 2), the level of which depends on their class, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % N_CLASSES
    t = np.linspace(0, 1, STEPS)[None, :, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 2))
    rate, size = rng.uniform(1, 3, (n, 1, 2)), rng.uniform(0.5, 1, (n, 1, 2))
    values = size * np.sin(2 * np.pi * rate * t + phase) + 0.01 * rng.standard_normal((n, STEPS, 2))
    return (values + y[:, None, None]).astype(np.float32), y


def kinked(n, seed):
    """Return series that jump back and forth within one step, by as much as is hardly seen in a level."""
    X, y = recordings(n, seed)
    X[:, STEPS // 2] += 0.4
    return X, y


def lifted(n, seed):
    """Return series of another level; how they move is as in recordings."""
    X, y = recordings(n, seed)
    return X + np.float32(1.5), y


ARTEFACTS = {"kinks": (kinked, MOVES), "level": (lifted, CONVOLUTIONS)}
REAL, CLASS = recordings(240, 0)


def fit(make=kinked, seed=0, **options):
    made, target = make(120, 1)
    return Discriminators.fit(Series(REAL), CLASS, Series(made), target, N_CLASSES, seed, **options)


def recognised(discriminators, X, target):
    """Return the share of series (kinds,) that look less real than nearly all recordings."""
    rank = discriminators.rank(torch.as_tensor(X), torch.as_tensor(target))
    return (rank < ORDINARY).float().mean(1).numpy()


@pytest.mark.parametrize("name", ARTEFACTS)
@pytest.mark.parametrize("judges", [False, True])
def test_planted_artefacts_are_recognised_by_the_kind_that_sees_them_and_new_recordings_are_not(name, judges):
    make, kind = ARTEFACTS[name]
    discriminators = fit(make, judges=judges)
    found, kept = (recognised(discriminators, *some(300, 2)) for some in (make, recordings))
    assert found[kind] > 0.9, "answers that it has not learnt from"
    assert (kept < 0.12).all() and kept[kind] > 0, "about one recording in twenty"
    if name == "level":
        assert found[MOVES] < 0.3, "a level is no move"


def test_ranks_of_new_recordings_are_spread_evenly():
    rank = fit().rank(*map(torch.as_tensor, recordings(300, 3)))
    assert rank.shape == (2, 300) and (rank >= 0).all() and (rank <= 1).all()
    assert ((rank.median(1).values > 0.35) & (rank.median(1).values < 0.65)).all()


@pytest.mark.parametrize("own", [True, False])
def test_classes_with_many_series_have_discriminators_of_their_own(monkeypatch, own):
    monkeypatch.setattr(module, "OWN_SERIES", 30 if own else 50)
    discriminators = fit()
    assert discriminators.part.tolist() == ([0, 1, 2] if own else [0, 0, 0])
    assert len(discriminators.parts) == (3 if own else 1)
    X, y = kinked(60, 2)
    assert recognised(discriminators, X, y)[MOVES] > 0.9
    together, target = discriminators.rank(torch.as_tensor(X), torch.as_tensor(y)), torch.as_tensor(y)
    for k in range(N_CLASSES):  # what is said of an answer does not depend on what it is asked with
        alone = discriminators.rank(torch.as_tensor(X[y == k]), target[target == k])
        torch.testing.assert_close(alone, together[:, target == k], atol=0.02, rtol=0)


def test_a_class_without_answers_is_asked_of_discriminators_of_all_together():
    made, target = kinked(120, 1)
    some = target != 2
    found = Discriminators.fit(Series(REAL), CLASS, Series(made[some]), target[some], N_CLASSES, 0)
    assert found.part.tolist() == [0, 0, 0] and len(found.parts) == 1


def test_one_target_alone_needs_recordings_of_no_other_class():
    made, target = kinked(120, 1)
    only = Discriminators.fit(Series(REAL), CLASS, Series(made[target == 1]), target[target == 1], N_CLASSES, 0)
    assert only.part.tolist() == [0, 0, 0] and len(only.parts[0][MOVES].recorded) == (CLASS == 1).sum()
    (X, y), (kinks, _) = recordings(300, 2), kinked(300, 2)
    assert (recognised(only, X[y == 1], y[y == 1]) < 0.15).all()
    assert recognised(only, kinks[y == 1], y[y == 1])[MOVES] > 0.9


def test_the_same_seed_gives_the_same_discriminators_and_another_one_others():
    one, same, other = (fit(seed=seed).to_arrays() for seed in (0, 0, 1))
    assert one.keys() == same.keys() and all(one[name].tobytes() == same[name].tobytes() for name in one)
    assert any(one[name].tobytes() != other[name].tobytes() for name in one if one[name].shape == other[name].shape)


@pytest.mark.parametrize("judges", [False, True])
@pytest.mark.parametrize("own_series", [30, 1000])
def test_arrays_restore_them_bit_for_bit(monkeypatch, judges, own_series):
    monkeypatch.setattr(module, "OWN_SERIES", own_series)
    before = fit(judges=judges)
    after = Discriminators.from_arrays(before.to_arrays())
    one, other = before.to_arrays(), after.to_arrays()
    assert list(one) == list(other)
    for name, array in one.items():
        assert (other[name].dtype, other[name].tobytes()) == (array.dtype, array.tobytes()), name
    X, y = map(torch.as_tensor, kinked(30, 2))
    assert torch.equal(before.rank(X, y), after.rank(X, y))


def test_many_features_have_linear_heads_that_are_restored_too(monkeypatch):
    monkeypatch.setattr(module, "MANY", 5)
    before = fit()
    after = Discriminators.from_arrays(before.to_arrays())
    X, y = map(torch.as_tensor, kinked(30, 2))
    assert isinstance(after.parts[0][MOVES].head, module.RidgeHead) and torch.equal(before.rank(X, y), after.rank(X, y))


def test_series_of_unequal_lengths():
    lengths = np.where(np.arange(240) % 2, 48, 31)
    padded = np.where(np.arange(48)[None, :, None] < lengths[:, None, None], REAL, 0).astype(np.float32)
    made, target = kinked(120, 1)
    found = Discriminators.fit(Series(padded, lengths), CLASS, Series(made[:, :31]), target, N_CLASSES, 0)
    (kinks, y), (new, _) = kinked(90, 2), recordings(90, 2)
    for n_steps in (31, 40, 48):
        assert recognised(found, kinks[:, :n_steps], y)[MOVES] > 0.9
        assert recognised(found, new[:, :n_steps], y)[MOVES] < 0.15


# In a fit.

X, Y = make_series(90)
TINY = sp.ExplainerConfig.tiny()


def explain(model, config, *data, target=1, **options):
    fitted = sp.Explainer(model, config).fit(*data, progress=False, **options)
    return fitted, fitted.explain(data[0][data[1] != 1][:4], target, progress=False)


def test_they_are_the_last_family_of_an_explainer():
    model = sp.wrap(MeanModule(), n_classes=3)
    fitted, e = explain(model, TINY, X, Y)
    assert e.families == ("convolutions", "quantiles", "intervals", "real")
    assert set(np.unique(e.support[:, -1])) <= {0.0, 0.5, 1.0}, "two kinds"
    assert "say whether one looks like a recording" in fitted.summary() and "intervals, real" not in fitted.summary()


def test_they_are_the_last_family_of_an_explainer_of_numbers():
    numbers = X[:, :, 0].mean(1)
    model = sp.wrap(lambda Z: np.asarray(Z)[:, :, 0].mean(1), task="regression")
    high = sp.AtLeast(float(np.quantile(numbers, 0.8)))
    _, e = explain(model, TINY, X, numbers, target=high)
    assert e.families == ("convolutions", "quantiles", "intervals", "real") and np.isfinite(e.support[e.valid]).all()


def test_gaps_are_filled_for_them():
    holes = X.copy()
    holes[::3, 2:4, 1] = np.nan
    model = sp.wrap(lambda Z: mean_proba(np.nan_to_num(Z)), missing="keep")
    _, e = explain(model, TINY, holes, Y)
    assert e.families[-1] == "real" and np.isfinite(e.support[e.valid]).all()


def test_without_queries_to_learn_from_there_are_none_and_nothing_is_believed():
    fitted, e = explain(sp.wrap(MeanModule(), n_classes=3), TINY.override("discriminator_queries=0"), X, Y)
    assert e.families == ("convolutions", "quantiles", "intervals") and e.believed.any()
    assert "believed" not in e.verdict and "recording" not in fitted.summary()
    first = int(np.flatnonzero(e.believed)[0])
    assert "no discriminator was asked whether it looks like a recording" in e.text(first)


def test_where_the_model_alone_decides_there_are_none():
    fitted, e = explain(sp.wrap(MeanModule(), n_classes=3), TINY.override("believed_by=model"), X, Y)
    assert e.families == () and e.support.shape == (4, 0) and "recording" not in fitted.summary()
    assert fitted._model.ensemble.discriminators is None


def test_the_search_asks_its_own_and_the_selector_others():
    fitted, _ = explain(sp.wrap(MeanModule(), n_classes=3), TINY, X, Y)
    own, judges = fitted._model.ensemble.discriminators, fitted._model.ensemble.selector.discriminators
    assert own is not None and judges is not None
    one, other = own.to_arrays(), judges.to_arrays()
    assert any(one[name].tobytes() != other[name].tobytes() for name in one if name in other)
