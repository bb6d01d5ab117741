"""A finished fit beside its checkpoint: who resumes it reads it, and nothing is trained again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import torch

from sparcets.arrays import FloatArray
from sparcets.errors import FileFormatError
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.gan_training import REFERENCE
from sparcets.explainers.request import FitJob
from sparcets.folders import SavedModel
from sparcets.storage import MALFORMED
from sparcets.training.callbacks import history_from_plain, history_to_plain
from sparcets.training.checkpoint import agree

FILES = SavedModel(header="finished.json", arrays="finished.safetensors", what="finished fit")
PROBA = "reference_proba"
DAMAGE: tuple[type[Exception], ...] = (*MALFORMED, safetensors.SafetensorError)


def fit_unless_finished(explainer: BaseExplainer[Any], job: FitJob, identity: str, fit: Callable[[], None]) -> None:
    """Fit an explainer, or read what the same fit left in the folder of its checkpoint when it was finished.

    Parameters
    ----------
    explainer
        Not fitted yet.
    job
        What to fit it to, with a folder for checkpoints.
    identity
        Digest of the training (settings, data).
    fit
        Fits it.
    """
    assert job.checkpoint is not None
    proba = explainer.classifier.outputs_unchecked(*job.first(REFERENCE))
    finished = _read(job.checkpoint, identity, proba)
    if finished is None:
        fit()
        arrays = {name: np.asarray(array, order="C") for name, array in explainer._state().items()}
        header = {"identity": identity, "history": history_to_plain(explainer.history_)}
        FILES.save(job.checkpoint, header, safetensors.numpy.save({**arrays, PROBA: proba}))
    else:
        state, explainer.history_ = finished
        explainer._restore(state, job.info)


def _read(folder: Path, identity: str, proba: FloatArray) -> tuple[dict[str, Any], dict[str, list[float]]] | None:
    """Return state and history of the finished fit of this identity and classifier, or None."""
    if not (folder / FILES.header).exists():
        return None
    try:
        header, content = FILES.load(folder, lambda header: None)
        state = safetensors.numpy.load(content)
        stored, history = state.pop(PROBA), history_from_plain(header["history"])
        fits = header["identity"] == identity and agree(torch.as_tensor(stored), torch.as_tensor(proba))
    except FileFormatError:
        raise
    except DAMAGE as error:
        raise FileFormatError(f"{folder / FILES.header} is damaged: {error!r}. Remove it.") from error
    return (state, history) if fits else None
