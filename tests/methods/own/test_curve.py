"""How belief falls as fewer entries change: at fit on held-out series, and for each answer on request."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.evidence import PlausibilityReference
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.quality import SHARES, measure_curve, measure_search, rank_changes
from sparcets.methods.own.search import answer
from sparcets.methods.request import Request
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from tests import made

X, Y = make_series(120, n_steps=12)
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)


@pytest.fixture
def model(build_model):
    def build(*judges, **kwargs):
        prototypes = Prototypes(Series(X), Y, np.arange(len(X)), INFO.scaler)
        return build_model(INFO, [CLASSIFIER], prototypes, judges=judges, **kwargs)

    return build


def request(queries, **constraints):
    return Request(
        series=Series(queries),
        target=np.ones(len(queries), dtype=np.int64),
        classifier=CLASSIFIER,
        constraints=sp.Constraints(**constraints).bind(INFO),
        at_most=None,
        n=1,
        info=INFO,
    )


def answers(queries, size=4.0, steps=8):
    """Return answers that lift feature 1 at the first steps, in falling order."""
    series = queries.copy()
    series[:, :steps, 1] += size * np.linspace(2, 1, steps, dtype=np.float32)
    before, after = (CLASSIFIER.predict_proba(one) for one in (queries, series))
    return made.answers(queries, series, INFO, status="refined", proba_before=before, proba_after=after)


def curve(model, given, **constraints):
    return measure_curve(request(given.query, **constraints), given.counterfactual, model)


# At fit.


def test_answers_to_held_out_series_are_measured(model):
    asked = request(X[Y != 1][:5])
    built = replace(model(MeanModule()), reference=PlausibilityReference.fit(Series(X), Y, INFO))
    measured = {name: value for name, (value,) in measure_search(built, asked).items()}
    series = answer(asked, built).counterfactual
    assert measured["held_out_valid"] == pytest.approx((CLASSIFIER.predict(series) == 1).mean()) == 1.0
    assert measured["held_out_changed"] == pytest.approx((series != asked.X).mean())
    assert measured["held_out_believed"] == 1.0
    assert set(map(tuple, measure_search(built, request(X[:0])).values())) == {(0.0,)}


# On request.


def test_the_largest_changes_of_an_answer_alone_by_hand(model):
    given = answers(X[Y != 1][:3])
    made = curve(model(MeanModule(), MeanModule(sharpness=0.5)), given)
    for i, share in enumerate(SHARES):
        np.testing.assert_allclose(made["share"][:, i], math.ceil(share * 8 - 1e-9) / 48)
    valid = CLASSIFIER.predict(given.counterfactual) == 1
    np.testing.assert_array_equal(made["valid"][:, 0], valid)
    np.testing.assert_array_equal(made["support"][:, 0], valid)  # the judges predict what the classifier does
    assert made["share"].shape == made["support"].shape == made["valid"].shape == (3, len(SHARES))
    assert (made["valid"][:, 0] == 1).all() and (made["valid"][:, -1] == 0).any()


def test_shares_are_of_what_may_change(model):
    given = answers(X[Y != 1][:3])
    within = curve(model(MeanModule()), given, immutable=["f0", "f2", "f3"])
    assert np.nanmax(within["share"]) == 8 / 12 and np.nanmin(within["share"]) >= 1 / 12  # of twelve mutable entries
    frozen = curve(model(MeanModule()), given, immutable=["f0", "f2", "f3"], frozen=[(8, None)])
    assert np.nanmax(frozen["share"]) == 1.0 and np.nanmin(frozen["share"]) >= 1 / 8  # of eight that may change


def test_an_answer_that_changes_nothing_has_no_points(model):
    made = curve(model(MeanModule()), answers(X[Y != 1][:3], size=0.0))
    assert all(np.isnan(values).all() for values in made.values())


def test_without_families_there_is_no_support(model):
    made = curve(model(), answers(X[Y != 1][:3]))
    assert np.isnan(made["support"]).all() and not np.isnan(made["valid"][:, 0]).any()


# Ranks.


def test_a_window_outranks_a_larger_point():
    delta = torch.zeros(1, 12, 2)
    delta[0, 3:8, 0] = 1.0
    delta[0, 10, 1] = 2.0  # alone: with its neighbours it is 2/3
    rank = rank_changes(delta)[0]
    assert rank[10, 1] == 5 and sorted(rank[3:8, 0].tolist()) == [0, 1, 2, 3, 4]
    assert set(rank[4:7, 0].tolist()) == {0, 1, 2}  # its middle is kept longest
    delta[0, 10, 1] = 4.0
    assert rank_changes(delta)[0, 10, 1] == 0


def test_ranks_number_every_entry_and_unchanged_entries_come_last():
    delta = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
    delta[:, :, 1] = 0
    rank = rank_changes(delta)
    assert all(sorted(r.flatten().tolist()) == list(range(28)) for r in rank)
    assert (rank[..., 1] >= 21).all() and (rank[..., [0, 2, 3]] < 21).all()
