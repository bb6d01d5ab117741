"""Fitted explainers on disk: arrays as safetensors, the rest as JSON; nothing is pickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy
import torch

from sparcets.classifiers.base import Classifier
from sparcets.constraints.spec import Constraints
from sparcets.errors import FileFormatError, SparcetsError
from sparcets.explainers import EXPLAINERS
from sparcets.explanation.series_info import SeriesInfo
from sparcets.storage import atomic_path, read_json, write_json
from sparcets.training.callbacks import history_from_plain, history_to_plain

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

FORMAT = 5  # raised whenever the layout of the folder changes
HEADER, ARRAYS = "explainer.json", "arrays.safetensors"
DAMAGE = (AttributeError, KeyError, TypeError, ValueError, OSError, RuntimeError, safetensors.SafetensorError)


def save_explainer(explainer: BaseExplainer[Any], folder: Path) -> None:
    """Write a fitted explainer; the arrays are put in place only after the header was written."""
    info = explainer._fitted()
    header = {
        "format": FORMAT,
        "method": explainer.method,
        "config": explainer.config.to_dict(),
        "info": info.to_dict(),
        "constraints": explainer.constraints_.to_dict(),
        "history": history_to_plain(explainer.history_),
    }
    # safetensors writes the memory of an array as it lies, and reads it in C order.
    arrays = {name: np.asarray(array, order="C") for name, array in explainer._state().items()}
    with atomic_path(folder / ARRAYS) as temporary:
        temporary.write_bytes(safetensors.numpy.save(arrays))
        write_json(folder / HEADER, header)


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


@torch.inference_mode(mode=False)  # tensors that were made in inference mode could not be used for gradients
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
        renamed = " What was sp.Sparce by default is sp.Explainer now." if method == "sparce" else ""
        raise FileFormatError(
            f"{path} has format {version}, this version reads format {FORMAT}. Fit and save it again.{renamed}"
        )
    kind = EXPLAINERS.load(method) if kind is None else kind  # an unknown method raises its own error
    try:
        explainer: BaseExplainer[Any] = kind(classifier, kind.config_class.from_dict(header["config"]))
        info = SeriesInfo.from_dict(header["info"])
        state = safetensors.numpy.load_file(path / ARRAYS)
        constraints = Constraints.from_dict(header["constraints"])
        explainer.history_ = history_from_plain(header["history"])
    except DAMAGE as error:
        raise _damaged(path, error) from error
    explainer._check_classifier()
    classifier.check_compatible(info, str(path))
    try:
        explainer._restore(state, info)
        explainer._set_fitted(info, constraints, explainer._own_target(info))
    except SparcetsError:
        raise  # a missing device, for example, is not damage
    except DAMAGE as error:
        raise _damaged(path, error) from error
    return explainer


def _damaged(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{path} is a damaged explainer: {type(error).__name__}: {error}.")
