"""A report of 200 answers: how long it takes to make, its size, and how long it takes to open.

    python benchmarks/report.py

Simulated catching (60 steps of 20 features, with stick figures), answered by ``nearest``, which needs no training, with
a curve of belief for each answer, so that no figure is missing. Opened is what Chromium reports: from the beginning of
the navigation to the end of the load event, three times in fresh pages, of which the median counts. The page is also
printed to PDF, and the pictures in it are counted. A row goes to ``results/report.jsonl``. Needs ``sparcets[plots]``,
``sparcets[browser]`` and Chromium; ``pdftotext`` (poppler-utils) counts the pictures.
"""

import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from stored import COMMIT, store

import sparcets as sp
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation
from sparcets.show.report import write_report

N_ANSWERS = 200
LEGEND = "recorded +(?:attempt|best attempt|counterfactual|unchanged)"  # one of every picture
OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def answers() -> Explanation:
    """Return 200 answers with evidence and curves as our own method gives them, of random values."""
    data = sp.load_dataset("catching", seed=0)
    model = sp.wrap(lambda X: np.eye(3)[(X[:, 30, 8] * 30).astype(int) % 3])  # any: only the page is measured
    e = sp.Nearest(model).fit(data).explain(data.X_test[:N_ANSWERS], target="Control")
    rng = np.random.default_rng(0)
    curve = {name: rng.random((len(e), 60)) for name in ("share", "support")}
    curve["valid"] = (curve["share"] > 0.3).astype(float)
    support = rng.choice([0.2, 0.6, 1.0], size=(len(e), 4))
    evidence = Evidence(families=("neural", "convolutions", "quantiles", "intervals"), support=support, curve=curve)
    return replace(e, evidence=replace(evidence, plausibility={**e.plausibility, "distance": rng.random(len(e))}))


def main() -> None:
    e = answers()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        start, start_cpu = time.perf_counter(), time.process_time()
        write_report(e, path)
        made, made_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            opened.append(page.evaluate(OPENED) / 1000)
            page.close()
        page = browser.new_page()
        page.goto(path.as_uri())
        file = Path(folder) / "report.pdf"
        page.pdf(path=str(file), format="A4")
        text = subprocess.run(["pdftotext", "-layout", file, "-"], capture_output=True, text=True, check=True).stdout
        row = {
            "commit": COMMIT,
            "answers": len(e),
            "megabytes": round(path.stat().st_size / 1e6, 1),
            "made_s": round(made, 1),
            "made_cpu_s": round(made_cpu, 1),
            "opened_s": round(statistics.median(opened), 2),
            "pictures_in_pdf": len(re.findall(LEGEND, text)),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}",
        }
        browser.close()
    store("report.jsonl", row, ("answers",))


if __name__ == "__main__":
    main()
