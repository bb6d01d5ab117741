"""The search: generated, else refined, else from a real series, else a reason; the user's classifier decides."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers.request import Request
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.operating_point import OperatingPoint, log_weight_grid, score_residuals
from sparcets.explainers.sparcets.prototypes import NEAREST, Prototypes
from sparcets.explainers.sparcets.prune import drop_negligible
from sparcets.explainers.sparcets.search import answer, refine
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.projection import Projection

X, Y = make_series(36, n_steps=12)
INFO = SeriesInfo.from_series(X, ("calm", "brisk", "wild"))
QUERIES = X[Y != 1][:6]
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
DEFAULT = OperatingPoint(0.0, 1.0, 1.0, 1.0, 0.5)
USELESS = {"feature": 3}  # the last feature never matters
GENERATORS = {"good": {"size": 2.0}, "useless": USELESS, "prototype": {"uses_prototype": True}}
each_generator = pytest.mark.parametrize("stub", GENERATORS.values(), ids=GENERATORS.keys())


class Indifferent(torch.nn.Module):
    """A member without gradients."""

    def forward(self, x):
        return 0 * x[..., :3].mean(1)


class Contrary(MeanModule):
    """A member that reads the features in reverse order."""

    def forward(self, x):
        return super().forward(x.flip(2))


@pytest.fixture
def model(build_model):
    """Return a function that builds a model around a stub generator; the classifier itself is the default member."""

    def build(*members, prototypes=True, size=3.0, **stub):
        rows = np.flatnonzero(CLASSIFIER.predict(X) == Y) if prototypes else []
        real = Prototypes(INFO.scaler.transform(X[rows]).astype(np.float32), Y[rows])
        weights = log_weight_grid(0.5, 2.0)
        return build_model(
            INFO, members or [CLASSIFIER], real, selector=CLASSIFIER, log_weights=weights, size=size, **stub
        )

    return build


def request(*, n=1, sparsity=None, queries=QUERIES, **constraints):
    built = Request(
        X=queries,
        target=np.ones(len(queries), dtype=np.int64),
        lengths=None,
        constraints=sp.Constraints(**constraints).bind(INFO),
        at_most=None,
        n=n,
        info=INFO,
    )
    if sparsity is None:
        return built
    return replace(built, at_most=np.floor(built.mutable_entries() * sparsity).astype(np.int64))


def search(model, requested=None, *, classifier=CLASSIFIER, point=DEFAULT):
    return answer(requested or request(), model, classifier, point)


def valid(answers, classifier=CLASSIFIER):
    return classifier.predict(answers.counterfactual) == 1


def changed(answers, queries=QUERIES):
    return answers.counterfactual != np.repeat(queries, len(answers.status) // len(queries), axis=0)


# Generated answers.


def test_valid_residuals_of_the_generator_are_taken_from_one_pass(model):
    built = model()
    answers = search(built)
    assert (answers.status == "generated").all() and (answers.reason == "").all() and valid(answers).all()
    assert built.generator.calls == [(6, 0.0)]  # once, for all, with the weight of the operating point
    where = changed(answers)
    assert where[..., 1].all() and not where[..., [0, 2, 3]].any()
    assert (CLASSIFIER.predict_proba(answers.counterfactual)[:, 1] > 0.89).all()


def test_residuals_are_scaled_as_the_operating_point_says(model):
    plain, scaled = (search(model(), point=replace(DEFAULT, residual_scale=scale)) for scale in (1.0, 1.3))
    np.testing.assert_allclose(scaled.counterfactual - QUERIES, 1.3 * (plain.counterfactual - QUERIES), atol=1e-5)


def test_negligible_changes_are_dropped_unless_they_are_needed(model):
    answers = search(model(last_feature=0.05))
    assert valid(answers).all() and not changed(answers)[..., 3].any()
    # Reacts to tiny changes of feature 0, which it takes for feature 1.
    sensitive = sp.wrap(lambda x: mean_proba(np.roll(1000 * (x - QUERIES), 1, axis=2)), n_classes=3)
    needed = search(model(size=0.05, feature=0), classifier=sensitive)
    assert (needed.status == "generated").all() and (changed(needed).sum((1, 2)) == 12).all()


def test_other_sparsity_weights_are_tried_for_queries_without_an_answer(model):
    built, hard = model(size=1.4), QUERIES.copy()
    hard[:2, :, 1] -= 0.9
    answers = search(built, request(queries=hard))
    first, *later = built.generator.calls
    assert first == (6, 0.0) and later and all(n < 6 for n, _ in later)
    distances = [abs(log_weight) for _, log_weight in built.generator.calls]
    assert distances == sorted(distances)  # the nearest first
    assert (answers.status == "generated").all() and valid(answers).all()


def test_of_several_prototypes_the_best_is_taken(model):
    built = model(uses_prototype=True)
    answers = search(built)
    x, target = torch.tensor(INFO.scaler.transform(QUERIES), dtype=torch.float32), torch.ones(6, dtype=torch.int64)
    nearest = built.prototypes.nearest(x, target.numpy(), NEAREST)
    residuals = [drop_negligible(torch.tensor(built.prototypes.series[rows]) - x) for rows in nearest.T]
    best = torch.stack([score_residuals(built, x, delta, target, 48) for delta in residuals]).argmax(0)
    assert best.any()  # the nearest is not always the best
    expected = INFO.scaler.add_delta(QUERIES, torch.stack(residuals)[best, torch.arange(6)].numpy())
    np.testing.assert_allclose(answers.counterfactual, expected, atol=1e-5)
    assert (answers.status == "generated").all()


# What comes after the generator.


def test_where_the_generator_fails_a_refinement_answers(model):
    for built in (model(**USELESS), model(uses_prototype=True, prototypes=False)):
        answers = search(built)
        assert (answers.status == "refined").all() and valid(answers).all()


@pytest.mark.parametrize("member", [Indifferent(), Contrary()], ids=["indifferent", "contrary"])
def test_where_the_ensemble_misleads_a_real_series_answers(model, member):
    answers = search(model(member, **USELESS))
    assert (answers.status == "neighbour").all() and valid(answers).all()


def test_where_nothing_is_found_the_best_attempt_and_a_reason_are_returned(model):
    answers = search(model(Indifferent(), prototypes=False, size=0.3))
    assert (answers.status == "not_found").all() and not valid(answers).any()
    p = CLASSIFIER.predict_proba(answers.counterfactual)[:, 1]
    reached = [float(re.search(r"; p\(brisk\) reached (\d\.\d\d)$", reason).group(1)) for reason in answers.reason]
    np.testing.assert_allclose(reached, p, atol=0.006)
    assert changed(answers).any((1, 2)).all() and (p > CLASSIFIER.predict_proba(QUERIES)[:, 1]).all()


def test_the_user_s_classifier_decides_what_is_valid(model):
    black_box = sp.wrap(lambda x: mean_proba(x[..., [0, 3, 2, 1]]), n_classes=3)  # its class 1 is feature 3
    answers = search(model(), classifier=black_box)  # the ensemble is wrong about it
    assert set(answers.status) <= {"neighbour", "not_found"}
    assert np.array_equal(answers.status != "not_found", valid(answers, black_box))


# Several answers.


@pytest.mark.parametrize("n", [2, 4])
def test_several_answers_differ_and_those_with_the_fewest_changes_come_first(model, n):
    answers = search(model(), request(n=n))
    assert len(answers.status) == 6 * n and valid(answers).all()
    assert all(len(np.unique(own, axis=0)) == n for own in answers.counterfactual.reshape(6, n, -1))
    counts = changed(answers).sum((1, 2)).reshape(6, n)
    assert (np.diff(counts, axis=1) >= 0).all()


def test_more_answers_than_there_are_end_with_a_reason(model):
    answers = search(model(), request(n=60, queries=QUERIES[:2]))
    status, found = answers.status.reshape(2, 60), valid(answers).reshape(2, 60)
    assert np.array_equal(status != "not_found", found) and found[:, 0].all() and not found[:, -1].any()
    assert not (~found[:, :-1] & found[:, 1:]).any()  # the found ones come first
    for row in range(2):
        missing = answers.reason.reshape(2, 60)[row][~found[row]]
        assert (missing == f"only {found[row].sum()} different answers were found").all()
    assert {"generated", "refined", "neighbour"} <= set(status.ravel())


def test_a_second_refinement_changes_entries_that_no_earlier_answer_changed(model):
    answers = search(model(uses_weight=False, prototypes=False), request(n=2))
    assert all(sorted(own) == ["generated", "refined"] for own in answers.status.reshape(6, 2))
    first, second = changed(answers).reshape(6, 2, -1).transpose(1, 0, 2)
    assert first.any(1).all() and second.any(1).all() and not (first & second).any()


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


def test_the_reason_names_the_constraints(model):
    answers = search(model(), request(**(LIMITS | {"ranges": {"f1": (-9.0, -1.0)}, "frozen": [(0, 11)]})))
    assert (answers.status == "not_found").all()
    kinds = "immutable features; frozen steps; ranges; largest steps; directions; groups"
    assert all(f" within the constraints ({kinds}); p(brisk)" in reason for reason in answers.reason)


@each_generator
@pytest.mark.parametrize("sparsity", [0.03, 0.1, 0.25])
def test_the_cap_holds_and_the_reason_says_what_would_have_been_enough(model, stub, sparsity):
    answers = search(model(**stub), request(sparsity=sparsity))
    assert (changed(answers).sum((1, 2)) <= int(48 * sparsity)).all()
    assert np.array_equal(answers.status != "not_found", valid(answers))
    for reason in answers.reason[~valid(answers)]:
        assert f"at most {int(48 * sparsity)} of 48 entries changed" in reason
    if sparsity == 0.03:  # one entry cannot lift a mean that far
        assert (answers.status == "not_found").all()
        needed = [float(re.search(r"\((0\.\d\d) of them were enough", reason).group(1)) for reason in answers.reason]
        assert min(needed) > 0.03 and max(needed) <= 1.0
        if stub == GENERATORS["good"]:  # pruned to what is needed
            assert (np.array(needed) <= changed(search(model(**stub))).mean((1, 2))).all()


def test_the_queries_are_not_modified(model):
    before = QUERIES.copy()
    search(model(**USELESS), request(n=2, sparsity=0.5))
    assert np.array_equal(before, QUERIES)


# Refinement.

Z = torch.tensor(INFO.scaler.transform(QUERIES), dtype=torch.float32)
TARGET = torch.ones(6, dtype=torch.int64)
ALL, NOTHING = torch.ones_like(Z, dtype=torch.bool), torch.zeros_like(Z)


def ensemble(*sharpness):
    members = [sp.wrap(MeanModule(sharpness=s), n_classes=3) for s in sharpness or (10.0,)]
    return Ensemble(members=members, selector=CLASSIFIER, scaler=INFO.scaler, device=torch.device("cpu"))


def refined(start=NOTHING, free=ALL, *, rows=slice(None), of=None, **constraints):
    projection = Projection(sp.Constraints(**constraints).bind(INFO), INFO.scaler)
    return refine(of or ensemble(), projection, Z[rows], start[rows], TARGET[rows], free[rows])


def agreement(delta, of=None):
    return (of or ensemble()).agreement(Z + delta, TARGET)


def test_refinement_convinces_all_members():
    both = ensemble(10.0, 4.0)
    delta = refined(of=both)
    assert (agreement(NOTHING, both) < 0.2).all() and (agreement(delta, both) > 0.5).all()
    assert not delta.requires_grad and delta.shape == Z.shape


def test_only_free_entries_change():
    free = ALL.clone()
    free[:, :3] = False
    free[0, :, 1] = False
    delta = refined(torch.randn(Z.shape, generator=torch.Generator().manual_seed(0)), free)
    assert (delta[~free] == 0).all() and (delta[free] != 0).any()


def test_what_the_start_changes_elsewhere_does_not_count():
    free = torch.zeros_like(ALL)
    free[:, 2:10, 1] = True
    start = torch.where(free, 0.0, 9.0 * torch.tensor([0.0, 1.0, 0.0, 0.0]))  # would convince, but is not free
    delta = refined(start, free)
    assert (agreement(delta) > 0.5).all() and (delta[~free] == 0).all()


def test_refinement_searches_within_the_constraints():
    delta = refined(immutable=["f3"], direction={"f1": "up"})
    assert (delta[..., 3] == 0).all() and (delta[..., 1] >= 0).all()
    assert (agreement(delta) > 0.5).all()


def test_each_query_is_refined_by_itself():
    torch.testing.assert_close(refined()[2:3], refined(rows=slice(2, 3)), atol=1e-5, rtol=0)


def test_a_start_that_convinces_becomes_smaller_and_keeps_convincing():
    start = torch.zeros_like(Z)
    start[..., 1] = 8.0
    start[..., 3] = 1.0  # without any effect
    delta = refined(start)
    assert (agreement(delta) > 0.9).all()
    assert (delta[..., 3].abs() < 0.5).all() and (delta[..., 1] < 8.0).all()
    assert (start[..., 1] == 8.0).all()  # not modified


def test_no_gradients_remain_in_the_members():
    built = ensemble()
    refined(of=built)
    assert all(p.grad is None and p.requires_grad for member in built.members for p in member.module.parameters())
