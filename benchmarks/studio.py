"""Latency of the studio: its start, the slider, locks and exports.

    python benchmarks/studio.py [workspace] [--busy]

Uses series of 100 steps and 12 features with the default classifier and explainer, trained once into the workspace (a
minute or two). A browser moves the slider, clicks locks and exports on several recordings, with the pauses of a fast
user; the page measures the time from the event to the drawn figure, or to the file. The curve comes after the figure,
as on the page. With ``--busy``, the studio trains an explainer and reads a table of 50 MB all the time.

Rows go to ``results/studio.jsonl``, with the commit, the load of the machine at the beginning, and ``slowdown``: how
much longer than its computing time a loop beside the measurements took. Needs the extras ``studio`` and ``browser``,
and Chromium.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright
from stored import COMMIT, store

from sparcets.studio.models import ExplainerRecord, FitExplainer, Limits, TrainClassifier
from sparcets.studio.processes import fit_explainer, train_classifier
from sparcets.studio.uploads import read_dataset
from sparcets.studio.workspace import Workspace, dataset_record, write_record
from sparcets.web.access import TOKEN_FILE

N_SERIES, N_STEPS, N_FEATURES = 300, 100, 12
# Each cap once: repeated requests are answered from memory.
CAPS = (0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.03, 0.07, 0.15, 0.2, 0.5)
LOCKS = (0, 1, 7, 0, 1)  # likewise, no two states are equal
RECORDINGS = range(0, 60, 10)
FILES = ("png", "pdf", "csv", "npz", "html", "py")
LOCK_PAUSE, SLIDER_PAUSE = 2.0, 0.25  # seconds after a new recording or lock, and after a slider move
UPLOADED = 50 * 10**6  # bytes
SPIN = 0.03  # seconds of computing by which the slowdown is measured


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


def measure(workspace: Workspace, *, busy: bool) -> dict[str, float]:
    started = time.perf_counter()
    studio = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", "--workspace", str(workspace.folder)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = re.search(r"(http://\S+)/login", studio.stderr.readline())[1]
        urllib.request.urlopen(address).read()
        start = time.perf_counter() - started
        token = (workspace.folder / TOKEN_FILE).read_text().strip()
        with kept_busy(address, token) if busy else nullcontext():
            return {"start_s": round(start, 2), **drive(address, token)}
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()


@contextmanager
def kept_busy(address: str, token: str) -> Iterator[None]:
    """Let the studio train and read a file all the time."""
    over = threading.Event()
    rows = np.random.default_rng(0).normal(size=(2000, N_FEATURES))
    steps = [",".join(f"{value:.6f}" for value in row) for row in rows]
    lines, size = [f"series,time,label,{','.join(f'f{f}' for f in range(N_FEATURES))}"], 0
    while size < UPLOADED:
        lines.append(f"{len(lines) // 100},{len(lines) % 100},{'ab'[len(lines) // 100 % 2]},{steps[len(lines) % 2000]}")
        size += len(lines[-1]) + 1
    table = "\n".join(lines).encode()

    def ask(path: str, body: bytes | None = None, method: str | None = None, kind: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(f"{address}/api/v1{path}", body, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or b"null")

    def upload() -> None:
        while not over.is_set():
            try:
                record = ask("/datasets/upload?filename=large.csv", table, kind="application/octet-stream")
            except urllib.error.HTTPError as error:  # read too slowly, beside all the rest: the next one follows
                print(f"upload: {error}", file=sys.stderr)
            else:
                ask(f"/datasets/{record['id']}", method="DELETE")

    def train() -> None:
        while not over.is_set():
            job = ask("/explainers", json.dumps({"classifier": "bilstm", "method": "sparcets"}).encode())
            while job["state"] in ("queued", "running") and not over.wait(0.5):
                job = next(one for one in ask("/jobs") if one["id"] == job["id"])
            if job["state"] == "done":
                ask(f"/explainers/{job['id']}", method="DELETE")
            elif over.is_set():
                ask(f"/jobs/{job['id']}", method="DELETE")

    threads = [threading.Thread(target=work) for work in (upload, train)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def slowdown() -> float:
    """Return how many times its computing time a short loop takes."""
    wall, own = time.perf_counter(), time.thread_time()
    while time.thread_time() - own < SPIN:
        pass
    return (time.perf_counter() - wall) / SPIN


def drive(address: str, token: str) -> dict[str, float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        names = ("slider", "locks", "curves", "exports")
        times: dict[str, list[float]] = {name: [] for name in names}
        slow: list[float] = []

        def wait_for_figure(action) -> None:
            shown = int(page.locator("body").get_attribute("data-shown") or 0)
            action()
            page.wait_for_selector(f"body[data-shown='{shown + 1}']")

        def move_to(cap: float) -> None:
            stop = page.evaluate("async (cap) => (await import('/static/js/curve.js')).stopOf(cap)", cap)
            if stop >= 0:  # not one that stands for the answer itself
                wait_for_figure(lambda: page.locator("#sparsity").fill(str(stop)))
                time.sleep(SLIDER_PAUSE)

        def take(name: str, into: str) -> None:
            times[into] += page.evaluate(f"() => performance.getEntriesByName('{name}').map((e) => e.duration)")
            page.evaluate(f"() => performance.clearMeasures('{name}')")

        page.goto(f"{address}/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_selector("body[data-ready]")
        for row in RECORDINGS:
            state = {"dataset": "bars", "classifier": "bilstm", "explainer": "sparcets", "row": row}
            page.goto("about:blank")
            page.goto(f"{address}/#{json.dumps(state)}")
            page.wait_for_selector("body[data-curve]")
            time.sleep(LOCK_PAUSE)
            page.evaluate("() => performance.clearMeasures()")
            slow.append(slowdown())
            for cap in CAPS:
                move_to(cap)
            take("answer", "slider")
            slow.append(slowdown())
            for kind in FILES:
                with page.expect_download():
                    page.locator(f"#exports [data-kind={kind}]").click()
            take("export", "exports")
            for feature in LOCKS:
                wait_for_figure(page.locator("button.feature").nth(feature).click)
                time.sleep(LOCK_PAUSE)
            take("answer", "locks")
            take("curve", "curves")
        browser.close()
    found = {
        f"{what}_{name}_ms": round(float(np.percentile(found, share)))
        for what, found in times.items()
        if found
        for name, share in (("p50", 50), ("p95", 95))
    }
    return {**found, **{f"{what}_n": len(found) for what, found in times.items()}, "slowdown": round(np.mean(slow), 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="latency of the studio")
    parser.add_argument("workspace", nargs="?", default="studio-benchmark")
    parser.add_argument("--busy", action="store_true", help="train and read a large file meanwhile")
    options = parser.parse_args()
    workspace = Workspace(Path(options.workspace))
    if not workspace.records(ExplainerRecord):
        prepare(workspace)
    row = {"commit": COMMIT, "busy": options.busy, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    row |= measure(workspace, busy=options.busy)
    store("studio.jsonl", row, ("busy",))
