"""A worker: a process that has loaded the fit once, and explains one batch after the other in one thread."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets import __version__
from sparcets.errors import SparcetsError

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer


def run_worker(connection: Connection[Any, Any], folder: Path, device: str) -> None:
    """Load the fit, say so, and answer batches until the server ends.

    Parameters
    ----------
    connection
        To the server: receives (question, queries), sends their outcomes.
    folder
        Written by ``sparcets fit``.
    device
        Of the networks.
    """
    # The server decides when its workers end; it lets them finish what they have begun.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    with suppress(EOFError, OSError):  # the server has ended
        try:
            explainer = load(folder, device)
        except SparcetsError as error:
            connection.send(("failed", type(error).__name__, str(error)))
            return
        connection.send(("ready", describe(explainer)))
        from sparcets.server.answers import answer_batch

        while True:
            question, queries = connection.recv()
            connection.send(answer_batch(explainer, question, queries))


def load(folder: Path, device: str) -> BaseExplainer[Any]:
    """Return the explainer of a fit, after its first answer, which takes longer than all others."""
    import torch

    from sparcets.explainers.fit_folder import load_fit

    torch.set_num_threads(1)  # several workers, and small networks: more would wait for each other
    explainer = load_fit(folder, device=device)[1]
    info = explainer.info_
    assert info is not None  # of every explainer that was loaded
    with suppress(SparcetsError):  # a model that needs side inputs, or a target
        mean = np.broadcast_to(np.asarray(info.scaler.center), (1, info.n_steps, info.n_features))
        explainer.explain(mean, progress=False).text(0)
    return explainer


def describe(explainer: BaseExplainer[Any]) -> dict[str, Any]:
    """Return what :class:`~sparcets.server.models.ModelResponse` holds."""
    info = explainer.info_
    assert info is not None
    of_series = info.of_series
    return {
        "method": explainer.method,
        "version": __version__,
        "n_steps": info.n_steps,
        "lengths": "any" if info.unequal else "equal",
        "features": list(of_series.feature_names),
        "units": None if of_series.units is None else list(of_series.units),
        "sampling_rate": info.sampling_rate,
        "mutable": of_series.mutable.tolist(),
        "classes": list(info.class_names) if info.outcome is None else [],
        "outputs": [] if info.outcome is None else list(info.outcome.names),
        "side": [] if info.side is None else list(info.side.names),
        "summary": explainer.summary(),
    }


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
