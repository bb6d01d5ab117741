"""Every exception sparcets raises on purpose.

Each message says what is wrong, what came, what was expected and what to do::

    SparcetsError
    ├── DataError (ValueError)             the arrays or the data set are not usable
    │   ├── ShapeError                     wrong number of axes, wrong sizes
    │   ├── NonFiniteError                 NaN or infinity, with its place
    │   ├── LabelError                     labels that do not name the classes
    │   └── FeatureMismatchError           not what the object was fitted on
    ├── TargetError (ValueError)           the wanted class does not exist or makes no sense
    ├── ConstraintError (ValueError)       constraints that are malformed or contradict each other
    ├── ConfigError (ValueError)           a setting that cannot be
    ├── UnknownNameError (KeyError)        no method, data set, feature or class of that name
    ├── OutOfRangeError (IndexError)       an answer that an explanation does not hold
    ├── NotFittedError (ValueError)        explain or predict before fit
    ├── CapabilityError (TypeError)        the model or the method cannot do what was asked
    ├── ModelOutputError (ValueError)      a wrapped model returned something unusable
    ├── TrainingError (RuntimeError)       a training that came to nothing, twice
    ├── DataNotFoundError (FileNotFoundError)   a data set that is not on this machine
    ├── FileFormatError (ValueError)       a file that is broken or of another kind
    ├── StorageError (OSError)             a file that cannot be written
    ├── DownloadError (OSError)            a file that cannot be fetched
    └── MissingExtraError (ImportError)    an optional package that is not installed
"""

from __future__ import annotations


class SparcetsError(Exception):
    """Base of all errors that sparcets raises on purpose."""


class DataError(SparcetsError, ValueError):
    """Arrays or a data set that cannot be used."""


class ShapeError(DataError):
    """An array with the wrong number of axes or the wrong sizes."""


class NonFiniteError(DataError):
    """NaN or infinity where a number is needed."""


class LabelError(DataError):
    """Labels that do not name the classes."""


class FeatureMismatchError(DataError):
    """Data of another kind than the object was fitted on."""


class TargetError(SparcetsError, ValueError):
    """A wanted class that does not exist or makes no sense."""


class ConstraintError(SparcetsError, ValueError):
    """Constraints that are malformed or contradict each other."""


class ConfigError(SparcetsError, ValueError):
    """A setting that cannot be; ``problems`` lists them one by one where there may be several."""

    problems: tuple[str, ...] = ()


class UnknownNameError(SparcetsError, KeyError):
    """A name that is not known."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; a sentence should print as a sentence.
        return str(self.args[0]) if self.args else ""


class OutOfRangeError(SparcetsError, IndexError):
    """An answer that an explanation does not hold."""


class NotFittedError(SparcetsError, ValueError):
    """Use before fit."""


class CapabilityError(SparcetsError, TypeError):
    """Something the model or the method cannot do."""


class ModelOutputError(SparcetsError, ValueError):
    """A wrapped model returned something unusable."""


class TrainingError(SparcetsError, RuntimeError):
    """A training that came to nothing, twice."""


class DataNotFoundError(SparcetsError, FileNotFoundError):
    """A data set that is not on this machine."""


class FileFormatError(SparcetsError, ValueError):
    """A file that is broken or of another kind."""


class StorageError(SparcetsError, OSError):
    """A file that cannot be written."""


class DownloadError(SparcetsError, OSError):
    """A file that cannot be fetched."""


class MissingExtraError(SparcetsError, ImportError):
    """An optional package that is not installed."""
