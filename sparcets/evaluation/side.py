"""Side inputs in an evaluation: judges learn from them, too, as further features of the series."""

from __future__ import annotations

from dataclasses import replace

from sparcets.datasets.base import Dataset
from sparcets.explanation.result import Explanation
from sparcets.side_inputs import SideInputs


def with_side_features(e: Explanation, dataset: Dataset) -> tuple[Explanation, Dataset]:
    """Return answers and data whose side inputs are constant features of the series, if both have them.

    What a model is told besides the series may decide its class, so its judges should know it as well. Of the answers
    only what judges look at is kept in step: the series.

    Parameters
    ----------
    e, dataset
        The answers, and the data that their queries come from.
    """
    if e.side is None or dataset.side_train is None or dataset.side_test is None:
        return e, dataset
    known = SideInputs.of(dataset.side_train)
    table = known.table(e.side, len(e), owner=f"the data set {dataset.name!r}")
    query, counterfactual = (known.attach(X, table, e.lengths) for X in (e.query, e.counterfactual))
    n_train, n_test = len(dataset.X_train), len(dataset.X_test)
    data = replace(
        dataset,
        X_train=known.attach(dataset.X_train, known.table(dataset.side_train, n_train), dataset.lengths_train),
        X_test=known.attach(dataset.X_test, known.table(dataset.side_test, n_test), dataset.lengths_test),
        feature_names=None,
        units=None,
        mutable=None,
        side_train=None,
        side_test=None,
    )
    return replace(e, query=query, counterfactual=counterfactual, side=None), data
