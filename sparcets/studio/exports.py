"""Answers as files: figures, tables, explanation files, reports, and Python code that computes them again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.studio.models import ClassifierRecord, ConstraintsRequest, DatasetRecord, ExplainerRecord, ExportRequest
from sparcets.studio.recordings import AllRecordings, Windows, draw
from sparcets.studio.service import to_constraints
from sparcets.studio.workspace import Workspace, new_files
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    import pandas as pd

    from sparcets.core.explanation import Explanation
    from sparcets.models.own_model import OwnModel

MEDIA_TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "npz": "application/octet-stream",
    "html": "text/html",
    "py": "text/x-python",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins with one of these is run by spreadsheets


def render(explanation: Explanation, kind: str, shown: int) -> bytes:
    """Return answers as the content of a file; ``query_index`` holds the numbers of the recordings.

    The kind is ``png``, ``svg`` or ``pdf`` (a figure of the answer ``shown``), ``csv`` (table of changes), ``npz`` or
    ``html`` (report).
    """
    if shown >= len(explanation):
        raise ApiError(422, "no_such_answer", f"no answer {shown}: there are {len(explanation)}.")
    if kind == "csv":
        return str(spreadsheet_safe(explanation.to_frame()).to_csv(index=False)).encode()
    if kind in ("npz", "html"):
        from sparcets.show.report import write_report

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"answers.{kind}")
            explanation.save(file) if kind == "npz" else write_report(explanation, file)
            return file.read_bytes()
    image = BytesIO()
    explanation.plot(shown).savefig(image, format=kind)
    return image.getvalue()


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for a formula: those get an apostrophe in front.

    >>> import pandas as pd
    >>> spreadsheet_safe(pd.DataFrame({"id": ["=1+1", "a"], "change": [-1.0, 2.0]})).to_dict("list")
    {'id': ["'=1+1", 'a'], 'change': [-1.0, 2.0]}
    """

    def safe(cell: Any) -> Any:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell

    texts = frame.select_dtypes(exclude=["number", "bool"]).columns
    safe_frame: pd.DataFrame = frame.assign(**{name: frame[name].map(safe) for name in texts})
    return safe_frame


def python_code(
    workspace: Workspace, request: ExportRequest, recordings: AllRecordings, own: OwnModel | None = None
) -> str:
    """Return a script that computes an explanation again; it is to be run in the workspace's folder.

    Of a model in a Python file, the script names that with which the studio was started, ``own``.
    """
    from sparcets.methods import EXPLAINERS

    explainer = workspace.record(ExplainerRecord, request.explainer)
    classifier = workspace.record(ClassifierRecord, explainer.classifier)
    dataset = workspace.record(DatasetRecord, explainer.dataset)
    limits = _constraints(request.constraints, dataset.feature_names)
    source = Path("datasets", dataset.id, dataset.source).as_posix() if dataset.uploaded else dataset.source
    method = EXPLAINERS.location(explainer.method).rpartition(":")[2]
    config = f"sp.{method}Config{'.tiny' * (explainer.preset == 'tiny')}()"
    fitted = f'sp.{method}(clf, {config}.override("seed={explainer.seed}")).fit(ds)'
    lines = [
        f"# Run this in the studio's workspace, {workspace.folder.name}.",
        "import sparcets as sp",
        "",
        f"ds = sp.load_dataset({source!r}, seed={dataset.seed})",
        *_classifier(workspace, classifier, dataset, own),
        f'ex = sp.load("explainers/{explainer.id}", classifier=clf)  # created by: {fitted}',
        *_queries(workspace, dataset, recordings, request.rows),
        *([f"limits = {limits}"] if limits and not request.strokes else []),
        *(_by_hand(request, dataset, recordings) if request.strokes else [_explain(request, recordings, limits)]),
        f"print(e.text({request.shown}))",
        "print(e.to_frame())",
        f'e.plot({request.shown}).savefig("counterfactual.png")',
    ]
    return "\n".join(lines) + "\n"


def _queries(workspace: Workspace, dataset: DatasetRecord, recordings: AllRecordings, rows: Sequence[int]) -> list[str]:
    """Return the lines that define the queries ``X``."""
    lines: list[str] = []
    pieces = []
    for part, places in groupby([recordings.places[row] for row in rows], key=lambda place: place[0]):
        source = ("ds.X_test", "ds.X_train")[part] if part < 2 else f"new{part - 1}.X"
        if part > 1:
            file = new_files(workspace, dataset.id)[part - 2].relative_to(workspace.folder)
            read = f"load_recordings({file.as_posix()!r})"
            like = f"like({tuple(dataset.feature_names)!r}, ds.n_steps, padded={dataset.padded})"
            if not lines:
                lines.append("from sparcets.data.recordings import load_recordings")
            lines.append(f"{source[:-2]} = {read}.{like}")
        pieces.append(f"{source}[{[index for _, index in places]}]")
    if len(pieces) == 1:
        return [*lines, f"X = {pieces[0]}"]
    return ["import numpy as np", *dict.fromkeys(lines), f"X = np.concatenate([{', '.join(pieces)}])"]


