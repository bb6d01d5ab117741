"""Recordings to be explained: series from a file without labels, or whose labels do not matter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, StrArray
from sparcets.core.errors import DataNotFoundError, FeatureMismatchError, FileFormatError, ShapeError
from sparcets.core.registry import did_you_mean
from sparcets.core.validation import check_ids, check_names, check_padded
from sparcets.data.files import TABLES, read_npz
from sparcets.io.files import is_file, naming

ARRAYS = ("X", "y", "feature_names", "ids", "subjects", "lengths")
OTHERS = ("class_names", "units", "sampling_rate", "mutable", "name", "description", "split", "salient")  # not needed


class Recordings(NamedTuple):
    """Series without a split.

    Attributes
    ----------
    X
        Series (batch, time, features) in the data's own units, padded with zeros where ``lengths`` is given.
    feature_names
        Names of the features; None where unknown.
    lengths
        True lengths of padded series, or None.
    labels, ids, subjects
        Class, name and recorded person of each series, as text; None where unknown.
    """

    X: FloatArray
    feature_names: tuple[str, ...] | None
    lengths: IntArray | None
    labels: StrArray | None
    ids: StrArray | None
    subjects: StrArray | None

    def like(self, feature_names: tuple[str, ...], n_steps: int, *, padded: bool) -> Recordings:
        """Return the series with these features in this order, and as many steps.

        Parameters
        ----------
        feature_names
            Names of the features; matched by name if these series name theirs, else taken in order.
        n_steps
            Number of steps, with padding.
        padded
            Whether series may have fewer steps.
        """
        X, lengths = self.X, self.lengths
        columns: Any = slice(None)
        if self.feature_names is not None:
            if sorted(self.feature_names) != sorted(feature_names):
                raise FeatureMismatchError(_difference(self.feature_names, feature_names))
            columns = [self.feature_names.index(name) for name in feature_names]
        elif X.shape[2] != len(feature_names):
            raise ShapeError(f"the recordings have {X.shape[2]} features, those of the data set {len(feature_names)}.")
        if X.shape[1] != n_steps or lengths is not None:
            if not padded:
                steps = f"{X.shape[1]} steps" if lengths is None else f"{lengths.min()} to {lengths.max()} steps"
                raise ShapeError(f"the recordings have {steps}, those of the data set all have {n_steps}.")
            if X.shape[1] > n_steps:
                raise ShapeError(
                    f"the recordings have up to {X.shape[1]} steps, those of the data set at most {n_steps}."
                )
        if padded:
            lengths = np.full(len(X), X.shape[1]) if lengths is None else lengths
            X = np.pad(X, ((0, 0), (0, n_steps - X.shape[1]), (0, 0)))
        return self._replace(X=X[:, :, columns], feature_names=feature_names, lengths=lengths)


def load_recordings(path: str | os.PathLike[str]) -> Recordings:
    r"""Read series from a ``.npz``, ``.csv`` or ``.parquet`` file; they need no labels.

    Parameters
    ----------
    path
        A file in one of the forms of :mod:`sparcets.data.files`, without ``y`` or the column ``label``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     _ = path.write_text("series,time,pulse\na,0,61\na,1,62\nb,0,59\nb,1,60\n")
    ...     found = load_recordings(path)
    >>> found.X.shape, found.ids.tolist(), found.labels is None
    ((2, 2, 1), ['a', 'b'], True)
    """
    file = Path(path)
    if not is_file(file):
        raise DataNotFoundError(f"no file {file}. Give the path of a .npz, .csv or .parquet file.")
    with naming(file):
        if file.suffix.lower() == ".npz":
            return _of_arrays(file, read_npz(file))
        if file.suffix.lower() in TABLES:
            return _of_table(file)
    raise FileFormatError(f"{file} has an unknown format. Known: .npz, {', '.join(TABLES)}.")


def _of_table(file: Path) -> Recordings:
    from sparcets.data.tables import LABEL, read_sheet, to_table  # imports pandas

    sheet = read_sheet(file, {})
    # Recordings are not split, and a column of labels that nobody has filled in is none.
    unused = [c for c in ("split", LABEL) if c in sheet.frame and (c == "split" or sheet.frame[c].isna().any())]
    table = to_table(sheet._replace(frame=sheet.frame.drop(columns=unused)), labelled=False)
    X, lengths = check_padded(table.X, table.lengths, gaps=True)
    labels = None if table.labels is None else table.labels.astype(str)
    return Recordings(X, table.feature_names, lengths, labels, table.ids, table.subjects)


def _of_arrays(file: Path, arrays: dict[str, Any]) -> Recordings:
    known = (*ARRAYS, *OTHERS)
    if "X" not in arrays:
        raise FileFormatError(f"{file} holds no array 'X'; there are: {', '.join(arrays) or 'none'}.")
    for name in arrays:
        if name not in known:
            raise FileFormatError(
                f"{file} holds an unknown array {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."
            )
    X, lengths = check_padded(arrays["X"], arrays.get("lengths"), gaps=True)
    texts = {}
    for name in ("y", "ids", "subjects"):
        values = check_ids(arrays.get(name), what=name, n=len(X))
        texts[name] = None if values is None else values.astype(str)
    names = arrays.get("feature_names")
    features = None if names is None else check_names(names.astype(str), n=X.shape[2], what="feature_names")
    return Recordings(X, features, lengths, texts["y"], texts["ids"], texts["subjects"])


def _difference(found: tuple[str, ...], expected: tuple[str, ...]) -> str:
    missing = [name for name in expected if name not in found]
    unknown = [name for name in found if name not in expected]
    parts = [f"they have no {', '.join(missing[:5])}"] if missing else []
    parts += [f"the data set has no {', '.join(unknown[:5])}"] if unknown else []
    return f"the recordings have other features than the data set: {'; '.join(parts) or 'some appear twice'}."
