"""No digit of the user's numbers is lost: in arrays, in text files and in binary ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.data.dataset import series_digests
from sparcets.data.recordings import as_stored, as_written

SECONDS = 1.7e9 + np.arange(3600.0)  # an hour in seconds since 1970; float32 has 128 s between neighbours


def test_float32_is_used_where_it_writes_the_same_digits() -> None:
    rng = np.random.default_rng(0)
    single = (rng.normal(size=20_000) * 10.0 ** rng.integers(-37, 38, 20_000)).astype(np.float32)
    single = single[np.abs(single) > 1e-37]
    text = single.astype(str).astype(np.float64)
    assert as_written(text).dtype == np.float32
    np.testing.assert_array_equal(as_written(text), single)


@pytest.mark.parametrize("number", [1e9 + 1, 16777217.0, 1.23456789012, 0.1 + 1e-9, 4_512_345.678])
def test_one_number_with_more_digits_keeps_all_in_float64(number: float) -> None:
    values = np.array([0.5, number, -0.1])
    assert as_written(values).dtype == np.float64 and (as_written(values) == values).all()
    assert as_stored(np.array([0.5])).dtype == np.float32 and as_stored(values).dtype == np.float64


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ts", ".npz"])
def test_files_keep_every_digit(tmp_path: Path, suffix: str) -> None:
    X = (SECONDS + 0.1).reshape(12, 100, 3)
    path = tmp_path / f"mine{suffix}"
    if suffix == ".npz":
        np.savez(path, X=X, y=np.arange(12) % 2)
    elif suffix == ".ts":
        rows = [":".join(",".join(map(repr, f.tolist())) for f in x.T) + f":{i % 2}" for i, x in enumerate(X)]
        path.write_text(
            "@problemName mine\n@timeStamps false\n@univariate false\n@dimensions 3\n@equalLength true\n"
            "@seriesLength 100\n@classLabel true 0 1\n@data\n" + "\n".join(rows) + "\n"
        )
    else:
        names = [f"{name}_{t}" for t in range(100) for name in "abc"]
        frame = pd.DataFrame(X.reshape(12, -1), columns=names).assign(label=np.arange(12) % 2)
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    ds = sp.load_dataset(path)
    assert ds.X_train.dtype == np.float64
    np.testing.assert_array_equal(np.sort(np.concatenate([ds.X_train, ds.X_test]), axis=None), X.ravel())


def test_nul_bytes_in_a_csv_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"label,x_0\n" + b"a,1\nb,2\n" * 5 + b"a,1\x002\n")
    with pytest.raises(FileFormatError, match=r"mine\.csv, line 12 holds a NUL byte.*Save it again"):
        sp.load_dataset(path)


def test_digests_tell_large_float64_numbers_apart() -> None:
    one, two = SECONDS[:4].reshape(1, 2, 2), SECONDS[1:5].reshape(1, 2, 2)
    assert series_digests(one) != series_digests(two)
