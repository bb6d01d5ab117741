"""The search: short lists of edits that are believed, bit for bit, within every constraint and law; else the reason."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.laws import violates
from sparcets.core.series import Series, differs
from sparcets.methods.own.ensemble import Belief
from sparcets.methods.own.search import QuerySearch
from sparcets.methods.own.states import State
from sparcets.methods.request import Request
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.obeyed import broken_constraints

X, Y = make_series(90)
QUERIES, LABELS = make_series(12, seed=1)
ASKED = LABELS != 1
TINY = sp.ExplainerConfig.tiny()
CHEAP = TINY.override('families=["quantiles", "intervals"]')


def fit(model: Any, X: Any = X, y: Any = Y, config: sp.ExplainerConfig = CHEAP, **options: Any) -> sp.Explainer:
    return sp.Explainer(model, config).fit(X, y, progress=False, **options)


def explain(fitted: sp.Explainer, queries: Any = QUERIES, target: Any = 1, **options: Any) -> sp.Explanation:
    return fitted.explain(queries, target, progress=False, **options)


def assert_bits(e: sp.Explanation) -> None:
    """Check that edits alone make every answer, those that are not found, too."""
    for i in range(len(e)):
        made = sp.apply_edits(e.query[i], e.edits(i))
        assert made.dtype == e.query.dtype and made.tobytes() == e.counterfactual[i].tobytes()
        assert bool(e.edits(i)) == e.changed[i].any()


@pytest.fixture(scope="module")
def fitted() -> sp.Explainer:
    return fit(sp.wrap(MeanModule(), n_classes=3), config=TINY)


@pytest.fixture(scope="module")
def plain(fitted: sp.Explainer) -> sp.Explanation:
    return explain(fitted)


# Answers.


@pytest.mark.parametrize("target", [0, 1, 2])
def test_answers_are_short_lists_of_edits_that_are_believed(fitted: sp.Explainer, target: int) -> None:
    e = explain(fitted, target=target)
    asked = target != LABELS
    assert e.valid[asked].all() and e.believed[asked].all() and set(e.status[asked]) == {"refined"}
    assert_bits(e)
    for i in np.flatnonzero(asked):
        edits = e.edits(i)
        assert 1 <= len(edits) <= 3 and target in {f for edit in edits for f in edit.columns}
        for edit in edits:
            assert edit.text and (edit.kind != "follow" or Y[edit.row] == target)
    assert e.share_changed[asked].mean() < 0.4


def test_an_edit_says_who_needs_it(fitted: sp.Explainer, plain: sp.Explanation) -> None:
    places = {"model": 0, "families": 1, "realism": 2}
    for i in np.flatnonzero(ASKED):
        edits = plain.edits(i)
        first = [min(places[need] for need in edit.needed_by) for edit in edits]
        assert first == sorted(first)  # what the model needs comes first
        for k, edit in enumerate(edits):
            assert set(edit.needed_by) == needs_of(fitted, plain[i], edits[:k] + edits[k + 1 :])


def needs_of(fitted: sp.Explainer, one: sp.Explanation, fewer: list[Any]) -> set[str]:
    """Return who does not accept an answer with fewer edits as it accepts the answer."""
    made, target = sp.apply_edits(one.query[0], fewer)[None], np.asarray(one.target)
    needs = {"model"} if (fitted.classifier.predict(made) != target)[0] else set()
    support = fitted._model_for(None).at_length(made.shape[1]).believe(Series(made), target).support.numpy()
    for family in np.array(one.families)[((one.support > 0.5) & (support <= 0.5))[0]]:
        needs.add("realism" if family == "real" else "families")
    before, after = (replace(one, counterfactual=X, evidence=None) for X in (one.counterfactual, made))
    is_real = [(e.plausibility["outside"] == 0) & (e.plausibility["jumps"] == 0) for e in (before, after)]
    return needs | ({"realism"} if is_real[0] and not is_real[1] else set())


def test_what_discriminators_need_is_needed_for_realism(fitted: sp.Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    info: Any = fitted.info_
    known = {"series": Series(QUERIES[ASKED][:1]), "target": np.array([1]), "at_most": None, "info": info}
    search = QuerySearch(
        Request(classifier=fitted.classifier, constraints=sp.Constraints().bind(info), **known), fitted._fitted_model()
    )
    one = search.run()[0]
    families = fitted._fitted_model().family_names
    assert families[-1] == "real" and one.support is not None
    for family, need in ((-1, "realism"), (0, "families")):
        one.support, lost = np.ones(len(families)), torch.ones(1, len(families))
        lost[0, family] = 0
        monkeypatch.setattr(search, "_believe", lambda made, lost=lost: Belief(lost, lost, lost[0]))
        assert search._needs(one, [one]) == [(need,)], "the same answer, but for what this family says"


def test_a_course_is_that_of_the_training_series(plain: sp.Explanation) -> None:
    followed = [edit for i in range(len(plain)) for edit in plain.edits(i) if edit.kind == "follow"]
    assert followed
    for edit in followed:
        course: Any = edit.course
        assert np.array_equal(course, X[edit.row, edit.start : edit.end][:, list(edit.columns)])


def test_answers_are_stored_with_their_edits(fitted: sp.Explainer, plain: sp.Explanation, tmp_path: Any) -> None:
    plain.save(tmp_path / "run.npz")
    fitted.save(tmp_path / "folder")
    loaded: Any = sp.load(tmp_path / "folder", classifier=fitted.classifier)
    again = explain(loaded)
    streamed = explain(fitted, out=tmp_path / "out")
    for e in (sp.load_explanation(tmp_path / "run.npz"), again, streamed, sp.load_explanation(tmp_path / "out")):
        assert_bits(e)
        assert np.array_equal(e.counterfactual, plain.counterfactual) and e.edit_lists is not None
        assert [len(edits) for edits in e.edit_lists.lists] == [len(plain.edits(i)) for i in range(12)]


def test_without_courses_the_training_series_give_the_answer(plain: sp.Explanation) -> None:
    e = explain(fit(sp.wrap(MeanModule(), n_classes=3), config=TINY.override("store_courses=false")))
    assert np.array_equal(e.counterfactual, plain.counterfactual)
    follows = [i for i in range(12) if any(edit.kind == "follow" for edit in e.edits(i))]
    assert follows and all(edit.course is None for i in follows for edit in e.edits(i) if edit.kind == "follow")
    for i in follows:
        assert sp.apply_edits(e.query[i], e.edits(i), X).tobytes() == e.counterfactual[i].tobytes()
        with pytest.raises(sp.SparcetsError, match="Pass the training series"):
            sp.apply_edits(e.query[i], e.edits(i))


def test_every_edit_has_its_price(fitted: sp.Explainer) -> None:
    info: Any = fitted.info_
    known = {"series": Series(QUERIES[ASKED][:1]), "target": np.array([1]), "at_most": None, "info": info}
    request = Request(classifier=fitted.classifier, constraints=sp.Constraints().bind(info), **known)
    for per_edit in (0.0, 2.0):
        search = QuerySearch(request, replace(fitted._fitted_model(), prices=(per_edit, 0.0)))
        whole = State(np.array([[0, search.windows.n_parts]] * 4))
        (one,) = search.ask([whole], search.donors[:1])
        assert one.price == pytest.approx(4 * per_edit, abs=0.01)


# Constraints.

LIMITS: dict[str, dict[str, Any]] = {
    "immutable": {"immutable": ["f3", "f0"]},
    "frozen": {"frozen": [(0, 8)]},
    "frozen by feature": {"frozen": {"f1": [(0, 8)]}},
    "ranges": {"ranges": {"f1": (-1.0, 1.5)}},
    "max_step": {"max_step": {"f1": 0.5}},
    "direction": {"direction": {"f1": "up", "f0": "down"}},
    "groups": {"groups": {"both": ["f0", "f1"]}},
    "max_features": {"max_features": 1},
    "integer": {"integer": ["f1"]},
    "monotone": {"monotone": {"f3": "up"}},
    "fixed_sum": {"fixed_sum": [["f0", "f1"]]},
    "project": {"project": lambda made, query: np.clip(made, np.minimum(query, -1), np.maximum(query, 2))},
    "together": {"immutable": ["f3"], "frozen": [(0, 3)], "ranges": {"f1": (-2.0, 2.0)}, "direction": {"f0": "down"}},
}


def assert_obeyed(e: sp.Explanation, limits: dict[str, Any]) -> None:
    given = [sp.Constraints(**limits)]
    broken = broken_constraints(given, e.query, e.counterfactual, names=e.feature_names, span=e.info.span)
    assert [what for what, rows in broken.items() if rows.any()] == []
    if "project" in limits:
        assert np.array_equal(limits["project"](e.counterfactual, e.query), e.counterfactual)


@pytest.mark.parametrize("name", LIMITS)
def test_answers_within_constraints_are_made_by_their_edits(fitted: sp.Explainer, name: str) -> None:
    e = explain(fitted, QUERIES[ASKED][:6], constraints=sp.Constraints(**LIMITS[name]))
    assert_bits(e)
    assert_obeyed(e, LIMITS[name])
    assert e.valid.mean() > 0.6


@pytest.mark.parametrize("share", [0.25, 0.1, 0.04])
def test_no_more_entries_change_than_asked_for(fitted: sp.Explainer, share: float) -> None:
    e = explain(fitted, sparsity=share)
    assert_bits(e)
    assert (e.share_changed <= share).all()
    assert e.valid[ASKED].mean() > {0.25: 0.9, 0.1: 0.5, 0.04: 0}.get(share, 0) - 0.1
    assert all("within the constraints (at most" in reason for reason in e.reason[e.status == "not_found"])


@pytest.mark.parametrize(("name", "most"), [("frozen", 3), ("frozen by feature", 1), ("direction", 9), ("project", 9)])
def test_edits_that_constraints_leave_alone_are_preferred(fitted: sp.Explainer, name: str, most: int) -> None:
    e = explain(fitted, constraints=sp.Constraints(**LIMITS[name]))
    altered = [edit for i in range(12) for edit in e.edits(i) if edit.kind == "free"]
    assert len(altered) <= most
    one = explain(fitted, constraints=sp.Constraints(**LIMITS[name]), edits=1)
    assert_bits(one)
    assert one.valid[ASKED].mean() > 0.6 and all(len(one.edits(i)) <= 1 for i in range(12))


def test_rounding_is_no_edit(fitted: sp.Explainer) -> None:
    e = explain(fitted, constraints=sp.Constraints(**LIMITS["fixed_sum"]))
    altered = [edit for i in range(12) for edit in e.edits(i) if edit.kind == "free"]
    info: Any = fitted.info_
    assert altered and all(abs(edit.amount) > 1e-6 * info.span[edit.columns[0]] for edit in altered)


@pytest.mark.parametrize(("most", "share", "found"), [(1, None, 1), (2, None, 1), (1, 0.15, 0.5)])
def test_no_more_edits_and_entries_than_asked_for(fitted: sp.Explainer, most: int, share: Any, found: float) -> None:
    e = explain(fitted, edits=most, sparsity=share)
    assert_bits(e)
    assert e.valid[ASKED].mean() >= found and all(len(e.edits(i)) <= most for i in range(12))
    assert (e.share_changed <= (share or 1)).all()


def test_what_constraints_alter_counts_as_an_edit(fitted: sp.Explainer) -> None:
    e = explain(fitted, edits=1, constraints=sp.Constraints(max_step={"f1": 0.5}))
    assert_bits(e)
    found = np.flatnonzero(e.status == "refined")
    assert all(len(e.edits(i)) <= 1 for i in found)
    missing = e.reason[e.status == "not_found"]
    assert len(missing) and all("at most 1 edit" in reason for reason in missing)


def test_a_cap_that_allows_nothing_says_so(fitted: sp.Explainer) -> None:
    e = explain(fitted, sparsity=0.005)
    assert (e.status[ASKED] == "not_found").all() and not e.changed.any()
    assert all("allows no change at all" in reason for reason in e.reason[ASKED])


# Several answers, confidence.


def test_several_answers_differ_in_what_they_change(fitted: sp.Explainer, plain: sp.Explanation) -> None:
    e = explain(fitted, n=3)
    assert_bits(e)
    assert np.array_equal(e.counterfactual[::3], plain.counterfactual)  # the best first
    found = differs(e.counterfactual, e.query).reshape(12, 3, -1)
    reached = (e.status == "refined").reshape(12, 3)
    assert reached[ASKED].sum() >= 2.5 * ASKED.sum()
    for own, there in zip(found[ASKED], reached[ASKED], strict=True):
        for a in range(3):
            for b in range(a):
                if there[a] and there[b]:
                    assert (own[a] & own[b]).sum() <= 0.5 * (own[a] | own[b]).sum()
    missing = (e.status == "not_found").reshape(12, 3)
    assert not missing[:, 0].any() and all("found" in reason for reason in e.reason[missing.ravel()])


# Other kinds of series and models.


def test_black_boxes() -> None:
    ex = fit(sp.wrap(mean_proba, class_names=["calm", "brisk", "wild"]))
    e = explain(ex, target="brisk")
    assert_bits(e)
    assert "The classifier is a black box: a surrogate, trained to predict as it does" in ex.summary()
    assert np.array_equal(e.valid[ASKED], mean_proba(e.counterfactual).argmax(1)[ASKED] == 1)
    assert e.valid[ASKED].mean() > 0.8


def test_gaps_stay_gaps() -> None:
    rng = np.random.default_rng(0)
    gaps, of_queries = rng.random(X.shape) < 0.1, rng.random(QUERIES.shape) < 0.1
    ex = fit(sp.wrap(MeanModule(), n_classes=3, missing=np.nan_to_num), np.where(gaps, np.nan, X).astype("f4"))
    e = explain(ex, np.where(of_queries, np.nan, QUERIES).astype("f4"))
    assert_bits(e)
    assert np.array_equal(np.isnan(e.counterfactual), of_queries) and e.valid.all()


# Laws.


def gait(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return stance, swing, stride (their sum), steps (whole) and two levels of which one is never above the other."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    noise = rng.normal(size=(n, 24, 5)).cumsum(1) * 0.05 + 0.2 * rng.normal(size=(n, 1, 5))
    stance, swing = 2 + noise[..., 0] + 0.8 * y[:, None], 1 + noise[..., 1]
    steps = np.rint(10 + 8 * noise[..., 2] + 6 * y[:, None])
    low = 5 * noise[..., 3] + 3 * y[:, None]
    high = low + np.exp(noise[..., 4]) * 0.8
    return np.stack([stance, swing, stance + swing, steps, low, high], axis=2), y


def law_model(series: Any) -> Any:
    series = np.asarray(series)
    z = 4 * (series[:, :, 2].mean(1) - 3.4) + 0.5 * (series[:, :, 3].mean(1) - 13) + (series[:, :, 4].mean(1) - 1.5)
    return np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)


NAMES = ("stance", "swing", "stride", "steps", "low", "high")


def fit_to_gait(config: sp.ExplainerConfig = CHEAP) -> sp.Explainer:
    series, y = gait(80, 0)
    rows = np.arange(80)
    ds = sp.Dataset.from_arrays(series, y, split=(rows, rows[:4]), feature_names=NAMES)
    return sp.Explainer(sp.wrap(law_model, n_classes=2), config).fit(ds, progress=False)


lawful = pytest.fixture(scope="module")(lambda: fit_to_gait())


def assert_lawful(made: np.ndarray) -> None:
    np.testing.assert_allclose(made[..., 2], made[..., 0] + made[..., 1], atol=1e-9)
    assert (made[..., 3] == np.rint(made[..., 3])).all() and (made[..., 4] <= made[..., 5]).all()


def test_the_laws_of_the_data_are_listed(lawful: sp.Explainer) -> None:
    found = {(law.kind, law.features) for law in lawful.laws_}
    assert found >= {
        ("identity", ("stride", "stance", "swing")),
        ("whole", ("steps",)),
        ("order", ("low", "high")),
    }
    assert all(f"Law of the data: {law}." in lawful.summary() for law in lawful.laws_)


OPTIONS: list[dict[str, Any]] = [{}, {"n": 3}, {"edits": 1}, {"sparsity": 0.3}]
OPTIONS += [{"constraints": sp.Constraints(**held)} for held in ({"immutable": ["swing"]}, {"frozen": [(0, 6)]})]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_no_answer_breaks_a_law(lawful: sp.Explainer, options: dict[str, Any]) -> None:
    e = explain(lawful, gait(10, 1)[0], target=None, **options)
    assert_bits(e)
    assert e.changed.any() and e.valid[:: options.get("n", 1)].mean() > 0.5
    made, query = e.counterfactual, e.query
    space = lawful._fitted_model().space
    assert not violates(space.coordinates, made, query).any()
    assert_lawful(made)


HELD = [
    {"frozen": {"stride": [(0, 8)]}},
    {"frozen": {"swing": [(0, 8)], "high": [(10, 20)]}},
    {"immutable": ["stride"]},
    {"immutable": ["high", "swing"]},
    {"direction": {"stride": "down"}},
    {"ranges": {"stride": (2.5, 4.0)}},
    {"max_step": {"stride": 0.3, "low": 0.5}},
    {"max_features": 1},
]


@pytest.mark.parametrize("limits", HELD, ids=str)
def test_a_constraint_on_a_feature_of_a_law_leaves_the_law_alone(lawful: sp.Explainer, limits: dict[str, Any]) -> None:
    queries = gait(24, 1)[0]
    e = explain(lawful, queries, target=None, constraints=sp.Constraints(**limits))
    assert_bits(e)
    assert e.valid.mean() > 0.6
    broken = violates(lawful._fitted_model().space.coordinates, e.counterfactual, e.query)
    assert np.array_equal(broken, [("of the data" in reason) for reason in e.reason]) and broken.mean() < 0.3


def test_a_constraint_that_contradicts_a_law_wins_and_the_answer_says_so(lawful: sp.Explainer) -> None:
    others = sp.Constraints(immutable=[name for name in NAMES if name != "stride"])
    e = explain(lawful, gait(24, 1)[0], target=None, constraints=others)
    assert_bits(e)
    assert e.valid.mean() > 0.5 and set(np.flatnonzero(e.changed.any((0, 1)))) == {2}
    assert set(e.verdict[e.valid]) <= {"doubtful", "trick"}
    told = "the constraints break a law of the data: stride = stance + swing"
    assert set(e.reason[e.valid]) == {told} and told in e[e.valid].text(0)


def test_a_law_can_be_left_out(lawful: sp.Explainer) -> None:
    name = next(law.name for law in lawful.laws_ if law.kind == "identity")
    free = fit_to_gait(CHEAP.override(f'without_laws=["{name}"]'))
    left = {law.name for law in free.laws_}  # and orders that the identity implied
    assert name not in left and {law.name for law in lawful.laws_} - {name} <= left


def test_queries_far_from_all_recordings_keep_the_laws(lawful: sp.Explainer) -> None:
    query = np.concatenate([gait(2, seed)[0] * [1, 1, 1, 1 + seed, seed, seed] for seed in (1, 4, 8)])
    e = explain(lawful, query, target=None)
    assert_bits(e)
    assert_lawful(e.counterfactual)