def _explain(request: ExportRequest, recordings: AllRecordings, limits: str, queries: str = "X") -> str:
    """Return the line that explains the queries."""
    chosen = recordings.choose(request.rows)
    options = [f"target={request.target!r}"]
    options += [f"sparsity={request.sparsity!r}"] if request.sparsity is not None else []
    options += [f"n={request.answers}"] if request.answers > 1 else []
    options += ["constraints=limits"] if limits else []
    given = {"lengths": chosen.lengths, "ids": chosen.ids, "subjects": chosen.subjects}
    options += [f"{name}={values.tolist()}" for name, values in given.items() if values is not None]
    return f"e = ex.explain({queries}, {', '.join(options)})"


def _by_hand(request: ExportRequest, dataset: DatasetRecord, recordings: AllRecordings) -> list[str]:
    """Return the lines for a recording that was changed by hand: with its numbers."""
    chosen, names = recordings.choose(request.rows), dataset.feature_names
    length = int(recordings.steps[request.rows[0]])
    made, windows = draw(chosen.X[0], request.strokes, names, np.array(dataset.mutable), length)
    lines = ["from sparcets.methods.evidence import review", "drawn = X.copy()"]
    for name, steps in windows.items():
        feature = names.index(name)
        for start, stop in steps:
            numbers = ", ".join("float('nan')" if v != v else repr(v) for v in made[start:stop, feature].tolist())
            lines.append(f"drawn[0, {start}:{stop}, {feature}] = [{numbers}]  # {name!r}")
    lengths = "" if chosen.lengths is None else f", lengths={chosen.lengths.tolist()}"
    if not request.find_rest:
        return [*lines, f"e = review(ex, X, drawn, {request.target!r}{lengths})"]
    limits = _constraints(request.constraints, names, windows)
    rules = _constraints(request.constraints, names)  # without the windows that were drawn, which are changes
    given = f", constraints={rules}" if rules else ""
    n = f".repeat({request.answers}, axis=0)" if request.answers > 1 else ""
    lengths = lengths and f", lengths={chosen.lengths.repeat(request.answers).tolist()}"  # type: ignore[union-attr]
    return [
        *lines,
        f"limits = {limits}  # what was drawn stays",
        _explain(request, recordings, limits, "drawn"),
        f"e = review(ex, X{n}, e.counterfactual, e.target{lengths}{given}, status=e.status, reason=e.reason)",
    ]


def _classifier(
    workspace: Workspace, record: ClassifierRecord, dataset: DatasetRecord, named: OwnModel | None
) -> list[str]:
    """Return the lines that give the classifier: one of ours, or the user's own model."""
    from sparcets.models.own_model import is_own_model, needs_code, read_own_model

    place = Path("classifiers", record.id)
    if not is_own_model(workspace.folder / place):
        missing = ', "missing=forward"' if dataset.n_missing else ""
        config = f"sp.ClassifierConfig{'.tiny' * (record.preset == 'tiny')}()"
        name = repr(record.architecture)  # a record may hold any text, which must stay text
        trained = f'sp.TorchClassifier({name}, {config}.override("seed={record.seed}"{missing})).fit(ds)'
        return [f'clf = sp.load_classifier("{place.as_posix()}")  # created by: {trained}']
    folder = workspace.folder / place
    own = read_own_model(folder, named.source if named is not None and needs_code(folder) else None)
    options = "".join(f", {name}={value!r}" for name, value in own.arguments().items())
    if own.function is None:
        return [f"clf = sp.wrap({(place / own.file.name).as_posix()!r}{options})"]
    return [
        "import importlib",
        "import sys",
        f"sys.path.insert(0, {str(own.file.parent)!r})",
        f"clf = sp.wrap(importlib.import_module({own.file.stem!r}).{own.function}(){options})",
    ]


def _constraints(rules: ConstraintsRequest, feature_names: Sequence[str], drawn: Windows | None = None) -> str:
    """Return the expression of the constraints, with the arguments that are not empty; empty if there are none.

    >>> rules = ConstraintsRequest(immutable=["a"], frozen=[(0, 5)], ranges={"b": (None, 2.0)})
    >>> print(_constraints(rules, ["a", "b"]))
    sp.Constraints(immutable=['a'], frozen=[(0, 5)], ranges={'b': (None, 2.0)})
    """
    given = to_constraints(rules, feature_names, drawn)
    written = ", ".join(f"{name}={value!r}" for name, value in vars(given).items() if value)
    return f"sp.Constraints({written})" if written else ""
