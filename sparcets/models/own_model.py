"""A model of the user by its file, for the command line and the studio: loading, storing and finding it again.

An ONNX file is copied. A Python file is run in its place, and only if the caller names it each time. The folder, which
may come from somebody else, holds its path, for messages, and its digest, so that another file is never run in its
place. The function of a Python file may load other files; therefore the folder also holds the model's outputs for a few
random series, and a model with other outputs is refused.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import CapabilityError, ConfigError, FileFormatError, SparcetsError, StorageError
from sparcets.core.series import FloatArray
from sparcets.core.side_inputs import Side, take_rows
from sparcets.io.files import MALFORMED, digest_of_bytes, digest_of_files, read_json, reason, write_json
from sparcets.io.folders import inside
from sparcets.models import onnx
from sparcets.models.base import Classifier, Regressor
from sparcets.models.interface import KINDS
from sparcets.models.network import load_classifier
from sparcets.models.onnx import check_suffix
from sparcets.models.wrap import wrap

log = logging.getLogger(__name__)
HEADER = "model.json"
UNREADABLE: tuple[type[Exception], ...] = (SparcetsError, *MALFORMED)
FORMAT = 1  # raised whenever the layout of the folder changes
N_RANDOM = 4  # random series whose outputs identify a model
CLOSE = 1e-3  # allowed difference of probabilities, by other versions of packages; for numbers, in standard deviations
ROUNDING = 1e-5  # relative difference of numbers by rounding


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A model of the user, as named on the command line; ``layout``, ``class_names`` and ``task`` as in
    :func:`sparcets.wrap`.

    ``source`` is the path of an ONNX file, or ``"my_model.py:load"``, a Python file, which is run, and a function in it
    without arguments that returns a model for :func:`sparcets.wrap`.
    """

    source: str
    # As text: a kind (``"logits"``), a part (``"scores"``, ``"1"``), or both (``"logits:scores"``).
    output: str | None = None
    layout: str | None = None
    class_names: tuple[str, ...] | None = None
    task: str = "classification"

    def __post_init__(self) -> None:
        file = self.file  # raises if it is not the file of a model
        if not file.is_file():
            raise FileFormatError(f"no file {file}, where your model should be.")

    @property
    def function(self) -> str | None:
        """The function of a Python file; None for an ONNX file."""
        file, _, function = self.source.rpartition(":")
        return function if file.endswith(".py") else None

    @property
    def file(self) -> Path:
        """The model's file."""
        if self.function is not None:
            if not self.function.isidentifier():
                raise ConfigError(f"{self.function!r} is not the name of a function, in the model {self.source!r}.")
            return Path(self.source.rpartition(":")[0])
        if self.source.endswith(".py"):
            raise ConfigError(f"name a function of {self.source} that returns the model, such as {self.source}:load.")
        check_suffix(self.source)
        return Path(self.source)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the absolute path of the file."""
        place = str(self.file.resolve())
        return {**asdict(self), "source": place if self.function is None else f"{place}:{self.function}"}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> OwnModel:
        """Return the model that :meth:`to_dict` wrote."""
        names = data["class_names"]
        return cls(
            **{name: data[name] for name in ("source", "output", "layout", "task")},
            class_names=None if names is None else tuple(map(str, names)),
        )

    def check_outside(self, folder: Path) -> None:
        """Raise if it is a Python file in a folder to be written: files in such a folder are never run."""
        if self.function is not None and self.file.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"{self.file} lies in {folder}, where no Python file is run. Choose another folder.")

    @property
    def name(self) -> str:
        """File and function, without the folder."""
        return self.file.name if self.function is None else f"{self.file.name}:{self.function}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`sparcets.wrap` that were given."""
        given = {"output": parse_output_text(self.output), "layout": self.layout, "class_names": self.class_names}
        given["task"] = None if self.task == "classification" else self.task
        return {name: value for name, value in given.items() if value is not None}

    def load(self) -> Classifier | Regressor:
        """Return the model, wrapped; a Python file is run."""
        model = self.file if self.function is None else _call(self.file, self.function)
        try:
            wrapped: Classifier | Regressor = wrap(model, **self.arguments())
            return wrapped
        except SparcetsError as error:
            raise type(error)(f"{self.name}: {error}") from error

    def save(self, folder: Path, model: Classifier | Regressor, X: FloatArray, side: Side | None = None) -> None:
        """Write the data needed to find the loaded model again into an empty or new folder.

        The training series give the scale of the random ones, and their first side inputs are used.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in onnx.files_of(self.file) if self.function is None else []:
                copy = folder / file.relative_to(self.file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        except OSError as error:
            raise StorageError(f"cannot write {folder}: {reason(error)}. Choose another folder.") from error
        header = {
            "format": FORMAT,
            **self.to_dict(),
            **({"source": self.file.name} if self.function is None else {}),
            "digest": self._digest(),
            "check": _check_of(model, X, side),
        }
        write_json(folder / HEADER, header)

    def _digest(self) -> str:
        if self.function is None:
            return digest_of_files(onnx.files_of(self.file))
        return digest_of_bytes(self.file.read_bytes())


def is_own_model(folder: Path) -> bool:
    """Whether the folder holds a model of the user."""
    return inside(folder, HEADER).is_file()


def needs_code(folder: Path) -> bool:
    """Whether the folder names a Python file, so that its model cannot be loaded unless the caller names it too."""
    return is_own_model(folder) and _is_python(_read_header(folder)["source"])


def check_named(folder: Path, model: str | None, command: str) -> None:
    """Raise, with what to type, if a folder needs a Python file that the caller has not named.

    The message shows the command with ``--model …`` added.
    """
    if model is None and needs_code(folder):
        raise _not_named(folder, _read_header(folder)["source"], command)


def read_own_model(folder: Path, model: str | None = None) -> OwnModel:
    """Return the model that a folder names; raise unless its file exists and is unchanged.

    A folder may come from somebody else, so it must not cause code to run: the caller names a Python file again, as
    ``model``.
    """
    header, path = _read_header(folder), folder / HEADER
    try:
        source = header["source"]
        if not _is_python(source):
            if model is not None:
                raise ConfigError(f"{folder} holds a copy of the model {source!r} itself: leave out {model}.")
            file = inside(folder, source, named_by=path)
            if not file.is_file():
                raise FileFormatError(f"{path} needs its model {file}, which is not there. Put it back, or fit again.")
            found = OwnModel.from_dict({**header, "source": str(file)})
        elif model is None:
            raise _not_named(folder, source)
        else:
            found = _named_by_caller(folder, header, model)
        expected = header["digest"]
    except SparcetsError:
        raise
    except MALFORMED as error:
        raise FileFormatError(f"{path} is damaged: {type(error).__name__}: {error}.") from error
    if found._digest() != expected:
        raise FileFormatError(
            f"{found.file} has changed since the fit, or is another file: its sha256 is not the one in {path}. Put the "
            "old file back, or fit again."
        )
    return found


def _named_by_caller(folder: Path, header: dict[str, Any], model: str) -> OwnModel:
    """Return the model of the Python file that the caller names, with the settings of the fit."""
    named = OwnModel(source=model)
    if named.function is None:
        raise ConfigError(f"{folder / HEADER} needs a Python file and a function, FILE.py:FUNCTION, got {model}.")
    if named.file.resolve().is_relative_to(folder.resolve().parent):
        raise ConfigError(
            f"{named.file} lies in {folder.parent}, which may be somebody else's: no Python file in it is run. Look at "
            "it, and move it to another folder if you trust it."
        )
    function = header["source"].rpartition(":")[2]
    if named.function != function:
        raise ConfigError(f"{folder / HEADER} was fitted to the function {function!r}, got {model}.")
    return OwnModel.from_dict({**header, "source": f"{named.file.resolve()}:{function}"})


def _is_python(source: str) -> bool:
    return source.endswith(".py") or source.rpartition(":")[0].endswith(".py")


def _read_header(folder: Path) -> dict[str, Any]:
    header = read_json(inside(folder, HEADER), "a folder of a model")
    if not isinstance(header, dict) or not isinstance(header.get("source"), str):
        raise FileFormatError(f"{folder / HEADER} is damaged: it does not name a model.")
    if header.get("format") != FORMAT:
        raise FileFormatError(f"{folder} has format {header.get('format')}, this version reads format {FORMAT}.")
    return header


def _not_named(folder: Path, source: str, command: str = "") -> ConfigError:
    """Return the error for a folder that needs code which the caller has not named."""
    where, _, function = source.rpartition(":")
    # The proposed text must be plain, and no file in a folder that may come from somebody else.
    plain = source.isprintable() and Path(where).is_absolute() and function.isidentifier() and len(source) < 1000
    own = plain and not Path(os.path.realpath(where)).is_relative_to(folder.resolve().parent)
    name = source if own else "FILE.py:FUNCTION"
    then = f"type: {command} --model {shlex.quote(name)}" if command else f"name it: own_model={name!r}."
    return ConfigError(
        f"{folder / HEADER} names Python code, {source[:300]!r}. A folder may come from somebody else: a Python file "
        f"is run only if you name it, and none of the folder itself. If you trust it, {then}"
    )


def others_than_model(folder: Path) -> list[Path]:
    """Return the foreign files in the folder of a user's model; all files if it is not such a folder."""
    try:
        source = Path(str(read_json(folder / HEADER, "a folder of a model")["source"]))
        own = {folder / HEADER, folder / source.name}
        own |= set(onnx.files_of(folder / source.name)) if source.suffix == onnx.SUFFIX else set()
    except UNREADABLE:
        own = set()
    entries = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return [path for path in sorted(entries) if path not in own or path.is_symlink()]


