"""Evidence on existing series: series made by hand, or answers whose curve is requested later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import FloatArray, IntArray, StrArray
from sparcets.core.target import check_target, is_reached
from sparcets.methods.base import ask_again
from sparcets.methods.request import runner_up

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints
    from sparcets.methods.base import BaseExplainer


def add_curve(
    explainer: BaseExplainer[Any], answers: Explanation, constraints: Constraints | None = None
) -> Explanation:
    """Return answers with the curve that ``explain(curve=True)`` would have measured; without one if there is none.

    There is one answer per query, found without a cap on the changes, under the ``constraints`` of the call.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> add_curve(ex, ex.explain(X[y == 0][:2], target=1)).curve["share"].shape  # no models of other kinds
    (2, 0)
    """
    rows = np.flatnonzero(answers.status != "unchanged")
    if not explainer.supports_curve or not len(rows):
        return answers
    call = explainer._call(None, answers.query.shape[1], constraints, confidence=answers.confidence)
    assert answers.evidence is not None
    return replace(answers, evidence=answers.evidence.with_curve(explainer._curve(answers[rows], call), rows))


def review(
    explainer: BaseExplainer[Any],
    X: FloatArray,
    made: FloatArray,
    target: Any,
    *,
    lengths: IntArray | None = None,
    constraints: Constraints | None = None,
    status: StrArray | None = None,
    reason: StrArray | None = None,
) -> Explanation:
    """Return series that were made elsewhere as the answers to queries, with the evidence on them.

    The models of other kinds are those of a fitted explainer of a classifier. Queries ``X`` and counterfactuals
    ``made`` are in the data's own units; ``target`` is a class name or index, or one per query, and None is the
    runner-up of each. Shares of changes are relative to ``constraints`` in addition to those of the fit. ``status`` and
    ``reason`` are copied from another explanation; by default, and where it has the status ``unchanged``, the status is
    ``refined`` if the classifier predicts the target, else ``not_found``.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> e = review(ex, X[y == 0][:2], X[y == 1][:2], target=1)
    >>> e.valid.tolist(), e.status.tolist(), e.verdict.tolist()
    ([True, True], ['refined', 'refined'], ['doubtful', 'doubtful'])
    """
    info, model = explainer._fitted(), explainer.classifier
    call = explainer._call(None, info.n_steps, constraints)
    queries, answered = (model.check_input(some, lengths, owner="review", like=info) for some in (X, made))
    before, after = model.outputs_unchecked(queries), model.outputs_unchecked(answered)
    wanted = runner_up(before)
    if target is not None:
        wanted = check_target(target, n_queries=len(X), class_names=info.class_names)
    own = np.where(is_reached(after, wanted, None), "refined", "not_found")
    answers = Explanation(
        query=queries.values,
        counterfactual=answered.values,
        target=wanted,
        status=own if status is None else np.where(status == "unchanged", own, status),
        reason=np.full(len(X), "") if reason is None else reason,
        query_index=np.arange(len(X)),
        proba_before=before,
        proba_after=after,
        info=info,
        mutable=call.constraints.mutable,
        frozen=call.constraints.frozen_if_any,
        lengths=answered.lengths,
        method=explainer.method,
        config=explainer._settings,
        constraints=call.constraints_given,
        seed=explainer.config.seed,
    )
    answers = ask_again(model, answers, np.flatnonzero(answers.valid & (answers.status != "not_found")))
    return replace(answers, evidence=explainer._evidence(answers, call))
