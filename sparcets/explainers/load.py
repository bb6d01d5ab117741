"""Reading fitted explainers back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

from sparcets.classifiers.base import Classifier
from sparcets.constraints import Constraints
from sparcets.errors import FileFormatError, SparcetsError
from sparcets.explainers import EXPLAINERS
from sparcets.explainers.agreement import check_agreement
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.saving import ARRAYS, FORMAT, HEADER
from sparcets.series_info import SeriesInfo
from sparcets.storage import read_json
from sparcets.training.callbacks import history_from_plain

DAMAGE = (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, safetensors.SafetensorError)


def load(folder: str | os.PathLike[str], classifier: Classifier) -> BaseExplainer[Any]:
    """Read a fitted explainer that ``explainer.save(folder)`` wrote.

    Parameters
    ----------
    folder
        Where it was saved.
    classifier
        The model it explains; it is not saved with it.
    """
    return load_as(None, folder, classifier)


def load_as(
    kind: type[BaseExplainer[Any]] | None, folder: str | os.PathLike[str], classifier: Classifier
) -> BaseExplainer[Any]:
    """Do the work of :func:`load`; ``kind`` is the method's class where it is not in the registry (yet)."""
    path = Path(folder)
    header = read_json(path / HEADER, "a saved explainer")
    try:
        version, method = header["format"], str(header["method"])
    except DAMAGE as error:
        raise _damaged(path, error) from error
    if version != FORMAT:
        raise FileFormatError(f"{path} has format {version}, this version reads format {FORMAT}.")
    kind = EXPLAINERS.load(method) if kind is None else kind  # a method that is not installed here is no damage
    try:
        explainer: BaseExplainer[Any] = kind(classifier, kind.config_class.from_dict(header["config"]))
        info = SeriesInfo.from_dict(header["info"])
        state = safetensors.numpy.load_file(path / ARRAYS)
        explainer.constraints_ = Constraints.from_dict(header["constraints"])
        explainer.history_ = history_from_plain(header["history"])
    except DAMAGE as error:
        raise _damaged(path, error) from error
    explainer._check_classifier()
    check_agreement(classifier, info, str(path))
    explainer.info_ = info
    try:
        explainer._restore(state, info)
    except SparcetsError:
        raise  # a device that is not there, say, is no damage either
    except DAMAGE as error:
        raise _damaged(path, error) from error
    return explainer


def _damaged(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{path} is a damaged explainer: {type(error).__name__}: {error}.")
