"""Would the answer be the same tomorrow? Answers compared after noise, with another seed, and on a retrained model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, steps_within
from sparcets.classifiers.base import Classifier
from sparcets.datasets.base import Dataset
from sparcets.explainers.base import BaseExplainer
from sparcets.explanation import Explanation
from sparcets.metrics.stability import residual_distance, stays_in_place, stays_valid
from sparcets.seeding import generator

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
    """Explain the same queries again, three times with something varied, and compare the answers with the first ones.

    Parameters
    ----------
    explainer
        Fitted; it made ``e``.
    dataset
        What it was fitted on.
    e
        Answers, one per query; those the classifier put into the target from the start do not count.
    retrained
        A classifier like the explained one, trained with another seed.
    noise
        Standard deviation of the noise on the queries, in standard deviations of each feature.
    at_most
        Queries compared, the first ones.

    Returns
    -------
    dict
        For ``noise`` (the same explainer, noisy queries), ``seed`` (fitted again with the next seed) and ``retrained``
        (fitted to the other classifier), each over the queries that are not in the target class there either:
        ``<what>_valid``, share of the valid answers that are valid again; ``<what>_place``, overlap (Jaccard) of what
        they change; ``<what>_distance``, mean |δ − δ'| in standard deviations. And ``retrained_accepts``: share of the
        valid counterfactuals that the other classifier puts into the target class too.

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
    again = replace(explainer.config, seed=explainer.config.seed + 1)
    other_seed = type(explainer)(explainer.classifier, again).fit(dataset, progress=False)
    other_model = type(explainer)(retrained, explainer.config).fit(dataset, progress=False)
    result = {
        **_compared("noise", e, explainer, _with_noise(e, noise)),
        **_compared("seed", e, other_seed, e.query),
        **_compared("retrained", e, other_model, e.query),
    }
    found = e[e.valid]
    accepted = retrained.predict(found.counterfactual, found.lengths) == found.target if len(found) else np.zeros(0)
    return {**result, "retrained_accepts": _mean(np.asarray(accepted, dtype=np.float64))}


def _with_noise(e: Explanation, noise: float) -> FloatArray:
    drawn = generator(e.seed, "noise").normal(0.0, noise, e.query.shape) * e.info.scaler.scale
    drawn *= steps_within(e.lengths, len(e), e.query.shape[1])[:, :, None]  # padding stays as it is
    return np.asarray(e.query + drawn, dtype=e.query.dtype)


def _compared(what: str, e: Explanation, explainer: BaseExplainer[Any], query: FloatArray) -> dict[str, float]:
    """Let an explainer answer (variants of) the queries of ``e``, and compare the answers."""
    # One that is in the target class by now has nothing to be explained: there is no second answer to compare.
    asked = explainer.classifier.predict(query, e.lengths) != e.target if len(e) else np.zeros(0, dtype=bool)
    first = e[np.asarray(asked)]
    if not len(first):
        return {f"{what}_{name}": float("nan") for name in MEASURES}
    second = explainer.explain(query[asked], first.target, lengths=first.lengths, progress=False)
    second = replace(second, query_index=first.query_index)
    return {f"{what}_{name}": _mean(measure(first, second)) for name, measure in MEASURES.items()}


def _mean(values: FloatArray) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else float("nan")
