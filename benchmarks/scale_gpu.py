"""The cost of many series on a GPU: the explainer of ``scale.py``, one process, from a memory map to a folder.

    python benchmarks/scale_gpu.py                      # 100,000 series of 50 x 50; a minute on an H200
    COMMIT=… python benchmarks/scale_gpu.py --print     # on a machine without git and results: only print the row

The row goes to ``results/scale.jsonl``. Parquet files and Ray are measured by ``scale.py``.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import sparcets as sp

STEPS = FEATURES = 50


def series(n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, STEPS, FEATURES)).astype(np.float32)
    return X.cumsum(1, dtype=np.float32)


def explainer(device: str) -> sp.Sparce:
    X, y = series(64, seed=0), np.arange(64) % 2
    X[y == 1, 20:30, :10] += 3
    data = sp.Dataset.from_arrays(X, y)
    clf = sp.TorchClassifier("bilstm", sp.ClassifierConfig(epochs=2, device=device)).fit(data, progress=False)
    config = sp.SparceConfig().override("train.epochs=1", f"device={device}", "batch_size=8192")
    return sp.Sparce(clf, config).fit(data, progress=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--print", action="store_true", dest="only_print")
    asked = parser.parse_args()
    ex = explainer(asked.device)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), series(asked.queries, seed=1))
        X = np.load(Path(folder, "X.npy"), mmap_mode="r")
        ex.explain(np.array(X[:20_000]), 1, progress=False)  # what is compiled or loaded once
        began = time.perf_counter()
        ex.explain(np.array(X), 1, progress=False)
        in_memory = time.perf_counter() - began
        began = time.perf_counter()
        e = ex.explain(X, 1, out=Path(folder, "answers"), progress=False)
        to_folder = time.perf_counter() - began
        assert len(e) == asked.queries
    name = torch.cuda.get_device_name() if asked.device.startswith("cuda") else asked.device
    row = {
        "commit": os.environ.get("COMMIT", ""),
        "part": "gpu",
        "queries": asked.queries,
        "device": name,
        "in_memory_rate": round(asked.queries / in_memory, 1),
        "to_folder_rate": round(asked.queries / to_folder, 1),
        "machine": f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
    }
    if asked.only_print:
        print(json.dumps(row))
        return
    from stored import COMMIT, store

    store("scale.jsonl", {**row, "commit": COMMIT}, ("part",))


if __name__ == "__main__":
    main()
