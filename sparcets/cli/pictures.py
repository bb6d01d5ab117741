"""Pictures of answers, named by the numbers of the series that the command line prints."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sparcets.arrays import IntArray
    from sparcets.explanation.result import Explanation

MAX_NAME = 60  # characters of an id in the name of a file


def with_numbers(answer: Explanation, series: IntArray) -> Explanation:
    """Return the answer with the numbers of the series (answers,) as ids, unless the data have ids of their own."""
    return answer if answer.ids is not None else replace(answer, ids=np.array([f"series {k}" for k in series]))


def save_pictures(answer: Explanation, folder: Path, series: IntArray) -> list[Path]:
    """Save a figure of every answer that changes something to a folder; return the files.

    Parameters
    ----------
    answer, folder
        What is drawn, and where to.
    series
        Numbers of the series, in the names of the files (answers,): ``series-007.png``, or ``series-007-trial_4.png``
        with an id; of several answers to one query, ``series-007_2.png`` is the second.
    """
    from sparcets.storage import atomic_path

    named, files = with_numbers(answer, series), []
    for i in np.flatnonzero(np.asarray(answer.status) != "unchanged").tolist():
        name = "" if answer.ids is None else "-" + re.sub(r"[^0-9A-Za-z.-]+", "_", str(answer.ids[i]))[:MAX_NAME]
        nth = 1 + int((answer.query_index[:i] == answer.query_index[i]).sum())
        file = folder / f"series-{series[i]:03d}{name}{f'_{nth}' if nth > 1 else ''}.png"
        with atomic_path(file) as temporary:
            named.plot(i).savefig(temporary)
        files.append(file)
    return files
