"""Files of models: ONNX is read; what could run any code in it, and what its own package has to read, is not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sparcets.core.errors import CapabilityError
from sparcets.models import onnx
from sparcets.models.interface import Adapted

_PICKLED = "holds pickled Python objects, and whoever reads them runs whatever code is in them, so sparcets does not"
_LOADERS = {
    ".joblib": (_PICKLED, "joblib"),
    ".pkl": (_PICKLED, "pickle"),
    ".pickle": (_PICKLED, "pickle"),
    ".pt": (_PICKLED, "torch"),
    ".pth": (_PICKLED, "torch"),
    ".ckpt": (_PICKLED, "torch"),
    ".pt2": ("is a program of torch.export, which may hold pickled Python objects", "torch.export"),
    ".keras": ("may hold Python code, which Keras runs", "keras"),
    ".h5": ("may hold Python code, which Keras runs", "keras"),
    ".safetensors": ("holds weights without the network they belong to", "its network"),
}


def adapt(path: str | os.PathLike[str]) -> Adapted:
    """Return the model of an ONNX file; raise for any other file, with what to do."""
    check_suffix(path)
    session, digest = onnx.open_file(path)
    adapted = onnx.adapt(session)
    assert adapted is not None
    return replace(adapted, name=Path(path).name, digest=digest)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise unless it is the path of an ONNX file."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == onnx.SUFFIX:
        return
    why, package = _LOADERS.get(
        suffix, ("is no ONNX file (.onnx), the only one that sparcets reads", "its own package")
    )
    raise CapabilityError(
        f"{file.name} {why}. Load it in a function of your own, with {package}: sp.wrap(load()) in Python, "
        '--model "my_model.py:load" on the command line.'
    )
