"""The page in a real browser: it draws figures on scrolling, sorts, fits a phone, and loads nothing."""

import re
import shutil
import subprocess

import pytest

from sparcets.core.explanation import join
from sparcets.show.report import write_report
from tests.axe import serious_findings

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser, explanation, tmp_path):
    """Open a long report; at the end, check that there were no errors and no requests."""
    many = join([explanation] * 5)
    path = write_report(many, tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    local = ("file:", "data:", "blob:")
    page.on("request", lambda request: request.url.startswith(local) or problems.append(request.url))
    page.goto(path.as_uri())
    yield page
    page.close()
    assert problems == []


def wait_until(page, expression):
    """Poll; wait_for_function would do so inside the page, whose policy forbids evaluating strings."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"still false: {expression}")


def drawn(page, i):
    return int(page.locator(f"#pictures-{i} .plot.js-plotly-plot").count())


def test_figures_are_drawn_when_scrolled_into_view_and_removed_when_far(opened):
    opened.wait_for_selector("#set .main-svg")
    last = 29
    assert drawn(opened, last) == 0
    opened.locator("#heading-0").scroll_into_view_if_needed()
    opened.wait_for_selector("#pictures-0 [data-name=answers] .main-svg")
    assert drawn(opened, 0) == 4
    assert opened.locator("#pictures-0 [data-name=map] .hm image").count() == 1
    opened.locator(f"#heading-{last}").scroll_into_view_if_needed()
    opened.wait_for_selector(f"#pictures-{last} .main-svg")
    wait_until(opened, "!document.querySelector('#pictures-0').dataset.drawn")
    opened.locator("#heading-0").scroll_into_view_if_needed()
    opened.wait_for_selector("#pictures-0 [data-name=answers] .main-svg")


def test_the_table_sorts_both_ways_and_links_to_the_answer(opened):
    column = "[...document.querySelectorAll('#answers tbody tr')].map((r) => Number(r.children[5].dataset.value))"
    header = opened.locator("#answers th", has_text="probability")
    header.locator("button").click()
    values = opened.evaluate(column)
    assert values == sorted(values) and header.get_attribute("aria-sort") == "ascending"
    header.locator("button").press("Enter")
    assert opened.evaluate(column) == sorted(values, reverse=True)
    opened.locator("#answers a", has_text="17").click()
    assert opened.evaluate("location.hash") == "#answer-17"


def test_on_paper_every_answer_has_its_picture_and_every_row_its_numbers(opened, tmp_path):
    n = opened.locator("article").count()
    opened.emulate_media(media="print")
    opened.set_viewport_size({"width": 700, "height": 1000})  # A4 between its margins
    shown = "[...document.querySelectorAll('article .paper svg')].filter((s) => s.getBoundingClientRect().height > 100)"
    assert opened.evaluate(f"{shown}.length") == n == 30
    assert opened.evaluate("document.documentElement.scrollWidth") <= 700, "no column is cut off"
    assert not opened.locator(".plot").first.is_visible() and not opened.locator("nav").is_visible()
    opened.emulate_media(media="null")  # as printing chooses
    file = tmp_path / "report.pdf"
    opened.pdf(path=str(file), format="A4")
    if shutil.which("pdftotext") is None:
        pytest.skip("the PDF file itself is not read: that needs pdftotext (poppler-utils)")
    text = subprocess.run(["pdftotext", "-layout", str(file), "-"], capture_output=True, text=True, check=True).stdout
    legends = re.findall(r"recorded +(?:attempt|best attempt|counterfactual|unchanged)", text)
    assert len(legends) == n, "one of every picture"
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+\S+ \w+", line)]
    assert [row[0] for row in rows] == [str(i) for i in range(n)]
    assert [row[-4:] for row in rows][3] == ["0.20", "10", "1", "0"] and [row[-1] for row in rows[:3]] == [*"224"]
    assert "e+0" not in text and "drawn when scrolled" not in text


def test_axe_finds_nothing_serious(browser, explanation, tmp_path):
    path = write_report(explanation, tmp_path / "report.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#set .main-svg")
    assert serious_findings(page, "light") == serious_findings(page, "dark") == []
    page.evaluate("document.body.append(document.createElement('button'))")  # without a name: it is found
    assert [line.partition(":")[0] for line in serious_findings(page, "light")] == ["button-name"]
    page.close()
