"""Uploads: parsed without pickle, limited in size, with errors that name the uploaded file."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from sparcets.errors import DataError, FileFormatError
from sparcets.studio.data import parse, safe_name
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits

from .conftest import API, Sample, error


def test_safe_names() -> None:
    assert safe_name("Gait Über 3.CSV") == "Gait_ber_3.csv"
    assert len(safe_name("x" * 250 + ".npz")) == 64


def test_a_zip_bomb_is_rejected(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\0" * 2_000_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(ApiError) as raised:
        parse(bomb, Limits(unpacked_bytes=1_000_000), 0)
    assert raised.value.status_code == 413


def test_nothing_is_unpickled(client: TestClient, sample: Sample) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path(sample.folder / "owned").touch, ())

    content = io.BytesIO()
    np.savez(content, X=np.array([Evil()], dtype=object), y=np.zeros(1))
    error(client.post(f"{API}/datasets/upload?filename=a.npz", content=content.getvalue()), 422)
    assert not (sample.folder / "owned").exists()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"time,label,x\n0,a,1\n", "no column 'series'"),
        ("a.csv", b"series,time,label,x\na,0,sick,one\n", "line 2, column 'x'"),
        ("a.csv", b"\xff\xfe\x00", "UTF-8"),
        ("a.npz", b"PK\x03\x04 cut short", "a.npz"),
        ("a.npz", b"no zip at all", "a.npz"),
    ],
)
def test_errors_of_broken_files_name_the_file_only(
    client: TestClient, sample: Sample, name: str, content: bytes, text: str
) -> None:
    problem = error(client.post(f"{API}/datasets/upload", params={"filename": name}, content=content), 422)
    assert name in problem["message"] and text in problem["message"] and str(sample.folder) not in problem["message"]
    assert [p.name for p in (sample.folder / "datasets").iterdir()] == ["own"]


def test_parse_keeps_the_type_of_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("series\n")
    with pytest.raises(FileFormatError, match=r"^a\.csv"):
        parse(tmp_path / "a.csv", Limits(), 0)


def test_numbers_to_predict_are_refused_with_what_to_do(tmp_path: Path) -> None:
    np.savez(file := tmp_path / "a.npz", X=np.zeros((4, 3, 2)), y=np.array([0.5, 1, 0, 1]), task="regression")
    with pytest.raises(DataError, match=r"^a\.npz holds numbers to predict; .* sparcets fit --task regression"):
        parse(file, Limits(), seed=0)


def test_a_zip_with_a_damaged_directory(tmp_path: Path) -> None:
    np.savez(file := tmp_path / "a.npz", X=np.zeros((4, 3, 2)), y=np.array([0, 1, 0, 1]))
    content = file.read_bytes()
    file.write_bytes(content.replace(b"PK\x01\x02", b"PK\x01\x03"))
    with pytest.raises(FileFormatError, match=r"^a\.npz (cannot be read|is not a \.npz file)"):
        parse(file, Limits(), seed=0)


def test_missing_values_of_an_upload_are_counted_trained_around_and_null(tmp_path: Path) -> None:
    from sparcets.studio.data import dataset_record
    from sparcets.studio.results import _plain
    from sparcets.testing.data import make_series

    X, y = make_series(30)
    X[0, 3, 1] = np.nan
    np.savez(tmp_path / "gaps.npz", X=X, y=y)
    dataset = parse(tmp_path / "gaps.npz", Limits(), 0)
    record = dataset_record(dataset, "gaps", source="gaps.npz", uploaded=True, seed=0)
    assert record.n_missing == 1 and np.isfinite([*record.low, *record.high]).all()
    assert _plain(X[0])[3][1] is None and _plain(X[0])[3][0] == float(X[0, 3, 0])
