"""load_dataset: load any data set by name or by path."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from sparcets.core.errors import ConfigError, DataNotFoundError, UnknownNameError, quoted
from sparcets.core.registry import Registry, did_you_mean
from sparcets.data.dataset import Dataset

DATASETS = Registry(
    "data set",
    {
        "moving_box": "sparcets.data.moving_box:load_moving_box",
        "motionsense": "sparcets.data.motionsense:load_motionsense",
        "catching": "sparcets.motion.catching:load_catching",
        "ui_prmd": "sparcets.data.ui_prmd:load_ui_prmd",
        "basic_motions": "sparcets.data.uea:load_basic_motions",
    },
    about={
        "moving_box": "synthetic benchmark whose salient box is known (embedded)",
        "motionsense": "phone in the pocket, 24 people, four or six activities (fetch it once)",
        "catching": "catching a ball: Ataxia, Autism, Control (simulated, embedded)",
        "ui_prmd": "arm exercises done right or wrong, 10 people (bring the file)",
        "basic_motions": "smart watch, four activities, 40 training series (comes with aeon)",
    },
    entry_point_group="sparcets.datasets",
)


def load_dataset(name: str | os.PathLike[str], **options: Any) -> Dataset:
    """Load a data set by name, or the user's own file by path.

    Parameters
    ----------
    name
        ``moving_box``, ``catching`` (simulated), ``motionsense``, ``ui_prmd``, ``basic_motions``, the name of any set
        of the UEA/UCR archive, or a path to a ``.npz``, ``.csv``, ``.parquet`` or ``.ts`` file.
    **options
        Options of the loader, among them ``seed``; ``sparcets data info NAME`` lists them.

    Examples
    --------
    >>> load_dataset("catching", seed=0)
    Dataset('catching (simulated)': 1580 training + 395 test series of 60 subjects, 60 steps, 20 features, 3 classes)
    """
    from sparcets.data.files import SUFFIXES, load_file
    from sparcets.data.uea import UEA_NAMES

    if not isinstance(name, (str, os.PathLike)):
        raise ConfigError(
            f"a data set is loaded by name or path, got {quoted(name)}. Arrays go to Dataset.from_arrays(X, y)."
        )
    text = os.fspath(name)
    if text in DATASETS:
        return _call(text, DATASETS.load(text), options)
    if Path(text).suffix.lower() in SUFFIXES or isinstance(name, os.PathLike) or os.sep in text:
        if not os.path.exists(text):  # noqa: PTH110 - Path.exists raises for a name that is too long
            raise DataNotFoundError(f"no file {text}. Give the path of a {', '.join(sorted(SUFFIXES))} file.")
        return _call(text, load_file, {"path": Path(text), **options})
    if text in UEA_NAMES:
        from sparcets.data.uea import load_uea

        return _call(text, load_uea, {"name": text, **options})
    raise UnknownNameError(
        f"no data set {quoted(text)}.{did_you_mean(text, [*DATASETS, *UEA_NAMES])} Known: {', '.join(DATASETS)}, "
        f"the {len(UEA_NAMES)} names of the UEA/UCR archive, or a path to a {', '.join(sorted(SUFFIXES))} file."
    )


def loader_options(name: str) -> dict[str, Any]:
    """Return the options of a registered data set, or of a file, with their defaults."""
    from sparcets.data.files import load_file

    parameters = inspect.signature(DATASETS.load(name) if name in DATASETS else load_file).parameters.values()
    options = [p for p in parameters if p.kind is not p.VAR_KEYWORD and (name in DATASETS or p.name != "path")]
    return {p.name: None if p.default is p.empty else p.default for p in options}


def _call(name: str, loader: Any, options: dict[str, Any]) -> Dataset:
    parameters = inspect.signature(loader).parameters
    known = list(parameters)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in known and not takes_any:
            raise ConfigError(
                f"{name} takes no option {quoted(option)}.{did_you_mean(option, known)} Known: {', '.join(known)}."
            )
    dataset: Dataset = loader(**options)
    return dataset


def data_folder() -> Path:
    """Return the folder in which data sets are searched and to which they are downloaded."""
    named = os.environ.get("SPARCETS_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sparcets"
