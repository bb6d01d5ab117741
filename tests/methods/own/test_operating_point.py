"""Operating points: how they are measured, and which is the default."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.ensemble import Selector
from sparcets.methods.own.generator import drop_negligible
from sparcets.methods.own.operating_point import (
    NEARLY,
    RESIDUAL_SCALES,
    OperatingPoint,
    average_points,
    best_point,
    default_point,
    log_weight_grid,
    measure_trade_off,
    summarise,
)
from sparcets.methods.own.prototypes import Prototypes
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(36, n_steps=12)
X = 3 * X + 5  # units of its own, so that nothing is standardised by chance
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
Z = INFO.scaler.transform(X).astype(np.float32)
ALL = np.ones(4, dtype=bool)


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

    def build(*judges, weights=(0.5, 1.0, 2.0), scales=RESIDUAL_SCALES, **kwargs):
        return build_model(
            INFO,
            [MeanModule(sharpness=3.0)],
            Prototypes(Series(X), Y, np.arange(len(Y)), INFO.scaler),
            judges=judges,
            log_weights=[math.log(w) for w in weights],
            scales=scales,
            **kwargs,
        )

    return build


# Points.


def point(valid, transfer, changed, *, sparsity_weight=0.0, scale=1.0):
    return OperatingPoint(sparsity_weight, scale, valid, transfer, changed)


def test_the_sparsity_weights_are_evenly_spaced_in_their_logarithm():
    grid = [math.exp(w) for w in log_weight_grid(0.01, 100.0)]
    assert grid[::2] == pytest.approx([0.01, 0.1, 1.0, 10.0, 100.0]) and grid[1] == pytest.approx(0.1**1.5)
    assert log_weight_grid(2.0, 2.0) == pytest.approx((math.log(2),) * 9)


def test_the_default_changes_least_of_the_points_that_are_nearly_the_best():
    loose, nearly, poor = point(1.0, 1.0, 0.5), point(1.0, NEARLY + 0.01, 0.2), point(1.0, NEARLY - 0.01, 0.1)
    for points in ([loose, nearly, poor], [poor, nearly, loose]):
        assert best_point(points) is nearly
    scaled = point(1.0, 1.0, 0.2, scale=1.3)
    assert best_point([scaled, nearly]) is nearly and best_point([nearly, scaled]) is nearly  # of equal changes
    assert best_point([point(0.0, 0.0, 0.3), point(0.0, 0.0, 0.1)]).changed == 0.1


def test_points_in_words_and_as_columns():
    points = [point(1.0, 0.75, 0.3), point(0.5, 0.5, 0.1, sparsity_weight=math.log(2))]
    assert points[1].to_dict() == pytest.approx(
        {"sparsity_weight": 2.0, "scale": 1.0, "valid": 0.5, "transfer": 0.5, "changed": 0.1}
    )
    text = summarise(points, uses_generator=True)
    assert "valid for 1.00" in text and "for 0.75" in text and "changes 0.30" in text and "0.10 to 0.30" in text
    assert "one pass of the generator alone" in text and "explain also searches" in text
    assert summarise([point(0.0, 0.0, 0.0)], uses_generator=False) == "No answer could be measured on training series."


def test_what_is_said_of_a_search_is_what_explain_does_by_default():
    """A sparse point may be chosen among weak ones; but a search has no cap unless one is asked for."""
    points = [point(0.12, 0.1, 0.05), point(1.0, 0.1, 0.4)]
    assert best_point(points) is points[0] and default_point(points, uses_generator=False) is points[1]
    text = summarise(points, uses_generator=False)
    assert "valid for 1.00" in text and "0.12" not in text and "generator" not in text


def test_the_trade_off_is_measured_by_classifier_and_selector(model):
    rows = np.flatnonzero(Y == 0)
    target = np.ones(len(rows), dtype=np.int64)
    classifier = sp.wrap(MeanModule(), n_classes=3)
    built = model(Constant(0), weights=(0.05, 1.0), scales=(1.0, 6.0))
    points = measure_trade_off(built, classifier, Series(X[rows]), target, allowed=ALL)
    weights = built.log_sparsity_weights
    assert [(p.log_sparsity_weight, p.residual_scale) for p in points] == [(w, s) for w in weights for s in (1.0, 6.0)]
    assert [p.valid for p in points[:2]] == [0.0, 0.0] and points[2].valid < points[3].valid == 1.0
    assert points[0].changed == 0 < points[1].changed  # negligible, unless scaled
    assert [p.transfer for p in points] == [0.0] * 4  # the selector never agrees
    residual = built.propose(torch.tensor(Z[rows]), torch.tensor(target), weights[1])
    for p in points[2:]:
        delta = drop_negligible(p.residual_scale * residual)
        assert p.changed == pytest.approx((delta != 0).float().mean().item())
        assert p.valid == (classifier.predict(INFO.scaler.add_delta(X[rows], delta.numpy())) == 1).mean()
    half = measure_trade_off(built, classifier, Series(X[rows]), target, allowed=ALL & (np.arange(4) < 2))
    assert half[3].changed == pytest.approx(2 * points[3].changed)


def test_transfer_is_the_share_that_is_believed(model):
    rows = np.flatnonzero(Y == 0)
    target = np.ones(len(rows), dtype=np.int64)
    classifier, built = sp.wrap(MeanModule(), n_classes=3), model(MeanModule(), weights=(1.0,), scales=(1.5,))
    (point,) = measure_trade_off(built, classifier, Series(X[rows]), target, allowed=ALL)
    assert 0 < point.transfer == point.valid  # a judge that is the classifier itself
    (alone,) = measure_trade_off(model(weights=(1.0,), scales=(1.5,)), classifier, Series(X[rows]), target, allowed=ALL)
    assert alone.transfer == 1.0  # without families there is nothing to doubt


def test_missing_entries_are_not_counted(model):
    """A generator that changes feature 1 at all steps changes a fourth of what was measured, however much that is."""
    queries, target = X[Y == 0].copy(), np.ones((Y == 0).sum(), dtype=np.int64)
    queries[:, :3] = np.nan
    queries[0, 3:6, 1] = np.nan
    classifier, built = sp.wrap(MeanModule(), n_classes=3, missing="forward"), model(weights=(1.0,), scales=(1.0,))
    built = replace(built, ensemble=replace(built.ensemble, selector=Selector(networks=[], judges=[], gaps=True)))
    (point,) = measure_trade_off(built, classifier, Series(queries), target, ALL)
    n = len(queries)
    assert point.changed == pytest.approx((9 * n - 3) / (36 * n - 3))


def test_points_of_several_lengths_are_averaged_by_series_and_by_entries():
    parts = [(3, 100, [point(1.0, 0.5, 0.2)]), (1, 300, [point(0.0, 0.1, 0.6)])]
    (mean,) = average_points(parts)
    assert (mean.valid, mean.transfer, mean.changed) == (0.75, pytest.approx(0.4), pytest.approx(0.5))
