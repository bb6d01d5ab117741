"""load_dataset: by name, by path, with options, and unknown names."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, FileFormatError, UnknownNameError
from sparcets.data.load import DATASETS, SUFFIXES, load_dataset, loader_options


def test_every_registered_set_has_a_loader_a_description_and_options():
    for name in DATASETS:
        parameters = inspect.signature(DATASETS.load(name)).parameters.values()
        assert DATASETS.about[name] and list(loader_options(name)) == [p.name for p in parameters]
    with pytest.raises(ConfigError, match=r"moving_box takes no option 'sed'. Did you mean 'seed'\? Known: "):
        load_dataset("moving_box", sed=1)


@pytest.mark.parametrize("kind", [str, Path])
def test_by_path(tmp_path, kind):
    np.savez(tmp_path / "mine.npz", X=np.zeros((4, 2, 1)), y=[0, 1, 0, 1])
    assert load_dataset(kind(tmp_path / "mine.npz"), test_size=0.5).X_train.shape == (2, 2, 1)
    with pytest.raises(ConfigError):
        load_dataset(kind(tmp_path / "mine.npz"), sead=1)
    for missing in (tmp_path / "mine", tmp_path / "mine.csv", "mine.csv", "somewhere/mine"):
        with pytest.raises(DataNotFoundError, match=r"no file .*mine.*\. Give the path of a \.csv, \.npz, .* file\."):
            load_dataset(missing)
    (tmp_path / "mine.xlsx").write_text("")
    with pytest.raises(FileFormatError, match=r"mine.xlsx has an unknown format. Known: .csv, .npz, .parquet, .ts."):
        load_dataset(kind(tmp_path / "mine.xlsx"))
    assert sorted(SUFFIXES) == [".csv", ".npz", ".parquet", ".ts"]


@pytest.mark.parametrize(
    ("name", "meant"), [("movingbox", "moving_box"), ("Motionsense", "motionsense"), ("BasicMotion", "BasicMotions")]
)
def test_unknown_names(name, meant):
    expected = rf"no data set '{name}'. Did you mean '{meant}'\? Known: basic_motions, .* names of the UEA/UCR archive"
    with pytest.raises(UnknownNameError, match=expected):
        load_dataset(name)


@pytest.mark.parametrize("name", [None, 5, b"moving_box", np.zeros(3)])
def test_name_must_be_text_or_a_path(name):
    with pytest.raises(ConfigError, match=r"a data set is loaded by name or path, got .* Dataset.from_arrays\(X, y\)"):
        load_dataset(name)
