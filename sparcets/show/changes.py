"""Preparation of answers for display: without padding, one at a time, and as a table of changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparcets.core.errors import ShapeError
from sparcets.core.evidence import find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.series import Series

if TYPE_CHECKING:
    import pandas as pd


def without_padding(answers: Explanation) -> Explanation:
    """Return the answers to one query without the padding of their series."""
    n_steps = int(Series(answers.query, answers.lengths).steps.max())
    if n_steps == answers.query.shape[1]:
        return answers
    cut = {name: getattr(answers, name)[:, :n_steps] for name in ("query", "counterfactual")}
    frozen = None if answers.frozen is None else answers.frozen[:n_steps]
    return replace(answers, **cut, frozen=frozen, lengths=None)


def only_answer(answer: Explanation) -> Explanation:
    """Return the explanation without padding if it holds exactly one answer, else raise an error."""
    if len(answer) != 1:
        raise ShapeError(f"this shows one answer, got {len(answer)}. Pass one of them, such as explanation[3].")
    return without_padding(answer)


def table_of_changes(e: Explanation) -> pd.DataFrame:
    """Return a row for every stretch of steps in which one feature rises, or falls; see ``Explanation.to_frame``."""
    import pandas as pd

    delta = np.where(e.changed, e.counterfactual.astype(np.float64) - e.query, 0.0)
    # By sign: a rise and the fall after it are two rows, as in the text, since their means would cancel in one row.
    found = find_segments(np.sign(delta))
    # One sum per segment, without a loop: reduceat sums from each edge to the next.
    flat = np.append(delta.transpose(0, 2, 1).ravel(), 0.0)  # (answers * features * time + 1,)
    row = (found.series * e.info.n_features + found.feature) * e.query.shape[1]
    edges = np.stack([row + found.start, row + found.end], axis=1).ravel()
    change = np.add.reduceat(flat, edges)[::2] if len(found) else np.zeros(0)
    units = np.array(e.info.units or [""] * e.info.n_features, dtype=object)
    named = {"id": e.ids, "subject": e.subjects}
    frame: pd.DataFrame = pd.DataFrame(
        {
            "query": e.query_index[found.series],
            **{name: values[found.series] for name, values in named.items() if values is not None},
            "verdict": e.verdict[found.series],
            "feature": np.array(e.feature_names, dtype=object)[found.feature],
            "start": found.start,
            "end": found.end,
            "mean_change": change / (found.end - found.start),
            "units": units[found.feature],
            "answer": found.series,
            "valid": e.valid[found.series],
            "believed": e.believed[found.series],
        }
    )
    return frame
