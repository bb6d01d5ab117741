"""How belief falls as fewer entries change: at fit on held-out series, and for each answer on request."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sparcets.methods.own.candidates import Prototypes

import sparcets as sp
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own import search as search_module
from sparcets.methods.own.operating_point import CAPS, NO_POINT, SHARES, measure_curve, measure_search
from sparcets.methods.own.search import ATTEMPTS, Search
from sparcets.methods.request import Request
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(120, n_steps=12)
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
Z = INFO.scaler.transform(X).astype(np.float32)
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
PARTS = 5


@pytest.fixture
def model(build_model):
    def build(*judges, **kwargs):
        return build_model(INFO, [CLASSIFIER], Prototypes(Series(Z), Y), judges=judges, generates=False, **kwargs)

    return build


@pytest.fixture
def searched(monkeypatch):
    """Let the search return ever smaller parts of its starts, and return the numbers of its rows."""
    sizes = []

    def search_pieces(ensemble, projection, starts, **options):
        sizes.append(len(starts.x))
        return [starts.change * (1 - i / PARTS) for i in range(PARTS)]

    monkeypatch.setattr(search_module, "search_pieces", search_pieces)
    return sizes


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
    n = len(queries)
    return Explanation(
        query=queries,
        counterfactual=series,
        target=np.ones(n, dtype=np.int64),
        status=np.full(n, "refined"),
        reason=np.full(n, ""),
        query_index=np.arange(n),
        proba_before=CLASSIFIER.predict_proba(queries),
        proba_after=CLASSIFIER.predict_proba(series),
        info=INFO,
        mutable=np.ones(4, dtype=bool),
    )


def curve(model, given, **constraints):
    return measure_curve(request(given.query, **constraints), given.counterfactual, model, NO_POINT)


# At fit.


def test_the_search_is_measured_at_every_cap(model):
    queries = X[Y != 1][:5]
    points = measure_search(model(MeanModule()), request(queries))
    assert [p.log_sparsity_weight for p in points] == pytest.approx([-math.log(cap) for cap in CAPS])
    assert all(p.changed <= cap for p, cap in zip(points, CAPS, strict=True))
    assert points[-1].valid == points[-1].transfer == 1.0 and all(p.residual_scale == 1.0 for p in points)


def test_one_search_serves_every_cap(model, searched):
    points = measure_search(model(MeanModule()), request(X[Y != 1][:5]))
    assert searched == [5 * len(ATTEMPTS[0])]
    assert [p.changed for p in points] == pytest.approx([math.floor(48 * cap) / 48 for cap in CAPS])


def test_every_cap_gives_what_a_search_of_its_own_would(model):
    asked, built, rows = request(X[Y != 1][:5]), model(MeanModule()), np.arange(5)
    for point, cap in zip(measure_search(built, asked), CAPS, strict=True):
        capped = replace(asked, at_most=np.full(5, math.floor(48 * cap)))
        search = Search(capped, built, NO_POINT)
        search.refine_rows(rows)
        series = search.found.series[:, 0]
        assert point.valid == pytest.approx((CLASSIFIER.predict(series) == 1).mean())
        assert point.changed == pytest.approx((series != asked.X).mean())


def test_without_held_out_queries_there_is_one_empty_point(model):
    assert measure_search(model(), request(X[:0])) == [NO_POINT]


# On request.


@pytest.mark.usefixtures("searched")
def test_the_largest_changes_of_an_answer_alone_by_hand(model):
    given = answers(X[Y != 1][:3])
    made = curve(model(MeanModule(), MeanModule(sharpness=0.5)), given)
    n = len(SHARES)
    for i, share in enumerate(SHARES):
        kept = math.ceil(share * 8 - 1e-9)
        np.testing.assert_allclose(made["share"][:, i], kept / 48)
    series = given.counterfactual
    valid = CLASSIFIER.predict(series) == 1
    np.testing.assert_array_equal(made["valid"][:, 0], valid)
    np.testing.assert_array_equal(made["support"][:, 0], valid)  # the judges predict what the classifier does
    assert made["share"].shape == made["support"].shape == made["valid"].shape and made["share"].shape[1] > n
    assert (made["valid"][:, 0] == 1).all() and (made["valid"][:, n - 1] == 0).any()


@pytest.mark.usefixtures("searched")
def test_the_candidates_of_the_search_are_points_too(model):
    given = answers(X[Y != 1][:3])
    made = curve(model(MeanModule()), given)
    assert (made["share"][:, len(SHARES) :] > 0.9).any()  # of whole real series, which change everything
    within = curve(model(MeanModule()), given, immutable=["f0", "f2", "f3"])
    assert np.nanmax(within["share"][:, len(SHARES) :]) <= 1.0
    assert np.nanmin(within["share"]) >= 1 / 12  # of twelve mutable entries
    frozen = curve(model(MeanModule()), given, immutable=["f0", "f2", "f3"], frozen=[(8, None)])
    assert np.nanmax(frozen["share"]) == 1.0 and np.nanmin(frozen["share"]) >= 1 / 8  # of eight that may change


@pytest.mark.usefixtures("searched")
def test_an_answer_that_changes_nothing_has_no_points_of_its_own(model):
    queries = X[Y != 1][:3]
    given = answers(queries, size=0.0)
    made = curve(model(MeanModule()), given)
    for values in made.values():
        assert np.isnan(values[:, : len(SHARES)]).all()


@pytest.mark.usefixtures("searched")
def test_without_families_there_is_no_support(model):
    made = curve(model(), answers(X[Y != 1][:3]))
    assert np.isnan(made["support"]).all() and not np.isnan(made["valid"][:, 0]).any()


def test_many_answers_are_searched_in_parts_and_have_their_own_points(model, searched):
    queries = X[Y != 1][:70]
    given = answers(queries)
    whole = curve(model(MeanModule()), given)
    assert len(searched) > 1
    few = curve(model(MeanModule()), given[np.array([0, 69])])
    for row, name in ((0, "share"), (69, "share"), (0, "support"), (69, "valid")):
        own, expected = whole[name][row], few[name][[0, 69].index(row)]
        np.testing.assert_allclose(own[~np.isnan(own)], expected[~np.isnan(expected)])
