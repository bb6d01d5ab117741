"""Is it an explanation of each query, or one perturbation for all of them?"""

from __future__ import annotations

import numpy as np

from sparcets.explanation import Explanation
from sparcets.metrics.proximity import standardised_delta


def universality(e: Explanation) -> float:
    """Return 1 − Σ‖δᵢ − mean of the others‖² / Σ‖δᵢ‖² over valid answers, pooled over targets (leave-one-out R²).

    Near 1, one residual per target explains them all: a universal perturbation, and no explanation of anything. The
    perfect counterfactual of Moving Box has 0.23, because its boxes overlap. NaN where no target has two valid answers.
    """
    delta = standardised_delta(e)
    left, total = 0.0, 0.0
    for target in np.unique(e.target):
        rows = e.valid & (e.status != "unchanged") & (e.target == target)
        n = int(rows.sum())
        if n < 2:
            continue
        of_target = delta[rows].reshape(n, -1)
        others = (of_target.sum(0) - of_target) / (n - 1)
        left += float(((of_target - others) ** 2).sum())
        total += float((of_target**2).sum())
    return 1 - left / total if total > 0 else float("nan")
