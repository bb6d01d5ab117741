"""Ids and subjects of queries travel with the answers, through slices, files and folders, into tables and titles."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import DataError, ShapeError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(60)
QUERIES = X[Y == 0][:10]
IDS = [f"trial {i}" for i in range(10)]
PEOPLE = np.arange(10) // 4


@pytest.fixture(scope="module")
def ex():
    return sp.Nearest(sp.wrap(MeanModule(), n_classes=3)).fit(X, Y)


def test_they_go_through_slices_files_and_the_table(ex, tmp_path):
    e = ex.explain(QUERIES, target=1, n=2, ids=IDS, subjects=PEOPLE)
    assert e.ids.tolist() == np.repeat(IDS, 2).tolist() and e.subjects.tolist() == np.repeat(PEOPLE, 2).tolist()
    e.save(tmp_path / "run.npz")
    for same in (sp.load_explanation(tmp_path / "run.npz"), e[::-1][::-1]):
        np.testing.assert_array_equal(same.ids, e.ids)
        np.testing.assert_array_equal(same.subjects, e.subjects)
    assert e[5].ids.tolist() == ["trial 2"] and e[5].subjects.tolist() == [0]
    table = e.to_frame()
    assert list(table.columns[:5]) == ["query", "id", "subject", "verdict", "feature"]
    assert table["id"].tolist() == [IDS[q] for q in table["query"]]
    assert table["subject"].tolist() == [PEOPLE[q] for q in table["query"]] and "trial 2" in e._repr_html_()


def test_a_dataset_brings_its_test_series_and_their_names():
    ids = [f"r{i}" for i in range(60)]
    ds = sp.Dataset.from_arrays(X, Y, ids=ids, subjects=np.arange(60) // 6)
    ex = sp.Nearest(sp.wrap(MeanModule(), n_classes=3)).fit(ds)
    e = ex.explain(ds, target=1)
    np.testing.assert_array_equal(e.query, ds.X_test)
    np.testing.assert_array_equal(e.ids, ds.ids_test)
    np.testing.assert_array_equal(e.subjects, ds.subjects_test)
    assert [X[ids.index(name)].tolist() for name in e.ids] == e.query.tolist()
    with pytest.raises(DataError, match="a Dataset brings its lengths, ids and subjects"):
        ex.explain(ds, target=1, ids=ids[:12])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"ids": IDS[:9]}, "ids must be 10, one per query, got 9"),
        ({"subjects": [1]}, "subjects must be 10, one per query, got 1"),
        ({"ids": "trial"}, r"ids must be a list of names, one per query, got shape \(\)"),
        ({"ids": [["a"]] * 10}, None),
    ],
)
def test_what_is_refused(ex, names, message):
    with pytest.raises(ShapeError, match=message):
        ex.explain(QUERIES, target=1, **names)
    for n in (9, 11):
        with pytest.raises(ShapeError, match=r"more queries than there are names|ids must be 10, one per query"):
            ex.explain(iter(QUERIES), target=1, ids=[str(i) for i in range(n)])
