"""Take the screenshots of the studio: ``python docs/screenshot.py [workspace]``.

Fits the default method to the simulated ball-catching data, once per workspace (a few minutes), starts the studio,
explains recordings in a browser, and writes ``docs/images/studio.png`` and others beside it. Needs the extras
``studio`` and ``browser``, and Chromium.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from sparcets.studio.models import FitExplainer, TrainClassifier
from sparcets.studio.processes import fit_explainer, train_classifier
from sparcets.studio.workspace import Workspace, open_by_name
from sparcets.web.access import TOKEN_FILE

IMAGES = Path(__file__).parent / "images"
LOCKED = {"immutable": ["Head_x"], "frozenFeatures": {"LeftWrist_y": [[0, 15]]}}
STROKE = {"feature": "RightHand_y", "at": 30, "width": 7, "by": 0.08}
WAIT = 600_000  # milliseconds; a group takes a while


def prepare(workspace: Workspace) -> None:
    record, _ = open_by_name(workspace, "catching", 0)
    train_classifier(workspace, "bilstm", TrainClassifier(dataset=record.id, architecture="bilstm"), 0, "auto")
    for method in ("nearest", "sparcets"):
        fit_explainer(workspace, method, FitExplainer(classifier="bilstm", method=method), 0, "auto")


def take(address: str, workspace: Workspace) -> None:
    token = (workspace.folder / TOKEN_FILE).read_text().strip()
    state = {
        "dataset": workspace.classifier("bilstm").dataset,
        "classifier": "bilstm",
        "explainer": "sparcets",
        "row": 0,
        "target": "Control",
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def open_page(width: int, height: int, state: dict[str, Any], *, scheme: Any = "light", **options: Any) -> Any:
            size = {"width": width, "height": height}
            page = browser.new_context(viewport=size, color_scheme=scheme, **options).new_page()
            page.set_default_timeout(WAIT)
            page.goto(f"{address}/login#{json.dumps(state)}")
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_selector("body[data-ready]")
            return page

        def save(page: Any, name: str, **options: Any) -> None:
            page.wait_for_timeout(800)
            page.screenshot(path=IMAGES / name, **options)
            page.context.close()

        page = open_page(1400, 1180, {**state, **LOCKED})
        page.wait_for_selector("body[data-curve]")
        save(page, "studio.png")
        page = open_page(1400, 1180, state, scheme="dark")
        page.wait_for_selector("body[data-curve]")
        save(page, "studio-dark.png")
        page = open_page(390, 1500, state, is_mobile=True, has_touch=True, device_scale_factor=2)
        page.wait_for_selector("body[data-curve]")
        page.evaluate("() => document.querySelector('#views').scrollIntoView()")
        save(page, "studio-phone.png")
        page = open_page(1400, 1180, {**state, "strokes": [STROKE]})
        page.locator("#draw").click()
        page.locator(".figure").scroll_into_view_if_needed()
        page.evaluate("() => document.querySelector('.figure').scrollIntoView()")
        save(page, "studio-by-hand.png")
        page = open_page(1400, 1180, {**state, "view": "group", "source": "Ataxia", "likeReal": True})
        page.locator("#group-go").click()
        page.wait_for_selector("body[data-group]")
        save(page, "studio-group.png", full_page=True)
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
        take(re.search(r"(http://\S+)/login", studio.stderr.readline())[1], workspace)
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()


if __name__ == "__main__":
    main()
