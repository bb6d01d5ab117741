"""Every exception sparcets raises on purpose.

Each message says what is wrong, what was passed, what was expected and what to do::

    SparcetsError
    ├── DataError (ValueError)             the arrays or the data set are not usable
    │   ├── ShapeError                     wrong number of axes, wrong sizes
    │   ├── NonFiniteError                 NaN or infinity, with its position
    │   ├── LabelError                     labels that do not match the classes
    │   ├── FeatureMismatchError           data do not match those used in fit
    │   └── TooLargeError                  a file above a limit of the studio
    ├── TargetError (ValueError)           the target class does not exist or is not applicable
    ├── ConstraintError (ValueError)       constraints that are malformed or contradict each other
    ├── ConfigError (ValueError)           an invalid setting
    ├── UnknownNameError (KeyError)        no method, data set, feature or class with that name
    ├── OutOfRangeError (IndexError)       an index beyond the answers of an explanation
    ├── NotFittedError (ValueError)        explain or predict before fit
    ├── CapabilityError (TypeError)        the model or the method does not support the call
    ├── ModelOutputError (ValueError)      a wrapped model returned something unusable
    ├── TrainingError (RuntimeError)       training failed twice
    ├── DataNotFoundError (FileNotFoundError)   a data set that is not on this machine
    ├── FileFormatError (ValueError)       a file that is damaged or of another format
    ├── StorageError (OSError)             a file that cannot be written
    │   └── BusyError                      a file or folder that another process is writing
    ├── DownloadError (OSError)            a file that cannot be downloaded
    └── MissingExtraError (ImportError)    an optional package that is not installed

and the one warning::

    ModelWarning (UserWarning)             the model to explain is near chance, or contradicts itself
"""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_QUOTED = 200  # characters of a value that a message shows


def quoted(value: object) -> str:
    """Return the repr of a value for a message: without NumPy's types, on one line, cut if long.

    >>> quoted("s4"), quoted({"low": [0.5, None]}), quoted("x" * 1000)[-6:]
    ("'s4'", "{'low': [0.5, None]}", 'xxxxx…')
    """
    try:
        text = " ".join(_written(value).split())
    except Exception:  # a repr may fail in any way, for example of an integer of thousands of digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _written(value: object) -> str:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar of NumPy or torch
        plain = value.item()
        return str(value) if type(plain) is type(value) else repr(plain)
    if type(value) is dict:
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple, set)) and value:
        parts = ", ".join(_written(v) for v in value)
        if isinstance(value, tuple):
            return f"({parts}{',' * (len(value) == 1)})"
        return f"[{parts}]" if isinstance(value, list) else f"{{{parts}}}"
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        parts = ", ".join(f"{name}={_written(getattr(value, name))}" for name in value.__dataclass_fields__)
        return f"{type(value).__name__}({parts})"
    return repr(value)


class SparcetsError(Exception):
    """Base of all errors that sparcets raises on purpose.

    Examples
    --------
    >>> import sparcets as sp
    >>> try:
    ...     sp.load_dataset("moving_bocks")
    ... except sp.SparcetsError as error:
    ...     print(type(error).__name__)
    UnknownNameError
    """


class DataError(SparcetsError, ValueError):
    """Arrays or a data set that cannot be used."""


class ShapeError(DataError):
    """An array with the wrong number of axes or the wrong sizes."""


class NonFiniteError(DataError):
    """NaN or infinity where a number is needed."""


class LabelError(DataError):
    """Labels that do not match the classes."""


class FeatureMismatchError(DataError):
    """Data that do not match those the object was fitted on."""


class TooLargeError(DataError):
    """A file above a limit of the studio."""


class TargetError(SparcetsError, ValueError):
    """A target class that does not exist or is not applicable."""


class ConstraintError(SparcetsError, ValueError):
    """Constraints that are malformed or contradict each other."""


class ConfigError(SparcetsError, ValueError):
    """An invalid setting; ``problems`` lists the problems where there may be several."""

    problems: tuple[str, ...] = ()


class UnknownNameError(SparcetsError, KeyError):
    """An unknown name."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; print the message itself.
        return str(self.args[0]) if self.args else ""


class OutOfRangeError(SparcetsError, IndexError):
    """An index beyond the answers of an explanation."""


class NotFittedError(SparcetsError, ValueError):
    """The object was used before fit."""


class CapabilityError(SparcetsError, TypeError):
    """The model or the method does not support the call."""


class ModelOutputError(SparcetsError, ValueError):
    """A wrapped model returned something unusable."""


class TrainingError(SparcetsError, RuntimeError):
    """Training failed twice."""


class DataNotFoundError(SparcetsError, FileNotFoundError):
    """A data set that is not on this machine."""


class FileFormatError(SparcetsError, ValueError):
    """A file that is damaged or of another format."""


class StorageError(SparcetsError, OSError):
    """A file that cannot be written."""


class BusyError(StorageError):
    """A file or folder that another process is writing."""


@contextmanager
def storage_errors(what: object, remedy: str) -> Iterator[None]:
    """Turn an error of the system within a block into one that says what cannot be written, and what to do."""
    try:
        yield
    except SparcetsError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {what}: {error.strerror or error}. {remedy}") from error


class DownloadError(SparcetsError, OSError):
    """A file that cannot be downloaded."""


class MissingExtraError(SparcetsError, ImportError):
    """An optional package that is not installed."""


class ModelWarning(UserWarning):
    """The model to explain is near chance, has its classes in another order than the labels, or contradicts itself.

    ``fit`` warns, ``summary()`` repeats it, and if it concerns all answers, none has the verdict *believed*.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(lambda X: np.tile([0.7, 0.2, 0.1], (len(X), 1)))  # a constant
    >>> with warnings.catch_warnings(record=True) as shown:
    ...     warnings.simplefilter("always")
    ...     ex = sp.Nearest(clf).fit(X, y)
    >>> shown[0].category.__name__, "predicts '0' for all" in str(shown[0].message)
    ('ModelWarning', True)
    """


# scikit-learn's forests replace the filters for every tree: with two running at once, the last to end would restore the
# filters of the other. Code that also needs RANDOM_STATE_LOCK must take that lock first.
_lock = threading.RLock()

_OURS = "(?#sparcets)"  # a comment: it matches every message, and no other filter is equal to ours


# Frames of these files are skipped between the user's line and the one that warns.
_INSIDE = (f"{Path(__file__).parents[1]}{os.sep}", str(Path("torch", "utils", "_contextlib.py")))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, with the line of the user's code that called sparcets as the place."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and any(part in frame.f_code.co_filename for part in _INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def preserve_warning_filters(*, ignore: type[Warning] | None = None) -> Iterator[None]:
    """Run a block that changes the filters of warnings, one at a time, and restore them.

    Our filter is added to the present list and removed again. ``warnings.catch_warnings`` would replace the list, and
    another thread (of the user or of pandas) that saved the replacement would restore it later.

    >>> with preserve_warning_filters(ignore=UserWarning):
    ...     warnings.warn("not shown")
    """
    with _lock:
        if ignore is None:
            yield
            return
        ours = ("ignore", re.compile(_OURS, re.IGNORECASE), ignore, None, 0)
        nested = ours in warnings.filters
        warnings.filterwarnings("ignore", _OURS, ignore)
        changed = warnings.filters
        try:
            yield
        finally:
            if not nested:
                for filters in (changed, warnings.filters):
                    while ours in filters:
                        filters.remove(ours)  # type: ignore[attr-defined]
