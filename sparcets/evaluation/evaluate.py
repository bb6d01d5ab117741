"""evaluate: all measures of an explanation in one call; what cannot be measured is noted, and never made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.base import Classifier
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import series_digests
from sparcets.errors import DataError
from sparcets.evaluation.inputs import check_dataset, check_explained, check_explanation, check_judges
from sparcets.evaluation.judges import accuracies, find_judges
from sparcets.evaluation.rows import find_rows
from sparcets.evaluation.scores import Scores, summarise
from sparcets.explanation import Explanation
from sparcets.metrics import proximity, sparsity, validity
from sparcets.metrics.diversity import diversity, place_diversity
from sparcets.metrics.geometry import joint_deviation, joint_distance, limb_deviation, limb_distance
from sparcets.metrics.plausibility import Plausibility
from sparcets.metrics.saliency import pooled_auc, salient_auc
from sparcets.metrics.smoothness import smoothness
from sparcets.metrics.truth import Judge, oracle, transfer
from sparcets.metrics.universality import universality
from sparcets.progress import progress_bar
from sparcets.skeletons import find_skeleton

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, FloatArray]  # measures by name, one value per answer

# What the explanation alone tells, answer by answer.
PLAIN: Mapping[str, Callable[[Explanation], FloatArray]] = {
    "valid": validity.valid,
    "precision": validity.error_rate,
    "precision_index": validity.index_distance,
    "precision_l2": validity.probability_distance,
    "probability": validity.target_probability,
    "similarity": proximity.similarity,
    "sparsity": sparsity.sparsity,
    "smoothness": smoothness,
    "steps_touched": sparsity.steps_touched,
    "features_touched": sparsity.features_touched,
    "segments": sparsity.segments,
    "segment_length": sparsity.segment_length,
    "segments_per_feature": sparsity.segments_per_feature,
    "l2": proximity.l2,
    "linf": proximity.linf,
    "dtw": proximity.dtw,
}
_PART = 1000  # answers measured at once: bounds memory
_SHORT = 12  # letters of a query's digest: enough to tell a million of them apart


def evaluate(
    e: Explanation,
    dataset: Dataset | None = None,
    *,
    classifier: Classifier | None = None,
    rows: Any = None,
    judges: Mapping[str, Judge] | None = None,
    plausibility: Plausibility | None = None,
    device: str = "auto",
    progress: bool | None = None,
    seed: int = 0,
) -> Scores:
    """Measure an explanation: the paper's four measures, whether it is true, and how it looks.

    Answers with status ``unchanged`` are left out. Validity, precision, transfer and oracle are over all other answers,
    measures of the change over the valid ones (and over all under the name with ``_all``).

    Parameters
    ----------
    e
        The answers.
    dataset
        The data its queries come from. Without it, what needs none is measured: no truth, no plausibility.
    classifier
        The explained model; judges are of other architectures than it. Another model is refused: it would give other
        probabilities than those in the explanation.
    rows
        Place in ``dataset.X_test`` that each query passed to ``explain`` stems from (queries,); needed only where the
        queries are not the test series themselves, which are found by their content; rows that contradict it are
        refused.
    judges
        Held-out classifiers by name; by default three are trained on the training part, or found trained
        (:func:`sparcets.find_judges`). An empty mapping leaves transfer out.
    plausibility
        Outlier models fitted before, to be used again for other explanations of the same data.
    device
        Where judges run that are not given.
    progress
        Whether to draw a progress bar; None draws it on a terminal.
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
    asked = e.status != "unchanged"
    if not asked.all():
        notes.append(
            f"{(~asked).sum()} of {len(e)} answers are left out: their queries were of the target class already."
        )
    if dataset is None:
        notes.append(
            "what needs a data set is left out (trained judges, oracle, saliency, plausibility); pass it as dataset."
        )
    else:
        if judges is None:
            judges = find_judges(dataset, classifier, device=device, progress=progress)
            if not hasattr(classifier, "architecture"):
                notes.append("the explained classifier's architecture is not known; a judge may be of the same.")
        plausibility = plausibility or Plausibility(dataset, e.info.scaler, seed=seed)
    accuracy = accuracies(judges, dataset) if judges and dataset is not None else {}
    notes += _doubts(accuracy, dataset)

    answers = e[asked]
    stages = _stages(answers, dataset, rows[asked], judges or {}, plausibility)
    columns: Columns = {}
    with progress_bar("evaluating", len(stages) + 1, show=progress) as bar:
        for title, measure in stages.items():
            bar.advance(0, title)
            columns |= measure()
            bar.advance()
        bar.advance(0, "the whole set")
        of_set = {"coverage": (validity.coverage(e), int(asked.sum()))}
        of_set["universality"] = (universality(answers), int(answers.valid.sum()))
        of_set |= _pooled(answers, dataset, rows[asked]) | _bodies(answers)
        of_set["seconds"] = (e.seconds, len(e))
        per_query = _frame(e, digests, None if dataset is None else rows, asked, columns)
        summary = summarise(per_query, of_set, seed=seed)
        bar.advance()
    if "lof_ratio" in columns and np.isnan(columns["lof_ratio"]).any():
        notes.append(
            "plausibility is not known where the target class has fewer than 6 training series, or no test one."
        )
    return Scores(per_query=per_query, summary=summary, judges=accuracy, notes=tuple(notes))


