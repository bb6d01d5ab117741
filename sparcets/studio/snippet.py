"""Python code that reproduces an explanation of the studio."""

from __future__ import annotations

from pathlib import Path

from sparcets.studio.models import ClassifierRecord, ConstraintsRequest, DatasetRecord, ExplainerRecord, ExportRequest
from sparcets.studio.workspace import Workspace


def python_code(workspace: Workspace, request: ExportRequest) -> str:
    """Return a script that computes an explanation again; it is to be run in the workspace's folder.

    Parameters
    ----------
    workspace
        Where classifier and explainer are stored.
    request
        What to explain, and which counterfactual to show.
    """
    explainer = workspace.explainer(request.explainer)
    classifier = workspace.classifier(explainer.classifier)
    dataset = workspace.dataset(explainer.dataset)
    rows = request.rows
    per_query = f", lengths=ds.lengths_test[{rows}]" if dataset.padded else ""
    per_query += f", ids=ds.ids_test[{rows}]" if dataset.has_ids else ""
    options = [f"target={request.target!r}"]
    options += [f"sparsity={request.sparsity!r}"] if request.sparsity is not None else []
    options += [f"n={request.answers}"] if request.answers > 1 else []
    limits = _constraints(request.constraints)
    options += ["constraints=limits"] if limits else []
    lines = [
        f"# Run this in the studio's workspace, {workspace.folder.name}.",
        "import sparcets as sp",
        "",
        f"ds = sp.load_dataset({_source(dataset)!r}, seed={dataset.seed})",
        *_classifier(workspace, classifier),
        f'ex = sp.load("explainers/{explainer.id}", classifier=clf)  # created by: {_fitted(explainer)}',
        *([f"limits = sp.Constraints({limits})"] if limits else []),
        f"e = ex.explain(ds.X_test[{rows}], {', '.join(options)}{per_query})",
        f"print(e.text({request.shown}))",
        "print(e.to_frame())",
        f'e.plot({request.shown}).savefig("counterfactual.png")',
    ]
    return "\n".join(lines) + "\n"


def _source(dataset: DatasetRecord) -> str:
    return Path("datasets", dataset.id, dataset.source).as_posix() if dataset.uploaded else dataset.source


def _classifier(workspace: Workspace, record: ClassifierRecord) -> list[str]:
    """Return the lines that give the classifier: one of ours, or the user's own model."""
    from sparcets.classifiers.own_model import is_own_model, read_own_model

    place = Path("classifiers", record.id)
    if not is_own_model(workspace.folder / place):
        return [f'clf = sp.load_classifier("{place.as_posix()}")  # created by: {_trained(record)}']
    own = read_own_model(workspace.folder / place)
    options = "".join(f", {name}={value!r}" for name, value in own.arguments().items())
    if own.function is None:
        return [f'clf = sp.wrap("{(place / own.file.name).as_posix()}"{options})']
    return [
        "import importlib",
        "import sys",
        f"sys.path.insert(0, {str(own.file.parent)!r})",
        f"clf = sp.wrap(importlib.import_module({own.file.stem!r}).{own.function}(){options})",
    ]


def _trained(record: ClassifierRecord) -> str:
    start = "sp.ClassifierConfig.tiny()" if record.preset == "tiny" else "sp.ClassifierConfig()"
    return f'sp.TorchClassifier("{record.architecture}", {start}.override("seed={record.seed}")).fit(ds)'


def _fitted(record: ExplainerRecord) -> str:
    from sparcets.explainers import EXPLAINERS

    name = EXPLAINERS.location(record.method).rpartition(":")[2]
    start = f"sp.{name}Config.tiny()" if record.preset == "tiny" else f"sp.{name}Config()"
    return f'sp.{name}(clf, {start}.override("seed={record.seed}")).fit(ds)'


def _constraints(rules: ConstraintsRequest) -> str:
    """Return the arguments of ``sp.Constraints`` that are not empty.

    >>> _constraints(ConstraintsRequest(immutable=["a"], frozen=[(0, 5)], ranges={"b": (None, 2.0)}))
    'immutable=["a"], frozen=[(0, 5)], ranges={"b": (float("-inf"), 2.0)}'
    """
    arguments = {name: _python(value) for name, value in rules.model_dump().items() if value}
    if rules.frozen:
        arguments["frozen"] = repr(rules.frozen)
    if rules.ranges:
        pairs = [
            f"{_python(f)}: ({_bound(low, '-inf')}, {_bound(high, 'inf')})" for f, (low, high) in rules.ranges.items()
        ]
        arguments["ranges"] = "{" + ", ".join(pairs) + "}"
    return ", ".join(f"{name}={text}" for name, text in arguments.items())


def _bound(value: float | None, infinite: str) -> str:
    return f'float("{infinite}")' if value is None else repr(value)


def _python(value: object) -> str:
    """Return the Python literal of a value, with double quotes."""
    import json

    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_python(k)}: {_python(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    return repr(value)
