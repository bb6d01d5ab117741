"""Whether two commits give the same rows and answers: every kind of run of the reproduction, made tiny, on a CPU.

    PYTHONPATH=old python benchmarks/same_code.py run FOLDER_OLD
    PYTHONPATH=new python benchmarks/same_code.py run FOLDER_NEW
    python benchmarks/same_code.py compare FOLDER_OLD FOLDER_NEW

Rows are compared number by number, except times, and saved answers entry by entry, without any tolerance. With an empty
folder each for ``XDG_CACHE_HOME``, the judges are trained anew, too. About ten minutes on one core each. What was
compared goes to ``results/reproduction/same_code.json``, and from there to ``docs/reproduction.md``.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import sparcets_paper.reproduce.plans as plans

RESULTS = Path(__file__).parents[1] / "results" / "reproduction" / "same_code.json"
COMPARED = ("measures", "intervals", "history", "figures", "curve", "course", "statuses", "accuracy", "judges", "error")
GAN = ("generator.hidden=16", "train.lr=0.003")
TINY = replace(
    plans.SCALES["full"],
    options={
        "catching": {"test_size": 0.8},
        "motionsense": {"test_size": 0.95},
        "moving_box": {"n_per_combination": 40},
    },
    classifier={"epochs": 15, "hidden": 16, "lr": 0.01},
    settings={"ics": ("steps=10", "max_lambdas=4"), **dict.fromkeys(("gan", "countergan", "sparce"), GAN)},
    epochs=dict.fromkeys(("catching", "motionsense", "moving_box"), 6),
    queries=24,
)


def run(folder: Path, datasets: list[str]) -> None:
    """Run the cells of some data sets, and write their rows and answers."""
    from sparcets_paper.benchmark.cell import RunContext, run_cell
    from sparcets_paper.reproduce.provenance import code_digest

    folder.mkdir(parents=True, exist_ok=True)
    longer = f"epochs={plans.LONGER}"
    plans.SCALES = {"full": TINY}
    plans.VARIANTS = {
        label: (method, tuple(setting.replace(longer, "epochs=8") for setting in settings))
        for label, (method, settings) in plans.VARIANTS.items()
    }
    for cell in plans.plan("all", "full", 1, datasets=datasets):
        row = run_cell(replace(cell, keep=200), RunContext(folder, "cpu", code_digest()))
        with (folder / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row, default=str) + "\n")
        print(cell.dataset, cell.label, cell.target, row.get("error", "ok"), flush=True)


def numbers(value: Any) -> int:
    """Return how many numbers a nested value has."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    return sum(map(numbers, value)) if isinstance(value, list) else int(isinstance(value, (int, float)))


def compare(old: Path, new: Path) -> dict[str, Any]:
    """Return how much was compared, and the names of what differs; runs that one of the folders lacks are left out."""
    first, second = (
        {row["key"]: row for row in map(json.loads, (folder / "rows.jsonl").read_text().splitlines())}
        for folder in (old, new)
    )
    digests = [sorted({row["code"] for row in rows.values()}) for rows in (first, second)]
    datasets = sorted({first[key]["dataset"] for key in first.keys() & second.keys()})
    found: dict[str, Any] = {
        "old": digests[0],
        "new": digests[1],
        "datasets": datasets,
        "runs": 0,
        "numbers": 0,
        "entries": 0,
    }
    differ: list[str] = []
    for key in first.keys() & second.keys():
        a, b = ({name: row.get(name) for name in COMPARED} for row in (first[key], second[key]))
        for row in (a, b):
            (row["measures"] or {}).pop("seconds", None)
        found["runs"] += 1
        found["numbers"] += numbers(a)
        title = f"{first[key]['dataset']} {first[key]['label']}"
        differ += [f"{title}: {name}" for name in COMPARED if a[name] != b[name]]
        files = [folder / "explanations" / f"{key}.npz" for folder in (old, new)]
        if all(file.exists() for file in files):
            with np.load(files[0]) as x, np.load(files[1]) as y:
                found["entries"] += x["counterfactual"].size
                if not np.array_equal(x["counterfactual"], y["counterfactual"]):
                    differ.append(f"{title}: answers")
    return {**found, "differ": sorted(differ)}


if __name__ == "__main__":
    what, folder, *rest = sys.argv[1:]
    if what == "run":
        run(Path(folder), rest or ["catching", "moving_box"])
    else:
        RESULTS.write_text(json.dumps(compare(Path(folder), Path(rest[0])), indent=1) + "\n")