def load_any_model(folder: Path, *, device: str = "auto", model: str | None = None) -> Classifier | Regressor:
    """Read a TorchClassifier, or find a model of the user again; raise unless it exists and has the same outputs.

    ``model`` is the Python file and function of the user's own model, which the caller allows to run; None allows none.
    """
    if not is_own_model(folder):
        if model is not None:
            raise ConfigError(f"{folder} holds a classifier of sparcets, for which no file is run: leave out {model}.")
        return load_classifier(folder, device=device)
    own = read_own_model(folder, model)
    loaded = own.load()
    try:
        check = _read_header(folder)["check"]
        before, now = np.array(check["proba"]), _outputs(loaded, check)
        tolerance: Any = CLOSE
        if isinstance(loaded, Regressor):
            tolerance = CLOSE * before.std(0) + ROUNDING * np.abs(before).max(0)
        same = before.shape == now.shape and bool((np.abs(before - now) <= tolerance).all())
    except SparcetsError:
        raise
    except MALFORMED as error:
        raise FileFormatError(f"{folder / HEADER} is damaged: {type(error).__name__}: {error}.") from error
    if not same:
        what = "numbers" if isinstance(loaded, Regressor) else "probabilities"
        raise FileFormatError(
            f"{own.name} is not the model of the fit: its {what} for the same series are others. Restore what it "
            "loads, or fit again."
        )
    return loaded


