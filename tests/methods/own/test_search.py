"""The search: generated, else refined, else from a real series, else a reason; the user's classifier decides."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own import search as module
from sparcets.methods.own.candidates import MAX_PRICE, FoundAnswers, Prototypes
from sparcets.methods.own.ensemble import Selector
from sparcets.methods.own.operating_point import OperatingPoint, log_weight_grid
from sparcets.methods.own.search import ATTEMPTS, Search, answer
from sparcets.methods.request import Request
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(36, n_steps=12)
INFO = SeriesInfo.from_series(X, ("calm", "brisk", "wild"))
QUERIES = X[Y != 1][:6]
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
DEFAULT = OperatingPoint(0.0, 1.0, 1.0, 1.0, 0.5)
USELESS = {"feature": 3}  # the last feature never matters
GENERATORS = {"good": {"size": 2.0}, "useless": USELESS, "none": {"generates": False}}
each_generator = pytest.mark.parametrize("stub", GENERATORS.values(), ids=GENERATORS.keys())


class Never(torch.nn.Module):
    """A judge that always predicts class 0, the more surely the higher feature 1 is."""

    def forward(self, x):
        return torch.stack([9 + x[..., 1].mean(1), 0 * x[:, 0, 0], 0 * x[:, 0, 0]], dim=1)


class Timid:
    """A family that believes a series to be of class 1 where no step of feature 1 is high."""

    family = "timid"

    def votes(self, x):
        low = x[None, ..., 1].amax(2) < 2.5
        return torch.stack([~low, low, torch.zeros_like(low)], dim=2).float()


@pytest.fixture
def model(build_model):
    """Return a function that builds a model around a stub generator; the classifier itself is the only judge."""

    def build(*judges, prototypes=True, size=3.0, **stub):
        rows = np.flatnonzero(CLASSIFIER.predict(X) == Y) if prototypes else []
        real = Prototypes(Series(INFO.scaler.transform(X[rows]).astype(np.float32)), Y[rows])
        weights = log_weight_grid(0.5, 2.0)
        judges = judges or (CLASSIFIER,)
        return build_model(INFO, [CLASSIFIER], real, judges=judges, log_weights=weights, size=size, **stub)

    return build


@pytest.fixture
def searched(monkeypatch):
    """Return the numbers of rows of all searches from now on."""
    plain, sizes = module.search_pieces, []

    def search_pieces(ensemble, projection, starts, **options):
        sizes.append(len(starts.x))
        return plain(ensemble, projection, starts, **options)

    monkeypatch.setattr(module, "search_pieces", search_pieces)
    return sizes


@pytest.fixture
def fruitless(monkeypatch):
    """Let the search find nothing."""
    monkeypatch.setattr(module, "search_pieces", lambda *args, **options: [torch.zeros_like(args[2].x)])


def request(*, n=1, sparsity=None, queries=QUERIES, **constraints):
    built = Request(
        series=Series(queries),
        target=np.ones(len(queries), dtype=np.int64),
        classifier=CLASSIFIER,
        constraints=sp.Constraints(**constraints).bind(INFO),
        at_most=None,
        n=n,
        info=INFO,
    )
    if sparsity is None:
        return built
    return replace(built, at_most=np.floor(built.n_free() * sparsity).astype(np.int64))


def search(model, requested=None, *, classifier=CLASSIFIER, point=DEFAULT):
    return answer(replace(requested or request(), classifier=classifier), model, point)


def valid(answers, classifier=CLASSIFIER):
    return classifier.predict(answers.counterfactual) == 1


def changed(answers, queries=QUERIES):
    return answers.counterfactual != np.repeat(queries, len(answers.status) // len(queries), axis=0)


# Generated answers.


def test_valid_residuals_of_the_generator_are_taken_from_one_pass(model):
    built = model()
    answers = search(built)
    assert (answers.status == "generated").all() and (answers.reason == "").all() and valid(answers).all()
    assert built.generator.calls == 6 * [(1, 0.0)]  # once for each, with the weight of the operating point
    where = changed(answers)
    assert where[..., 1].all() and not where[..., [0, 2, 3]].any()
    assert (CLASSIFIER.predict_proba(answers.counterfactual)[:, 1] > 0.89).all()


def test_residuals_are_scaled_as_the_operating_point_says(model):
    plain, scaled = (search(model(), point=replace(DEFAULT, residual_scale=scale)) for scale in (1.0, 1.3))
    np.testing.assert_allclose(scaled.counterfactual - QUERIES, 1.3 * (plain.counterfactual - QUERIES), atol=1e-5)


def test_other_sparsity_weights_are_tried_where_the_answer_is_not_believed(model, searched):
    built, hard = model(size=1.4), QUERIES.copy()
    hard[:2, :, 1] -= 0.9
    answers = search(built, request(queries=hard))
    first, later = built.generator.calls[:6], built.generator.calls[6:]
    assert first == 6 * [(1, 0.0)]
    assert [log_weight for _, log_weight in later] == pytest.approx(
        np.repeat(built.log_sparsity_weights, 2)
    )  # two each
    assert (answers.status == "generated").all() and valid(answers).all() and not searched


# What comes after the generator.


@each_generator
def test_what_is_not_believed_is_refined_and_the_rest_is_not(model, searched, stub):
    answers = search(model(**stub))
    good = stub == GENERATORS["good"]
    assert valid(answers).all()
    if good:
        refined = answers.status == "refined"
        assert sum(searched) % max(1, refined.sum()) == 0 and refined.sum() < 6
    else:
        assert (answers.status == "refined").all() and searched
        assert not changed(answers)[..., 3].all()  # it learns what is needed


def test_a_valid_answer_that_is_not_believed_is_searched_and_kept_where_nothing_is_better(model, searched):
    built = model(Never())
    target = torch.ones(6, dtype=torch.int64)

    def belief(answers):
        x = torch.tensor(INFO.scaler.transform(answers.counterfactual), dtype=torch.float32)
        return built.ensemble.believe(x, target)

    answers = search(built)
    assert searched and valid(answers).all() and not belief(answers).believed.any()
    generated = search(replace(built, searches=False))
    assert (belief(answers).n_believing >= belief(generated).n_believing).all()
    assert (changed(answers).sum((1, 2)) <= changed(generated).sum((1, 2))).all()


def test_where_not_all_families_believe_most_decide_and_then_the_fewest_changes(model, monkeypatch):
    built = model(generates=False)
    ensemble = replace(built.ensemble, selector=Selector(networks=[sp.wrap(Never(), n_classes=3)], judges=[Timid()]))
    plain, offered = FoundAnswers.offer, [[] for _ in QUERIES]

    def offer(self, rows, proposal, status, belief=None):
        for row, series in zip(rows, self.request.apply_limits(proposal, rows), strict=True):
            offered[row].append(series)
        plain(self, rows, proposal, status, belief)

    monkeypatch.setattr(FoundAnswers, "offer", offer)
    answers = search(replace(built, ensemble=ensemble))
    assert valid(answers).all()

    def quality(series, query):
        """Return the numbers of believing families and of changes of the valid ones, the second negative."""
        series = np.stack(series)
        series = series[CLASSIFIER.predict(series) == 1]
        x = torch.tensor(INFO.scaler.transform(series), dtype=torch.float32)
        believing = ensemble.believe(x, torch.ones(len(x), dtype=torch.int64)).n_believing.tolist()
        return list(zip(believing, (-(series != query).sum((1, 2))).tolist(), strict=True))

    decided = 0
    for series, own, query in zip(offered, answers.counterfactual, QUERIES, strict=True):
        all_of_them = quality(series, query)
        assert quality([own], query) == [max(all_of_them)] and max(all_of_them)[0] < 2
        decided += max(n_changed for _, n_changed in all_of_them) > max(all_of_them)[1]
    assert decided  # somewhere, fewer changes were believed by fewer families


def test_without_a_search_a_real_series_answers(model, searched):
    answers = search(model(**USELESS, searches=False))
    assert (answers.status == "neighbour").all() and valid(answers).all() and not searched


@pytest.mark.usefixtures("fruitless")
def test_where_the_search_finds_nothing_a_real_series_answers(model):
    built = model(**USELESS)
    answers = search(built)
    assert (answers.status == "neighbour").all() and valid(answers).all()
    x = torch.tensor(INFO.scaler.transform(QUERIES), dtype=torch.float32)
    nearest = built.prototypes.nearest(x, np.ones(6, dtype=np.int64), 1)[:, 0]
    expected = INFO.scaler.inverse(built.prototypes.series.values[nearest])
    np.testing.assert_allclose(answers.counterfactual, expected, atol=1e-5)


@pytest.mark.usefixtures("fruitless")
def test_where_nothing_is_found_the_best_attempt_and_a_reason_are_returned(model):
    answers = search(model(prototypes=False, size=0.3))
    assert (answers.status == "not_found").all() and not valid(answers).any()
    p = CLASSIFIER.predict_proba(answers.counterfactual)[:, 1]
    reached = [float(re.search(r"; p\(brisk\) reached (\d\.\d\d)$", reason).group(1)) for reason in answers.reason]
    np.testing.assert_allclose(reached, p, atol=0.006)
    assert changed(answers).any((1, 2)).all() and (p > CLASSIFIER.predict_proba(QUERIES)[:, 1]).all()


def test_the_user_s_classifier_decides_what_is_valid(model):
    black_box = sp.wrap(lambda x: mean_proba(x[..., [0, 3, 2, 1]]), n_classes=3)  # its class 1 is feature 3
    answers = search(model(), classifier=black_box)  # the ensemble is wrong about it
    assert np.array_equal(answers.status != "not_found", valid(answers, black_box))


def test_many_queries_are_searched_in_parts_with_the_same_result(model, monkeypatch):
    built = model(generates=False)
    whole = search(built)
    monkeypatch.setattr(module, "SEARCH_BATCH", {"cpu": 4})
    parts = search(built)
    assert np.array_equal(parts.status, whole.status)
    np.testing.assert_allclose(parts.counterfactual, whole.counterfactual, atol=1e-3)


def test_the_number_of_threads_does_not_depend_on_the_number_of_queries(model, monkeypatch):
    threads, before = set(), torch.get_num_threads()

    class Recorded(MeanModule):
        def forward(self, x):
            if x.requires_grad:  # in the search, not in a prediction
                threads.add(torch.get_num_threads())
            return super().forward(x)

    built = model(generates=False)
    built = replace(built, ensemble=replace(built.ensemble, explained=sp.wrap(Recorded(), n_classes=3)))
    monkeypatch.setattr("sparcets.training.device.SMALL", 8 * QUERIES[0].size)  # between one query and six
    torch.set_num_threads(2)
    try:
        for n in (1, 6):
            search(built, request(queries=QUERIES[:n]))
    finally:
        torch.set_num_threads(before)
    assert len(threads) == 1


# The parts of a search.


@pytest.mark.parametrize("attempt", [0, 1])
def test_the_starts_of_one_query_stand_together_and_its_candidates_in_one_column(model, monkeypatch, attempt):
    given = []

    def search_pieces(ensemble, projection, starts, **options):
        given.append(starts)
        return [starts.change, 2 * starts.change]

    monkeypatch.setattr(module, "search_pieces", search_pieces)
    searching, rows = Search(request(), model(generates=False), DEFAULT), np.array([4, 1, 3])
    candidates = searching.search_rows(rows, attempt=attempt)
    (starts,), k = given, len(ATTEMPTS[attempt])
    assert candidates.shape == (2 * k, 3, 12, 4) and len(starts.x) == 3 * k
    for i, row in enumerate(rows):
        for j, (rank, deviates) in enumerate(ATTEMPTS[attempt]):
            at = i * k + j
            assert torch.equal(starts.x[at], searching.x[row]) and starts.target[at] == 1
            assert starts.deviates[at] == deviates
            real = torch.as_tensor(searching.model.prototypes.series.values[searching.nearest[row, rank]])
            torch.testing.assert_close(starts.change[at], real - searching.x[row])
            assert torch.equal(candidates[j, i], starts.change[at])
            assert torch.equal(candidates[k + j, i], 2 * starts.change[at])


@pytest.mark.parametrize(("attempt", "ranks"), [(0, [0, 0]), (1, [3, 3])])
def test_fewer_starts(model, attempt, ranks):
    searching = Search(request(), replace(model(generates=False), starts=1), DEFAULT)
    rows = np.array([4, 1])
    changes, deviates = searching._starts(rows, attempt)
    assert deviates == [True, False]
    for change, rank in zip(changes, ranks, strict=True):
        real = torch.as_tensor(searching.model.prototypes.series.values[searching.nearest[rows, rank]])
        torch.testing.assert_close(change, real - searching.x[rows])


def test_the_candidates_of_a_query_do_not_depend_on_the_queries_that_it_is_searched_with(model):
    searching = Search(request(), model(generates=False), DEFAULT)
    together = searching.search_rows(np.arange(6))
    for row in (0, 2, 5):
        assert torch.equal(searching.search_rows(np.array([row]))[:, 0], together[:, row])


def test_to_refine_is_to_search_and_to_offer_what_is_found(model):
    built, rows = model(generates=False), np.array([0, 3, 4])
    at_once, in_parts = (Search(request(sparsity=0.3), built, DEFAULT) for _ in range(2))
    at_once.refine_rows(rows)
    candidates = in_parts.search_rows(rows)
    assert candidates.shape[1:] == (3, 12, 4)
    assert (in_parts.found.status == "not_found").all()  # nothing is offered yet
    in_parts.offer_candidates(rows, candidates)
    for name in ("rank", "series", "status"):
        assert np.array_equal(getattr(in_parts.found, name), getattr(at_once.found, name))
    assert (in_parts.found.status[rows] == "refined").all()
    assert (in_parts.found.status[[1, 2, 5]] == "not_found").all()
    most = (in_parts.found.series[:, 0] != QUERIES).sum((1, 2)).max()
    assert most <= int(48 * 0.3) < (candidates != 0).sum((2, 3)).max()  # the cap is applied when they are offered


# Several answers.


@pytest.mark.parametrize("n", [2, 4])
def test_several_answers_differ_and_of_the_believed_those_with_the_fewest_changes_come_first(model, n):
    built = model()
    answers = search(built, request(n=n))
    status, found = answers.status.reshape(6, n), valid(answers).reshape(6, n)
    assert len(answers.status) == 6 * n and found[:, :2].all() and np.array_equal(status != "not_found", found)
    x = torch.tensor(INFO.scaler.transform(answers.counterfactual), dtype=torch.float32)
    lead = built.ensemble.believe(x, torch.ones(len(x), dtype=torch.int64)).convincing.numpy()
    paid = (changed(answers).sum((1, 2)) / np.where(lead, MAX_PRICE, 1.0)).reshape(6, n)
    for row in range(6):
        own = answers.counterfactual.reshape(6, n, -1)[row][found[row]]
        assert len(np.unique(own, axis=0)) == len(own)
        assert (np.diff(paid[row][found[row]]) >= 0).all()


def test_more_answers_than_there_are_end_with_a_reason(model):
    answers = search(model(), request(n=60, queries=QUERIES[:2]))
    found = valid(answers).reshape(2, 60)
    assert np.array_equal(answers.status.reshape(2, 60) != "not_found", found)
    assert found[:, 0].all() and not found[:, -1].any()
    assert not (~found[:, :-1] & found[:, 1:]).any()  # the found ones come first
    for row in range(2):
        missing = answers.reason.reshape(2, 60)[row][~found[row]]
        assert (missing == f"only {found[row].sum()} different answers were found").all()


# Limits.

LIMITS = {
    "immutable": ["f3"],
    "frozen": [(0, 3)],
    "ranges": {"f1": (-2.0, 2.5)},
    "max_step": {"f0": 0.3},
    "direction": {"f1": "up"},
    "groups": {"pair": ["f0", "f2"]},
}


@each_generator
def test_all_answers_obey_the_constraints(model, stub):
    answers = search(model(**stub), request(n=3, **LIMITS))
    where, query, series = changed(answers), np.repeat(QUERIES, 3, axis=0), answers.counterfactual
    assert where.any()
    assert not where[..., 3].any() and not where[:, :3].any()
    assert ((series[..., 1] >= -2.0) & (series[..., 1] <= 2.5))[where[..., 1]].all()
    assert (series[..., 1] >= query[..., 1]).all()
    assert np.array_equal(where[..., 0], where[..., 2])
    steps, own = (np.abs(np.diff(part[..., 0].astype(np.float64), axis=1)) for part in (series, query))
    assert (steps <= np.maximum(0.3, own)).all()
    assert series[~where].tobytes() == query[~where].tobytes()


@each_generator
@pytest.mark.parametrize("sparsity", [0.03, 0.1, 0.25])
def test_the_cap_holds_and_the_reason_names_it(model, stub, sparsity):
    answers = search(model(**stub), request(sparsity=sparsity))
    assert (changed(answers).sum((1, 2)) <= int(48 * sparsity)).all()
    assert np.array_equal(answers.status != "not_found", valid(answers))
    for reason in answers.reason[~valid(answers)]:
        assert f"at most {int(48 * sparsity)} of 48 entries changed" in reason
    if sparsity == 0.03:  # one entry cannot lift a mean that far
        assert (answers.status == "not_found").all()
