"""Recordings without labels: read from tables and arrays, and brought into the order of a data set's features."""

import dataclasses

import numpy as np
import pytest

from sparcets.core.errors import FeatureMismatchError, FileFormatError, ShapeError, SparcetsError
from sparcets.data.recordings import Recordings, load_recordings

LONG = "series,time,b,a\nx,0,1,2\nx,1,3,4\ny,0,5,6\ny,1,7,8\n"


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        "series,time,label,b,a\nx,0,?,1,2\nx,1,?,3,4\ny,0,?,5,6\ny,1,?,7,8\n",
        "series,b_0,a_0,b_1,a_1\nx,1,2,3,4\ny,5,6,7,8\n",
        "series,time,feature,value\n" + "".join(
            f"{s},{t},{f},{v}\n" for s, t, f, v in zip("xxxxyyyy", "00110011", "babababa", "12345678", strict=True)
        ),
    ],
    ids=["long", "labelled", "wide", "tidy"],
)  # fmt: skip
def test_tables_need_no_labels(tmp_path, text):
    (file := tmp_path / "new.csv").write_text(text)
    found = load_recordings(file)
    assert found.feature_names == ("b", "a") and found.ids.tolist() == ["x", "y"]
    assert found.X.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] and found.lengths is None
    like = found.like(("a", "b"), 2, padded=False)
    assert like.X[0].tolist() == [[2, 1], [4, 3]]  # matched by name


def test_arrays_need_no_labels(tmp_path):
    np.savez(file := tmp_path / "new.npz", X=np.ones((2, 3, 1)), ids=np.array([7, 8]), sampling_rate=10.0)
    found = load_recordings(file)
    assert found.ids.tolist() == ["7", "8"] and found.labels is None
    assert found.like(("pulse",), 3, padded=False).X.shape == (2, 3, 1)  # without names, in order
    np.savez(file, X=np.ones((2, 3, 1)), subject=np.array([1, 2]))
    with pytest.raises(FileFormatError, match="subjects"):  # did you mean
        load_recordings(file)


def test_unequal_lengths_are_padded_and_other_features_are_named(tmp_path):
    (file := tmp_path / "new.csv").write_text(LONG + "y,2,9,10\n")
    found = load_recordings(file)
    like = found.like(("b", "a"), 5, padded=True)
    assert like.X.shape == (2, 5, 2) and like.lengths.tolist() == [2, 3]
    with pytest.raises(ShapeError, match="have 2 to 3 steps, those of the data set all have 3"):
        found.like(("b", "a"), 3, padded=False)
    with pytest.raises(ShapeError, match="up to 3 steps, those of the data set at most 2"):
        found.like(("b", "a"), 2, padded=True)
    found = Recordings(X=np.zeros((1, 4, 2)), feature_names=("a", "c"))
    with pytest.raises(FeatureMismatchError, match="they have no b; the data set has no c"):
        found.like(("a", "b"), 4, padded=False)
    with pytest.raises(ShapeError, match="2 features, those of the data set 3"):
        dataclasses.replace(found, feature_names=None).like(("a", "b", "c"), 4, padded=False)
    whole = Recordings(X=np.zeros((1, 4, 2)))
    assert whole.like(("b", "a"), 4, padded=True).lengths.tolist() == [4]


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"series,time\n", b"PK\x03\x04"])
@pytest.mark.parametrize("suffix", [".csv", ".npz", ".txt"])
def test_files_that_are_none(tmp_path, content, suffix):
    (file := tmp_path / f"new{suffix}").write_bytes(content)
    with pytest.raises(SparcetsError, match="new"):
        load_recordings(file)