def parse_output_text(text: str | None) -> Any:
    """Return the argument ``output`` of :func:`sparcets.wrap` from the command line.

    >>> parse_output_text("logits"), parse_output_text("1"), parse_output_text("sigmoid:anomaly")
    ('logits', 1, ('sigmoid', 'anomaly'))
    """

    def part(text: str) -> str | int:
        return int(text) if text.lstrip("-").isdigit() else text

    if text is None or text in KINDS:
        return text
    kind, colon, rest = text.partition(":")
    return (kind, part(rest)) if colon and kind in KINDS else part(text)


def _check_of(model: Classifier | Regressor, X: FloatArray, side: Side | None) -> dict[str, Any]:
    """Return the scale of a few random series, and the model's outputs for them."""
    beside = take_rows(side, np.arange(N_RANDOM) % len(X)) or {}
    check = {
        "n_steps": int(X.shape[1]),
        "mean": np.nanmean(X, axis=(0, 1), dtype=np.float64).tolist(),
        "std": np.nanstd(X, axis=(0, 1), dtype=np.float64).tolist(),
        "dtype": X.dtype.name,
        "side": {name: {"values": array.tolist(), "dtype": array.dtype.name} for name, array in beside.items()},
    }
    return {**check, "proba": _outputs(model, check).tolist()}


def _outputs(model: Classifier | Regressor, check: dict[str, Any]) -> FloatArray:
    """Return the model's outputs for the random series of a check."""
    mean, std = np.array(check["mean"]), np.array(check["std"])
    noise = np.random.default_rng(0).normal(size=(N_RANDOM, check["n_steps"], len(mean)))
    side = {name: np.array(known["values"], dtype=known["dtype"]) for name, known in check["side"].items()}
    return model.outputs((mean + std * noise).astype(check["dtype"]), side=side or None)


def _call(file: Path, function: str) -> Any:
    """Run a Python file, call its function and return the result; prints go to stderr instead of stdout."""
    log.info("running %s", file)
    name = file.stem if file.stem not in sys.modules else f"{file.stem}_{digest_of_bytes(os.fsencode(file))[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # the file ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: its classes look it up there
    try:
        with contextlib.redirect_stdout(sys.stderr), _first_on_path(file.resolve().parent):
            spec.loader.exec_module(module)
            load = getattr(module, function, None)
            if not callable(load):
                raise CapabilityError(f"{file.name} has no function {function!r} that returns a model.")
            return load()
    except SparcetsError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise CapabilityError(
            f"{file.name}:{function} failed: {type(error).__name__}: {' '.join(str(error).split())}"
        ) from error


@contextlib.contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Let a Python file import its neighbours, as it can when it is run as a script."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
