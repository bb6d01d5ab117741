"""Long series: worked on as averages, answered whole. The limits of what is long are lowered to keep this fast."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.series import Series
from sparcets.methods.own import explainer, grid
from sparcets.methods.own import grid as long_fit
from sparcets.methods.own.grid import GridView, Lifting
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

N_STEPS = 62
SETTINGS = sp.ExplainerConfig(families=("intervals",))
X, Y = make_series(48, n_steps=N_STEPS)
QUERIES = make_series(6, n_steps=N_STEPS, seed=1)[0]
TARGET = 1


class Whole(MeanModule):
    """Refuses anything but whole series; the class is the highest of the first three features."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1] == N_STEPS
        return super().forward(x)


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Series of more than 40 steps are long, and become at most 16 points (of 4 steps each, the last of 2)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explainer, "LONGEST", 40)
        patch.setattr(grid, "MAX_POINTS", 16)
        patch.setattr(long_fit, "SURROGATE_STEPS", 60)
        yield


@pytest.fixture(scope="module")
def fitted(small: None) -> sp.Explainer:
    return sp.Explainer(sp.wrap(Whole(), n_classes=3), SETTINGS).fit(X, Y, progress=False)


def explain(fitted: sp.Explainer, queries: Any = QUERIES, **options: Any) -> sp.Explanation:
    return fitted.explain(queries, TARGET, progress=False, **options)


def test_averages_and_changes_that_are_carried_back() -> None:
    some = grid.Grid(n_steps=11, size=3)
    series = np.random.default_rng(0).normal(size=(2, 11, 1)).astype(np.float32)
    averages = some.average(Series(series)).values
    assert averages.dtype == np.float32 and averages.shape == (2, 4, 1)
    np.testing.assert_allclose(averages[:, 3], series[:, 9:].mean(1), rtol=1e-6)
    after = averages.copy()
    after[:, 1] += 3.0
    made = some.lift(Series(series), averages, after)
    change = (made - series)[0, :, 0]
    # From the middle of the first point (step 1) to that of the third (step 7), and nowhere else.
    np.testing.assert_allclose(change, [0, 0, 1, 2, 3, 2, 1, 0, 0, 0, 0], atol=1e-6)
    assert (made == series).all(2)[0].tolist() == [True] * 2 + [False] * 5 + [True] * 4


def test_short_series_are_worked_on_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("averages of short series")

    monkeypatch.setattr(explainer, "fit_long", refuse)
    monkeypatch.setattr(explainer, "LONGEST", N_STEPS)
    model = sp.wrap(Whole(), n_classes=3)
    assert sp.Explainer(model, SETTINGS).fit(X[:12], Y[:12], progress=False)._fitted_model().long is None


def test_answers_are_valid_sparse_and_whole(fitted: sp.Explainer) -> None:
    e = explain(fitted)
    asked = e.status != "unchanged"
    assert asked.sum() == 4 and e.valid.all() and e.believed.all()
    assert e.counterfactual.shape == QUERIES.shape and (e.changed[asked].mean((1, 2)) < 0.6).all()
    assert (e.counterfactual[~e.changed] == QUERIES[~e.changed]).all()
    assert "see averages of 4 steps" in fitted.summary()
    assert {name: len(values) for name, values in e.plausibility.items()}["distance"] == 6


def test_constraints_hold_at_every_step(fitted: sp.Explainer) -> None:
    limits = sp.Constraints(frozen=[(0, 23)], immutable=[3], max_step={1: 0.5}, integer=[0])
    e = explain(fitted, constraints=limits, sparsity=0.25, n=2)
    assert e.valid.any() and not e.changed[:, :23].any() and not e.changed[:, :, 3].any()
    assert (e.changed.sum((1, 2)) <= 0.25 * N_STEPS * 3).all()
    whole = e.counterfactual[:, :, 0][e.changed[:, :, 0]]
    assert (whole == np.rint(whole)).all()
    steps, own = (np.abs(np.diff(series[:, :, 1].astype(np.float64), axis=1)) for series in (e.counterfactual, e.query))
    assert (steps <= np.maximum(own, 0.5)).all()


