"""Explanations built from arrays, for the tests of the measures."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.info import SeriesInfo
from sparcets.core.series import Scaler
from tests.made import answers


def build_explanation(
    delta, *, query=0.0, target=1, valid=True, center=0.0, scale=1.0, n_classes=2, feature_names=None, **known
):
    delta = np.asarray(delta)
    delta = delta if delta.dtype.kind == "f" else delta.astype(np.float64)
    B, T, F = delta.shape
    target = np.array(np.broadcast_to(target, (B,)), dtype=np.int64)
    n_classes = np.shape(known["proba_after"])[1] if "proba_after" in known else n_classes
    query = np.array(np.broadcast_to(query, (B, T, F)), dtype=delta.dtype)
    other = (target + 1) % n_classes
    certain = np.eye(n_classes)[np.where(np.broadcast_to(valid, (B,)), target, other)]
    scaler = Scaler(*(np.array(np.broadcast_to(known, (F,)), dtype=np.float64) for known in (center, scale)))
    info = SeriesInfo.from_series(np.zeros((1, T, F)), tuple(f"c{k}" for k in range(n_classes)))
    names = tuple(feature_names or (f"f{i}" for i in range(F)))
    info = replace(info, feature_names=names, scaler=scaler, span=np.ones(F))
    proba = {"proba_before": np.eye(n_classes)[other], "proba_after": certain}
    return answers(query, query + delta, info, target=target, **{**proba, **known})


@pytest.fixture(scope="session")
def make_explanation():
    """Return ``make(delta, **known)``: answers with these changes (answers, time, features).

    Everything else has a default and may be one value for all answers (or features): ``query`` (0), ``target`` (1),
    ``valid`` (True; or the probabilities themselves as ``proba_after``), ``query_index`` (0, 1, …), ``status``,
    ``lengths``, ``mutable``, ``center`` and ``scale`` of the features (0 and 1), ``n_classes`` (2), ``feature_names``.
    """
    return build_explanation
