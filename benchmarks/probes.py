"""Why numbers differ from the paper's: single changes to the paper's SPARCE, stored in ``results/probes.jsonl``.

    python benchmarks/probes.py [longer|raw_units ...]

``longer``: three times the epochs on moving_box, with the values of every 20th epoch. ``raw_units``: motionsense
without standardisation in the explainer, measured in the units of the data. For a GPU.
"""

import json
import os
import sys
from dataclasses import replace

import backbones
import numpy as np

import sparcets as sp
from sparcets.explanation.series_info import SeriesInfo

RESULTS = backbones.RESULTS.with_name("probes.jsonl")


def run(name: str, probe: str, config: sp.SparceConfig) -> None:
    data, classifier, rows = backbones.prepare(name)
    explainer = sp.Sparce(classifier, config).fit(data)
    e = explainer.explain(data.X_test[rows], backbones.TARGETS[name])
    row = {"set": name, "probe": probe, "seed": config.seed, **backbones.measure(e, data, rows)}
    row["course"] = {k: [round(v, 4) for v in values[19::20]] for k, values in explainer.history_.items()}
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def longer() -> None:
    paper = sp.SparceConfig.paper(target="1")
    epochs = int(os.environ.get("EPOCHS", "300"))
    run("moving_box", f"{epochs} epochs", replace(paper, train=replace(paper.train, epochs=epochs)))


def raw_units() -> None:
    measure = SeriesInfo.measure

    def unscaled(X, class_names, *, lengths=None, source=None):
        info = measure(X, class_names, lengths=lengths, source=source)
        nothing = sp.Scaler(np.zeros(info.n_features), np.ones(info.n_features))
        return replace(info, scaler=nothing)

    SeriesInfo.measure = unscaled
    try:
        for seed in (0, 1):
            run("motionsense", "raw units", replace(sp.SparceConfig.paper(target="ups"), seed=seed))
    finally:
        SeriesInfo.measure = measure


if __name__ == "__main__":
    for probe in sys.argv[1:] or ["longer", "raw_units"]:
        {"longer": longer, "raw_units": raw_units}[probe]()
