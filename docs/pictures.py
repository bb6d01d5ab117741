"""Draw the README's pictures from what ``make demo`` left behind: ``python docs/pictures.py [demo]``.

``python docs/pictures.py --start`` draws the picture of the page ``start.md`` instead, by running its code.

The page is photographed in a browser: ``pip install playwright``, and Chromium. Judges are trained the first time.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import sparcets as sp
from sparcets.motion.stick_figure import plot_body
from sparcets.show.report import write_report

IMAGES = Path(__file__).parent / "images"
SHOWN = 2  # of the demo's answers: a person with autism


def draw(e: sp.Explanation) -> None:
    e.plot(SHOWN).savefig(IMAGES / "answer.png")
    plot_body(e[SHOWN]).savefig(IMAGES / "body.png")


def photograph(e: sp.Explanation) -> None:
    """Take one picture of the head of the report, and one of an explanation in it."""
    scores = sp.evaluate(e, sp.load_dataset("catching", seed=0))
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = write_report(e, Path(folder) / "report.html", scores=scores, title="What makes the model say Control")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        article = page.locator(f"#answer-{SHOWN}")
        article.scroll_into_view_if_needed()
        page.wait_for_selector(f"#pictures-{SHOWN} [data-name=body] .main-svg")
        page.wait_for_timeout(500)
        article.screenshot(path=str(IMAGES / "report.png"))
        browser.close()


def draw_start() -> None:
    """Run the page for a start, and keep its picture."""
    page = (IMAGES.parent / "start.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in re.findall(r"```python\n(.*?)```", page, flags=re.S):
            exec(block.replace('savefig("answer.png")', 'savefig("answer.png", dpi=100)'), names)
        shutil.copy("answer.png", IMAGES / "start.png")
        os.chdir(IMAGES)


if __name__ == "__main__":
    if sys.argv[1:] == ["--start"]:
        draw_start()
        sys.exit(0)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
    if not (folder / "explanation.npz").is_file():
        sys.exit(f"{folder} holds no explanation.npz: run make demo first.")
    explanation = sp.load_explanation(folder / "explanation.npz")
    draw(explanation)
    photograph(explanation)
    print(f"drawn into {IMAGES}")
