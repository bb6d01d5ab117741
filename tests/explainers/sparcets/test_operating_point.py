"""Operating points: how they are measured, which is the default, and which residuals are best for a query."""

import math

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers.sparcets import operating_point as module
from sparcets.explainers.sparcets.operating_point import (
    CHANGE_PENALTY,
    RESIDUAL_SCALES,
    SCALE_PENALTY,
    OperatingPoint,
    best_point,
    best_residuals,
    log_weight_grid,
    measure_trade_off,
    score_residuals,
    summarise,
    trade_off_history,
)
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explainers.sparcets.prune import drop_negligible
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(36, n_steps=12)
X = 3 * X + 5  # units of its own, so that nothing is standardised by chance
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
Z = INFO.scaler.transform(X).astype(np.float32)
QUERY = torch.tensor(Z[Y == 0][:5])
TARGET = torch.ones(5, dtype=torch.int64)
REAL = torch.tensor(Z[Y == 1][:5])


class Constant(torch.nn.Module):
    """Predicts class k with probability p, the others equally."""

    def __init__(self, k, p=0.8):
        super().__init__()
        proba = torch.full((3,), (1 - p) / 2)
        proba[k] = p
        self.register_buffer("log_proba", proba.log())

    def forward(self, x):
        return self.log_proba + 0 * x[:, 0, :3]


@pytest.fixture
def model(build_model):
    """Return a function that builds a model; sparsity weights are given as factors."""

    def build(*members, selector=None, weights=(0.5, 1.0, 2.0), scales=RESIDUAL_SCALES, **kwargs):
        return build_model(
            INFO,
            members or [MeanModule(sharpness=3.0)],
            Prototypes(Z, Y),
            selector=selector or MeanModule(sharpness=3.0),
            log_weights=[math.log(w) for w in weights],
            scales=scales,
            **kwargs,
        )

    return build


# Points.


def point(valid, transfer, changed, *, sparsity_weight=0.0, scale=1.0):
    return OperatingPoint(sparsity_weight, scale, valid, transfer, changed)


def test_the_sparsity_weights_are_evenly_spaced_in_their_logarithm():
    assert [math.exp(w) for w in log_weight_grid(0.01, 100.0)] == pytest.approx([0.01, 0.1, 1.0, 10.0, 100.0])
    assert log_weight_grid(2.0, 2.0) == pytest.approx((math.log(2),) * 5)


def test_the_score_of_a_point_by_hand():
    assert point(0.9, 0.7, 0.2).score == pytest.approx(0.7 - CHANGE_PENALTY * 0.2)
    assert point(0.6, 0.7, 0.0).score == pytest.approx(0.6)
    assert point(0.9, 0.7, 0.2, scale=1.6).score == pytest.approx(0.7 - CHANGE_PENALTY * 0.2 - SCALE_PENALTY * 0.6)


def test_the_best_point_has_the_highest_score_and_among_equals_the_fewest_changes():
    loose, tight, best = point(1.0, 1.0, 0.5), point(0.6, 0.6, 0.05), point(1.0, 0.98, 0.2, scale=1.3)
    assert best_point([loose, best, tight]) is best
    same, sparser = point(1.0, 1.0, 0.2), point(1.0 - CHANGE_PENALTY * 0.1, 1.0, 0.1)  # of equal score
    assert best_point([same, sparser]) is sparser and best_point([sparser, same]) is sparser


def test_points_in_words_and_as_columns():
    points = [point(1.0, 0.75, 0.3), point(0.5, 0.5, 0.1, sparsity_weight=math.log(2))]
    assert points[1].to_dict() == pytest.approx(
        {"sparsity_weight": 2.0, "scale": 1.0, "valid": 0.5, "transfer": 0.5, "changed": 0.1}
    )
    text = summarise(points, points[0])
    assert "valid for 1.00" in text and "in 0.75" in text and "changes 0.30" in text and "0.10 to 0.30" in text
    assert trade_off_history(points) == {
        "trade_off_sparsity_weight": pytest.approx([1.0, 2.0]),
        "trade_off_scale": [1.0, 1.0],
        "trade_off_valid": [1.0, 0.5],
        "trade_off_transfer": [0.75, 0.5],
        "trade_off_changed": [0.3, 0.1],
    }


@pytest.mark.parametrize("uses_prototype", [False, True])
def test_the_trade_off_is_measured_by_classifier_and_selector(model, uses_prototype):
    rows = np.flatnonzero(Y == 0)
    target = np.ones(len(rows), dtype=np.int64)
    classifier = sp.wrap(MeanModule(), n_classes=3)
    built = model(selector=Constant(0), weights=(0.05, 1.0), scales=(1.0, 6.0), uses_prototype=uses_prototype)
    points = measure_trade_off(built, classifier, X[rows], target, n_mutable=4)
    weights = built.log_sparsity_weights
    assert [(p.log_sparsity_weight, p.residual_scale) for p in points] == [(w, s) for w in weights for s in (1.0, 6.0)]
    if not uses_prototype:
        assert [p.valid for p in points[:2]] == [0.0, 0.0] and points[2].valid < points[3].valid == 1.0
        assert points[0].changed == 0 < points[1].changed  # negligible, unless scaled
    assert [p.transfer for p in points] == [0.0] * 4  # the selector never agrees
    x = torch.tensor(Z[rows])
    residual = built.propose(x, torch.tensor(target), weights[1], built.nearest_prototype(x, target))
    for p in points[2:]:
        delta = drop_negligible(p.residual_scale * residual)
        assert p.changed == pytest.approx((delta != 0).float().mean().item())
        assert p.valid == (classifier.predict(INFO.scaler.add_delta(X[rows], delta.numpy())) == 1).mean()
    half = measure_trade_off(built, classifier, X[rows], target, n_mutable=2)
    assert half[3].changed == pytest.approx(2 * points[3].changed)


