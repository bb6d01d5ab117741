"""Test accuracy of the classifiers on every data set, one JSON line each in ``results/classifiers.jsonl``.

    python benchmarks/classifiers.py [name ...]

Stored rows are not computed again; delete a line to repeat its run. Data sets that are not available are skipped with a
message on stderr. ``make docs`` turns the file into ``docs/classifiers.md``.
"""

import json
import sys
import time
from pathlib import Path

import sparcets as sp

RESULTS = Path(__file__).parents[1] / "results" / "classifiers.jsonl"
ARCHITECTURES = ("bilstm", "fcn")
SETS = {
    "moving_box": {},
    "motionsense": {"split": "random"},
    "motionsense by subject": {"split": "subject"},
    "catching": {},
    "ui_prmd": {},
    "basic_motions": {},
}


def main(names: list[str]) -> None:
    done = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    for title, options in SETS.items():
        if names and title.split()[0] not in names:
            continue
        missing = [a for a in ARCHITECTURES if not any((r["set"], r["classifier"]) == (title, a) for r in done)]
        if not missing:
            continue
        try:
            data = sp.load_dataset(title.split()[0], **options)
        except sp.SparcetsError as error:
            print(f"{title}: skipped: {error}", file=sys.stderr)
            continue
        for architecture in missing:
            started = time.perf_counter()
            classifier = sp.TorchClassifier(architecture).fit(data, progress=True)
            row = {
                "set": title,
                "name": data.name,
                "split": data.split,
                "training": len(data.X_train),
                "test": len(data.X_test),
                "classifier": architecture,
                "accuracy": round(float((classifier.predict(data.X_test, data.lengths_test) == data.y_test).mean()), 4),
                "epochs": len(classifier.history_["loss"]),
                "seconds": round(time.perf_counter() - started, 1),
                "seed": classifier.config.seed,
                "version": sp.__version__,
            }
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
