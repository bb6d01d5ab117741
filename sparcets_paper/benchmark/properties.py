"""Properties of the answers of one run that its row holds on request: stability, and the numbers behind the figures.

Stability is measured under noise on the queries, with another seed, and for a retrained classifier. Figure 3 shows who
is next to the counterfactuals in a t-SNE map, figures 4 and 7 how much changes in the box of Moving Box and at the
first and last steps, figure 6 the distances between points of the body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray
from sparcets.core.explanation import Explanation
from sparcets.core.seeding import generator
from sparcets.core.series import Series
from sparcets.data.dataset import Dataset
from sparcets.evaluation.measures import changed_within, jaccard, n_entries, standardised_delta
from sparcets.methods.base import BaseExplainer
from sparcets.models.base import Classifier
from sparcets.motion.limbs import limb_lengths
from sparcets.motion.skeleton import Skeleton, find_skeleton
from sparcets_paper.benchmark.embedding import Points, embed, neighbours

ENDS = 3  # steps at the beginning, and as many at the end
MAPPED = 200  # answers in a map, the first ones
QUARTILES = (0.25, 0.5, 0.75)


# Of two explanations of the same queries, answer by answer.


def stays_valid(e: Explanation, other: Explanation) -> FloatArray:
    """Return 1 where both answers are valid, 0 where only the first is; NaN where the first is not."""
    return np.where(e.valid, other.valid.astype(np.float64), np.nan)


def stays_in_place(e: Explanation, other: Explanation) -> FloatArray:
    """Return the Jaccard index |A ∩ B| / |A ∪ B| of the changed entries; NaN unless both answers are valid."""
    return np.where(e.valid & other.valid, jaccard(changed_within(e), changed_within(other)), np.nan)


def residual_distance(e: Explanation, other: Explanation) -> FloatArray:
    """Return ‖δ − δ'‖₁ / (T·F), both standardised by the scaler of ``e``; NaN unless both answers are valid."""
    difference = standardised_delta(e)
    difference -= standardised_delta(replace(other, info=e.info))
    distance = np.abs(difference, out=difference).sum((1, 2)) / n_entries(e)
    return np.where(e.valid & other.valid, distance, np.nan)


MEASURES = {"valid": stays_valid, "place": stays_in_place, "distance": residual_distance}


def measure_stability(
    explainer: BaseExplainer[Any],
    dataset: Dataset,
    e: Explanation,
    *,
    retrained: Classifier,
    noise: float = 0.05,
    at_most: int = 200,
) -> dict[str, float]:
    """Explain the same queries again under three variations, and compare the answers with the first ones.

    Parameters
    ----------
    explainer
        The fitted explainer that returned ``e``.
    dataset
        Data set that it was fitted on.
    e
        Answers, one per query; queries that were in the target class already are ignored.
    retrained
        A classifier of the same kind, trained with another seed.
    noise
        Standard deviation of the noise added to the queries, in standard deviations of each feature.
    at_most
        Number of queries compared, the first ones.

    Returns
    -------
    dict
        For the variations ``noise`` (the same explainer, noisy queries), ``seed`` (fitted again with the next seed) and
        ``retrained`` (fitted to the other classifier), over the queries that are not in the target class after the
        variation: ``<variation>_valid``, share of the valid answers that are valid again; ``<variation>_place``,
        Jaccard index of the changed entries; ``<variation>_distance``, mean |δ − δ'| in standard deviations. Also
        ``retrained_accepts``: share of the valid counterfactuals that the other classifier assigns to the target.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> data = sp.Dataset.from_arrays(*make_series(60))
    >>> explainer = sp.Nearest(sp.wrap(mean_proba)).fit(data)
    >>> e = explainer.explain(data.X_test, target=1)
    >>> found = measure_stability(explainer, data, e, retrained=sp.wrap(mean_proba))
    >>> found["seed_place"], found["retrained_accepts"]
    (1.0, 1.0)
    """
    e = e[e.status != "unchanged"][:at_most]
    next_seed = replace(explainer.config, seed=explainer.config.seed + 1)
    other_seed = type(explainer)(explainer.classifier, next_seed).fit(dataset, progress=False)
    other_model = type(explainer)(retrained, explainer.config).fit(dataset, progress=False)
    result = {
        **_compared("noise", e, explainer, _with_noise(e, noise)),
        **_compared("seed", e, other_seed, e.query),
        **_compared("retrained", e, other_model, e.query),
    }
    valid = e[e.valid]
    accepted = retrained.predict(valid.counterfactual, valid.lengths) == valid.target if len(valid) else np.zeros(0)
    return {**result, "retrained_accepts": _mean(np.asarray(accepted, dtype=np.float64))}


