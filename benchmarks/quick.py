"""What ``ExplainerConfig.quick()`` saves and costs, beside the default: rows in ``results/quick.jsonl``.

    SPARCETS_DATA=FOLDER python benchmarks/quick.py [catching|ui_prmd ...] [--seeds 0 1 2]

Both explain the same classifier in one run, one after the other. Seconds are
CPU time of the process: of the fit, of 20 queries, and of 60 other ones. The judges are models of six families; *mean*
is over them and over all 80 queries, which are test series, towards their runner-up class. The seed decides which
queries, and all trainings.
"""

import argparse
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
from stored import COMMIT, store

import sparcets as sp

SETS = ("catching", "ui_prmd")
FEW, MANY = 20, 60  # queries
QUICK = sp.ExplainerConfig.quick()
SETTINGS = {"default": sp.ExplainerConfig(), "quick()": QUICK}


def measure(data: sp.Dataset, model: sp.TorchClassifier, judges: dict, config: sp.ExplainerConfig) -> dict:
    """Return the seconds of a fit and of two calls, and what the judges say of the answers."""
    rows = np.random.default_rng(config.seed).permutation(len(data.X_test))[: FEW + MANY]
    seconds = [time.process_time()]
    explainer = sp.Explainer(model, config).fit(data, progress=False)
    seconds.append(time.process_time())
    answers = []
    for part in (rows[:FEW], rows[FEW:]):
        answers.append(explainer.explain(data.X_test[part], progress=False))
        seconds.append(time.process_time())
    fit, few, many = (round(after - before, 2) for before, after in pairwise(seconds))
    made, target = (np.concatenate([getattr(e, name) for e in answers]) for name in ("counterfactual", "target"))
    said = {name: round(float((judge.predict(made) == target).mean()), 4) for name, judge in judges.items()}
    valid, changed = (np.concatenate([getattr(e, name) for e in answers]) for name in ("valid", "share_changed"))
    return {
        "fit_s": fit,
        "few_s": few,
        "many_s": many,
        "valid": round(float(valid.mean()), 4),
        "changed": round(float(changed[valid].mean()), 4),
        "mean": round(float(np.mean(list(said.values()))), 4),
        "judges": said,
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
            for settings, config in SETTINGS.items():
                row = measure(data, model, judges, replace(config, seed=seed))
                about = {"set": name, "seed": seed, "settings": settings, "queries": [FEW, MANY]}
                store("quick.jsonl", {**about, **row, "commit": COMMIT}, ("set", "seed", "settings"))


if __name__ == "__main__":
    main()
