"""Fitted explainers on disk, alone or with their classifier: safetensors and JSON; no pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from sparcets.core.constraints import Constraints
from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.info import SeriesInfo
from sparcets.core.target import only_target
from sparcets.data.load import digest_of_data
from sparcets.io.files import as_path, digest_of_json, is_plain_file, naming, read_json, to_plain, write_json
from sparcets.io.folders import atomic_folder, inside, is_open
from sparcets.io.locks import locked_in_place
from sparcets.io.tensors import SavedModel
from sparcets.methods import EXPLAINERS
from sparcets.models.base import Classifier, Regressor
from sparcets.models.network import FILES as CLASSIFIER_FILES
from sparcets.models.own_model import HEADER as OWN_MODEL
from sparcets.models.own_model import is_own_model, load_any_model, others_than_model
from sparcets.training.loop import history_from_plain

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer

FILES = SavedModel(file="explainer.safetensors", what="explainer", format=8)
T = TypeVar("T")
RUN = "run.json"  # data set, method and settings
CLASSIFIER, EXPLAINER = "classifier", "explainer"  # subfolders


def save_explainer(explainer: BaseExplainer[Any], folder: Path, *, shared: bool = False) -> None:
    """Write a fitted explainer, with the digest of its classifier if there is one.

    It may contain recordings, so that only its owner can read a new one unless it is to be shared.
    """
    info = explainer._fitted()
    constraints = explainer.constraints_.to_dict()
    Constraints.from_dict(constraints)  # raises if they cannot be stored
    header = {
        "method": explainer.method,
        "config": explainer.config.to_dict(),
        "info": info.to_dict(),
        "constraints": constraints,
        "classifier": explainer.classifier.digest(),
        "history": to_plain(explainer.history_),
    }
    FILES.save(folder, header, explainer._state(), private=not shared)


def load(folder: str | os.PathLike[str], classifier: Classifier | Regressor) -> BaseExplainer[Any]:
    """Read a fitted explainer that ``explainer.save(folder)`` wrote.

    Parameters
    ----------
    folder
        Folder of ``explainer.save``.
    classifier
        The explained model, which is not saved with the explainer.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     sp.Nearest(clf).fit(X, y).save(folder)
    ...     ex = sp.load(folder, classifier=clf)
    >>> bool(ex.explain(X[:4], target=1).valid.all())
    True
    """
    return load_as(None, folder, classifier)


@torch.inference_mode(mode=False)  # tensors created in inference mode cannot be used for gradients
def load_as(
    kind: type[BaseExplainer[Any]] | None, folder: str | os.PathLike[str], classifier: Classifier | Regressor
) -> BaseExplainer[Any]:
    """Do the work of :func:`load`; ``kind`` is the method's class where it is not in the registry (yet)."""
    path = as_path(folder)
    with FILES.reading(path):
        header, state = FILES.load(path)
        method = str(header["method"])
    with naming(path):
        kind = EXPLAINERS.load(method) if kind is None else kind  # an unknown method raises its own error
    with FILES.reading(path, passing=FileFormatError):  # invalid settings are damage, too
        explainer: BaseExplainer[Any] = kind(classifier, kind.config_class.from_dict(header["config"]))
        info = SeriesInfo.from_dict(header["info"])
        constraints = Constraints.from_dict(header["constraints"])
        explainer.history_ = history_from_plain(header["history"])
    with naming(path):
        explainer._check_parameters()
        explainer.classifier = explainer.classifier.with_side(info.side)
    classifier.check_compatible(info, str(path))
    _check_digest(header.get("classifier"), classifier, path)
    with FILES.reading(path), naming(path):  # a missing device, for example, is not damage
        explainer._restore(state, info)
        explainer._set_fitted(info, constraints, only_target(explainer.config.target, info))
    return explainer


def _check_digest(expected: str | None, classifier: Classifier | Regressor, path: Path) -> None:
    found = classifier.digest()
    if expected is not None and found is not None and expected != found:
        raise FileFormatError(
            f"{path / FILES.file} was fitted to another classifier than the one given: the sha256 of its weights and "
            "settings differs. Load it with the classifier it was fitted to, or fit it again."
        )


# The folder of a fit: classifier, explainer, and ``run.json``, which names both by digest.


def load_fit(folder: Path, *, device: str, model: str | None = None) -> tuple[dict[str, Any], BaseExplainer[Any]]:
    """Return ``run.json`` and the explainer with its classifier, all of the same fit.

    ``model`` is the Python file of the user's own model and the function in it, which may be run; None allows none.
    """
    return _of_one_fit(folder, lambda: load_parts(folder, device=device, model=model))


