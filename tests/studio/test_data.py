"""Uploads: parsed without pickle, told in the user's words, and never larger than they seem."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from sparcets.errors import FileFormatError
from sparcets.studio.data import parse, safe_name
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits

from .conftest import Made, error


def test_names_are_made_safe() -> None:
    assert safe_name("Gait Über 3.CSV") == "Gait_ber_3.csv"
    assert len(safe_name("x" * 250 + ".npz")) == 64


def test_what_is_packed_small_but_huge_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("X.npy", b"\0" * 2_000_000)
    assert bomb.stat().st_size < 10_000
    with pytest.raises(ApiError) as told:
        parse(bomb, Limits(unpacked_bytes=1_000_000), 0)
    assert told.value.status_code == 413


def test_nothing_is_unpickled(client: TestClient, made: Made) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path(made.folder / "owned").touch, ())

    made_up = io.BytesIO()
    np.savez(made_up, X=np.array([Evil()], dtype=object), y=np.zeros(1))
    told = error(client.post("/api/v1/datasets/upload?filename=a.npz", content=made_up.getvalue()), 422)
    assert not (made.folder / "owned").exists() and "a.npz" in told["message"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"time,label,x\n0,a,1\n", "no column 'series'"),
        ("a.csv", b"series,time,label,x\na,0,sick,one\n", "line 2, column 'x'"),
        ("a.csv", b"\xff\xfe\x00", "UTF-8"),
        ("a.npz", b"PK\x03\x04 cut short", "a.npz"),
        ("a.npz", b"no zip at all", "a.npz"),
    ],
)
def test_broken_files_are_told_by_their_own_name(
    client: TestClient, made: Made, name: str, content: bytes, words: str
) -> None:
    told = error(client.post("/api/v1/datasets/upload", params={"filename": name}, content=content), 422)
    assert words in told["message"] and str(made.folder) not in told["message"]
    assert [p.name for p in (made.folder / "datasets").iterdir()] == ["own"]


def test_complaints_keep_their_kind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("series\n")
    with pytest.raises(FileFormatError, match=r"^a\.csv"):
        parse(tmp_path / "a.csv", Limits(), 0)
