"""Rounds in which discriminators learn: the search answers training series, and they learn to tell its answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparcets.core.progress import progress_bar
from sparcets.core.seeding import spawn
from sparcets.core.series import IntArray, Series
from sparcets.methods.own.discriminator import Discriminators
from sparcets.methods.own.ensemble import standardised
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.search import candidates
from sparcets.methods.request import Request

ROUNDS = 2


def train_discriminators(
    asked: Sequence[tuple[FittedModel, Request]], recordings: Series, y: IntArray, seed: int, *, progress: bool | None
) -> tuple[Discriminators, ...]:
    """Return discriminators of the ensemble and of the selector; none if the search gives nothing to learn from.

    Each round answers other queries, so that an answer is never one to a series that has been answered before.

    Parameters
    ----------
    asked
        Models, and the queries that each of them answers: all to different classes, or each to another goal.
    recordings, y
        Training series in the data's own units, and their classes (batch,).
    seed
        Of the discriminators.
    progress
        Whether to draw a progress bar.
    """
    asked = [(model, request) for model, request in asked if len(request) and model.family_names]
    if not asked:
        return ()
    made: list[Series] = []
    targets: list[int] = []
    trained: tuple[Discriminators, ...] = ()
    ensemble = asked[0][0].ensemble
    real = standardised(recordings, ensemble.scaler, gaps=ensemble.gaps)
    n_queries = sum(len(request) for _, request in asked)
    with progress_bar("training discriminators", n_queries, show=progress) as bar:
        for number in range(ROUNDS):
            own = spawn(seed, f"round {number}")
            for model, request in asked:
                now = model.with_discriminators(trained[0], trained[0]) if trained else model
                for _, part in request.select(np.arange(number, len(request), ROUNDS)).by_length():
                    for target, found in candidates(part, now.at_length(part.series.n_steps), own):
                        made.append(Series(found))
                        targets += [target] * len(found)
                        bar.advance(1)
            if not np.isin(targets, y).any():
                return ()
            answers = standardised(Series.join(made), ensemble.scaler, gaps=ensemble.gaps)
            last = number == ROUNDS - 1
            trained = tuple(
                Discriminators.fit(
                    real,
                    y,
                    answers,
                    np.array(targets),
                    ensemble.levels.shape[1],
                    spawn(own, f"judges: {judges}"),
                    judges=judges,
                    device=ensemble.device,
                )
                for judges in ((False, True) if last else (False,))
            )
    return trained
