"""The folder of a fit: classifier, explainer, and ``run.json``, which names both by digest."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sparcets.core.errors import FileFormatError, StorageError

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer
    from sparcets.models.base import Classifier, Regressor

T = TypeVar("T")
RUN = "run.json"  # data set, method and settings
CLASSIFIER, EXPLAINER = "classifier", "explainer"  # subfolders
EXPLAINER_HEADER = f"{EXPLAINER}/explainer.json"
CLASSIFIER_HEADERS = (f"{CLASSIFIER}/model.json", f"{CLASSIFIER}/classifier.json")  # the user's own model, or ours


def load_fit(folder: Path, *, device: str, model: str | None = None) -> tuple[dict[str, Any], BaseExplainer[Any]]:
    """Return ``run.json`` and the explainer with its classifier, all of the same fit.

    ``model`` is the Python file of the user's own model, and the function in it, which may be run; None allows nothing.
    """
    return _of_one_fit(folder, lambda: load_parts(folder, device=device, model=model))


def load_fitted_model(
    folder: Path, *, device: str, model: str | None = None
) -> tuple[dict[str, Any], Classifier | Regressor]:
    """Return ``run.json`` and the explained model of the same fit; ``model`` as in :func:`load_fit`."""
    return _of_one_fit(folder, lambda: _load_model(folder, device, model))


def load_parts(folder: Path, *, device: str, model: str | None = None) -> BaseExplainer[Any]:
    """Return the explainer of a folder with its classifier; the folder may have no ``run.json``."""
    from sparcets.io.folders import inside
    from sparcets.methods.folder import load

    return load(inside(folder, EXPLAINER), classifier=_load_model(folder, device, model))


def _load_model(folder: Path, device: str, model: str | None) -> Classifier | Regressor:
    from sparcets.io.folders import inside
    from sparcets.models.own_model import load_any_model

    return load_any_model(inside(folder, CLASSIFIER), device=device, model=model)


def data_of_fit(run: dict[str, Any], what_to_do: str = "Name it yourself: --dataset") -> tuple[str, dict[str, Any]]:
    """Return name and options of the data set of a fit; raise if ``run.json`` names other data than those of the fit.

    A folder may come from somebody else: its data are a data set by name, or the very file of the fit, recognised by
    its digest, so that no other file of this machine gets into an answer.

    Parameters
    ----------
    run
        What ``run.json`` says.
    what_to_do
        For the message, before the path.
    """
    from sparcets.data.load import digest_of_data

    source, options = str(run["dataset"]), dict(run["dataset_options"])
    if other := sorted({"path", "name"} & set(options)):
        path = f"{source} --option {other[0]}={options[other[0]]}"
        raise FileFormatError(
            f"{RUN} of the fit names a path, and no path in a folder is followed. {what_to_do} {path}"
        )
    found = digest_of_data(source)
    if found is not None and found != run.get("dataset_digest"):
        raise FileFormatError(
            f"{source} is not the file that the fit was made on, as its sha256 says, and a folder cannot name another. "
            f"{what_to_do} {source}"
        )
    return source, options


def data_asked_for(run: dict[str, Any] | None, dataset: str | None, seed: int) -> tuple[str | None, dict[str, Any]]:
    """Return name and options of the data set: those of the fit, by ``run.json``, unless another one is given.

    ``seed`` is that of the split of a data set that is none of a fit.
    """
    if run is None:
        return dataset, {"seed": seed}
    if dataset is None:
        return data_of_fit(run)
    own, options = str(run["dataset"]), run["dataset_options"]
    if dataset == own or Path(dataset).resolve() == Path(own).resolve():
        return dataset, {name: value for name, value in options.items() if name not in ("path", "name")}
    return dataset, {"seed": seed, **{name: options[name] for name in ("task",) if name in options}}


def _of_one_fit(folder: Path, read: Callable[[], T]) -> tuple[dict[str, Any], T]:
    """Read ``run.json`` and something else of the folder, which nobody replaces meanwhile."""
    from sparcets.io.folders import inside
    from sparcets.io.locks import locked_in_place

    with locked_in_place(folder, shared=True):
        for part in (CLASSIFIER, EXPLAINER):
            inside(folder, part)
        run = read_run(folder)
        _check_parts(folder, run["parts"])
        return run, read()


def read_run(folder: Path) -> dict[str, Any]:
    """Return ``run.json`` of a fit."""
    from sparcets.io.files import read_json
    from sparcets.io.folders import inside

    run = read_json(inside(folder, RUN), "a folder written by `sparcets fit`")
    for name in ("dataset", "dataset_options", "parts"):
        if not isinstance(run, dict) or name not in run:
            raise FileFormatError(f"{folder / RUN} has no {name!r}. Run sparcets fit again.")
    return dict(run)


def _check_parts(folder: Path, expected: Any) -> None:
    found = digests_of(folder)
    other = [
        str(folder / name)
        for name, digest in found.items()
        if not isinstance(expected, dict) or expected.get(name) != digest
    ]
    if other:
        raise FileFormatError(
            f"{folder / RUN} and {' and '.join(other)} are of different fits. Run sparcets fit again, with --force."
        )


def digests_of(folder: Path) -> dict[str, str]:
    """Return the digests of the headers; each header in turn holds that of its arrays."""
    from sparcets.io.files import digest_of_json, read_json
    from sparcets.io.folders import inside

    classifier = next((name for name in CLASSIFIER_HEADERS if (folder / name).is_file()), CLASSIFIER_HEADERS[-1])
    return {
        name: digest_of_json(read_json(inside(folder, name), "a folder written by `sparcets fit`"))
        for name in (classifier, EXPLAINER_HEADER)
    }


def new_folder(folder: Path, *, force: bool, shared: bool = False) -> AbstractContextManager[Path]:
    """Return a context that yields a temporary folder, which replaces ``folder`` when the block ends.

    A fit holds recordings, so that only its owner can read it, unless it is to be shared, or replaces one that others
    could read. Raises StorageError, before anything is written, if the folder holds a fit that may not be replaced.
    """
    from sparcets.io.folders import atomic_folder, is_open

    _check_is_fit(folder)
    found = [name for name in (RUN, CLASSIFIER, EXPLAINER) if (folder / name).exists()]
    if found and not force:
        raise StorageError(
            f"{folder} holds a fit already ({', '.join(found)}). Choose another folder, or replace it with --force."
        )
    return atomic_folder(folder, private=not (shared or is_open(folder / RUN)), check=_check_is_fit)


def _check_is_fit(folder: Path) -> None:
    """Raise if something in a folder has the name of a part of a fit and is none, or holds somebody's files."""
    from sparcets.io.files import is_plain_file
    from sparcets.methods.folder import FILES as EXPLAINER_FILES
    from sparcets.models.network import FILES as CLASSIFIER_FILES
    from sparcets.models.own_model import is_own_model, others_than_model

    model, explainer = folder / CLASSIFIER, folder / EXPLAINER
    others: list[Path] = []
    if model.is_symlink() or model.exists():
        others += others_than_model(model) if is_own_model(model) else CLASSIFIER_FILES.others(model)
    if explainer.is_symlink() or explainer.exists():
        others += EXPLAINER_FILES.others(explainer)
    if os.path.lexists(run := folder / RUN) and not others:
        try:
            if not is_plain_file(run):
                raise FileFormatError("a link, or no file")
            if not explainer.exists():  # beside one, it may be damaged
                read_run(folder)
        except FileFormatError:
            others = [run]
    if others:
        more = "" if len(others) == 1 else f" and {len(others) - 1} more"
        raise StorageError(f"{others[0]}{more} is in the way: it is not of a fit. Choose another folder, or move it.")


def write_fit(folder: Path, save: Callable[[Path], object], explainer: BaseExplainer[Any], run: dict[str, Any]) -> None:
    """Write classifier, by ``save``, explainer and ``run.json`` into an empty folder."""
    from sparcets.data.load import digest_of_data
    from sparcets.io.files import write_json

    save(folder / CLASSIFIER)
    explainer.save(folder / EXPLAINER, shared=True)  # as open as the folder, which its owner makes private
    digest = digest_of_data(str(run["dataset"]))
    data = {} if digest is None else {"dataset_digest": digest}
    write_json(folder / RUN, {**data, **run, "parts": digests_of(folder)})
