"""Files whose digests are right and whose content cannot be answers are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import FileFormatError
from sparcets.io.files import add_digest, digest_of_array
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, Y = make_series(30, n_steps=5)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return header and arrays of a file."""
    file = tmp_path_factory.mktemp("stored") / "run.npz"
    sp.Nearest(sp.wrap(mean_proba)).fit(X, Y).explain(X[:4], 1).save(file)
    with np.load(file) as arrays:
        parts = dict(arrays)
    header = json.loads(str(parts["header"]))
    return {**parts, "header": header}


def load(parts: dict[str, Any], folder: Path) -> sp.Explanation:
    header, arrays = parts["header"], {name: array for name, array in parts.items() if name != "header"}
    entries = {name: value for name, value in header.items() if name != "sha256"}
    entries["arrays"] = {name: digest_of_array(array) for name, array in arrays.items()}
    np.savez(file := folder / "run.npz", header=np.array(json.dumps(add_digest(entries))), **arrays)
    return sp.load_explanation(file)


def test_a_file_as_it_was_written(stored: dict[str, Any], tmp_path: Path) -> None:
    assert load(stored, tmp_path).query.tolist() == X[:4].tolist()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mutable", np.full(4, np.datetime64("2026-01-01")), "mutable cannot be datetime64"),
        ("mutable", np.ones(3, dtype=bool), r"mutable cannot be bool of shape \(3,\)"),
        ("target", np.ones(4), "target cannot be float64"),
        ("target", np.full(4, 9), "target cannot be those of answers"),
        ("status", np.full(4, "odd"), "status cannot be those of answers"),
        ("proba_after", np.full((4, 2), 0.5), "proba_after cannot be"),
        ("query", np.zeros((4, 5, 4), dtype=complex), "query cannot be complex128"),
        ("lengths", np.full(4, 6), "lengths cannot be those of answers"),
    ],
)
def test_arrays_that_cannot_be_answers(
    name: str, value: Any, message: str, stored: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError, match=rf"run\.npz .*{message}"):
        load({**stored, name: value}, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("config", 3), ("seed", "x"), ("method", None), ("seconds", [])])
def test_headers_that_cannot_be_of_answers(name: str, value: Any, stored: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=rf"run\.npz .*its {name} cannot be"):
        load({**stored, "header": {**stored["header"], name: value}}, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mutable", True),
        ("mutable", [1, 1, 1, 1]),
        ("span", [1.0]),
        ("units", ["m"]),
        ("sampling_rate", "fast"),
        ("feature_names", [1, 2, 3, 4]),
        ("n_steps", 0),
        ("class_names", []),
    ],
)
def test_descriptions_of_series_that_do_not_fit_together(
    name: str, value: Any, stored: dict[str, Any], tmp_path: Path
) -> None:
    info = {**stored["header"]["info"], name: value}
    with pytest.raises(FileFormatError, match=r"run\.npz .* of the series cannot be those of"):
        load({**stored, "header": {**stored["header"], "info": info}}, tmp_path)
