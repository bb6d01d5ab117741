"""Latency of the studio: its start, and the time from a slider or lock event to the new figure.

    python benchmarks/studio.py [workspace]

Uses series of 100 steps and 12 features with the default classifier and explainer, trained once into the workspace (a
minute or two). A browser moves the slider and clicks locks on several recordings, with the pauses of a fast user; the
page measures the time from the event to the drawn figure. Needs the extras ``studio`` and ``browser``, and Chromium.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from sparcets.studio.data import dataset_record
from sparcets.studio.limits import Limits
from sparcets.studio.models import FitExplainer, TrainClassifier
from sparcets.studio.reader import read_dataset
from sparcets.studio.worker import fit_explainer, train_classifier
from sparcets.studio.workspace import Workspace, write_record

N_SERIES, N_STEPS, N_FEATURES = 300, 100, 12
# Each stop once: repeated requests are answered from the cache. The two tightest stops (1 % and 2 % of the values) are
# left out: most queries have no answer there, and the search for one takes 1 to 3 s.
STOPS = (12, 9, 7, 5, 3, 2, 4, 6, 8, 10, 11)
LOCKS = (0, 1, 7, 0, 1)  # likewise, no two states are equal
RECORDINGS = range(0, 60, 10)
LOCK_PAUSE, SLIDER_PAUSE = 2.0, 0.25  # seconds after a new recording or lock, and after a slider move


def prepare(workspace: Workspace) -> None:
    """Train the default models on three classes, each marked by a temporary rise of two features."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N_SERIES)
    X = rng.normal(0, 0.4, (N_SERIES, N_STEPS, N_FEATURES)).astype(np.float32)
    for i, k in enumerate(y):
        start = rng.integers(20, 40)
        X[i, start : start + 30, [k, 3 + k]] += 2.0
    with workspace.create("datasets", "bars") as folder:
        np.savez(folder / "bars.npz", X=X, y=y, sampling_rate=50.0)
        dataset = read_dataset(folder / "bars.npz", Limits(), seed=0)
        write_record(folder, dataset_record(dataset, "bars", source="bars.npz", uploaded=True, seed=0))
    train_classifier(workspace, "bilstm", TrainClassifier(dataset="bars", architecture="bilstm"), 0, "cpu")
    fit_explainer(workspace, "sparcets", FitExplainer(classifier="bilstm", method="sparcets"), 0, "cpu")


def measure(workspace: Workspace) -> dict[str, float]:
    started = time.perf_counter()
    studio = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", "--workspace", str(workspace.folder)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = re.search(r"http://\S+", studio.stderr.readline())[0]  # with the token
        urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address).read()
        start = time.perf_counter() - started
        return {"start_s": round(start, 2), **drive(address)}
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()


def drive(address: str) -> dict[str, float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})

        def wait_for_figure(action) -> None:
            drawn = int(page.locator("body").get_attribute("data-drawn") or 0)
            action()
            page.wait_for_selector(f"body[data-drawn='{drawn + 1}']")

        for row in RECORDINGS:
            state = {"dataset": "bars", "classifier": "bilstm", "explainer": "sparcets", "row": row}
            page.goto("about:blank")
            page.goto(f"{address}#{json.dumps(state)}")
            page.wait_for_selector("body[data-drawn]")
            time.sleep(LOCK_PAUSE)
            page.evaluate("() => performance.clearMeasures('answer')")
            for stop in STOPS:
                wait_for_figure(lambda stop=stop: page.locator("#sparsity").fill(str(stop)))
                time.sleep(SLIDER_PAUSE)
            TIMES["slider"] += page.evaluate("() => performance.getEntriesByName('answer').map((e) => e.duration)")
            page.evaluate("() => performance.clearMeasures('answer')")
            for feature in LOCKS:
                wait_for_figure(page.locator("button.feature").nth(feature).click)
                time.sleep(LOCK_PAUSE)
            TIMES["locks"] += page.evaluate("() => performance.getEntriesByName('answer').map((e) => e.duration)")
        browser.close()
    return {
        f"{what}_{name}_ms": round(float(np.percentile(times, share)))
        for what, times in TIMES.items()
        for name, share in (("p50", 50), ("p95", 95))
    }


TIMES: dict[str, list[float]] = {"slider": [], "locks": []}

if __name__ == "__main__":
    workspace = Workspace(Path(sys.argv[1] if len(sys.argv) > 1 else "studio-benchmark"))
    if not workspace.explainers():
        prepare(workspace)
    print(json.dumps(measure(workspace)))
