"""Stability of answers: under noise on the queries, with another seed, and for a retrained classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray, length_mask
from sparcets.core.explanation import Explanation
from sparcets.core.seeding import generator
from sparcets.data.dataset import Dataset
from sparcets.evaluation.truth import residual_distance, stays_in_place, stays_valid
from sparcets.methods.base import BaseExplainer
from sparcets.models.base import Classifier

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
    drawn *= length_mask(e.lengths, len(e), e.query.shape[1])[:, :, None]  # no noise on the padding
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
