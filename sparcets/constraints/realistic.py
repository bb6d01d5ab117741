"""Constraints that keep answers within what the training series show, and what a body can do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparcets.constraints.limbs import keep_limbs
from sparcets.constraints.spec import Constraints, open_ends
from sparcets.errors import DataError, NotFittedError
from sparcets.explanation.series_info import SPANS, SeriesInfo
from sparcets.explanation.shape import MARGIN
from sparcets.skeletons import find_skeleton


def like_real(info: SeriesInfo | None, constraints: Constraints | None = None) -> Constraints:
    """Return the limits of a believed answer as constraints: values, steps between them, and lengths of limbs.

    Without them, an answer that leaves these limits is found and called doubtful; with them, it is not looked for. More
    values change then, since the points of a limb move together.

    Parameters
    ----------
    info
        Of the training series: ``info_`` of a fitted explainer, or ``info`` of an explanation.
    constraints
        Others that hold as well; where both limit a feature, the tighter limit holds. A ``project`` among them replaces
        that of the limbs.

    Returns
    -------
    Constraints
        ``ranges`` and ``max_step`` as in the training series, so that several steps in a row are no larger move either;
        and :func:`~sparcets.constraints.limbs.keep_limbs` where the features form a skeleton.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> ex.explain(X[y == 0][:2], target=1, constraints=like_real(ex.info_)).plausibility["jumps"].tolist()
    [0.0, 0.0]
    """
    if info is None:
        raise NotFittedError("like_real needs what a fit has seen of the training series: call fit first.")
    if info.low is None or info.high is None or info.max_step is None:
        raise DataError(
            "the ranges of the training series are not known: this was saved by an earlier version. Fit again."
        )
    given = constraints or Constraints()
    moving = [f for f in range(info.n_features) if info.high[f] > info.low[f] and info.max_step[f] > 0]
    ranges: dict[int | str, tuple[float | None, float | None]] = {
        f: (float(info.low[f]), float(info.high[f])) for f in moving
    }
    for feature, ends in given.ranges.items():
        f, (low, high) = info.feature_index(feature), open_ends(*ends)
        least, most = open_ends(*ranges.get(f, (None, None)))
        # A range that real series never reach is the user's decision.
        ranges[f] = (low, high) if low > most or high < least else (max(low, least), min(high, most))
    steps = info.max_step
    if info.max_moves is not None:
        # Several such steps in a row are then no larger move than real series make.
        steps = np.minimum(steps, (MARGIN * info.max_moves / np.array(SPANS)[:, None]).min(0))
    max_step: dict[int | str, float] = {f: float(steps[f]) for f in moving}
    for feature, limit in given.max_step.items():
        f = info.feature_index(feature)
        max_step[f] = min(limit, max_step.get(f, math.inf))
    has_limbs = find_skeleton(info.feature_names, info.units) is not None
    limbs = keep_limbs(info.feature_names, info.units) if has_limbs else None
    return replace(given, ranges=ranges, max_step=max_step, project=given.project or limbs)