def test_details_are_taken_from_real_series(small: None) -> None:
    """Averages tell nothing where the classes differ in the sign of every other step only."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    details = rng.normal(0, 0.1, (24, N_STEPS, 2)).astype(np.float32)
    details[y == 1, 20:40, 0] += np.tile([1.0, -1.0], 10).astype(np.float32)

    def model(series: Any) -> Any:
        size = np.abs(np.diff(np.asarray(series)[:, :, 0], axis=1)).max(1) > 1
        return np.stack([1 - size, size], 1).astype(float)

    fitted = sp.Explainer(sp.wrap(model, n_classes=2), SETTINGS).fit(details, y, progress=False)
    e = fitted.explain(details[y == 0][:3], 1, progress=False)
    assert e.valid.all()
    for i in range(3):
        assert all(edit.kind == "follow" and y[edit.row] == 1 for edit in e.edits(i))
        assert np.array_equal(sp.apply_edits(e.query[i], e.edits(i)), e.counterfactual[i])


def test_the_view_takes_details_of_the_nearest_series(small: None) -> None:
    some = grid.Grid.of(N_STEPS)
    lifting = Lifting(some, Series(X))
    view = GridView(sp.wrap(Whole(), n_classes=3), lifting)
    np.testing.assert_array_equal(lifting.lift(lifting.averages.values[[5, 3]]), X[[5, 3]])
    np.testing.assert_array_equal(view.predict(lifting.averages.values), view.model.predict(X))


def test_numbers_of_long_series(small: None) -> None:
    def whole(series: Any) -> Any:
        assert series.shape[1] == N_STEPS
        return np.asarray(series)[:, :, 0].mean(1)

    numbers = whole(X)
    goal, low = sp.AtLeast(float(np.quantile(numbers, 0.8))), np.flatnonzero(numbers < np.median(numbers))[:3]
    fitted = sp.Explainer(sp.wrap(whole, task="regression"), SETTINGS).fit(X, numbers, progress=False)
    assert "see averages of 4 steps; the model sees whole series" in fitted.summary()
    limits = sp.Constraints(frozen=[(0, 9)])
    e = fitted.explain(X[low], target=goal, constraints=limits, curve=True, progress=False)
    assert e.valid.all() and not e.changed[:, :9].any() and np.isfinite(e.curve["share"]).any()
    np.testing.assert_allclose(e.prediction[:, 0], whole(e.counterfactual))
    assert e.believed.any() and np.isfinite(e.plausibility["distance"]).all()


@pytest.mark.long
def test_three_thousand_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_fit, "SURROGATE_STEPS", 20)
    series, labels = make_series(18, n_steps=3000, n_features=8)
    fitted = sp.Explainer(sp.wrap(MeanModule(), n_classes=3), SETTINGS).fit(series, labels, progress=False)
    e = fitted.explain(series[labels == 0][:2], TARGET, progress=False)
    assert e.valid.all() and (e.changed.mean((1, 2)) < 0.2).all()


def test_missing_values_of_long_series_stay_missing(small: None) -> None:
    rng = np.random.default_rng(0)
    gaps, of_queries = rng.random(X.shape) < 0.05, rng.random(QUERIES.shape) < 0.05
    of_queries[0, :, 3] = True  # no value at all, of a feature that the model does not look at
    classifier = sp.wrap(Whole(), n_classes=3, missing=np.nan_to_num)
    fitted = sp.Explainer(classifier, SETTINGS).fit(np.where(gaps, np.nan, X).astype("f4"), Y, progress=False)
    e = explain(fitted, np.where(of_queries, np.nan, QUERIES).astype("f4"))
    assert e.valid.all() and (e.changed.any((1, 2)) | (e.status == "unchanged")).all()
    assert np.array_equal(np.isnan(e.counterfactual), of_queries) and not e.changed[of_queries].any()


# --- series of unequal length ----------------------------------------------------------------------------------------

LENGTHS = np.random.default_rng(1).integers(41, N_STEPS + 1, len(X))
QUERY_LENGTHS = np.array([62, 61, 45, 43, 6, 50])


class Masked(MeanModule):
    """Takes padded series and their lengths; the class is the highest of the first three features."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        assert not x[torch.arange(x.shape[1]) >= lengths[:, None]].any()
        return super().forward(x * (x.shape[1] / lengths)[:, None, None])


def test_averages_of_padded_series_are_those_of_the_series_alone() -> None:
    some, lengths = grid.Grid(n_steps=11, size=3), np.array([11, 7, 2])
    series = np.random.default_rng(0).normal(size=(3, 11, 2)) * (np.arange(11) < lengths[:, None])[..., None]
    series[1, 2, 0] = np.nan
    found = some.average(Series(series, lengths))
    averages, points = found.values, found.lengths
    after = averages + np.random.default_rng(1).normal(size=averages.shape)
    made = some.lift(Series(series, lengths), averages, after)
    for i, (n, p) in enumerate(zip(lengths, points, strict=True)):
        alone = grid.Grid(int(n), 3)
        np.testing.assert_array_equal(averages[i, :p], alone.average(Series(series[i : i + 1, :n])).values[0])
        expected = alone.lift(Series(series[i : i + 1, :n]), averages[i : i + 1, :p], after[i : i + 1, :p])[0]
        np.testing.assert_array_equal(made[i, :n], expected)
        assert not averages[i, p:].any() and not made[i, n:].any()


def test_long_series_of_unequal_length(small: None, tmp_path: Any) -> None:
    unequal = sp.Explainer(sp.wrap(Masked(), n_classes=3), SETTINGS).fit(X, Y, lengths=LENGTHS, progress=False)
    e = explain(unequal, lengths=QUERY_LENGTHS, curve=True)
    asked, inside = e.status != "unchanged", np.arange(N_STEPS) < QUERY_LENGTHS[:, None]
    assert "see averages of 4 steps" in unequal.summary() and asked.sum() >= 4
    assert e.valid.all() and not e.changed[~inside].any() and not e.counterfactual[~inside].any()
    assert (e.changed.sum((1, 2)) < 0.4 * 4 * QUERY_LENGTHS).all() and np.isfinite(e.flips_at[asked]).all()
    cut = explain(unequal, [QUERIES[2, : QUERY_LENGTHS[2]]])
    assert (cut.counterfactual == e.counterfactual[2:3]).all()
    unequal.save(tmp_path / "folder")
    loaded = explain(sp.load(tmp_path / "folder", classifier=unequal.classifier), lengths=QUERY_LENGTHS)
    assert (loaded.counterfactual == e.counterfactual).all() and (loaded.support == e.support).all()
