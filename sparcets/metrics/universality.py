"""Universality: how much of the changes is one perturbation shared by all queries; lower is better.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0], target=1)
>>> universality(e) < 0.8  # answers share the difference of the classes, but not the noise of the neighbours
True
"""

from __future__ import annotations

import numpy as np

from sparcets.explanation.result import Explanation
from sparcets.metrics.proximity import standardised_delta


def universality(e: Explanation) -> float:
    """Return 1 − Σ‖δᵢ − mean of the others‖² / Σ‖δᵢ‖² over valid answers, pooled over targets (leave-one-out R²).

    Near 1, all answers to a target share one residual: a universal perturbation rather than explanations of single
    queries. The perfect counterfactual of Moving Box has 0.23, because its boxes overlap. NaN where no target has two
    valid answers.
    """
    delta = standardised_delta(e)
    residual, total = 0.0, 0.0
    for target in np.unique(e.target):
        rows = e.valid & (e.status != "unchanged") & (e.target == target)
        n = int(rows.sum())
        if n < 2:
            continue
        of_target = delta[rows].reshape(n, -1)
        total += float(np.vdot(of_target, of_target))
        # δᵢ − mean of the others = n / (n − 1) · (δᵢ − mean of all)
        of_target -= of_target.mean(0)
        residual += (n / (n - 1)) ** 2 * float(np.vdot(of_target, of_target))
    return 1 - residual / total if total > 0 else float("nan")