def _with_noise(e: Explanation, noise: float) -> FloatArray:
    drawn = generator(e.seed, "noise").normal(0.0, noise, e.query.shape) * e.info.scaler.scale
    drawn *= Series(e.query, e.lengths).inside[:, :, None]  # no noise on the padding
    return np.asarray(e.query + drawn, dtype=e.query.dtype)


def _compared(variation: str, e: Explanation, explainer: BaseExplainer[Any], query: FloatArray) -> dict[str, float]:
    """Explain the (varied) queries of ``e`` with an explainer, and compare the answers with those of ``e``."""
    # A varied query that is in the target class has no second answer to compare.
    outside = explainer.classifier.predict(query, e.lengths) != e.target if len(e) else np.zeros(0, dtype=bool)
    first = e[np.asarray(outside)]
    if not len(first):
        return {f"{variation}_{name}": float("nan") for name in MEASURES}
    second = explainer.explain(query[outside], first.target, lengths=first.lengths, progress=False)
    second = replace(second, query_index=first.query_index)
    return {f"{variation}_{name}": _mean(measure(first, second)) for name, measure in MEASURES.items()}


def _mean(values: FloatArray) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else float("nan")


def figure_numbers(e: Explanation, data: Dataset, rows: IntArray) -> dict[str, Any]:
    """Return the numbers by name: ``map`` and ``space``, ``places``, ``limbs``; the last two where the data have them.

    Parameters
    ----------
    e
        Answers towards one target; those to queries that were in it already do not count.
    data
        The data of the queries.
    rows
        Index in ``data.X_test`` of each query.
    """
    e = e[e.status != "unchanged"]
    if not len(e):
        return {}
    found: dict[str, Any] = _neighbourhoods(e, data)
    if data.salient_test is not None:
        found["places"] = places(e, data.salient_test[rows[e.query_index]])
    skeleton = find_skeleton(e.feature_names)
    if skeleton is not None and e.valid.any():
        found["limbs"] = _limbs(e[e.valid], skeleton)
    return found


def places(e: Explanation, salient: BoolArray) -> dict[str, Any]:
    """Return where the answers change: the mean |δ| and the share of changed entries of several places.

    The places are the ``inside`` of the box and, outside of it, the ``first`` and the ``last`` three steps and those
    ``between``; ``outside`` is all that is not inside. ``profile`` is the mean |δ| of each step outside of the box.

    Parameters
    ----------
    e
        Answers.
    salient
        Mask of the box of each answer's query (answers, time, features).
    """
    size = np.abs(standardised_delta(e))
    T = size.shape[1]
    ends = {"first": np.arange(T) < ENDS, "last": np.arange(T) >= T - ENDS}
    steps = {**ends, "between": ~(ends["first"] | ends["last"])}
    masks = {"inside": salient, "outside": ~salient}
    masks |= {name: ~salient & chosen[:, None] for name, chosen in steps.items()}
    found: dict[str, Any] = {
        name: {"size": float(size[mask].mean()), "changed": float(e.changed[mask].mean())}
        for name, mask in masks.items()
        if mask.any()
    }
    outside = np.where(salient, 0.0, size).sum((0, 2)) / np.maximum((~salient).sum((0, 2)), 1)
    return {**found, "profile": outside.tolist()}


def _neighbourhoods(e: Explanation, data: Dataset) -> dict[str, dict[str, float]]:
    """Return the neighbours of the counterfactuals in a map as in figure 3, and among the series themselves."""
    first = e[:MAPPED]
    targets = data.X_test[data.y_test == first.target[0]][:MAPPED]
    if len(targets) < 2 or len(first) < 2:
        return {}
    parts = Points(first.query, targets, first.counterfactual)
    in_map = embed(parts.queries, parts.targets, {"": parts.counterfactuals})[""]
    in_space = Points(*(e.info.scaler.transform(part).reshape(len(part), -1) for part in parts))
    return {"map": neighbours(in_map), "space": neighbours(in_space)}


def _limbs(e: Explanation, skeleton: Skeleton) -> dict[str, dict[str, list[float]]]:
    """Return the quartiles of the length of each limb, in the queries and in the counterfactuals."""
    lengths = {"queries": limb_lengths(e.query, skeleton), "answers": limb_lengths(e.counterfactual, skeleton)}
    return {
        limb: {name: np.quantile(found[limb], QUARTILES).tolist() for name, found in lengths.items()}
        for limb in lengths["queries"]
    }
