"""``sparcets demo``: the whole road on embedded data, from recordings to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.explain import print_answers, save_pictures
from sparcets.cli.options import Device, Json, Seed, print_json

PATIENTS = 4  # trials explained, half of them of each patient group


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("demo"),
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Explain a few patients' trials of simulated ball catching: what would a control have done differently?"""
    import numpy as np

    from sparcets.classifiers.torch_classifier import TorchClassifier
    from sparcets.config.explainers import SparceConfig
    from sparcets.config.models import ClassifierConfig
    from sparcets.datasets.load import load_dataset
    from sparcets.evaluation.evaluate import evaluate
    from sparcets.explainers.sparce import Sparce
    from sparcets.report.html import write_report

    def say(text: str) -> None:
        if not json:
            typer.echo(text)

    data = load_dataset("catching", seed=seed)
    say(f"1. data        {data!r}")
    classifier = TorchClassifier("bilstm", ClassifierConfig(seed=seed, device=device)).fit(data)
    predicted = classifier.predict(data.X_test)
    accuracy = float((predicted == data.y_test).mean())
    say(f"2. classifier  bidirectional LSTM, test accuracy {accuracy:.3f}")

    control = data.class_names.index("Control")
    right = predicted == data.y_test
    patients = [np.flatnonzero(right & (data.y_test == k)) for k in range(data.n_classes) if k != control]
    series = np.concatenate([rows[: PATIENTS // len(patients)] for rows in patients])
    explainer = Sparce(classifier, SparceConfig(seed=seed, device=device)).fit(data)
    say("3. explainer   SPARCE, one generator for every class")
    answer = explainer.explain(data.X_test[series], "Control")
    say(f"4. explanation {answer!r}\n")
    if not json:
        print_answers(answer, series)

    answer.save(out / "explanation.npz")
    pictures = save_pictures(answer, out)
    words = "\n\n".join(f"series {series[i]}: {answer.text(i)}" for i in range(len(answer)))
    (out / "explanation.txt").write_text(words + "\n", encoding="utf-8")
    scores = evaluate(answer, data, classifier=classifier, judges={}, device=device, seed=seed)  # judges take minutes
    title = "What a control would have done differently"
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
    say(f"\nseries {series[0]}: {answer.text(0, short=True)}\n")
    say(f"The pictures, the words and the saved explanation are in {out.resolve()}.")
    say(f"report: {report.resolve()}")
