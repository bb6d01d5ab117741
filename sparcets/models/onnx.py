"""ONNX files, the only supported files of models, and sessions of onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import CapabilityError, FileFormatError
from sparcets.core.registry import require_extra
from sparcets.core.series import FloatArray
from sparcets.core.side_inputs import name_of_series
from sparcets.io.files import digest_of_files
from sparcets.io.folders import inside
from sparcets.models.interface import Interface

SUFFIX = ".onnx"
_MEMORY = "_ORT_MEM_ADDR_"  # location by which onnxruntime means an address in the memory of the process
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_OF_SIDE = {**_TYPES, **{f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "uint8")}}
_OF_SIDE["tensor(bool)"] = np.dtype(bool)

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


def adapt(model: Any) -> Interface | None:
    """Return the interface of a session of onnxruntime; one column is read as a sigmoid, several as probabilities.

    With several inputs, the only one without the name of a side input is the series.
    """
    if not all(hasattr(model, name) for name in ("run", "get_inputs", "get_outputs")):
        return None
    inputs, outputs = model.get_inputs(), model.get_outputs()
    types = {one.name: one.type for one in inputs}
    # Until side inputs are known, the series are the input with three axes, else the first input.
    series = next((one for one in inputs if len(one.shape or ()) == 3), inputs[0])
    if series.type not in _TYPES or any(kind not in _OF_SIDE for kind in types.values()):
        found = ", ".join(f"{name}: {kind}" for name, kind in types.items())
        raise CapabilityError(
            f"an ONNX model must take series as a tensor of floats, and other numbers beside them, but this one takes "
            f"{found}. Wrap a function that calls it."
        )
    names = [one.name for one in outputs]
    output = outputs[0] if len(outputs) == 1 else next((o for o in outputs if o.name == "probabilities"), None)
    columns = output.shape[-1] if output is not None and len(output.shape or ()) == 2 else None
    columns = columns if isinstance(columns, int) else None

    def call(given: FloatArray, **side: Any) -> Any:
        name = name_of_series(list(types), side, "the ONNX model")
        feed = {name: given, **side}
        values = model.run(
            None, {name: array.astype(_OF_SIDE[types[name]], copy=False) for name, array in feed.items()}
        )
        found = {name: _table(value) for name, value in zip(names, values, strict=True)}
        return found if len(found) > 1 else found[names[0]]

    fixed = series.shape[0] if series.shape and isinstance(series.shape[0], int) else None
    return Interface(
        call=call,
        name="InferenceSession",
        kind="sigmoid" if columns == 1 else "probabilities",
        layout="flat" if len(series.shape or ()) == 2 else "btf",
        batch=None if fixed is None else (fixed, fixed),
        n_classes=columns if columns != 1 else None,
    )


def adapt_file(path: str | os.PathLike[str]) -> Interface:
    """Return the model of an ONNX file, which runs on the CPU; raise for any other file, with what to do."""
    check_suffix(path)
    runtime = require_extra("onnxruntime", "an ONNX file", "onnx")
    digest = digest_of_files(files_of(path))
    try:
        options = runtime.SessionOptions()
        options.add_session_config_entry("session.load_model_format", "ONNX")  # the format that files_of checked
        session = runtime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base class of their own
        text = " ".join(str(error).split())
        raise FileFormatError(f"{path} is not an ONNX file that onnxruntime can run: {text}.") from error
    adapted = adapt(session)
    assert adapted is not None
    return replace(adapted, name=Path(path).name, digest=digest)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise unless it is the path of an ONNX file."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == SUFFIX:
        return
    why, package = _LOADERS.get(
        suffix, ("is no ONNX file (.onnx), the only one that sparcets reads", "its own package")
    )
    raise CapabilityError(
        f"{file.name} {why}. Load it in a function of your own, with {package}: sp.wrap(load()) in Python, "
        '--model "my_model.py:load" on the command line.'
    )


def _table(value: Any) -> Any:
    """Convert a list of dicts, class to probability, as written by converters of scikit-learn, to an array."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(row.values()) for row in value])
    return value


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return an ONNX file, and the separate files of its weights in its folder, if any."""
    file = Path(path)
    if not file.is_file():
        raise FileFormatError(f"no file {file}, where an ONNX model should be.")
    onnx = require_extra("onnx", "an ONNX file", "onnx")
    try:
        model = onnx.load(os.fspath(file), load_external_data=False)
    except Exception as error:  # protobuf's errors have several base classes
        raise FileFormatError(f"{file} is not an ONNX file: {' '.join(str(error).split())}.") from error
    names = {entry.value for entry in _external_data(model) if entry.key == "location"}
    if any(_MEMORY in name for name in names):
        raise FileFormatError(f"{file} names an address in memory as the place of its weights.")
    return [file, *(inside(file.parent, name, named_by=file) for name in sorted(names))]


def _external_data(message: Any) -> Iterator[Any]:
    """Yield the references to other files in a message of protobuf, anywhere in its graphs and functions."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None:
            continue  # numbers and bytes, which may be large
        value = getattr(message, field.name)
        repeated = hasattr(value, "__len__")
        if field.name == "external_data":
            yield from value
        elif repeated or message.HasField(field.name):
            for one in value if repeated else [value]:
                yield from _external_data(one)
