"""A batch of queries: answered by the method, judged by the explained classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.explainers.request import Request
from sparcets.explanation.evidence import Evidence
from sparcets.explanation.reached import is_reached
from sparcets.explanation.result import Explanation

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer


def explain_batch(
    explainer: BaseExplainer[Any], request: Request, query_index: IntArray, before: FloatArray
) -> Explanation:
    """Answer a batch of queries, predict the answers, and put both together.

    Parameters
    ----------
    explainer
        Fitted.
    request
        The queries, some of which may be in their target class already.
    query_index
        Index of each query among all queries of the call (batch,).
    before
        Probabilities of the queries (batch, classes).
    """
    X, target, lengths, n, info = request.X, request.target, request.lengths, request.n, request.info
    query = np.repeat(X, n, axis=0)
    counterfactual = query.copy()
    status = np.full(len(X) * n, "unchanged", dtype="<U9")
    reason = np.full(len(X) * n, "", dtype=object)
    after = np.repeat(before, n, axis=0)
    evidence = Evidence.none(len(X) * n)
    to_explain = np.flatnonzero(~request.is_reached(before))
    if len(to_explain):
        answers = explainer._explain(request.select(to_explain))
        of_explained = (to_explain[:, None] * n + np.arange(n)).ravel()
        counterfactual[of_explained] = answers.counterfactual
        status[of_explained] = answers.status
        reason[of_explained] = answers.reason
        after[of_explained] = np.nan if answers.proba is None else answers.proba
        evidence = answers.evidence(len(status), of_explained)
    repeated = None if lengths is None else np.repeat(lengths, n)
    missing = np.flatnonzero(np.isnan(after).any(1))
    if len(missing):
        steps = None if repeated is None else repeated[missing]
        after[missing] = explainer.classifier.proba_unchecked(counterfactual[missing], steps)
    targets = np.repeat(target, n)
    valid = is_reached(after, targets, request.confidence)
    # The classifier's own prediction decides: what it rejects is not found, whatever the method says.
    for i in np.flatnonzero(~valid & (status != "not_found")):
        status[i], reason[i] = "not_found", request.why_rejected(i // n, counterfactual[i], after[i])
    return Explanation(
        query=query,
        counterfactual=counterfactual,
        target=targets,
        status=status,
        reason=reason.astype(str),
        query_index=np.repeat(query_index, n),
        proba_before=np.repeat(before, n, axis=0),
        proba_after=after,
        info=info,
        mutable=request.constraints.mutable,
        lengths=repeated,
        evidence=evidence,
        method=explainer.method,
        config=explainer._settings,
        seed=explainer.config.seed,
        confidence=request.confidence,
    )
