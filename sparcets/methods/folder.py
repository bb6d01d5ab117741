"""Fitted explainers on disk: arrays as safetensors, the rest as JSON; nothing is pickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy
import torch

from sparcets.core.constraints import Constraints
from sparcets.core.errors import FileFormatError, SparcetsError
from sparcets.core.info import SeriesInfo
from sparcets.core.target import only_target
from sparcets.io.files import MALFORMED, as_path, naming
from sparcets.io.folders import SavedModel
from sparcets.methods import EXPLAINERS
from sparcets.models.base import Classifier, Regressor
from sparcets.training.loop import history_from_plain, history_to_plain

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer

FORMAT = 7  # raised whenever the layout of the folder changes
FILES = SavedModel(header="explainer.json", arrays="arrays.safetensors", what="explainer")
DAMAGE: tuple[type[Exception], ...] = (*MALFORMED, safetensors.SafetensorError)


def save_explainer(explainer: BaseExplainer[Any], folder: Path, *, shared: bool = False) -> None:
    """Write a fitted explainer, which names its classifier by digest if that has one.

    It may hold recordings, so that only its owner can read a new one unless it is to be shared.
    """
    info = explainer._fitted()
    constraints = explainer.constraints_.to_dict()
    Constraints.from_dict(constraints)  # raises if they could not be read back
    header = {
        "format": FORMAT,
        "method": explainer.method,
        "config": explainer.config.to_dict(),
        "info": info.to_dict(),
        "constraints": constraints,
        "classifier": explainer.classifier.digest(),
        "history": history_to_plain(explainer.history_),
    }
    # safetensors writes the memory of an array as it lies, and reads it in C order.
    arrays = {name: np.asarray(array, order="C") for name, array in explainer._state().items()}
    FILES.save(folder, header, safetensors.numpy.save(arrays), private=not shared)


def load(folder: str | os.PathLike[str], classifier: Classifier | Regressor) -> BaseExplainer[Any]:
    """Read a fitted explainer that ``explainer.save(folder)`` wrote.

    Parameters
    ----------
    folder
        Where it was saved.
    classifier
        The model it explains; it is not saved with it.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sp.Nearest(clf).fit(X, y).save(folder)
    ...     ex = sp.load(folder, classifier=clf)
    >>> bool(ex.explain(X[:4], target=1).valid.all())
    True
    """
    return load_as(None, folder, classifier)


@torch.inference_mode(mode=False)  # tensors that were made in inference mode could not be used for gradients
def load_as(
    kind: type[BaseExplainer[Any]] | None, folder: str | os.PathLike[str], classifier: Classifier | Regressor
) -> BaseExplainer[Any]:
    """Do the work of :func:`load`; ``kind`` is the method's class where it is not in the registry (yet)."""
    path = as_path(folder)
    try:
        header, content = FILES.load(path, lambda header: _check_format(header, path))
        method = str(header["method"])
    except SparcetsError:
        raise
    except DAMAGE as error:
        raise _damaged(path, error) from error
    with naming(path):
        kind = EXPLAINERS.load(method) if kind is None else kind  # an unknown method raises its own error
    try:
        explainer: BaseExplainer[Any] = kind(classifier, kind.config_class.from_dict(header["config"]))
        info = SeriesInfo.from_dict(header["info"])
        state = safetensors.numpy.load(content)
        constraints = Constraints.from_dict(header["constraints"])
        explainer.history_ = history_from_plain(header["history"])
    except DAMAGE as error:
        raise _damaged(path, error) from error
    with naming(path):
        explainer._check_parameters()
        explainer.classifier = explainer.classifier.with_side(info.side)
    classifier.check_compatible(info, str(path))
    _check_digest(header.get("classifier"), classifier, path)
    try:
        with naming(path):
            explainer._restore(state, info)
            explainer._set_fitted(info, constraints, only_target(explainer.config.target, info))
    except SparcetsError:
        raise  # a missing device, for example, is not damage
    except DAMAGE as error:
        raise _damaged(path, error) from error
    return explainer


def _check_format(header: Any, path: Path) -> None:
    if header["format"] != FORMAT:
        version = header["format"]
        raise FileFormatError(
            f"{path} has format {version}, this version reads format {FORMAT}. Fit and save it again."
        )


def _check_digest(expected: str | None, classifier: Classifier | Regressor, path: Path) -> None:
    found = classifier.digest()
    if expected is not None and found is not None and expected != found:
        raise FileFormatError(
            f"{path / FILES.header} was fitted to another classifier than the one given: the sha256 of its weights and "
            "settings differs. Load it with the classifier it was fitted to, or fit it again."
        )


def _damaged(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(f"{path} is a damaged explainer: {type(error).__name__}: {error}.")
