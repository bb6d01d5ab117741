"""An explainer of the user's own, from a folder of ``sparcets fit``: copied to the workspace, with model and data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparcets.core.errors import CapabilityError
from sparcets.io.files import digest_of_json
from sparcets.studio.data import dataset_record, open_by_name
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord
from sparcets.studio.workspace import Workspace, new_id, write_record

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.methods.base import BaseExplainer
    from sparcets.models.base import Classifier, Regressor
    from sparcets.models.own_model import OwnModel

STUDIO = "sparcets studio"  # what to type with --model, if a workspace needs it
DIGITS = 8  # of the digest, in the ids


def add_fit(
    workspace: Workspace, run: dict[str, Any], explainer: BaseExplainer[Any], classifier: Path, fitted: Path
) -> ExplainerRecord:
    """Copy a fit into the workspace; one that is there already is left as it is.

    Parameters
    ----------
    workspace
        Where it is copied to.
    run
        What ``run.json`` of the fit says: data set, options and measures.
    explainer
        The explainer of the fit, loaded with its classifier.
    classifier, fitted
        Folders of the classifier and of the explainer.
    """
    from sparcets.models.own_model import is_own_model

    info = explainer.info_
    assert info is not None  # it is fitted
    if info.outcome is not None:
        raise CapabilityError(f"{fitted.parent} predicts numbers; the studio explains classifiers only.")
    name = f"{explainer.method}-{digest_of_json(run)[:DIGITS]}"
    known = [record for record in workspace.explainers() if record.id == name]
    if known:
        return known[0]
    dataset = _add_dataset(workspace, run)
    model = ClassifierRecord(
        id=f"fit-{digest_of_json(run)[:DIGITS]}",
        dataset=dataset.id,
        architecture=str(run.get("classifier", "classifier")),
        preset="default",
        seed=explainer.config.seed,
        test_accuracy=float(run.get("test_accuracy", float("nan"))),
        seconds=0.0,
        own=is_own_model(classifier),
    )
    record = ExplainerRecord(
        id=name,
        dataset=dataset.id,
        classifier=model.id,
        method=explainer.method,
        preset="default",
        seed=explainer.config.seed,
        summary=explainer.summary(),
        doubts=[] if info.model is None else info.model.findings,
        seconds=0.0,
    )
    if model.id not in [other.id for other in workspace.classifiers()]:
        _copy(workspace, "classifiers", classifier, model)
    _copy(workspace, "explainers", fitted, record)
    return record


def load_model(folder: Path, device: str, named: OwnModel | None) -> Classifier | Regressor:
    """Return a model of the workspace; of a Python file, only the one that the studio was started with is run."""
    from sparcets.models.own_model import check_named, load_any_model, needs_code

    code = named.source if named is not None and needs_code(folder) else None
    check_named(folder, code, STUDIO)
    return load_any_model(folder, device=device, model=code)


def _copy(workspace: Workspace, kind: Any, source: Path, record: ClassifierRecord | ExplainerRecord) -> None:
    with workspace.create(kind, record.id) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True, symlinks=True)  # nothing from elsewhere is copied
        write_record(folder, record)


def _add_dataset(workspace: Workspace, run: dict[str, Any]) -> DatasetRecord:
    """Return the data set of a fit: opened by its name, or the file as it was split for the fit."""
    from sparcets.data.files import save_dataset
    from sparcets.data.load import DATASETS, load_dataset
    from sparcets.methods.fit_folder import data_of_fit

    source, options = data_of_fit(run, "Fit again, on")
    if source in DATASETS and set(options) <= {"seed"}:
        return open_by_name(workspace, source, int(options.get("seed", 0)))[0]
    dataset: Dataset = load_dataset(source, **options)
    name = new_id(dataset.name)
    with workspace.create("datasets", name) as folder:
        file = save_dataset(dataset, folder / f"{name}.npz")
        record = dataset_record(dataset, name, source=file.name, uploaded=True, seed=int(options.get("seed", 0)))
        write_record(folder, record)
    return record
