"""Queries and test series: rows= is compared with the content, and queries that are not found are noted."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import DataError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

DATA = sp.Dataset.from_arrays(*make_series(90), name="small")
QUERIES = np.flatnonzero(DATA.y_test != 1)
EXPLAINER = sp.Nearest(sp.wrap(mean_proba)).fit(DATA)


def score(X, data=DATA, **options):
    return sp.evaluate(EXPLAINER.explain(X, target=1), data, judges={}, **options)


def test_rows_are_compared_with_the_content_and_may_be_any_of_duplicates():
    X = DATA.X_test[QUERIES]
    first, last = QUERIES[0], QUERIES[-1]
    with pytest.raises(
        DataError, match=rf"test series {last} for query 0, but that query is identical to test series {first}"
    ):
        score(X, rows=QUERIES[::-1])
    assert score(X, rows=QUERIES).per_query["row"].tolist() == QUERIES.tolist()
    twice = replace(DATA, X_test=np.tile(DATA.X_test, (2, 1, 1)), y_test=np.tile(DATA.y_test, 2))
    later = QUERIES + len(DATA.X_test)
    assert score(DATA.X_test[QUERIES], twice, rows=later).per_query["row"].tolist() == later.tolist()


def test_queries_from_the_training_part_are_noted():
    X = np.concatenate([DATA.X_train[DATA.y_train != 1][:3], DATA.X_test[QUERIES[:2]]])
    note = score(X).notes[0]
    assert note.startswith("3 of the 5 queries are not") and "3 of them are in its training part" in note
    assert score(X[:3]).notes[0].startswith("warning: none of the 3 queries")
