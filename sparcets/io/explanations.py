"""Explanations read from files, each array checked: nothing is unpickled."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

import numpy as np

from sparcets.core.errors import FileFormatError
from sparcets.core.evidence import PREFIX, Evidence
from sparcets.core.explanation import SCHEMA, Explanation, check_digests, check_header, check_layout
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import PREFIX as NUMBERS_PREFIX
from sparcets.core.outcome import Numbers
from sparcets.core.side_inputs import PREFIX as SIDE_PREFIX
from sparcets.core.side_inputs import side_from_arrays
from sparcets.io.files import as_path, check_digest, is_file, is_folder
from sparcets.io.folders import warn_unverified


def load_explanation(path: str | os.PathLike[str]) -> Explanation:
    """Load a file written by :meth:`Explanation.save` or a folder written by ``explain(out=…)``, without pickle.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> from tempfile import TemporaryDirectory
    >>> e = sp.Nearest(clf).fit(X, y).explain(X[:4], target=1)
    >>> with TemporaryDirectory() as folder:
    ...     e.save(f"{folder}/run.npz")
    ...     len(sp.load_explanation(f"{folder}/run.npz"))
    4
    """
    file = as_path(path)
    if is_folder(file):
        from sparcets.io.shards import ExplanationFolder

        return ExplanationFolder(file)
    if not is_file(file):
        raise FileFormatError(f"no file {file}. Pass an .npz file written by Explanation.save.")
    if not zipfile.is_zipfile(file):
        raise FileFormatError(f"{file} is not an explanation, or it is truncated: it is not a complete .npz file.")
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            if "header" not in stored:
                raise FileFormatError(
                    f"{file} is not an explanation: it has no header. Was it written by Explanation.save?"
                )
            header = json.loads(str(stored["header"]))
            if header["schema"] != SCHEMA:
                raise FileFormatError(
                    f"{file} has layout {header['schema']}, this version of sparcets reads layout {SCHEMA}. "
                    "Use the version that wrote it, or explain again."
                )
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files if name != "header"}
        if "arrays" in check_digest(header):
            check_digests(header["arrays"], arrays)
        else:
            warn_unverified(file)
        check_header(header)
        info = SeriesInfo.from_dict(header["info"])
        check_layout(arrays, info)
        evidence = Evidence.from_arrays(arrays, len(arrays["target"]))  # none in files of earlier versions
        rest = {name: header[name] for name in ("method", "config", "constraints", "seed", "seconds")}
        rest["confidence"] = header.get("confidence")  # not in files of earlier versions
        apart = (PREFIX, NUMBERS_PREFIX, SIDE_PREFIX)
        rest |= {name: array for name, array in arrays.items() if not name.startswith(apart)}
        rest |= {"numbers": Numbers.from_arrays(arrays), "side": side_from_arrays(arrays)}
        return Explanation(info=info, evidence=evidence, **rest)
    except FileFormatError:
        raise
    except Exception as error:  # the zip, zlib, npy and JSON readers raise all kinds of errors on damaged files
        raise FileFormatError(
            f"{file} is not an explanation, or it is damaged: {type(error).__name__}: {error}. Restore it from a copy, "
            "or explain again."
        ) from error
