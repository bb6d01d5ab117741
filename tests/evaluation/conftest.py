"""Explanations built from arrays, for the tests of the measures."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.explanation import Explanation
from sparcets.core.info import Scaler, SeriesInfo


def build_explanation(
    delta,
    *,
    query=0.0,
    target=1,
    valid=True,
    query_index=None,
    status="generated",
    lengths=None,
    mutable=True,
    frozen=None,
    center=0.0,
    scale=1.0,
    proba_after=None,
    n_classes=2,
    feature_names=None,
):
    delta = np.asarray(delta)
    delta = delta if delta.dtype.kind == "f" else delta.astype(np.float64)
    B, T, F = delta.shape
    target = np.array(np.broadcast_to(target, (B,)), dtype=np.int64)
    n_classes = n_classes if proba_after is None else np.shape(proba_after)[1]
    query = np.array(np.broadcast_to(query, (B, T, F)), dtype=delta.dtype)
    other = (target + 1) % n_classes
    certain = np.eye(n_classes)[np.where(np.broadcast_to(valid, (B,)), target, other)]
    each = [np.array(np.broadcast_to(known, (F,)), dtype=np.float64) for known in (center, scale)]
    info = SeriesInfo.from_series(np.zeros((1, T, F)), tuple(f"c{k}" for k in range(n_classes)))
    names = tuple(feature_names or (f"f{i}" for i in range(F)))
    info = replace(info, feature_names=names, scaler=Scaler(*each), span=np.ones(F))
    return Explanation(
        query=query,
        counterfactual=query + delta,
        target=target,
        status=np.array(np.broadcast_to(status, (B,))),
        reason=np.full(B, ""),
        query_index=np.arange(B) if query_index is None else np.asarray(query_index),
        proba_before=np.eye(n_classes)[other],
        proba_after=certain if proba_after is None else np.asarray(proba_after, dtype=np.float64),
        info=info,
        mutable=np.array(np.broadcast_to(mutable, (F,))),
        frozen=frozen,
        lengths=None if lengths is None else np.asarray(lengths),
    )


@pytest.fixture(scope="session")
def make_explanation():
    """Return ``make(delta, **known)``: answers with these changes (answers, time, features).

    Everything else has a default and may be one value for all answers (or features): ``query`` (0), ``target`` (1),
    ``valid`` (True; or the probabilities themselves as ``proba_after``), ``query_index`` (0, 1, …), ``status``,
    ``lengths``, ``mutable``, ``center`` and ``scale`` of the features (0 and 1), ``n_classes`` (2), ``feature_names``.
    """
    return build_explanation
