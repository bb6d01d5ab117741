"""evaluate: all measures of an explanation in one call; measures that cannot be computed are listed in the notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import DataError, FeatureMismatchError, OutOfRangeError, ShapeError, preserve_warning_filters
from sparcets.core.explanation import Explanation
from sparcets.core.progress import progress_bar
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series
from sparcets.core.validation import default_feature_names
from sparcets.data.dataset import Dataset, series_digests
from sparcets.evaluation import measures
from sparcets.evaluation.families import AEON, EXTRA, missing_families
from sparcets.evaluation.judges import (
    Judge,
    accuracies,
    check_dataset,
    check_explained,
    check_explanation,
    check_judges,
    find_judges,
    transfer,
    with_side_features,
)
from sparcets.evaluation.outliers import Plausibility, c2st
from sparcets.evaluation.scores import WARNING, Scores, summarise
from sparcets.models.base import Classifier, Regressor
from sparcets.motion.limbs import joint_deviation, joint_distance, limb_deviation, limb_distance
from sparcets.motion.skeleton import find_skeleton

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, FloatArray]  # measures by name, one value per answer

# Measures per answer that need only the explanation; some do not exist for numbers.
OF_CLASSES: Mapping[str, Callable[[Explanation], FloatArray]] = {
    "precision_index": measures.index_distance,
    "precision_l2": measures.probability_distance,
    "probability": lambda e: e.probability.astype(np.float64),
}
EXPLANATION_MEASURES: Mapping[str, Callable[[Explanation], FloatArray]] = {
    "valid": lambda e: e.valid.astype(np.float64),
    "precision": lambda e: (~e.valid).astype(np.float64),
    **OF_CLASSES,
    "similarity": measures.similarity,
    "sparsity": lambda e: e.share_changed,  # without frozen steps and gaps ‖δ‖₀ / (T·F_mutable)
    "smoothness": measures.smoothness,
    "steps_touched": partial(measures.share_touched, over=2),
    "features_touched": partial(measures.share_touched, over=1),
    "segments": measures.segments,
    "segment_length": measures.segment_length,
    "segments_per_feature": measures.segments_per_feature,
    "l2": measures.l2,
    "linf": measures.linf,
    "dtw": measures.dtw,
}
_CHUNK = 1000  # answers measured per chunk, bounding memory
_DIGEST_LENGTH = 12  # characters of a query's digest: enough to keep a million of them distinct


def evaluate(
    e: Explanation,
    dataset: Dataset | None = None,
    *,
    classifier: Classifier | Regressor | None = None,
    rows: Any = None,
    judges: Mapping[str, Judge] | None = None,
    plausibility: Plausibility | None = None,
    device: str = "auto",
    progress: bool | None = None,
    seed: int = 0,
) -> Scores:
    """Evaluate an explanation: the paper's four measures, transfer to other classifiers, plausibility and more.

    Answers with status ``unchanged`` are ignored. Validity, precision, transfer and oracle are means over all other
    answers, measures of the change over the valid ones (and over all answers under the name with suffix ``_all``).

    Parameters
    ----------
    e
        The answers.
    dataset
        The data its queries come from. Without it, trained judges, oracle, saliency and plausibility are not measured.
    classifier
        The explained model; no judge has its architecture. A different model raises an error, because its
        probabilities differ from those stored in the explanation.
    rows
        Index in ``dataset.X_test`` of the series that each query passed to ``explain`` was derived from (queries,).
        Needed only for modified test series: unmodified ones are found by their content, and rows that contradict it
        raise an error.
    judges
        Held-out classifiers by name; by default one of each family (:func:`sparcets.find_judges`), trained on the
        training part. Judges with the name of a family in ``e.families`` do not count in ``transfer_unseen``.
        With an empty mapping, transfer is not measured.
    plausibility
        Outlier models to reuse from an earlier explanation of the same data.
    device
        Device of the judges trained here.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.
    seed
        Seed of the bootstrap and of the outlier models.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> ds = sp.Dataset.from_arrays(*make_series(120))
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(ds).explain(ds.X_test, target=1)
    >>> scores = evaluate(e, ds, judges={"blunt": sp.wrap(lambda X: mean_proba(X, sharpness=1.0))})
    >>> {name: round(scores.summary[name]["mean"], 2) for name in ("valid", "transfer", "sparsity")}
    {'valid': 1.0, 'transfer': 1.0, 'sparsity': 1.0}
    """
    check_explanation(e)
    if dataset is not None:
        check_dataset(dataset)
    if judges is not None:
        check_judges(judges)
    if classifier is not None:
        check_explained(classifier, e)
    notes: list[str] = []
    digests = series_digests(e.query)
    rows = find_rows(e, digests, dataset, rows, notes)
    measured = e.status != "unchanged"
    if not measured.all():
        notes.append(f"{(~measured).sum()} of {len(e)} answers are left out: their queries were in the target already.")
    judged, data = e, dataset  # for the judges
    if dataset is None:
        notes.append("measures that need a data set are left out (trained judges, oracle, saliency, plausibility).")
    else:
        if judges is None:
            judged, data = with_side_features(e, dataset)
            judges = find_judges(data, classifier, device=device, progress=progress)
            if not hasattr(classifier, "architecture"):
                notes.append("the explained model's architecture is not known; a judge may have the same one.")
            notes += _family_notes(judges, dataset)
        if not e.info.is_regression:
            plausibility = plausibility or Plausibility(dataset, e.info.scaler, seed=seed)
            if missing_families():
                notes.append("c2st is that of one classifier; the other one of the two needs aeon.")
        else:
            notes.append("outlier models are fitted per class; e.plausibility compares with real series of the target.")
    if e.side is not None and judges and judged.side is not None:
        notes.append(f"judges see the series alone, and not the side inputs ({', '.join(e.side)}).")
    accuracy = accuracies(judges, data) if judges and data is not None else {}
    notes += _weak_judges(accuracy, dataset)
    shared = [name for name in judges or {} if name in e.families]
    if shared:
        notes.append(
            f"the method used other models of the families {', '.join(shared)} to choose its answers; "
            "transfer_unseen is the mean over the other judges."
        )

    answers, judged = e[measured], judged[measured]
    stages = _stages(answers, judged, dataset, rows[measured], judges or {}, plausibility)
    columns: Columns = {}
    with progress_bar("evaluating", len(stages) + 1, show=progress) as bar:
        for title, measure in stages.items():
            bar.advance(0, title)
            columns |= measure()
            bar.advance()
        bar.advance(0, "the whole set")
        set_measures = {"coverage": (measures.coverage(e), int(measured.sum()))}
        set_measures["universality"] = (measures.universality(answers), int(answers.valid.sum()))
        if dataset is not None and not e.info.is_regression:
            set_measures["c2st"] = c2st(answers, dataset, rows[measured])
        set_measures |= _pooled_saliency(answers, dataset, rows[measured]) | _geometry_distances(answers)
        set_measures["seconds"] = (e.seconds, len(e))
        with preserve_warning_filters():  # pandas sets filters in comparisons of types
            per_query = _frame(e, digests, None if dataset is None else rows, measured, columns)
            summary = summarise(per_query, set_measures, seed=seed)
        bar.advance()
    if "lof_ratio" in columns and np.isnan(columns["lof_ratio"]).any():
        notes.append("plausibility is NaN where the target class has fewer than 6 training series or no test series.")
    return Scores(per_query=per_query, summary=summary, judges=accuracy, notes=tuple(notes))


def _stages(
    e: Explanation,
    judged: Explanation,
    dataset: Dataset | None,
    rows: IntArray,
    judges: Mapping[str, Judge],
    plausibility: Plausibility | None,
) -> dict[str, Callable[[], Columns]]:
    """Return the functions that compute measures per answer, by title; ``judged`` are the answers for the judges."""
    known = rows >= 0
    skeleton = find_skeleton(e.feature_names, e.info.units)
    stages: dict[str, Callable[[], Columns]] = {"shape": lambda: _measure_plain(e)}
    if judges:
        stages["judges"] = lambda: _measure_transfer(judged, judges)
    if dataset is not None and (oracle := dataset.oracle) is not None and known.any():
        stages["oracle"] = lambda: {  # whether the generating process puts the counterfactual into the target class
            "oracle": _scatter((oracle(e.counterfactual[known], rows[known]) == e.target[known]).astype(float), known)
        }
    if plausibility is not None:
        stages["plausibility"] = lambda: plausibility.ratios(e)
    if dataset is not None and dataset.salient_test is not None and known.any():
        salient = dataset.salient_test[rows[known]]
        stages["saliency"] = lambda: {"saliency_auc": _scatter(measures.salient_auc(e[known], salient), known)}
    if skeleton is not None:
        stages["geometry"] = lambda: {
            "limb_deviation": limb_deviation(e, skeleton),
            "joint_deviation": joint_deviation(e, skeleton),
        }
    if len(np.unique(e.query_index)) < len(e):
        stages["diversity"] = lambda: {
            "diversity": measures.diversity(e),
            "place_diversity": measures.place_diversity(e),
        }
    return stages


def _measure_plain(e: Explanation) -> Columns:
    parts = [e[start : start + _CHUNK] for start in range(0, max(len(e), 1), _CHUNK)]
    left_out = OF_CLASSES if e.info.is_regression else {}
    chosen = {name: measure for name, measure in EXPLANATION_MEASURES.items() if name not in left_out}
    return {name: np.concatenate([measure(part) for part in parts]) for name, measure in chosen.items()}


def _measure_transfer(e: Explanation, judges: Mapping[str, Judge]) -> Columns:
    columns: Columns = {}
    for measure, found in transfer(e, judges).items():
        others = [values for name, values in found.items() if name not in e.families]
        columns[measure] = np.mean(list(found.values()), axis=0)
        columns[f"{measure}_unseen"] = np.mean(others, axis=0) if others else np.full(len(e), np.nan)
        columns |= {f"{measure}_{name}": values for name, values in found.items()}
    return columns


def _pooled_saliency(e: Explanation, dataset: Dataset | None, rows: IntArray) -> dict[str, tuple[float, int]]:
    """Return the pooled area under the ROC curve of the valid answers, and of all."""
    known = rows >= 0
    if dataset is None or dataset.salient_test is None or not known.any():
        return {}
    groups = {"saliency_auc_pooled_all": known, "saliency_auc_pooled": known & e.valid}
    salient = dataset.salient_test
    return {name: (measures.pooled_auc(e[some], salient[rows[some]]), int(some.sum())) for name, some in groups.items()}


def _geometry_distances(e: Explanation) -> dict[str, tuple[float, int]]:
    """Return the distances of limb lengths and joint angles between all valid answers and their queries."""
    skeleton, found = find_skeleton(e.feature_names, e.info.units), e[e.valid]
    if skeleton is None or not len(found):
        return {}
    distances = {"limb_distance": limb_distance(found, skeleton), "joint_distance": joint_distance(found, skeleton)}
    return {name: (float(np.mean(list(d.values()))), len(found)) for name, d in distances.items() if d}


def _scatter(values: FloatArray, rows: BoolArray) -> FloatArray:
    """Return an array (answers,) with ``values`` at ``rows`` and NaN elsewhere."""
    scattered = np.full(len(rows), np.nan)
    scattered[rows] = values
    return scattered


def _frame(
    e: Explanation, digests: Sequence[str], rows: IntArray | None, measured: BoolArray, columns: Columns
) -> pd.DataFrame:
    """Return one row per answer; measures are NaN where ``measured`` is False."""
    import pandas as pd

    labels: dict[str, Any] = {
        "query": e.query_index,
        "answer": pd.Series(e.query_index).groupby(e.query_index).cumcount(),
        **({} if rows is None else {"row": rows}),
        "digest": [digest[:_DIGEST_LENGTH] for digest in digests],
        "target": e.target_names.astype(object),
        "status": e.status.astype(object),
    }
    frame: pd.DataFrame = pd.DataFrame(labels | {name: _scatter(values, measured) for name, values in columns.items()})
    return frame


def _family_notes(judges: Mapping[str, Judge], dataset: Dataset) -> list[str]:
    """Return notes on families that are missing, and on families that take series of equal length only."""
    notes = []
    if missing := missing_families():
        notes.append(
            f"the judges {', '.join(missing)} are missing, because they need aeon. "
            f"Install it with: pip install 'sparcets[{EXTRA}]'"
        )
    fixed = [name for name in judges if name in AEON]
    if fixed and dataset.lengths_train is not None:
        notes.append(
            f"the judges {', '.join(fixed)} take series of equal length: each is stretched to the longest one."
        )
    return notes


def _weak_judges(accuracy: Mapping[str, float], dataset: Dataset | None) -> list[str]:
    """Return a note for each judge that is not better than the most frequent class."""
    if dataset is None or not len(dataset.y_test):
        return []
    if dataset.task == "regression":
        least, what = 0.0, "explains {:.2f} of the variance of the test labels"
    else:
        least = float(np.bincount(dataset.y_test).max() / len(dataset.y_test))
        what = "has a test accuracy of {:.2f}, no better than the majority class"
    weak = {name: share for name, share in accuracy.items() if share <= least}
    return [f"the judge {name} {what.format(share)}; it says little." for name, share in weak.items()]


def find_rows(e: Explanation, digests: Sequence[str], dataset: Dataset | None, rows: Any, notes: list[str]) -> IntArray:
    """Return the index in ``X_test`` of each answer's query, -1 if unknown.

    The digests of the queries are looked up among those of the test series, unless the user gave ``rows``; ``notes``
    receives a line on queries that are not in the test part.
    """
    if dataset is None:
        if rows is not None:
            raise DataError(
                "rows are indices into a data set's X_test: pass the data set too, evaluate(e, dataset, rows=…)."
            )
        return np.full(len(e), -1)
    _check_same_data(e, dataset)
    given = None if rows is None else _check_rows(rows, e, len(dataset.X_test))[e.query_index]
    # A user may have one in float32 and the other in float64: compare in the coarser type.
    dtype = min(e.query.dtype, dataset.X_test.dtype, key=lambda kind: kind.itemsize)
    if dtype != e.query.dtype:
        digests = series_digests(e.query.astype(dtype))
    in_test = _digests_of(dataset.X_test, dataset.lengths_test, dtype)
    index = {digest: i for i, digest in reversed(list(enumerate(in_test)))}  # the first of duplicates
    found = np.array([index.get(digest, -1) for digest in digests], dtype=np.int64)
    if (found < 0).any():
        notes.append(_unknown_queries(e.query_index, digests, found >= 0, dataset, dtype, rows_given=given is not None))
    if given is None:
        return found
    for i, digest in enumerate(digests):
        if found[i] >= 0 and in_test[given[i]] != digest:
            raise DataError(
                f"rows gives test series {given[i]} for query {e.query_index[i]}, but that query is identical to test "
                f"series {found[i]}. Give rows in the order of the queries, or leave rows= out: test series are found "
                "by their content."
            )
    return given


def _unknown_queries(
    query_index: IntArray,
    digests: Sequence[str],
    known: BoolArray,
    dataset: Dataset,
    dtype: np.dtype[Any],
    *,
    rows_given: bool,
) -> str:
    """Return a note on how many queries are not in the test part, and whether they are in the training part."""
    unknown, n = np.unique(query_index[~known], return_index=True)[1], len(np.unique(query_index))
    where = f"in the test part of {dataset.name!r}"
    if known.any() or rows_given:
        text = f"{len(unknown)} of the {n} queries {'is' if len(unknown) == 1 else 'are'} not {where}"
    else:
        text = f"{WARNING}none of the {n} queries is {where}; check that they come from this data set and split"
    in_train = set(_digests_of(dataset.X_train, dataset.lengths_train, dtype))
    n_train = sum(digests[i] in in_train for i in np.flatnonzero(~known)[unknown])
    if n_train:
        are = "is" if n_train == 1 else "are"
        text += f"; {n_train} of them {are} in its training part, which classifier and judges were trained on"
    if rows_given:
        text += "; rows= gives the test series they were derived from"
    elif dataset.oracle is not None or dataset.salient_test is not None:
        text += "; their saliency mask and true class are not known. Pass rows= if they were derived from test series"
    return f"{text}."


def _digests_of(X: FloatArray, lengths: IntArray | None, dtype: np.dtype[Any]) -> list[str]:
    return series_digests(Series(X, lengths).blank().values.astype(dtype, copy=False))


def _check_rows(rows: Any, e: Explanation, n_test: int) -> IntArray:
    indices, n_queries = np.asarray(rows), int(e.query_index.max()) + 1
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) < n_queries:
        raise ShapeError(
            f"rows must be integers, one per query passed to explain ({n_queries} or more), got "
            f"{indices.dtype} of shape {indices.shape}."
        )
    if indices.min() < 0 or indices.max() >= n_test:
        raise OutOfRangeError(
            f"rows must be indices into X_test, 0 to {n_test - 1}, got {indices.min()} to {indices.max()}."
        )
    return indices.astype(np.int64)


def _check_same_data(e: Explanation, dataset: Dataset) -> None:
    """Raise an error if the queries cannot come from the data set."""
    expected, n_classes = dataset.X_train.shape[1:], e.proba_after.shape[1]
    if e.query.shape[1:] != expected or n_classes != dataset.n_classes:
        raise FeatureMismatchError(
            f"the explanation has {e.query.shape[1:]} steps and features and {n_classes} classes, the data set "
            f"{dataset.name!r} {expected} and {dataset.n_classes}. Pass the data set its queries come from."
        )
    for what, ours, theirs, default in (
        ("features", e.feature_names, dataset.feature_names, tuple(default_feature_names(expected[1]))),
        ("classes", e.class_names, dataset.class_names, tuple(str(k) for k in range(n_classes))),
    ):
        # An explainer fitted on bare arrays has default names only.
        if theirs is not None and ours != theirs and default not in (ours, theirs):
            raise FeatureMismatchError(
                f"the explanation's {what} are {', '.join(ours)}, those of the data set {dataset.name!r} are "
                f"{', '.join(theirs)}. Pass the data set its queries come from, in the same order."
            )
