"""``sparcets demo``: data, classifier, explanation and report on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.explain import print_answers
from sparcets.cli.options import Device, Json, Seed, print_json
from sparcets.core.errors import FileFormatError, StorageError

N_TRIALS = 4  # explained, half of them from each patient group
PATIENCE = 5  # of the classifier's training: the usual one takes twice as long, for the same accuracy here


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo"),
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Explain a few trials of simulated ball catching: which changes make the classifier predict Control?"""
    import numpy as np

    from sparcets.cli.explain import save_pictures, with_numbers
    from sparcets.core.settings import ClassifierConfig, ExplainerConfig
    from sparcets.data.load import load_dataset
    from sparcets.evaluation.evaluate import evaluate
    from sparcets.io.files import atomic_path
    from sparcets.methods.own.explainer import Explainer
    from sparcets.models.network import TorchClassifier
    from sparcets.show.report import write_report

    _check_is_demo(out)

    def echo(text: str) -> None:
        if not json:
            typer.echo(text)

    data = load_dataset("catching", seed=seed)
    echo(f"1. data        {data!r}")
    classifier = TorchClassifier("bilstm", ClassifierConfig(seed=seed, device=device, patience=PATIENCE)).fit(data)
    predicted = classifier.predict(data.X_test)
    accuracy = float((predicted == data.y_test).mean())
    echo(f"2. classifier  bidirectional LSTM, test accuracy {accuracy:.3f}")

    control = data.class_names.index("Control")
    correct = predicted == data.y_test
    patients = [np.flatnonzero(correct & (data.y_test == k)) for k in range(data.n_classes) if k != control]
    series = np.concatenate([rows[: N_TRIALS // len(patients)] for rows in patients])
    explainer = Explainer(classifier, ExplainerConfig(seed=seed, device=device)).fit(data)
    echo("3. explainer   sparcets, one fit for every target class")
    answer = explainer.explain(data.X_test[series], "Control")
    echo(f"4. explanation {answer!r}\n")
    if not json:
        print_answers(answer, series)

    pictures = save_pictures(answer, out, series)
    answer = with_numbers(answer, series)
    answer.save(out / "explanation.npz")
    texts = "\n\n".join(f"series {series[i]}: {answer.text(i)}" for i in range(len(answer)))
    with atomic_path(out / "explanation.txt") as temporary:
        temporary.write_text(texts + "\n", encoding="utf-8")
    scores = evaluate(answer, data, classifier=classifier, judges={}, device=device, seed=seed)  # judges take minutes
    title = "What makes the model say Control"
    report = write_report(answer, out / "report.html", scores=scores, title=title)
    if json:
        print_json(
            {
                "dataset": data.name,
                "accuracy": accuracy,
                "valid": int(answer.valid.sum()),
                "answers": len(answer),
                "explanation": str(out / "explanation.npz"),
                "pictures": [str(p) for p in pictures],
                "report": str(report),
            }
        )
        return
    echo(f"\nseries {series[0]}: {answer.text(0, short=True)}\n")
    echo(f"The pictures, the texts and the saved explanation are in {out.resolve()}.")
    echo(f"report: {report.resolve()}")


def _check_is_demo(folder: Path) -> None:
    """Raise if a folder holds files of these names that are not of an earlier demo."""
    from sparcets.io.explanations import load_explanation

    found = [name for name in ("explanation.npz", "explanation.txt", "report.html") if (folder / name).exists()]
    try:
        if found:
            load_explanation(folder / "explanation.npz")
    except FileFormatError as error:
        raise StorageError(
            f"{folder / found[0]} is in the way: it is not of an earlier demo. Choose another folder with --out."
        ) from error