def _stages(
    e: Explanation,
    dataset: Dataset | None,
    rows: IntArray,
    judges: Mapping[str, Judge],
    plausibility: Plausibility | None,
) -> dict[str, Callable[[], Columns]]:
    """Return what is to be measured, answer by answer, by the title of the work."""
    known = rows >= 0
    skeleton = find_skeleton(e.feature_names)
    stages: dict[str, Callable[[], Columns]] = {"shape": lambda: _measure_plain(e)}
    if judges:
        stages["judges"] = lambda: _measure_transfer(e, judges)
    if dataset is not None and dataset.oracle is not None and known.any():
        stages["oracle"] = lambda: {"oracle": _spread(oracle(e[known], dataset, rows[known]), known)}
    if plausibility is not None:
        stages["plausibility"] = lambda: plausibility.ratios(e)
    if dataset is not None and dataset.salient_test is not None and known.any():
        salient = dataset.salient_test
        stages["saliency"] = lambda: {"saliency_auc": _spread(salient_auc(e[known], salient[rows[known]]), known)}
    if skeleton is not None:
        stages["geometry"] = lambda: {
            "limb_deviation": limb_deviation(e, skeleton),
            "joint_deviation": joint_deviation(e, skeleton),
        }
    if len(np.unique(e.query_index)) < len(e):
        stages["diversity"] = lambda: {"diversity": diversity(e), "place_diversity": place_diversity(e)}
    return stages


def _measure_plain(e: Explanation) -> Columns:
    parts = [e[start : start + _PART] for start in range(0, max(len(e), 1), _PART)]
    return {name: np.concatenate([measure(part) for part in parts]) for name, measure in PLAIN.items()}


def _measure_transfer(e: Explanation, judges: Mapping[str, Judge]) -> Columns:
    if "valid" in judges:
        raise DataError("no judge can be called 'valid': transfer_valid is the mean over valid answers. Rename it.")
    found = transfer(e, judges)
    return {"transfer": found["transfer"], **{f"transfer_{name}": found[name] for name in judges}}


def _pooled(e: Explanation, dataset: Dataset | None, rows: IntArray) -> dict[str, tuple[float, int]]:
    """Return the area under one ROC curve of all answers, valid ones and all."""
    known = rows >= 0
    if dataset is None or dataset.salient_test is None or not known.any():
        return {}
    areas: dict[str, tuple[float, int]] = {}
    for name, chosen in (("saliency_auc_pooled_all", known), ("saliency_auc_pooled", known & e.valid)):
        if areas and chosen.sum() == known.sum():
            areas[name] = areas["saliency_auc_pooled_all"]  # the same answers
        else:
            areas[name] = (pooled_auc(e[chosen], dataset.salient_test[rows[chosen]]), int(chosen.sum()))
    return areas


def _bodies(e: Explanation) -> dict[str, tuple[float, int]]:
    """Return how far the limbs' lengths and the joints' angles of all valid answers are from those of the queries."""
    skeleton, found = find_skeleton(e.feature_names), e[e.valid]
    if skeleton is None or not len(found):
        return {}
    distances = {"limb_distance": limb_distance(found, skeleton), "joint_distance": joint_distance(found, skeleton)}
    return {name: (float(np.mean(list(of.values()))), len(found)) for name, of in distances.items() if of}


def _spread(values: FloatArray, known: BoolArray) -> FloatArray:
    """Return values of the known answers in the place of all, NaN elsewhere."""
    spread = np.full(len(known), np.nan)
    spread[known] = values
    return spread


def _frame(
    e: Explanation, digests: Sequence[str], rows: IntArray | None, asked: BoolArray, columns: Columns
) -> pd.DataFrame:
    """Return one row per answer; measures are NaN for those that were not asked for."""
    import pandas as pd

    labels: dict[str, Any] = {
        "query": e.query_index,
        "answer": pd.Series(e.query_index).groupby(e.query_index).cumcount(),
    }
    if rows is not None:
        labels["row"] = rows
    labels["digest"] = [digest[:_SHORT] for digest in digests]
    labels["target"] = np.array(e.class_names, dtype=object)[e.target]
    labels["status"] = e.status.astype(object)
    frame: pd.DataFrame = pd.DataFrame(labels | {name: _spread(values, asked) for name, values in columns.items()})
    return frame


def _doubts(accuracy: Mapping[str, float], dataset: Dataset | None) -> list[str]:
    """Say which judges are no better than naming the most frequent class."""
    if dataset is None or not len(dataset.y_test):
        return []
    guess = float(np.bincount(dataset.y_test).max() / len(dataset.y_test))
    return [
        f"the judge {name} is right on {share:.2f} of the test series, no better than guessing; it says little."
        for name, share in accuracy.items()
        if share <= guess
    ]