def load_fitted_model(
    folder: Path, *, device: str, model: str | None = None
) -> tuple[dict[str, Any], Classifier | Regressor]:
    """Return ``run.json`` and the explained model of the same fit; ``model`` as in :func:`load_fit`."""
    return _of_one_fit(folder, lambda: _load_model(folder, device, model))


def load_parts(folder: Path, *, device: str, model: str | None = None) -> BaseExplainer[Any]:
    """Return the explainer of a folder with its classifier; the folder may have no ``run.json``."""
    return load(inside(folder, EXPLAINER), classifier=_load_model(folder, device, model))


def _load_model(folder: Path, device: str, model: str | None) -> Classifier | Regressor:
    return load_any_model(inside(folder, CLASSIFIER), device=device, model=model)


def data_of_fit(run: dict[str, Any], what_to_do: str = "Name it yourself: --dataset") -> tuple[str, dict[str, Any]]:
    """Return name and options of the data set of a fit; raise if ``run.json`` names other data than those of the fit.

    A folder may come from somebody else: its data are a data set by name, or the file of the fit with the same digest,
    so that no other file of this machine gets into an answer. ``what_to_do`` precedes the path in the message.
    """
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

    ``seed`` is the seed of the split, for a data set that is not from a fit.
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
    """Read ``run.json`` and another part of the folder; raise if the folder is replaced meanwhile."""
    with locked_in_place(folder, shared=True):
        for part in (CLASSIFIER, EXPLAINER):
            inside(folder, part)
        run = read_run(folder)
        _check_parts(folder, run["parts"])
        return run, read()


def read_run(folder: Path) -> dict[str, Any]:
    """Return ``run.json`` of a fit."""
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
    model, name = inside(folder, CLASSIFIER), f"{CLASSIFIER}/{OWN_MODEL}"
    if is_own_model(model):
        header = read_json(inside(folder, name), "a folder written by `sparcets fit`")
    else:
        name, header = f"{CLASSIFIER}/{CLASSIFIER_FILES.file}", CLASSIFIER_FILES.header(model)
    explainer = FILES.header(inside(folder, EXPLAINER))
    return {name: digest_of_json(header), f"{EXPLAINER}/{FILES.file}": digest_of_json(explainer)}


def new_folder(folder: Path, *, force: bool, shared: bool = False) -> AbstractContextManager[Path]:
    """Return a context that yields a temporary folder, which replaces ``folder`` when the block ends.

    A fit contains recordings, so that only its owner can read it, unless it is to be shared, or replaces a folder that
    others could read. Raises StorageError, before anything is written, if the folder may not be replaced.
    """
    _check_is_fit(folder)
    found = [name for name in (RUN, CLASSIFIER, EXPLAINER) if (folder / name).exists()]
    if found and not force:
        raise StorageError(
            f"{folder} holds a fit already ({', '.join(found)}). Choose another folder, or replace it with --force."
        )
    return atomic_folder(folder, private=not (shared or is_open(folder / RUN)), check=_check_is_fit)


def _check_is_fit(folder: Path) -> None:
    """Raise if a folder contains anything but the parts of a fit, or a part contains other files."""
    model, explainer = folder / CLASSIFIER, folder / EXPLAINER
    others: list[Path] = []
    if model.is_symlink() or model.exists():
        others += others_than_model(model) if is_own_model(model) else CLASSIFIER_FILES.others(model)
    if explainer.is_symlink() or explainer.exists():
        others += FILES.others(explainer)
    if os.path.lexists(run := folder / RUN) and not others:
        try:
            if not is_plain_file(run):
                raise FileFormatError("a link, or no file")
            if not explainer.exists():  # with an explainer beside it, it may be damaged
                read_run(folder)
        except FileFormatError:
            others = [run]
    if others:
        more = "" if len(others) == 1 else f" and {len(others) - 1} more"
        raise StorageError(f"{others[0]}{more} is in the way: it is not of a fit. Choose another folder, or move it.")


def write_fit(folder: Path, save: Callable[[Path], object], explainer: BaseExplainer[Any], run: dict[str, Any]) -> None:
    """Write classifier, by ``save``, explainer and ``run.json`` into an empty folder."""
    save(folder / CLASSIFIER)
    explainer.save(folder / EXPLAINER, shared=True)  # as open as the folder, which its owner makes private
    digest = digest_of_data(str(run["dataset"]))
    data = {} if digest is None else {"dataset_digest": digest}
    write_json(folder / RUN, {**data, **run, "parts": digests_of(folder)})
