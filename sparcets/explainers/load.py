"""Saving fitted explainers and reading them back: arrays as safetensors, the rest as JSON, nothing pickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

from sparcets.classifiers.base import Classifier
from sparcets.errors import FileFormatError, LabelError
from sparcets.explainers import EXPLAINERS
from sparcets.explainers.base import BaseExplainer
from sparcets.series_info import SeriesInfo
from sparcets.storage import atomic_path, read_json, write_json

FORMAT = 1
HEADER, ARRAYS = "explainer.json", "arrays.safetensors"


def save_explainer(explainer: BaseExplainer[Any], folder: Path) -> None:
    """Write a fitted explainer; the header comes last, so a folder with one is complete."""
    info = explainer._fitted()
    state = explainer._state()
    with atomic_path(folder / ARRAYS) as temporary:
        temporary.write_bytes(safetensors.numpy.save(state))
    header = {
        "format": FORMAT,
        "method": explainer.method,
        "config": explainer.config.to_dict(),
        "info": info.to_dict(),
        "history": explainer.history_,
    }
    write_json(folder / HEADER, header)


def load(folder: str | os.PathLike[str], *, classifier: Classifier) -> BaseExplainer[Any]:
    """Read a fitted explainer that ``explainer.save(folder)`` wrote.

    Parameters
    ----------
    folder
        Where it was saved.
    classifier
        The model it explains; it is not saved with it.
    """
    path = Path(folder)
    header = read_json(path / HEADER, "a saved explainer")
    try:
        if header["format"] != FORMAT:
            raise FileFormatError(f"{path} has format {header['format']}, this version reads format {FORMAT}.")
        kind = EXPLAINERS.load(header["method"])
        info = SeriesInfo.from_dict(header["info"])
        explainer: BaseExplainer[Any] = kind(classifier, kind.config_class.from_dict(header["config"]))
        explainer._check_classifier()
        explainer._restore(safetensors.numpy.load_file(path / ARRAYS))
        explainer.history_ = header["history"]
    except (KeyError, TypeError, OSError, safetensors.SafetensorError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path} is a damaged explainer: {type(error).__name__}: {error}.") from error
    if classifier.n_features not in (None, info.n_features):
        raise LabelError(f"{path} explains {info.n_features} features, the classifier takes {classifier.n_features}.")
    if classifier.named and classifier.class_names != info.class_names:
        raise LabelError(
            f"{path} was fitted for the classes {', '.join(info.class_names)}, "
            f"the classifier knows {', '.join(classifier.class_names)}."
        )
    explainer.info_ = info
    return explainer
