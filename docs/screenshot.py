"""Take the screenshot of the studio: ``python docs/screenshot.py [workspace]``.

Fits the default method to the simulated ball-catching data, once per workspace (a few minutes), starts the studio,
explains a series in a browser, and writes ``docs/images/studio.png``. Needs the extras ``studio`` and ``browser``, and
Chromium.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from sparcets.studio.data import open_by_name
from sparcets.studio.models import FitExplainer, TrainClassifier
from sparcets.studio.worker import fit_explainer, train_classifier
from sparcets.studio.workspace import Workspace

IMAGES = Path(__file__).parent / "images"


def prepare(workspace: Workspace) -> None:
    record, _ = open_by_name(workspace, "catching", 0)
    train_classifier(workspace, "bilstm", TrainClassifier(dataset=record.id, architecture="bilstm"), 0, "auto")
    for method in ("nearest", "sparcets"):
        fit_explainer(workspace, method, FitExplainer(classifier="bilstm", method=method), 0, "auto")


def take(address: str, workspace: Workspace) -> None:
    state = {
        "dataset": workspace.classifier("bilstm").dataset,
        "classifier": "bilstm",
        "explainer": "sparcets",
        "row": 0,
        "target": "Control",
        "immutable": ["Head_x"],
        "frozen": [[0, 10]],
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1240})
        page.goto(f"{address}#{json.dumps(state)}")
        page.wait_for_selector("body[data-drawn]")
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGES / "studio.png")
        browser.close()


def main() -> None:
    workspace = Workspace(Path(sys.argv[1] if len(sys.argv) > 1 else "sparcets-studio"))
    if len(workspace.explainers()) < 2:
        prepare(workspace)
    studio = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", "--workspace", str(workspace.folder)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        take(re.search(r"http://\S+", studio.stderr.readline())[0], workspace)
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()


if __name__ == "__main__":
    main()
