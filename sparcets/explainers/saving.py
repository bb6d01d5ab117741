"""Writing fitted explainers: arrays as safetensors, the rest as JSON, nothing pickled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.numpy

from sparcets.storage import atomic_path, write_json
from sparcets.training.callbacks import history_to_plain

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

FORMAT = 2  # raised whenever the folder's layout changes
HEADER, ARRAYS = "explainer.json", "arrays.safetensors"


def save_explainer(explainer: BaseExplainer[Any], folder: Path) -> None:
    """Write a fitted explainer; the arrays take their place only once the header was written as well."""
    info = explainer._fitted()
    header = {
        "format": FORMAT,
        "method": explainer.method,
        "config": explainer.config.to_dict(),
        "info": info.to_dict(),
        "constraints": explainer.constraints_.to_dict(),
        "history": history_to_plain(explainer.history_),
    }
    with atomic_path(folder / ARRAYS) as temporary:
        temporary.write_bytes(safetensors.numpy.save(explainer._state()))
        write_json(folder / HEADER, header)
