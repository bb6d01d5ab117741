"""Names of queries, which travel with their answers: of the recording, and of the recorded person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparcets.classifiers.base import Model
from sparcets.datasets.base import Dataset
from sparcets.errors import DataError, ShapeError
from sparcets.explanation.result import Explanation
from sparcets.side_inputs import SideInputs, one_side


@dataclass(frozen=True, eq=False)
class QueryNames:
    """Names given to ``explain``.

    Attributes
    ----------
    ids, subjects
        One per query, whole numbers or text; None where not given.
    """

    ids: np.ndarray[Any, Any] | None
    subjects: np.ndarray[Any, Any] | None

    @classmethod
    def checked(cls, ids: Any, subjects: Any) -> QueryNames:
        """Return the names that a user passed; their number is checked by :meth:`check_number`."""
        return cls(_as_names("ids", ids), _as_names("subjects", subjects))

    def check_number(self, n_queries: int) -> None:
        """Raise unless there is one name per query."""
        for what, names in (("ids", self.ids), ("subjects", self.subjects)):
            if names is not None and len(names) != n_queries:
                raise ShapeError(f"{what} must be {n_queries}, one per query, got {len(names)}.")

    def attach(self, answers: Explanation) -> Explanation:
        """Return answers with the names of their queries."""
        rows = answers.query_index
        least = min(len(names) for names in (self.ids, self.subjects) if names is not None)
        if len(rows) and rows.max() >= least:  # of an iterator, the number of queries is known at its end only
            raise ShapeError(f"X gave more queries than there are names ({least}). Pass one of ids per query.")
        ids = None if self.ids is None else self.ids[rows]
        return replace(answers, ids=ids, subjects=None if self.subjects is None else self.subjects[rows])

    def agree(self, answers: Explanation) -> bool:
        """Return whether answers have these names already."""
        now = self.attach(answers)
        pairs = ((answers.ids, now.ids), (answers.subjects, now.subjects))
        return all(b is None or (a is not None and np.array_equal(a, b)) for a, b in pairs)


def split_training_part(dataset: Dataset, y: Any, lengths: Any, side: Any, model: Model) -> tuple[Any, Any, Any, Any]:
    """Return training series, labels, lengths and side inputs of a data set; raise if they were given beside it.

    A model that does not take side inputs is given none.
    """
    if y is not None or lengths is not None:
        raise DataError("a Dataset brings its own labels and lengths: call fit(dataset) with nothing else.")
    own = one_side(side, dataset.side_train if model.takes_side else None)
    return dataset.X_train, dataset.y_train, dataset.lengths_train, own


def split_test_part(
    dataset: Dataset, *given: Any, side: Any, known: SideInputs | None
) -> tuple[Any, Any, Any, Any, Any]:
    """Return test series, lengths, ids, subjects and side inputs of a data set; raise if ``given`` beside it.

    Side inputs are those that are ``known``: none if there were none in the fit.
    """
    if any(values is not None for values in given):
        raise DataError("a Dataset brings its own lengths, ids and subjects: leave them out, or pass its X_test.")
    if not len(dataset.X_test):
        raise DataError(f"the data set {dataset.name!r} has no test series to explain. Pass series: explain(X).")
    own = one_side(side, None if known is None else dataset.side_test)
    return dataset.X_test, dataset.lengths_test, dataset.ids_test, dataset.subjects_test, own


def _as_names(what: str, values: Any) -> np.ndarray[Any, Any] | None:
    if values is None:
        return None
    names = np.asarray(values)
    if names.ndim != 1:
        raise ShapeError(f"{what} must be a list of names, one per query, got shape {names.shape}.")
    return names if names.dtype.kind in "iuU" else names.astype(str)  # both are saved without pickle
