"""The Python lines that give what is on the screen."""

from __future__ import annotations

from pathlib import Path

from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord, Export, Rules
from sparcets.studio.workspace import Workspace


def python_lines(workspace: Workspace, asked: Export) -> str:
    """Return a script that answers a question again, to be run in the workspace's folder.

    Parameters
    ----------
    workspace
        Where classifier and explainer are kept.
    asked
        The question, and which of its answers is shown.
    """
    explainer = workspace.explainer(asked.explainer)
    classifier = workspace.classifier(explainer.classifier)
    dataset = workspace.dataset(explainer.dataset)
    rows = asked.rows
    lengths = f", lengths=ds.lengths_test[{rows}]" if dataset.padded else ""
    options = [f"target={asked.target!r}"]
    options += [f"sparsity={asked.sparsity!r}"] if asked.sparsity is not None else []
    options += [f"n={asked.answers}"] if asked.answers > 1 else []
    limits = _constraints(asked.constraints)
    options += ["constraints=limits"] if limits else []
    lines = [
        f"# Run this in the studio's workspace, {workspace.folder.name}.",
        "import sparcets as sp",
        "",
        f"ds = sp.load_dataset({_source(dataset)!r}, seed={dataset.seed})",
        f'clf = sp.load_classifier("classifiers/{classifier.id}")  # was made by: {_trained(classifier)}',
        f'ex = sp.load("explainers/{explainer.id}", classifier=clf)  # was made by: {_fitted(explainer)}',
        *([f"limits = sp.Constraints({limits})"] if limits else []),
        f"e = ex.explain(ds.X_test[{rows}], {', '.join(options)}{lengths})",
        f"print(e.text({asked.shown}))",
        "print(e.to_frame())",
        f'e.plot({asked.shown}).savefig("answer.png")',
    ]
    return "\n".join(lines) + "\n"


def _source(dataset: DatasetRecord) -> str:
    return Path("datasets", dataset.id, dataset.source).as_posix() if dataset.uploaded else dataset.source


def _trained(record: ClassifierRecord) -> str:
    start = "sp.ClassifierConfig.tiny()" if record.preset == "tiny" else "sp.ClassifierConfig()"
    return f'sp.TorchClassifier("{record.architecture}", {start}.override("seed={record.seed}")).fit(ds)'


def _fitted(record: ExplainerRecord) -> str:
    from sparcets.explainers import EXPLAINERS

    name = EXPLAINERS.location(record.method).rpartition(":")[2]
    preset = "tiny" if record.preset == "tiny" else ""
    start = f"sp.{name}Config.{preset}()" if preset else f"sp.{name}Config()"
    return f'sp.{name}(clf, {start}.override("seed={record.seed}")).fit(ds)'


def _constraints(rules: Rules) -> str:
    """Return the arguments of ``sp.Constraints``, those that say something.

    >>> _constraints(Rules(immutable=["a"], frozen=[(0, 5)], ranges={"b": (None, 2.0)}))
    'immutable=["a"], frozen=[(0, 5)], ranges={"b": (float("-inf"), 2.0)}'
    """
    said = {name: _python(value) for name, value in rules.model_dump().items() if value}
    if rules.frozen:
        said["frozen"] = repr(rules.frozen)
    if rules.ranges:
        pairs = [f"{_python(f)}: ({_end(low, '-inf')}, {_end(high, 'inf')})" for f, (low, high) in rules.ranges.items()]
        said["ranges"] = "{" + ", ".join(pairs) + "}"
    return ", ".join(f"{name}={text}" for name, text in said.items())


def _end(value: float | None, infinite: str) -> str:
    return f'float("{infinite}")' if value is None else repr(value)


def _python(value: object) -> str:
    """Write plain values as Python with double quotes, as the rest of the lines."""
    import json

    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_python(k)}: {_python(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    return repr(value)