# The best residuals.


def best(model, *, cap=None, prototypes=(None,), project=lambda x, delta: delta):
    at_most = None if cap is None else torch.full((5,), cap)
    return best_residuals(model, QUERY, TARGET, prototypes=prototypes, project=project, at_most=at_most, n_entries=48)


def test_the_score_of_residuals_by_hand(model):
    delta = torch.zeros_like(QUERY)
    delta[:, :6, 1] = 1.0
    built = model(Constant(1, 0.8), Constant(1, 0.4), selector=Constant(2, 0.6))
    expected = ((0.8 + 0.4) / 2 + 0.2) / 2 - CHANGE_PENALTY * 6 / 48
    np.testing.assert_allclose(score_residuals(built, QUERY, delta, TARGET, 48), expected, atol=1e-6)


def test_residuals_that_the_classifier_rejects_rank_below_all_that_it_accepts(model):
    everything, nothing = torch.ones_like(QUERY), torch.zeros_like(QUERY)
    rejecting = model(Constant(0), Constant(1, 0.99), selector=Constant(1, 0.99))
    accepting = model(Constant(1, 0.4), Constant(0), selector=Constant(0))
    rejected = score_residuals(rejecting, QUERY, nothing, TARGET, 48)
    assert (rejected < score_residuals(accepting, QUERY, everything, TARGET, 48)).all()


def test_the_best_weight_and_scale_by_brute_force(model):
    built = model(weights=(0.2, 1.0, 4.0))
    every = torch.stack(
        [s * built.propose(QUERY, TARGET, w) for w in built.log_sparsity_weights for s in RESIDUAL_SCALES]
    )
    highest = torch.stack([score_residuals(built, QUERY, delta, TARGET, 48) for delta in every]).argmax(0)
    assert torch.equal(best(built), every[highest, torch.arange(5)])


@pytest.mark.parametrize("cap", [0, 1, 5, 48])
def test_the_cap_is_never_exceeded(model, cap):
    assert ((best(model(), cap=cap) != 0).sum((1, 2)) <= cap).all()


def test_below_a_cap_the_remaining_changes_are_scaled(model):
    few = best(model(weights=(1.0,)), cap=4)
    assert few.amax((1, 2)).tolist() == pytest.approx([max(RESIDUAL_SCALES)] * 5)  # the largest scale


def test_below_a_cap_changes_are_ranked_by_short_windows(model):
    class Generator(torch.nn.Module):
        uses_prototype = False

        def forward(self, x, target, log_weight, prototype=None):
            delta = torch.zeros(len(x), 60, 4)
            delta[:, 5:30, 1], delta[:, 40:45, 1] = 0.5, 1.5  # 0.58 at most with a window of 13 steps, 1.5 with 3
            return delta

    x = QUERY.repeat(1, 5, 1)  # 60 steps
    built = model(generator=Generator(), weights=(1.0,), scales=(1.0,))
    kept = best_residuals(
        built, x, TARGET, prototypes=[None], project=lambda x, d: d, at_most=torch.full((5,), 5), n_entries=240
    )
    assert (kept[:, 40:45, 1] == 1.5).all() and (kept != 0).sum() == 25


def test_real_series_are_not_scaled(model):
    delta = best(model(uses_prototype=True, scales=RESIDUAL_SCALES[:1]), cap=9, prototypes=[QUERY, REAL])
    changed = delta != 0
    assert changed.any((1, 2)).all()
    torch.testing.assert_close((QUERY + delta)[changed], REAL[changed])


@pytest.mark.parametrize("uses_prototype", [False, True])
def test_many_queries_are_computed_in_parts_with_the_same_result(model, uses_prototype, monkeypatch):
    built = model(uses_prototype=uses_prototype)
    options = {"cap": 7, "prototypes": [QUERY, REAL] if uses_prototype else (None,)}
    whole = best(built, **options)
    sizes = []
    plain = built.generator.forward
    built.generator.forward = lambda x, *rest: sizes.append(len(x)) or plain(x, *rest)
    monkeypatch.setattr(module, "MAX_ENTRIES", 2 * 9 * 48)  # two queries at a time, with prototypes one
    torch.testing.assert_close(best(built, **options), whole)
    assert max(sizes) == 2


def test_residuals_obey_the_constraints_after_scaling(model):
    delta = best(model(weights=(1.0,)), cap=4, project=lambda x, delta: delta.clamp(max=1.1))
    assert delta.amax((1, 2)).tolist() == pytest.approx([1.1] * 5)
