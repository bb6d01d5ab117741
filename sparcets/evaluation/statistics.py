"""Bootstrap intervals of means over queries, and paired tests between two explainers with Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import DataError, preserve_warning_filters, quoted
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from sparcets.evaluation.scores import Scores

LEVEL = 95  # per cent
_CHUNK = 2_000_000  # draws per chunk, bounding memory


def bootstrap_intervals(
    columns: FloatArray, groups: Any = None, n: int = 1000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the 95 % intervals of means by the percentile bootstrap, all from the same ``n`` resamples.

    The columns are numbers (answers, measures); NaN does not count. Whole groups are resampled, since answers to one
    query are not independent; without groups (answers,), answers are resampled. Both ends are (measures,), NaN without
    values.

    >>> low, high = bootstrap_intervals(np.array([[0.0], [1.0]] * 50))
    >>> bool(0.39 < low[0] < 0.42 and 0.58 < high[0] < 0.61)
    True
    """
    n_columns, present = columns.shape[1], ~np.isnan(columns)
    if not len(columns):
        return np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    of_group = np.arange(len(columns)) if groups is None else np.asarray(groups)
    order = np.argsort(of_group, kind="stable")
    first = np.unique(of_group[order], return_index=True)[1]
    n_groups = len(first)
    # Sum and count of the values of each group: the mean of a resample is then a ratio of weighted sums over groups.
    totals = np.add.reduceat(np.hstack([np.where(present, columns, 0.0), present])[order], first, axis=0)
    rng = generator(seed, "bootstrap")
    means = np.full((n, n_columns), np.nan)
    rows = max(1, _CHUNK // n_groups)
    for start in range(0, n, rows):
        part = means[start : start + rows]
        drawn = rng.integers(n_groups, size=(len(part), n_groups)) + n_groups * np.arange(len(part))[:, None]
        weights = np.bincount(drawn.ravel(), minlength=part.shape[0] * n_groups).reshape(len(part), n_groups)
        sums, sizes = np.split(weights.astype(np.float64) @ totals, 2, axis=1)
        np.divide(sums, sizes, out=part, where=sizes > 0)
    tail, known = (100 - LEVEL) / 2, present.any(0)  # nanpercentile warns of columns without a number
    interval = np.full((2, n_columns), np.nan)
    interval[:, known] = np.nanpercentile(means[:, known], [tail, 100 - tail], axis=0)
    return interval[0], interval[1]


def compare(a: Scores, b: Scores, *, measures: str | Sequence[str] | None = None, seed: int = 0) -> pd.DataFrame:
    """Compare two explainers on the same queries, by paired tests.

    Pairs are queries answered by both; several answers to one query count by their mean. Measures of the change itself
    are compared where both answers are valid, all others everywhere.

    Parameters
    ----------
    a, b
        Scores of explanations of the same queries towards the same targets.
    measures
        Name or names of the measures to compare; None takes all that both have. Holm's correction is weaker for fewer
        measures.
    seed
        Seed of the bootstrap.

    Returns
    -------
    DataFrame
        One row per measure: the means ``a`` and ``b`` over the pairs, ``difference`` (a − b) with its 95 % bootstrap
        interval ``low`` to ``high``, ``test`` (``mcnemar``, exact, where all values are 0 or 1, otherwise ``wilcoxon``,
        signed ranks; empty without pairs), the number of pairs ``n``, the p value ``p``, and ``p_holm``, corrected for
        the number of measures.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(90)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> whole, half = (sp.evaluate(ex.explain(X[y == 0], target=1, sparsity=s)) for s in (None, 0.5))
    >>> compare(whole, half, measures=["valid", "sparsity"])[["test", "n"]].values.tolist()
    [['mcnemar', 30], ['wilcoxon', 30]]
    """
    import pandas as pd

    from sparcets.evaluation.scores import SHAPE, Scores

    if not (isinstance(a, Scores) and isinstance(b, Scores)):
        raise DataError(
            f"compare takes two Scores, got {type(a).__name__} and {type(b).__name__}. "
            "They are returned by sp.evaluate(explanation, dataset)."
        )
    chosen = _choose(a, b, [measures] if isinstance(measures, str) else measures)
    _check_same_queries(a, b)
    lines = []
    for name in chosen:
        first, second = (_by_query(s.per_query, name, only_valid=name in SHAPE) for s in (a, b))
        pairs = pd.concat([first, second], axis=1, join="inner").dropna().to_numpy(dtype=np.float64)
        difference = pairs[:, 0] - pairs[:, 1]
        test = "mcnemar" if np.isin(pairs, (0.0, 1.0)).all() else "wilcoxon"
        low, high = (ends[0] for ends in bootstrap_intervals(difference[:, None], seed=seed))
        mean_a, mean_b = pairs.mean(0) if len(pairs) else (np.nan, np.nan)
        p = (mcnemar if test == "mcnemar" else wilcoxon)(difference)
        lines.append((mean_a, mean_b, mean_a - mean_b, low, high, test if len(pairs) else "", len(pairs), p))
    columns = ["a", "b", "difference", "low", "high", "test", "n", "p"]
    frame: pd.DataFrame = pd.DataFrame(lines, columns=columns, index=pd.Index(chosen, name="measure"))
    frame["p_holm"] = holm(frame["p"].to_numpy())
    return frame


def mcnemar(difference: FloatArray) -> float:
    """Return the p value of McNemar's exact test, from differences that are −1, 0 or 1; NaN without pairs.

    >>> mcnemar(np.array([1, 1, 1, 0, 0]))  # three for, none against: 2 · (1/2)³
    0.25
    """
    from scipy.stats import binomtest

    if not len(difference):
        return math.nan
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def wilcoxon(difference: FloatArray) -> float:
    """Return the p value of Wilcoxon's signed-rank test; pairs without a difference are left out. NaN without pairs.

    >>> wilcoxon(np.array([1.0, 2.0, 3.0]))  # all ranks on one side: 2 · (1/2)³
    0.25
    """
    from scipy.stats import wilcoxon as signed_ranks

    if not len(difference):
        return math.nan
    unequal = difference[difference != 0]
    if not len(unequal):
        return 1.0
    with preserve_warning_filters(ignore=Warning):  # about few pairs; n is reported with p
        return float(signed_ranks(unequal).pvalue)


def holm(p: FloatArray) -> FloatArray:
    """Return p values corrected for multiple testing by Holm's step-down procedure; NaN stays NaN and does not count.

    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    corrected = np.array(p, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(corrected))
    order = tested[np.argsort(corrected[tested], kind="stable")]
    raised = corrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected


def _choose(a: Scores, b: Scores, measures: Sequence[str] | None) -> list[str]:
    """Return the names of the measures to compare; measures of the whole set have no value per query."""
    from sparcets.evaluation.scores import averaged, measure_names

    shared = [name for name in measure_names(a.per_query) if name in b.per_query]
    if measures is None:
        return shared
    if not len(measures):
        raise DataError(f"measures is empty. Leave it out to compare all, or choose from: {', '.join(shared)}.")
    for name in measures:
        if name in shared:
            continue
        if name in a.summary and name not in averaged(a.per_query):
            raise DataError(
                f"{quoted(name)} is a measure of the whole set, one number for all queries, so it cannot be paired. "
                f"Known: {', '.join(shared)}."
            )
        raise DataError(f"no measure {quoted(name)} in both scores. Known: {', '.join(shared)}.")
    return list(measures)


def _by_query(per_query: pd.DataFrame, name: str, *, only_valid: bool) -> pd.Series[float]:
    rows = per_query[per_query["valid"] == 1] if only_valid else per_query
    means: pd.Series[float] = rows.groupby("query")[name].mean()
    return means


def _check_same_queries(a: Scores, b: Scores) -> None:
    """Raise an error if scores cannot be paired: no common queries, different targets or different series."""
    first, second = (s.per_query.drop_duplicates("query").set_index("query") for s in (a, b))
    common = first.index.intersection(second.index)
    if not len(common):
        raise DataError("the two scores have no query in common; compare explanations of the same queries.")
    for column, what in (("target", "targets"), ("row", "test series"), ("digest", "series")):
        if column not in first or column not in second:
            continue
        ours, theirs = first.loc[common, column].to_numpy(), second.loc[common, column].to_numpy()
        known = (ours != -1) & (theirs != -1)
        differ = common[(ours != theirs) & known]
        if len(differ):
            raise DataError(
                f"the two scores cannot be paired: query {differ[0]} has different {what} "
                f"({first.loc[differ[0], column]} and {second.loc[differ[0], column]}). "
                "Explain the same queries, in the same order, towards the same targets."
            )
    measured = [_by_query(s.per_query, "valid", only_valid=False).dropna().index for s in (a, b)]
    if not len(measured[0].intersection(measured[1])):
        raise DataError(
            "no query was measured in both scores: each was in the target class already for one of the classifiers. "
            "Compare explanations of the same classifier."
        )
