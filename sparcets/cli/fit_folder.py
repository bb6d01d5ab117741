"""Writes the folder of a fit: classifier, explainer, and ``run.json``, which names both by digest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparcets.errors import StorageError
from sparcets.explainers.fit_folder import CLASSIFIER, EXPLAINER, RUN, digests_of, load_fit, load_fitted_model

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

__all__ = ["CLASSIFIER", "EXPLAINER", "data_of", "load_fit", "load_fitted_model", "new_folder", "write_fit"]


def new_folder(folder: Path, *, force: bool) -> AbstractContextManager[Path]:
    """Return a context that yields a temporary folder, which replaces ``folder`` when the block ends.

    Raises StorageError, before anything is written, if the folder holds a fit that may not be replaced.
    """
    from sparcets.folders import atomic_folder

    found = [name for name in (RUN, CLASSIFIER, EXPLAINER) if (folder / name).exists()]
    if found and not force:
        raise StorageError(
            f"{folder} holds a fit already ({', '.join(found)}). Choose another folder, or replace it with --force."
        )
    return atomic_folder(folder)


def write_fit(folder: Path, save: Callable[[Path], object], explainer: BaseExplainer[Any], run: dict[str, Any]) -> None:
    """Write classifier, by ``save``, explainer and ``run.json`` into an empty folder."""
    from sparcets.storage import write_json

    save(folder / CLASSIFIER)
    explainer.save(folder / EXPLAINER)
    write_json(folder / RUN, {**run, "parts": digests_of(folder)})


def data_of(run: dict[str, Any] | None, dataset: str | None, seed: int) -> tuple[str | None, dict[str, Any]]:
    """Return name and options of the data set: those of the fit, unless another one is given.

    Parameters
    ----------
    run
        ``run.json`` of the fit, or None.
    dataset, seed
        Data set that was asked for, or None, and the seed of its split.
    """
    if run is None:
        return dataset, {"seed": seed}
    own, options = run["dataset"], run["dataset_options"]
    if dataset is None or dataset == own or Path(dataset).resolve() == Path(own).resolve():
        return dataset or own, options
    return dataset, {"seed": seed, **{name: options[name] for name in ("task",) if name in options}}
