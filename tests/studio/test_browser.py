"""The page in a browser: from an uploaded file to the exported answer, the list of recordings, and error cases."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from .conftest import NAMES, OPENINGS, npz_bytes
from .visit import SIZES, Visit, running

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_workflow_from_upload_to_export(visit):
    page = visit.open()
    assert page.get_by_role("heading", name="Start with data").is_visible()
    page.get_by_label("Your own file").set_input_files(
        {"name": "gait.npz", "mimeType": "application/octet-stream", "buffer": npz_bytes()}
    )
    page.get_by_role("heading", name="Next: a classifier").wait_for()
    page.locator("#new-classifier").select_option("fcn")
    page.locator("#effort-classifier").select_option("tiny")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("progressbar", name="Training fcn").wait_for()
    page.get_by_role("heading", name="Next: an explainer").wait_for()
    for method in ("nearest", "ics"):
        page.locator("#new-explainer").select_option(method)
        page.locator("#effort-explainer").select_option("tiny")
        page.get_by_role("button", name="Fit", exact=True).click()
        page.locator("#step-explainer .job").wait_for()
        page.locator("#step-explainer .job").wait_for(state="detached")
        page.locator("#answer-text p.text").wait_for()
        if method == "nearest":
            page.locator("#change-explainer").click()
    page.get_by_text("by Search (ICS)").wait_for()
    page.locator("#trainings summary").click()  # the history of trainings, the newest first
    assert page.locator("#trainings li > span:first-child").all_inner_texts()[:3] == [
        "Fitting ics", "Fitting nearest", "Training fcn"]  # fmt: skip
    assert page.locator("#trainings svg").first.is_visible()  # learning curves

    visit.after(lambda: page.locator("#queries [role=option]").nth(3).click())
    predicted = page.locator("#queries [aria-selected=true] .predicted").inner_text()
    targets = page.locator("#target option").all_inner_texts()
    assert predicted not in targets and len(targets) == 2
    visit.after(lambda: page.locator("#target").select_option(targets[1]))
    assert f"{targets[1]}:" in page.locator("#verdict .facts").first.inner_text()
    visit.after(lambda: page.locator("#answers").select_option("3"))
    assert page.locator("#tabs button").count() == 3
    visit.after(lambda: page.locator("#compare").select_option(label="Nearest recording, quick"))
    assert page.locator("#verdict .conclusion").count() == page.locator("#answer-text .result").count() == 2
    assert page.locator(".key.other").is_visible()

    name = str(visit.answer()["id"]).replace(" ", "_")
    for kind, opening in {**OPENINGS, "py": b"# Run this"}.items():
        with page.expect_download() as download:
            page.locator(f"#exports [data-kind={kind}]").click()
        assert Path(download.value.path()).read_bytes().startswith(opening)
        assert download.value.suggested_filename == f"recording-{name}.{kind}"
    page.get_by_text("Python code for this answer").click()
    page.locator("#code code").get_by_text("ex.explain").wait_for()
    assert f"target='{targets[1]}'" in page.locator("#code code").inner_text()
    assert visit.errors == [] and visit.hosts == {urlsplit(visit.address).netloc}


def test_new_recordings_without_labels_are_added(visit, shared):
    page = visit.open(**shared.state())
    X = np.load(shared.folder / "datasets" / "own" / "own.npz")["X"][:2]
    rows = [f"late {s},{t},{','.join(map(str, step))}" for s, series in enumerate(X) for t, step in enumerate(series)]
    text = f"series,time,{','.join(NAMES)}\n" + "\n".join(rows)
    page.get_by_text("Add recordings without labels").click()
    file = {"name": "new.csv", "mimeType": "text/csv", "buffer": text.encode()}
    visit.after(lambda: page.locator("#add-recordings").set_input_files(file))
    assert "late 0: predicted class" in page.locator("#title-request").inner_text()
    assert "no label (new)" in page.locator("#title-request").inner_text()
    assert page.locator("#queries .id").all_inner_texts() == ["late 0", "late 1"]
    bad = {"name": "new.csv", "mimeType": "text/csv", "buffer": b"series,time,x\na,0,1\n"}
    page.locator("#add-recordings").set_input_files(bad)
    page.get_by_role("alert").get_by_text("other features than the data set").wait_for()


def test_a_report_of_a_selection(visit, shared):
    page = visit.open(**shared.state(target="wild"))
    page.locator("#queries").focus()
    page.keyboard.press("Space")
    page.locator("#queries .check").nth(2).click()
    assert visit.state()["selected"] == [0, 2] and visit.state()["row"] == 0
    assert page.locator("#queries [aria-checked=true]").count() == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Report of the selection").click()
    text = Path(download.value.path()).read_text()
    assert text.count("<article") == 2 and download.value.suggested_filename == "report-2-recordings.html"
    ids = [page.locator(f"#query-{row} .id").inner_text() for row in (0, 2)]
    assert all(name in text for name in ids)
    page.get_by_role("button", name="Clear the selection").click()
    assert "selected" not in visit.state() and not page.locator("#selection").is_visible()


def test_a_job_is_shown_and_cancelled(visit, shared):
    page = visit.open(dataset=shared.dataset, classifier=shared.classifier)
    assert page.locator("#new-explainer").input_value() == "sparcets"  # the default
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_role("progressbar", name="Fitting sparcets").wait_for()
    page.reload()  # the job continues
    page.get_by_role("progressbar", name="Fitting sparcets").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("Fitting sparcets was cancelled.").wait_for()
    page.get_by_role("button", name="Fit", exact=True).wait_for()
    assert not [p.name for p in (shared.folder / "explainers").iterdir() if p.name.startswith("sparcets-")]
    assert visit.errors == []


def test_errors_are_shown(visit, shared):
    page = visit.open()
    bad = {"name": "gait.csv", "mimeType": "text/csv", "buffer": b"time,label,x\n0,a,1\n"}
    page.get_by_label("Your own file").set_input_files(bad)
    page.get_by_role("alert").get_by_text("gait.csv").wait_for()
    page.get_by_role("button", name="Dismiss").click()
    page = visit.open(**shared.state(immutable=NAMES))
    check_error_shown(visit)
    visit.after(lambda: page.get_by_role("button", name="Release all").click())
    assert page.get_by_role("alert").count() == 0 and page.locator("#answer-text p.text").is_visible()


def check_error_shown(visit):
    """Check that the page shows the API's error message and no answer."""
    visit.page.get_by_role("alert").get_by_text(visit.respond()["error"]["message"]).wait_for()
    assert visit.page.locator("#answer-text").inner_text() == "There is no answer to show."
    assert visit.page.locator("#verdict").inner_text() == visit.page.locator("#badge").inner_text() == ""


