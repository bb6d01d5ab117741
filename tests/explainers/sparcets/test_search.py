"""Answering: generated, else refined, else from a neighbour, else a reason; the user's classifier has the last word."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers.sparcets.search import SAME, _Board, answer
from sparcets.explainers.sparcets.choose import worth
from sparcets.explainers.sparcets.prune import without_faint
from sparcets.explainers.sparcets.model import NEAREST, Recipe, ladder
from sparcets.explainers.request import Request
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.explainers.sparcets.operating_point import Place

X, Y = make_series(36, n_steps=12)
INFO = SeriesInfo.measure(X, ("calm", "brisk", "wild"))
QUERIES = X[Y != 1][:6]
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
USUAL = Place(0.0, 1.0, 1.0, 1.0, 0.5)


class Stub(GatedGenerator):
    """Moves one feature, the wanted one or always the same, by ``size`` times the exponential of the strength."""

    def __init__(self, size=3.0, feature=None, *, guided=False):
        super().__init__(
            n_features=4, mutable=[0, 1, 2, 3], n_targets=3, backbone="lstm", hidden=2, layers=1, gate="none",
            guided=guided,
        )  # fmt: skip
        self.size, self.feature, self.asked = size, feature, []

    def forward(self, x, target, strength, guide=None):
        self.asked.append((len(x), float(strength[0])))
        if self.guided:
            return guide - x
        column = target if self.feature is None else torch.full_like(target, self.feature)
        lift = torch.nn.functional.one_hot(column, 4).to(x) * (self.size * strength.exp())[:, None]
        return lift[:, None].expand_as(x).clone()


class Deaf(torch.nn.Module):
    """A voice that is never moved."""

    def forward(self, x):
        return 0 * x[..., :3].mean(1)


class Contrary(MeanModule):
    """A voice that hears the features the other way round."""

    def forward(self, x):
        return super().forward(x.flip(2))


NONSENSE = {"size": 3.0, "feature": 3}  # the last feature never matters


def recipe(generator, *voices, guides=True, louder=(1.0,)):
    rows = np.flatnonzero(CLASSIFIER.predict(X) == Y) if guides else []
    return Recipe(
        generator=generator.eval(),
        voices=[sp.wrap(v, n_classes=3) for v in voices] or [CLASSIFIER],
        referee=CLASSIFIER,
        guides=INFO.scaler.transform(X[rows]).astype(np.float32),
        guide_class=Y[rows],
        strengths=ladder(0.5, 2.0),
        louder=louder,
        level=0.9,
        scaler=INFO.scaler,
    )


def request(*, n=1, sparsity=None, queries=QUERIES, **constraints):
    bound = sp.Constraints(**constraints).bind(INFO)
    made = Request(
        X=queries,
        target=np.ones(len(queries), dtype=np.int64),
        lengths=None,
        constraints=bound,
        at_most=None,
        n=n,
        info=INFO,
    )
    if sparsity is None:
        return made
    return replace(made, at_most=np.floor(made.mutable_entries() * sparsity).astype(np.int64))


def ask(made, asked=None, *, classifier=CLASSIFIER, place=USUAL):
    return answer(asked or request(), made, classifier, place)


def valid(answers, classifier=CLASSIFIER):
    return classifier.predict(answers.counterfactual) == 1


def changed(answers, queries=QUERIES):
    return answers.counterfactual != np.repeat(queries, len(answers.status) // len(queries), axis=0)


def test_a_generator_that_convinces_is_taken_at_its_word():
    generator = Stub()
    answers = ask(recipe(generator))
    assert (answers.status == "generated").all() and (answers.reason == "").all() and valid(answers).all()
    assert generator.asked == [(6, 0.0)]  # once, for all, with the strength of the place
    where = changed(answers)
    assert where[..., 1].all() and not where[..., [0, 2, 3]].any()
    p = CLASSIFIER.predict_proba(answers.counterfactual)[:, 1]
    assert (p > 0.89).all()


def test_answers_are_as_loud_as_the_place_says():
    plain, loud = (ask(recipe(Stub()), place=replace(USUAL, loudness=f)) for f in (1.0, 1.3))
    np.testing.assert_allclose(loud.counterfactual - QUERIES, 1.3 * (plain.counterfactual - QUERIES), atol=1e-5)


def test_faint_changes_are_left_out_unless_it_takes_them():
    class Faint(Stub):
        """Moves the wanted feature, and another by next to nothing."""

        def forward(self, x, target, strength, guide=None):
            delta = super().forward(x, target, strength)
            delta[..., 3] = 0.05
            return delta

    answers = ask(recipe(Faint()))
    assert valid(answers).all() and not changed(answers)[..., 3].any()
    touchy = sp.wrap(
        lambda x: mean_proba(np.roll(1000 * (x - QUERIES), 1, axis=2)), n_classes=3
    )  # hears feature 0 as 1
    nothing = ask(recipe(Stub(0.05, feature=0)), classifier=touchy)
    assert (nothing.status == "generated").all() and (changed(nothing).sum((1, 2)) == 12).all()


def test_other_strengths_are_tried_for_those_that_are_left():
    generator = Stub(size=1.4)
    hard = QUERIES.copy()
    hard[:2, :, 1] -= 0.9
    answers = ask(recipe(generator), request(queries=hard))
    first, later = generator.asked[0], generator.asked[1:]
    assert first == (6, 0.0) and later and all(n < 6 for n, _ in later)
    assert [abs(s) for _, s in generator.asked] == sorted(abs(s) for _, s in generator.asked)  # nearest first
    assert (answers.status == "generated").all() and valid(answers).all()


def test_nonsense_is_refined():
    answers = ask(recipe(Stub(**NONSENSE)))
    assert (answers.status == "refined").all() and valid(answers).all()


@pytest.mark.parametrize("voice", [Deaf(), Contrary()], ids=["deaf", "contrary"])
def test_where_the_voices_mislead_a_real_neighbour_answers(voice):
    answers = ask(recipe(Stub(**NONSENSE), voice))
    assert (answers.status == "neighbour").all() and valid(answers).all()


def test_where_nothing_helps_it_says_so():
    answers = ask(recipe(Stub(**NONSENSE), Deaf(), guides=False))
    assert (answers.status == "not_found").all() and not valid(answers).any()
    for reason in answers.reason:
        assert re.fullmatch(
            r"no change was found that the classifier calls 'brisk'; p\(brisk\) reached 0\.\d\d", reason
        )


def test_the_user_s_classifier_has_the_last_word():
    black_box = sp.wrap(lambda x: mean_proba(x[..., [0, 3, 2, 1]]), n_classes=3)  # what it calls 1 is feature 3
    answers = ask(recipe(Stub()), classifier=black_box)  # the voice is wrong about it
    assert set(answers.status) <= {"neighbour", "not_found"}
    assert np.array_equal(answers.status != "not_found", valid(answers, black_box))


def test_guided_answers_follow_the_real_series_that_serves_best():
    generator = Stub(guided=True)
    made = recipe(generator)
    answers = ask(made)
    x = torch.tensor(INFO.scaler.transform(QUERIES), dtype=torch.float32)
    target = torch.ones(6, dtype=torch.int64)
    near = made.nearest_guides(x, target.numpy(), NEAREST)
    ways = [without_faint(torch.tensor(made.guides[rows]) - x) for rows in near.T]
    best = torch.stack([worth(made, x, way, target, 48) for way in ways]).argmax(0)
    assert best.any()  # the nearest is not always the best
    expected = INFO.scaler.move(QUERIES, torch.stack(ways)[best, torch.arange(6)].numpy())
    np.testing.assert_allclose(answers.counterfactual, expected, atol=1e-5)
    assert (answers.status == "generated").all()


def test_guided_without_any_guide_is_refined():
    assert (ask(recipe(Stub(guided=True), guides=False)).status == "refined").all()


@pytest.mark.parametrize("n", [2, 4])
def test_several_answers_differ_and_those_that_change_least_come_first(n):
    answers = ask(recipe(Stub()), request(n=n))
    assert len(answers.status) == 6 * n and valid(answers).all()
    series = answers.counterfactual.reshape(6, n, -1)
    assert all(len(np.unique(own, axis=0)) == n for own in series)
    counts = changed(answers).sum((1, 2)).reshape(6, n)
    assert (np.diff(counts, axis=1) >= 0).all()


def test_more_answers_than_there_are_end_with_a_reason():
    answers = ask(recipe(Stub()), request(n=60, queries=QUERIES[:2]))
    status, found = answers.status.reshape(2, 60), valid(answers).reshape(2, 60)
    assert np.array_equal(status != "not_found", found) and found[:, 0].all() and not found[:, -1].any()
    assert not (~found[:, :-1] & found[:, 1:]).any()  # the found ones stand first
    for row in range(2):
        missing = answers.reason.reshape(2, 60)[row][~found[row]]
        assert (missing == f"only {found[row].sum()} different answers were found").all()
    assert {"generated", "refined", "neighbour"} <= set(status.ravel())


def test_one_answer_of_two_is_said_in_good_english():
    answers = ask(recipe(_Same(), Deaf(), guides=False), request(n=2))
    assert answers.status.tolist() == ["generated", "not_found"] * 6
    assert set(answers.reason[1::2]) == {"only 1 answer was found"}


class _Same(Stub):
    """Proposes one and the same, whatever the strength."""

    def forward(self, x, target, strength, guide=None):
        return super().forward(x, target, torch.zeros_like(strength))


def test_a_later_descent_changes_what_no_earlier_answer_did():
    answers = ask(recipe(_Same(), guides=False), request(n=2))
    kinds = answers.status.reshape(6, 2)
    assert all(sorted(own) == ["generated", "refined"] for own in kinds)
    first, second = changed(answers).reshape(6, 2, -1).transpose(1, 0, 2)
    assert first.any(1).all() and second.any(1).all() and not (first & second).any(1).all()


LIMITS = {
    "immutable": ["f3"],
    "frozen": [(0, 3)],
    "ranges": {"f1": (-2.0, 2.5)},
    "max_step": {"f0": 0.3},
    "direction": {"f1": "up"},
    "groups": {"pair": ["f0", "f2"]},
}


@pytest.mark.parametrize("generator", [Stub(), Stub(**NONSENSE), Stub(guided=True)], ids=["good", "nonsense", "guided"])
def test_constraints_hold_exactly_whoever_answers(generator):
    answers = ask(recipe(generator), request(n=3, **LIMITS))
    where, query = changed(answers), np.repeat(QUERIES, 3, axis=0)
    cf = answers.counterfactual
    assert where.any()
    assert not where[..., 3].any() and not where[:, :3].any()
    assert ((cf[..., 1] >= -2.0) & (cf[..., 1] <= 2.5))[where[..., 1]].all()
    assert (cf[..., 1] >= query[..., 1]).all()
    assert np.array_equal(where[..., 0], where[..., 2])
    own = np.abs(np.diff(query[..., 0].astype(np.float64), axis=1))
    assert (np.abs(np.diff(cf[..., 0].astype(np.float64), axis=1)) <= np.maximum(0.3, own)).all()
    assert (cf[~where].tobytes()) == query[~where].tobytes()


def test_the_reason_names_what_was_in_the_way():
    answers = ask(recipe(Stub()), request(**(LIMITS | {"ranges": {"f1": (-9.0, -1.0)}, "frozen": [(0, 11)]})))
    assert (answers.status == "not_found").all()
    for reason in answers.reason:
        inside = re.search(r"within the constraints \((.*)\); p\(brisk\)", reason).group(1)
        assert inside == "immutable features; frozen steps; ranges; largest steps; directions; groups"
    alone = ask(recipe(Stub()), request(immutable=["f0", "f1", "f2"]))
    assert all("within the constraints (immutable features); " in reason for reason in alone.reason)


@pytest.mark.parametrize(
    "generator", [Stub(size=2.0), Stub(**NONSENSE), Stub(guided=True)], ids=["good", "nonsense", "guided"]
)
@pytest.mark.parametrize("sparsity", [0.03, 0.1, 0.25])
def test_sparsity_is_a_cap_and_the_reason_says_what_would_have_been_enough(generator, sparsity):
    asked = request(sparsity=sparsity)
    answers = ask(recipe(generator), asked)
    assert (changed(answers).sum((1, 2)) <= int(48 * sparsity)).all()
    assert np.array_equal(answers.status != "not_found", valid(answers))
    for reason in answers.reason[~valid(answers)]:
        assert f"at most {int(48 * sparsity)} of 48 entries changed" in reason
    if sparsity == 0.03:  # one entry cannot lift a mean that far
        assert (answers.status == "not_found").all()
        needed = [float(re.search(r"\((0\.\d\d) of them were enough", reason).group(1)) for reason in answers.reason]
        free = changed(ask(recipe(generator))).mean((1, 2))
        assert min(needed) > 0.03 and max(needed) <= 1.0
        if generator.feature is None and not generator.guided:
            assert (np.array(needed) <= free).all()  # cut to what is needed


def test_the_best_attempt_is_shown_where_nothing_was_found():
    weak = Stub(size=0.3)
    answers = ask(recipe(weak, Deaf(), guides=False))
    assert (answers.status == "not_found").all()
    p = CLASSIFIER.predict_proba(answers.counterfactual)[:, 1]
    best = [float(re.search(r"reached (\d\.\d\d)", reason).group(1)) for reason in answers.reason]
    np.testing.assert_allclose(best, p, atol=0.006)
    assert changed(answers).any((1, 2)).all() and (p > CLASSIFIER.predict_proba(QUERIES)[:, 1]).all()


def test_what_is_given_is_left_alone():
    before = QUERIES.copy()
    ask(recipe(Stub(**NONSENSE)), request(n=2, sparsity=0.5))
    assert np.array_equal(before, QUERIES)


def test_answers_that_change_nearly_the_same_entries_are_one():
    assert SAME == 0.75
    board, row = _Board(request(n=4), CLASSIFIER), np.array([2])

    def offer(size, also=0):
        """Lift the feature that matters at all twelve steps, and another one at some."""
        new = QUERIES[row].copy()
        new[..., 1] += size
        new[0, :also, 3] += 1
        board.offer(row, new, "generated")
        return int(board.found[2])

    assert offer(10.0) == 1
    assert offer(12.0) == 1  # by another amount, at the same entries
    assert offer(10.0, also=3) == 1  # 12 of 15 in common
    assert offer(10.0, also=4) == 2  # 12 of 16: no more than the limit
    assert offer(10.0, also=5) == 2  # new beside the first, but not beside the second
    assert board.found.tolist() == [0, 0, 2, 0, 0, 0]
