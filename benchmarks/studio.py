"""Latency of the studio: its start, the slider, locks and exports.

    python benchmarks/studio.py [workspace]

Uses series of 100 steps and 12 features with the default classifier and explainer, trained once into the workspace (a
minute or two). A browser moves the slider, clicks locks and exports on several recordings, with the pauses of a fast
user; the page measures the time from the event to the drawn figure, or to the file. The curve comes after the figure,
as on the page. Needs the extras ``studio`` and ``browser``, and Chromium.
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
# Each cap once: repeated requests are answered from memory.
CAPS = (0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.03, 0.07, 0.15, 0.2, 0.5)
LOCKS = (0, 1, 7, 0, 1)  # likewise, no two states are equal
RECORDINGS = range(0, 60, 10)
FILES = ("png", "pdf", "csv", "npz", "html", "py")
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
        times: dict[str, list[float]] = {"slider": [], "locks": [], "curves": [], "exports": []}

        def wait_for_figure(action) -> None:
            drawn = int(page.locator("body").get_attribute("data-drawn") or 0)
            action()
            page.wait_for_selector(f"body[data-drawn='{drawn + 1}']")

        def move_to(cap: float) -> None:
            stop = page.evaluate("async (cap) => (await import('/static/js/curve.js')).stopOf(cap)", cap)
            if stop >= 0:  # not one that stands for the answer itself
                wait_for_figure(lambda: page.locator("#sparsity").fill(str(stop)))
                time.sleep(SLIDER_PAUSE)

        def take(name: str, into: str) -> None:
            times[into] += page.evaluate(f"() => performance.getEntriesByName('{name}').map((e) => e.duration)")
            page.evaluate(f"() => performance.clearMeasures('{name}')")

        for row in RECORDINGS:
            state = {"dataset": "bars", "classifier": "bilstm", "explainer": "sparcets", "row": row}
            page.goto("about:blank")
            page.goto(f"{address}#{json.dumps(state)}")
            page.wait_for_selector("body[data-curve]")
            time.sleep(LOCK_PAUSE)
            page.evaluate("() => performance.clearMeasures('answer')")
            for cap in CAPS:
                move_to(cap)
            take("answer", "slider")
            take("curve", "curves")
            for kind in FILES:
                with page.expect_download():
                    page.locator(f"#exports [data-kind={kind}]").click()
            take("export", "exports")
            for feature in LOCKS:
                wait_for_figure(page.locator("button.feature").nth(feature).click)
                time.sleep(LOCK_PAUSE)
            take("answer", "locks")
        browser.close()
    return {
        f"{what}_{name}_ms": round(float(np.percentile(found, share)))
        for what, found in times.items()
        for name, share in (("p50", 50), ("p95", 95))
    }


if __name__ == "__main__":
    workspace = Workspace(Path(sys.argv[1] if len(sys.argv) > 1 else "studio-benchmark"))
    if not workspace.explainers():
        prepare(workspace)
    print(json.dumps(measure(workspace)))