def tab_to(page, selector):
    """Press Tab until an element has the focus."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate(f"() => document.activeElement.matches({selector!r})"):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab")


def test_everything_can_be_done_with_the_keyboard(visit, shared):
    page = visit.open(**shared.state(explainer=shared.sparcets, target="wild"))
    tab_to(page, "#queries")
    visit.after(lambda: page.keyboard.press("ArrowDown"))
    visit.after(lambda: page.keyboard.press("End"))
    assert visit.state()["row"] == page.locator("#queries li").count() - 1
    visit.after(lambda: page.keyboard.press("Home"))
    tab_to(page, "#target")
    target = page.locator("#target").input_value()
    visit.after(lambda: page.keyboard.press("ArrowUp" if target == "wild" else "ArrowDown"))
    assert visit.state()["target"] != target
    tab_to(page, "#sparsity")
    visit.after(lambda: page.keyboard.press("ArrowLeft"))
    assert visit.state()["sparsity"] > 0
    tab_to(page, "button.feature")
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["immutable"] == ["left"]
    for name, text in (("from", "0.2"), ("to", "0.4")):
        tab_to(page, f"#lock-time [name={name}]")
        page.keyboard.type(text)
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["frozen"] == [[2, 5]]
    tab_to(page, "#draw")
    page.keyboard.press("Enter")
    for name, text in (("at", "1.2"), ("by", "0.3")):
        tab_to(page, f"#hand-form [name={name}]")
        page.keyboard.type(text)
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["strokes"][0]["at"] == 12
    tab_to(page, "#find-rest")
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["findRest"] is True
    visit.after(lambda: page.keyboard.press("Control+z"))
    assert "findRest" not in visit.state()
    tab_to(page, "[data-kind=csv]")
    with page.expect_download():
        page.keyboard.press("Enter")
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input')].filter((e) => e.offsetParent && "
        "!(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert unnamed == []


@pytest.mark.parametrize("size", SIZES)
def test_the_layout_fits_the_screen(browser, studio, shared, size):
    visit = Visit(browser, studio, size)
    page = visit.open(**shared.state(answers=3, compare=shared.ics, immutable=["left"]))
    page.locator("#answer-text .result").nth(1).wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    rows = page.evaluate(
        "() => [...document.querySelectorAll('.feature-row')].map((e) => e.getBoundingClientRect().top)"
    )
    plot = page.evaluate("() => document.querySelector('#plot .nsewdrag').getBoundingClientRect().top")
    band = page.evaluate("() => document.querySelector('#plot .nsewdrag').getBoundingClientRect().height") / len(NAMES)
    assert np.allclose(rows, plot + band * np.arange(len(NAMES)), atol=3)  # buttons are beside their bands
    page.get_by_role("button", name="All recordings of a class").click()
    page.locator("#points .main-svg").first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth") and visit.errors == []
    visit.context.close()


def test_the_page_goes_on_after_a_restart_of_the_studio(browser, sample):
    with running(sample.folder) as first:
        visit = Visit(browser, first)
        page = visit.open(**sample.state())
        text = page.locator("#answer-text").inner_text()
        job = visit.post("/explainers", {"classifier": sample.classifier, "method": "sparcets"})
        first.process.kill()
        first.process.wait()
        page.locator("#sparsity").fill("10")
        page.get_by_text("The studio does not respond.").wait_for()
        assert page.locator("#answer-text").inner_text() == text  # what was there stays
    with running(sample.folder, "--port", str(urlsplit(first.address).port)) as again:
        assert again.token == first.token  # that of the workspace
        page.get_by_role("heading", name="Log in").wait_for()  # no session outlives the studio
        page.goto(again.printed)  # in the same tab: the state of the page is kept
        page.wait_for_function("() => document.querySelector('#verdict')?.textContent.includes('50 %')")
        assert visit.answer()["share_changed"] == pytest.approx(0.5, abs=0.02)
        page.locator("#trainings summary").click()
        lost = page.locator("#trainings li", has_text="Fitting sparcets")
        assert "lost" in lost.inner_text() and "Start it again" in lost.inner_text()
        assert [j["state"] for j in visit.get("/jobs") if j["id"] == job["id"]] == ["lost"]
    visit.context.close()


def test_a_page_without_a_session_asks_for_the_token(browser, studio, shared):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{studio.address}/#{json.dumps(shared.state())}")
    page.get_by_role("heading", name="Log in").wait_for()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("This is not the token of this studio.").wait_for()
    page.get_by_label("Token").fill(studio.token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("body[data-drawn]")  # with the state of the first address
    assert studio.token not in page.url and context.cookies() == []
    assert studio.token not in page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    page.evaluate("sessionStorage.setItem('sparcets-session', 'guessed')")
    page.locator("#sparsity").fill("9")  # any request: the page asks again
    page.get_by_role("heading", name="Log in").wait_for()
    context.close()


def test_the_code_of_the_address_is_used_once_and_leaves_the_history(browser, sample):
    with running(sample.folder) as studio:
        code = studio.printed.partition("#code=")[2]
        context = browser.new_context()
        page = context.new_page()
        sent = []
        page.on("request", lambda request: sent.extend([request.url.partition("#")[0], *request.headers.values()]))
        page.goto(studio.printed)
        page.wait_for_selector("body[data-ready]")
        assert code not in page.url and not any(code in part for part in sent)  # in the body of one request only
        addresses = page.evaluate("navigation.entries().map((entry) => entry.url)")  # of this origin
        assert addresses[-1] == f"{studio.address}/" and not any(code in address for address in addresses)
        page.go_back()
        assert page.url == "about:blank"

        stranger = browser.new_context().new_page()
        stranger.goto(studio.printed)
        stranger.get_by_text("The code in this address was used already, or is too old.").wait_for()
        assert code not in stranger.url and stranger.get_by_label("Token").is_visible()
        stranger.context.close()
        context.close()
