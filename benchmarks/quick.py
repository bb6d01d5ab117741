"""What ``ExplainerConfig.quick()`` saves and costs, beside the default: rows in ``results/quick.jsonl``.

    SPARCETS_DATA=FOLDER python benchmarks/quick.py [catching|motionsense ...] [--seeds 0 1 2]

Both presets explain the same classifier in one run, one after the other. Seconds are CPU time of the process: of the
fit, of 20 queries, and of 60 other ones. The judges are models of six families; *mean* is over them and over all 80
queries, which are test series, towards their runner-up class. The seed decides which queries, and all trainings.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
from stored import COMMIT, store

import sparcets as sp

SETS = ("catching", "motionsense")
FEW, MANY = 20, 60  # queries
PRESETS = {"default": sp.ExplainerConfig, "quick": sp.ExplainerConfig.quick}


def measure(data: sp.Dataset, model: sp.TorchClassifier, judges: dict, config: sp.ExplainerConfig) -> dict:
    """Return the seconds of a fit and of two calls, and what the judges say of the answers."""
    rows = np.random.default_rng(config.seed).permutation(len(data.X_test))[: FEW + MANY]
    seconds = [time.process_time()]
    explainer = sp.Explainer(model, config).fit(data, progress=False)
    seconds.append(time.process_time())
    scores = []
    for part in (rows[:FEW], rows[FEW:]):
        e = explainer.explain(data.X_test[part], progress=False)
        seconds.append(time.process_time())
        scores.append(sp.evaluate(e, data, classifier=model, judges=judges, rows=part, progress=False).per_query)
        seconds.append(time.process_time())
    said = {name: round(float(np.concatenate([s[name] for s in scores]).mean()), 4) for name in ("valid", *judges)}
    return {
        "fit_s": round(seconds[1] - seconds[0], 2),
        "few_s": round(seconds[2] - seconds[1], 2),
        "many_s": round(seconds[4] - seconds[3], 2),
        "mean": round(float(np.mean([said[name] for name in judges])), 4),
        "changed": round(float(np.concatenate([s["sparsity"] for s in scores]).mean()), 4),
        **said,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS), help=", ".join(SETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    asked = parser.parse_args()
    for name in asked.sets:
        data = sp.load_dataset(name)
        model = sp.TorchClassifier("bilstm").fit(data, progress=False)
        judges = sp.find_judges(data, model, progress=False)
        sp.Explainer(model, sp.ExplainerConfig.tiny()).fit(data, progress=False)  # loads what is imported on first use
        for seed in asked.seeds:
            for preset, config in PRESETS.items():
                row = measure(data, model, judges, replace(config(), seed=seed))
                about = {"set": name, "seed": seed, "preset": preset, "queries": [FEW, MANY]}
                store("quick.jsonl", {**about, **row, "commit": COMMIT}, ("set", "seed", "preset"))


if __name__ == "__main__":
    main()
