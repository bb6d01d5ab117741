"""load_dataset: by name, by path, with options, and unknown names."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, FileFormatError, UnknownNameError
from sparcets.core.registry import Registry
from sparcets.data.dataset import Dataset
from sparcets.data.load import DATASETS, load_dataset, loader_options


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_registered_set_has_a_loader_and_a_description(name: str) -> None:
    loader = DATASETS.load(name)
    assert callable(loader) and DATASETS.about[name]
    assert list(loader_options(name)) == [
        p.name for p in inspect.signature(loader).parameters.values() if p.kind is not p.VAR_KEYWORD
    ]


def test_unknown_options() -> None:
    with pytest.raises(ConfigError, match=r"moving_box takes no option 'sed'. Did you mean 'seed'\? Known: "):
        load_dataset("moving_box", sed=1)


@pytest.mark.parametrize("kind", [str, Path])
def test_by_path(tmp_path: Path, kind: Any) -> None:
    np.savez(tmp_path / "mine.npz", X=np.zeros((4, 2, 1)), y=[0, 1, 0, 1])
    ds = load_dataset(kind(tmp_path / "mine.npz"), test_size=0.5)
    assert isinstance(ds, Dataset) and ds.X_train.shape == (2, 2, 1)
    with pytest.raises(ConfigError):
        load_dataset(kind(tmp_path / "mine.npz"), sead=1)


def test_missing_file(tmp_path: Path) -> None:
    for missing in (tmp_path / "mine", tmp_path / "mine.csv", "mine.csv", "somewhere/mine"):
        with pytest.raises(DataNotFoundError, match=r"no file .*mine.*\. Give the path of a \.csv, \.npz, .* file\."):
            load_dataset(missing)
    (tmp_path / "mine.docx").write_text("")
    with pytest.raises(FileFormatError):
        load_dataset(tmp_path / "mine.docx")


@pytest.mark.parametrize(
    ("name", "meant"), [("movingbox", "moving_box"), ("Motionsense", "motionsense"), ("BasicMotion", "BasicMotions")]
)
def test_unknown_names(name: str, meant: str) -> None:
    expected = rf"no data set '{name}'. Did you mean '{meant}'\? Known: basic_motions, .* names of the UEA/UCR archive"
    with pytest.raises(UnknownNameError, match=expected):
        load_dataset(name)


@pytest.mark.parametrize("name", [None, 5, b"moving_box", np.zeros(3)])
def test_name_must_be_text_or_a_path(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"a data set is loaded by name or path, got .* Dataset.from_arrays\(X, y\)"):
        load_dataset(name)


PLUG_IN = """
from sparcets.data.dataset import Dataset

def load(**options):
    return Dataset.from_arrays([[[0.0]]] * 4, [0, 1, 0, 1], name=f"theirs {options}")
"""


def test_plug_in_loader_may_take_any_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plug_in_of_test_load.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("data set", {"theirs": "plug_in_of_test_load:load"})
    monkeypatch.setattr("sparcets.data.load.DATASETS", registry)
    assert load_dataset("theirs", depth=3).name == "theirs {'depth': 3}"
    assert loader_options("theirs") == {}
