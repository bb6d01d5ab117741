"""evaluate: the right answers in every mean, queries looked up in the test part, and notes on what is left out."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError, DataError, FeatureMismatchError, OutOfRangeError, ShapeError
from sparcets.core.evidence import Evidence
from sparcets.evaluation.judges import find_judges
from sparcets.evaluation.measures import pooled_auc, salient_auc
from sparcets.evaluation.scores import SHAPE, measure_names
from sparcets.motion.limbs import joint_distance, limb_distance
from sparcets.motion.skeleton import find_skeleton
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from tests.evaluation.conftest import build_explanation

DATA = sp.Dataset.from_arrays(*make_series(120), test_size=0.3)
MODEL = sp.wrap(mean_proba)


class ConstantJudge:
    """A judge that always predicts the same class."""

    def __init__(self, label):
        self.label = label

    def predict(self, X, lengths=None):
        return np.full(len(X), self.label)


@pytest.fixture(scope="module")
def nearest():
    return sp.Nearest(MODEL).fit(DATA)


@pytest.fixture(scope="module")
def answers(nearest):
    return nearest.explain(DATA.X_test, target=1)


def by_hand(**changes):
    """Four answers to three queries of three steps and one feature, towards class 1.

    Valid with one entry changed by 2; not valid with three changed by 1; unchanged; valid with two changed by 4.
    """
    delta = np.array([[2, 0, 0], [1, 1, 1], [0, 0, 0], [0, 4, 4]], dtype=np.float32)[..., None]
    query = np.arange(12, dtype=np.float32).reshape(4, 3, 1)
    query[1] = query[0]
    e = build_explanation(
        delta,
        query=query,
        status=["generated", "not_found", "unchanged", "refined"],
        query_index=[0, 0, 1, 2],
        proba_after=[[0.2, 0.8], [0.6, 0.4], [0.1, 0.9], [0.3, 0.7]],
    )
    info = replace(e.info, class_names=("0", "1"))
    return replace(e, info=info, proba_before=np.tile([0.9, 0.1], (4, 1)), seconds=2.5, **changes)


def small_data(**changes):
    """The queries of ``by_hand`` as test series; its oracle gives class 1 where the sum is above 10."""
    X = by_hand().query[[0, 2, 3]]
    rng = np.random.default_rng(0)
    data = sp.Dataset(
        name="small",
        X_train=rng.normal(size=(20, 3, 1)).astype(np.float32),
        y_train=np.arange(20) % 2,
        X_test=X[::-1],
        y_test=np.array([1, 0, 0]),
        class_names=("0", "1"),
        salient_test=np.array([[0, 1, 1], [1, 1, 1], [1, 0, 0]], dtype=bool)[..., None],
        oracle=lambda X, rows: ((X.sum((1, 2)) > 10) & (rows >= 0)).astype(np.int64),
    )
    return replace(data, **changes)


def mean(scores, name):
    return scores.summary[name]["mean"]


def test_means_are_over_the_right_answers():
    s = sp.evaluate(by_hand())
    # Over all answers but the unchanged one: valid, not valid, valid.
    assert mean(s, "valid") == pytest.approx(2 / 3) and mean(s, "precision") == pytest.approx(1 / 3)
    assert mean(s, "precision_index") == pytest.approx(1 / 3)
    assert mean(s, "probability") == pytest.approx((0.8 + 0.4 + 0.7) / 3)
    assert mean(s, "precision_l2") == pytest.approx(math.sqrt(2) * (0.2 + 0.6 + 0.3) / 3)
    assert mean(s, "coverage") == 1.0 and s.summary["coverage"]["n"] == 3
    # Over the two valid ones, and over all three.
    assert mean(s, "sparsity") == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert mean(s, "sparsity_all") == pytest.approx((1 / 3 + 1 + 2 / 3) / 3)
    assert mean(s, "similarity") == pytest.approx((2 / 3 + 8 / 3) / 2)
    assert mean(s, "linf_all") == pytest.approx((2 + 1 + 4) / 3)
    assert mean(s, "segment_length") == pytest.approx((1 + 2) / 2)
    assert [s.summary[name]["n"] for name in ("valid", "sparsity", "sparsity_all")] == [3, 2, 3]
    assert s.summary["sparsity"]["std"] == pytest.approx(math.sqrt(2) / 6)  # of a sample: divided by n - 1
    assert s.summary["seconds"]["mean"] == 2.5 and math.isnan(s.summary["seconds"]["low"])


def test_one_row_per_answer_and_nan_for_unchanged_ones():
    s = sp.evaluate(by_hand())
    frame = s.per_query
    assert frame["query"].tolist() == [0, 0, 1, 2] and frame["answer"].tolist() == [0, 1, 0, 0]
    assert frame["status"].tolist() == ["generated", "not_found", "unchanged", "refined"]
    assert frame["target"].tolist() == ["1"] * 4
    first, again, other, last = frame["digest"]
    assert first == again and len({first, other, last}) == 3
    names = measure_names(frame)
    assert frame.loc[2, names].isna().all() and frame.loc[0, "valid"] == 1.0
    assert any("1 of 4 answers are left out" in note for note in s.notes)
    # Means over columns are those of the summary, as far as they are over all answers.
    for name in names:
        assert frame[name].mean() == pytest.approx(mean(s, f"{name}_all" if name in SHAPE else name), nan_ok=True)


def test_without_a_data_set():
    s = sp.evaluate(by_hand())
    assert not {"transfer", "oracle", "lof_ratio", "saliency_auc"} & set(s.summary)
    assert "row" not in s.per_query and s.judges == {}
    assert any("measures that need a data set are left out" in note for note in s.notes)
    s = sp.evaluate(by_hand(), judges={"yes": ConstantJudge(1)})  # given judges need no data set
    assert mean(s, "transfer") == 1.0


def test_transfer_is_the_mean_over_judges_and_over_all_answers():
    class SumAbove:
        def predict(self, X, lengths=None):
            return (X.sum((1, 2)) > 10).astype(int)

    # Sums of the counterfactuals: 5, 6, –, 38.
    judges = {"sum": SumAbove(), "yes": ConstantJudge(1), "no": ConstantJudge(0)}
    s = sp.evaluate(by_hand(), small_data(), judges=judges)
    assert mean(s, "transfer_sum") == pytest.approx(1 / 3)
    assert mean(s, "transfer") == pytest.approx((1 / 3 + 1 / 3 + 2 / 3) / 3)
    assert mean(s, "transfer_valid") == pytest.approx((1 / 3 + 2 / 3) / 2)
    # On the test part, sums 30, 21 and 3 with labels 1, 0, 0.
    assert s.judges == pytest.approx({"sum": 2 / 3, "yes": 1 / 3, "no": 2 / 3})
    assert any("the judge yes has a test accuracy of 0.33" in note for note in s.notes)


def test_queries_are_found_in_the_test_part():
    e = by_hand()
    s = sp.evaluate(e, small_data(), judges={})
    assert s.per_query["row"].tolist() == [2, 2, 1, 0]
    assert mean(s, "oracle") == pytest.approx(1 / 3) and mean(s, "oracle_valid") == pytest.approx(1 / 2)
    # Salient: the first entry of the first query (only it changed: 1; all changed: 0.5), the last two of the third.
    assert s.per_query["saliency_auc"].tolist() == pytest.approx([1.0, 0.5, math.nan, 1.0], nan_ok=True)
    assert mean(s, "saliency_auc") == 1.0 and mean(s, "saliency_auc_all") == pytest.approx(2.5 / 3)
    assert mean(s, "saliency_auc_pooled") == 1.0
    salient = small_data().salient_test
    assert mean(s, "saliency_auc_pooled_all") == pooled_auc(e[[0, 1, 3]], salient[[2, 2, 0]]) < 1
    assert "transfer" not in s.summary  # judges={}


def test_queries_outside_the_test_part_are_noted():
    e = by_hand()
    query = e.query.copy()
    query[3] += 0.5
    s = sp.evaluate(replace(e, query=query, counterfactual=e.counterfactual + 0.5), small_data(), judges={})
    assert s.per_query["row"].tolist() == [2, 2, 1, -1]
    assert s.summary["oracle"]["n"] == 2 and math.isnan(s.per_query.loc[3, "oracle"])
    assert "1 of the 3 queries" in s.notes[0] and "their saliency mask and true class are not known" in s.notes[0]
    none = sp.evaluate(replace(e, query=e.query + 0.5), small_data(), judges={})
    assert "oracle" not in none.summary and "saliency_auc" not in none.summary
    real = sp.evaluate(replace(e, query=e.query + 0.5), small_data(oracle=None, salient_test=None), judges={})
    assert "none of the 3 queries" in real.notes[0] and "salient" not in real.notes[0]


def test_rows_of_modified_queries():
    e = by_hand()
    moved = replace(e, query=e.query + 0.5, counterfactual=e.counterfactual + 0.5)
    s = sp.evaluate(moved, small_data(), rows=[2, 1, 0], judges={})
    assert s.per_query["row"].tolist() == [2, 2, 1, 0]  # one per query, not per answer
    assert s.per_query["saliency_auc"].tolist() == pytest.approx([1.0, 0.5, math.nan, 1.0], nan_ok=True)
    part = sp.evaluate(moved[3:], small_data(), rows=[2, 1, 0], judges={})  # a slice keeps its numbers
    assert part.per_query["row"].tolist() == [0]


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([2, 1], ShapeError, "3 or more"),
        ([2.0, 1.0, 0.0], ShapeError, "must be integers"),
        ([0, 1, 3], OutOfRangeError, "0 to 2, got 0 to 3"),
        ([0, 1, -1], OutOfRangeError, "got -1 to 1"),
    ],
)
def test_invalid_rows_raise(rows, error, words):
    with pytest.raises(error, match=words):
        sp.evaluate(by_hand(), small_data(), rows=rows, judges={})


def test_rows_without_a_data_set_raise():
    with pytest.raises(DataError, match="pass the data set too"):
        sp.evaluate(by_hand(), rows=[0, 1, 2])


@pytest.mark.parametrize(
    ("data", "words"),
    [(DATA, r"has \(3, 1\) steps and features"), (small_data(class_names=tuple("012")), "and 3. Pass")],
)
def test_another_data_set_raises(data, words):
    with pytest.raises(FeatureMismatchError, match=words):
        sp.evaluate(by_hand(), data, judges={})


def test_other_names_raise_but_default_names_do_not():
    e = by_hand()
    named = replace(e, info=replace(e.info, feature_names=("roll",), class_names=("jog", "walk")))
    data = small_data(feature_names=("pitch",), class_names=("jog", "walk"))
    with pytest.raises(FeatureMismatchError, match="features are roll, those of the data set 'small' are pitch"):
        sp.evaluate(named, data, judges={})
    with pytest.raises(FeatureMismatchError, match=r"classes are jog, walk.*are walk, jog"):
        sp.evaluate(named, small_data(class_names=("walk", "jog")), judges={})
    sp.evaluate(e, data, judges={})
    sp.evaluate(named, small_data(), judges={})


def test_no_answers_raise():
    with pytest.raises(DataError, match="no answers to evaluate"):
        sp.evaluate(by_hand()[[]])
    with pytest.raises(DataError, match="nothing to measure: all 1 answers are 'unchanged'"):
        sp.evaluate(by_hand()[[2]], small_data())


@pytest.mark.parametrize(
    ("name", "meaning"), [("valid", "valid answers"), ("unseen", "the families that the method"), ("transfer", "all")]
)
def test_reserved_names_of_judges_raise(name, meaning):
    with pytest.raises(DataError, match=f"no judge can be named '{name}'.*mean over {meaning}.*Rename it"):
        sp.evaluate(by_hand(), judges={name: ConstantJudge(1)})


def with_families(e, *families):
    """Return the explanation as if a method with a selector of these families had made it."""
    support = np.ones((len(e), len(families)))
    return replace(e, evidence=replace(Evidence.none(len(e)), families=families, support=support))


def test_unseen_are_the_judges_of_families_that_the_method_did_not_use():
    judges = {"neural": ConstantJudge(1), "quantiles": ConstantJudge(1), "distances": ConstantJudge(0)}
    s = sp.evaluate(by_hand(), judges=judges)
    assert mean(s, "transfer") == mean(s, "transfer_unseen") == pytest.approx(2 / 3)  # no selector: all are unseen
    assert not any("transfer_unseen" in note for note in s.notes)
    s = sp.evaluate(with_families(by_hand(), "quantiles", "intervals"), judges=judges)
    assert mean(s, "transfer") == pytest.approx(2 / 3) and mean(s, "transfer_unseen") == 0.5
    (note,) = [note for note in s.notes if "transfer_unseen" in note]
    assert "of the families quantiles to choose its answers" in note
    s = sp.evaluate(with_families(by_hand(), *judges), judges=judges)
    assert math.isnan(mean(s, "transfer_unseen")) and s.summary["transfer_unseen"]["n"] == 0


def test_missing_families_and_padding_are_noted(answers, monkeypatch):
    found = {"neural": ConstantJudge(1), "quantiles": ConstantJudge(1), "statistics": ConstantJudge(1)}
    monkeypatch.setattr("sparcets.evaluation.evaluate.find_judges", lambda *_, **__: found)
    monkeypatch.setattr("sparcets.evaluation.evaluate.missing_families", lambda: ("distances",))
    notes = sp.evaluate(answers, DATA).notes
    assert any(note.startswith("the judges distances are missing") and "sparcets[uea]" in note for note in notes)
    assert not any("padding" in note for note in notes)
    padded = replace(DATA, lengths_train=np.full(len(DATA.X_train), 20))
    monkeypatch.setattr("sparcets.evaluation.evaluate.missing_families", tuple)
    notes = sp.evaluate(answers, padded).notes
    assert any(note.startswith("the judges quantiles take series of equal length") for note in notes)
    assert not any("missing" in note for note in notes)


def test_several_answers(nearest):
    e = nearest.explain(DATA.X_test[:12], target=1, n=3)
    s = sp.evaluate(e, DATA, judges={})
    assert len(s.per_query) == 36 and s.per_query["answer"].max() == 2
    assert mean(s, "diversity") > 0 and mean(s, "place_diversity") == 0.0  # neighbours differ everywhere
    # Answers to one query are not independent: the interval is over queries.
    from sparcets.evaluation.statistics import bootstrap_intervals

    (low,), (high,) = bootstrap_intervals(s.per_query[["l2"]].to_numpy(), s.per_query["query"])
    assert (s.summary["l2"]["low"], s.summary["l2"]["high"]) == (low, high)


def test_saliency_and_geometry_where_they_are_known():
    box = sp.load_dataset("moving_box", kinds="Middle", processes="Gaussian", n_per_combination=30)
    model = sp.wrap(lambda X: np.eye(2)[(X.mean((1, 2)) > 0).astype(int)])
    e = sp.Nearest(model).fit(box).explain(box.X_test, target=1)
    s = sp.evaluate(e, box, judges={})
    rows = np.flatnonzero(e.status != "unchanged")
    np.testing.assert_array_equal(s.per_query["saliency_auc"][rows], salient_auc(e[rows], box.salient_test[rows]))
    assert mean(s, "oracle") == 1.0
    catching = sp.load_dataset("catching")
    usual = np.median(catching.X_train[:, :, 0].mean(1))
    high = sp.wrap(lambda X: np.eye(3)[(X[:, :, 0].mean(1) > usual).astype(int)])
    e = sp.Nearest(high).fit(catching).explain(catching.X_test[:10], target=1)
    s = sp.evaluate(e, catching, judges={})
    assert mean(s, "limb_deviation") > 0
    skeleton, found = find_skeleton(e.feature_names), e[e.valid & (e.status != "unchanged")]
    assert mean(s, "limb_distance") == np.mean(list(limb_distance(found, skeleton).values()))
    assert mean(s, "joint_distance") == np.mean(list(joint_distance(found, skeleton).values()))


def test_judges_are_trained_where_none_are_given(answers, monkeypatch):
    calls = []

    def find(dataset, classifier, *, device, progress):
        calls.append((dataset, classifier, device))
        return {"yes": ConstantJudge(1)}

    monkeypatch.setattr("sparcets.evaluation.evaluate.find_judges", find)
    assert mean(sp.evaluate(answers, DATA, classifier=MODEL, device="cpu"), "transfer") == 1.0
    assert calls == [(DATA, MODEL, "cpu")]
    assert any("architecture is not known" in n for n in sp.evaluate(answers, DATA, classifier=MODEL).notes)
    clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(DATA)
    e = sp.Nearest(clf).fit(DATA).explain(DATA.X_test, target=1)
    assert not any("architecture is not known" in n for n in sp.evaluate(e, DATA, classifier=clf).notes)


def test_unknown_plausibility_is_noted():
    data = small_data(y_test=np.zeros(3, dtype=int))  # no real test series of the target class
    s = sp.evaluate(by_hand(), data, judges={})
    assert math.isnan(mean(s, "knn_ratio")) and s.summary["knn_ratio"]["n"] == 0
    assert any("plausibility is NaN" in note for note in s.notes)


def test_rows_are_compared_with_the_content_and_may_be_any_of_duplicates(nearest):
    queries = np.flatnonzero(DATA.y_test != 1)
    e, first, last = nearest.explain(DATA.X_test[queries], target=1), queries[0], queries[-1]
    with pytest.raises(DataError, match=rf"test series {last} for query 0, but that query is identical to .* {first}"):
        sp.evaluate(e, DATA, rows=queries[::-1], judges={})
    twice = replace(DATA, X_test=np.tile(DATA.X_test, (2, 1, 1)), y_test=np.tile(DATA.y_test, 2))
    for data, rows in ((DATA, queries), (twice, queries + len(DATA.X_test))):
        assert sp.evaluate(e, data, rows=rows, judges={}).per_query["row"].tolist() == rows.tolist()
    trained = nearest.explain(DATA.X_train[DATA.y_train != 1][:3], target=1)
    assert "3 of them are in its training part" in sp.evaluate(trained, DATA, judges={}).notes[0]


# What cannot be measured.


def test_another_classifier_raises():
    tiny = sp.ClassifierConfig.tiny()
    fcn, bigru = (sp.TorchClassifier(name, tiny).fit(DATA) for name in ("fcn", "bigru"))
    e = sp.Nearest(fcn).fit(DATA).explain(DATA.X_test, target=1)
    with pytest.raises(DataError, match=r"TorchClassifier\('bigru'.*is not the model that was explained: for answer"):
        sp.evaluate(e, DATA, classifier=bigru, judges={})
    with pytest.raises(DataError):
        sp.evaluate(e, classifier=bigru)
    sp.evaluate(e, classifier=fcn)
    again = sp.TorchClassifier("fcn", replace(tiny, seed=1)).fit(DATA)  # the same architecture, another training
    with pytest.raises(DataError):
        sp.evaluate(e, classifier=again)


def test_rounding_differences_are_tolerated(answers):
    logits = np.log(answers.proba_after)
    noisy = np.exp(logits + np.random.default_rng(0).uniform(-0.01, 0.01, logits.shape))  # as on another device
    e = replace(answers, proba_after=noisy / noisy.sum(1, keepdims=True))
    sp.evaluate(e, classifier=MODEL)
    less_certain = replace(answers, proba_after=mean_proba(answers.counterfactual, sharpness=5.0))  # the same classes
    with pytest.raises(DataError):
        sp.evaluate(less_certain, classifier=MODEL)


@pytest.mark.parametrize("classifier", ["fcn", mean_proba, 3])
def test_other_objects_than_classifiers_raise(answers, classifier):
    with pytest.raises(CapabilityError, match=r"must be a sparcets classifier, got .*sp\.wrap"):
        sp.evaluate(answers, DATA, classifier=classifier, judges={})
    with pytest.raises(CapabilityError):
        find_judges(DATA, classifier)


def test_arguments_and_judges_of_another_type_raise(answers):
    with pytest.raises(DataError, match=r"dataset must be a Dataset, got ndarray.*Dataset\.from_arrays"):
        sp.evaluate(answers, DATA.X_test)
    with pytest.raises(DataError, match=r"evaluate measures an Explanation, got ndarray.*explain"):
        sp.evaluate(DATA.X_test, DATA)
    with pytest.raises(DataError):
        sp.evaluate(DATA, answers)
    with pytest.raises(DataError):
        find_judges(DATA.X_train)
    with pytest.raises(DataError, match=r"judges must be a mapping from names to classifiers, got list"):
        sp.evaluate(answers, judges=[MODEL])
    with pytest.raises(CapabilityError, match=r"the judge 'm' \(function\) has no predict\(X, lengths\).*sp\.wrap"):
        sp.evaluate(answers, judges={"m": mean_proba})
