"""The page in a browser: the workflow from an uploaded file to the exported answer, and error cases."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from .conftest import API, N_TEST, NAMES, Sample, make_outdated, npz_bytes

api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'sparcets[browser]'")
pytestmark = [pytest.mark.browser, pytest.mark.slow]
WAIT = 120_000  # milliseconds; training takes a while on a busy machine
OPENINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "csv": b"query,id,verdict", "npz": b"PK", "html": b"<!doctype html>",
            "py": b"# Run this"}  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def shared(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return a workspace shared by the tests of this file, which add items and remove none."""
    folder = tmp_path_factory.mktemp("shared") / "workspace"
    shutil.copytree(template, folder)
    return Sample(folder)


@pytest.fixture(scope="module")
def studio(shared: Sample) -> Iterator[str]:
    """Start the studio with its command and yield the address that it prints, which holds the token."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", "--workspace", str(shared.folder)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    found = re.search(r"http://\S+", process.stderr.readline())
    assert found
    yield found[0]
    process.send_signal(signal.SIGINT)
    process.wait(120)
    process.stderr.close()


class Visit:
    """A page that records console errors and the hosts of its requests."""

    def __init__(self, browser: Any, address: str, size: str = "desktop") -> None:
        width, height = SIZES[size]
        touch = size == "phone"
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.address = address.partition("/?")[0]
        self.context.request.get(address)  # for the cookie

    def open(self, **state: Any) -> Any:
        self.page.goto(f"{self.address}/#{json.dumps(state)}" if state else self.address)
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def drawn(self) -> int:
        return int(self.page.locator("body").get_attribute("data-drawn") or 0)

    def after(self, action: Any) -> None:
        """Perform an action and wait until the figure is drawn again."""
        before = self.drawn()
        action()
        for _ in range(WAIT // 20):
            if self.drawn() > before:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError("the figure was not drawn again")

    def state(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(unquote(urlsplit(self.page.url).fragment) or "{}")
        return content

    def answer(self) -> dict[str, Any]:
        """Return the API's first answer for the state of the page."""
        answer: dict[str, Any] = self.respond()["answers"][0]
        return answer

    def respond(self) -> dict[str, Any]:
        """Return the API's response for the state of the page."""
        state = self.state()
        request = {
            "explainer": state["explainer"],
            "rows": [state["row"]],
            "target": state.get("target"),
            "sparsity": state.get("sparsity"),
            "constraints": {k: state[k] for k in ("immutable", "frozen", "ranges", "direction") if k in state},
        }
        response: dict[str, Any] = self.page.request.post(f"{self.address}{API}/explanations", data=request).json()
        return response


@pytest.fixture
def visit(browser: Any, studio: str) -> Iterator[Visit]:
    visit = Visit(browser, studio)
    yield visit
    visit.context.close()


def state_of(shared: Sample, **more: Any) -> dict[str, Any]:
    return {"dataset": shared.dataset, "classifier": shared.classifier, "explainer": shared.nearest, "row": 0, **more}


def test_the_workflow_from_upload_to_export(visit: Visit, shared: Sample) -> None:
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
        page.locator("#answer-text .text").wait_for()
        if method == "nearest":
            page.locator("#change-explainer").click()
    page.get_by_text("by Search (ICS)").wait_for()

    visit.after(lambda: page.locator("#queries [role=option]").nth(3).click())
    predicted = page.locator("#queries [aria-selected=true] span").nth(1).inner_text()
    targets = page.locator("#target option").all_inner_texts()
    assert predicted not in targets and len(targets) == 2
    visit.after(lambda: page.locator("#target").select_option(targets[1]))
    assert f"{targets[1]}:" in page.locator("#answer-text .facts").first.inner_text()

    visit.after(lambda: page.locator("#answers").select_option("3"))
    assert page.locator("#tabs button").count() == 3
    visit.after(lambda: page.locator("#compare").select_option(label="Nearest recording, quick"))
    assert page.locator("#answer-text .result").count() == 2
    assert page.locator(".key.other").is_visible()

    name = str(visit.answer()["id"]).replace(" ", "_")
    for kind, opening in OPENINGS.items():
        with page.expect_download() as download:
            page.locator(f"#exports [data-kind={kind}]").click()
        assert Path(download.value.path()).read_bytes().startswith(opening)
        assert download.value.suggested_filename == f"recording-{name}.{kind}"
    page.get_by_text("Python code for this answer").click()
    page.locator("#code code").get_by_text("ex.explain").wait_for()
    assert f"target='{targets[1]}'" in page.locator("#code code").inner_text()
    assert visit.errors == []
    assert visit.hosts == {urlsplit(visit.address).netloc}


def test_the_slider_changes_the_answer(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    shares = []
    for stop in (13, 8, 5):
        if stop < 13:
            visit.after(lambda stop=stop: page.locator("#sparsity").fill(str(stop)))
        shares.append(visit.answer()["share_changed"])
        assert f"{shares[-1] * 100:.0f} %" in page.locator("#answer-text .facts").first.inner_text()
    assert shares[0] > shares[1] > shares[2] and shares[2] <= 0.1
    assert page.locator("#sparsity-text").inner_text() == "at most 10 %"
    page.locator("#sparsity").focus()
    visit.after(lambda: page.keyboard.press("ArrowRight"))
    assert visit.state()["sparsity"] == 0.15


def test_a_locked_feature_does_not_change(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    values = page.request.get(f"{visit.address}{API}/datasets/own/series/0").json()["values"]
    name = visit.answer()["changes"][0]["feature"]
    k = NAMES.index(name)
    button = page.get_by_role("button", name=re.compile(f"^{name} "))
    assert button.get_attribute("aria-pressed") == "false"
    visit.after(button.click)
    assert button.get_attribute("aria-pressed") == "true"
    assert name in page.locator("#locked").inner_text()
    answer = visit.answer()
    assert [step[k] for step in answer["counterfactual"]] == [step[k] for step in values]
    assert name not in {change["feature"] for change in answer["changes"]} and answer["changes"]
    # The figure marks no changed segment in the band of the locked feature.
    bands = page.evaluate("() => document.querySelector('#plot').data[2].y.filter((y) => y !== null)")
    assert {len(NAMES) - 1 - int(y) for y in bands} == {NAMES.index(c["feature"]) for c in answer["changes"]}
    visit.after(lambda: page.keyboard.press("Enter"))  # the button has kept the focus
    assert button.get_attribute("aria-pressed") == "false" and "immutable" not in visit.state()


def test_time_is_locked_by_dragging_and_by_the_form(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    page.locator("#plot").scroll_into_view_if_needed()
    box = page.locator("#plot .nsewdrag").first.bounding_box()

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 70, steps=6)
        page.mouse.up()

    visit.after(drag)
    ((start, stop),) = visit.state()["frozen"]
    assert (start, stop) == pytest.approx((5, 10), abs=1)
    page.locator("#lock-time [name=from]").fill("1.5")
    page.locator("#lock-time [name=to]").fill("1.7")
    visit.after(lambda: page.get_by_role("button", name="Lock", exact=True).click())
    assert visit.state()["frozen"] == [[start, stop], [15, 18]]
    for change in visit.answer()["changes"]:
        steps = set(range(change["start"], change["end"]))
        assert not steps & {*range(start, stop), 15, 16, 17}
    visit.after(lambda: page.get_by_role("button", name="Release all").click())
    assert "frozen" not in visit.state()


def test_features_named_like_parts_of_javascript_are_features(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    page.get_by_role("button", name="Limits of constructor", exact=True).click()  # it has none yet
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("at most").fill("9")
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["ranges"] == {"constructor": [None, 9]} and visit.errors == []
    limits = "(await import('/static/js/state.js'))"
    proto = f"async () => {{ const m = {limits}; const set = m.withLimit({{}}, '__proto__', [0, 1]);"
    assert page.evaluate(f"{proto} return JSON.stringify(set); }}") == '{"__proto__":[0,1]}'
    assert page.evaluate(f"{proto} return [m.limitOf(set, '__proto__'), m.limitOf({{}}, '__proto__')]; }}") == [
        [0, 1],
        None,
    ]


def test_a_range_is_set_and_respected(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    page.get_by_role("button", name="Limits of left").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("at least").fill("2")
    dialog.get_by_label("at most").fill("1")
    dialog.get_by_role("button", name="Set").click()
    assert dialog.get_by_text("must not be above").is_visible()
    dialog.get_by_label("at least").fill("")
    visit.after(lambda: page.keyboard.press("Enter"))
    assert visit.state()["ranges"] == {"left": [None, 1]}
    assert "left: at most 1 m" in page.locator("#locked").inner_text()
    answer = visit.answer()
    changed = [answer["counterfactual"][t][0] for c in answer["changes"] if c["feature"] == "left"
               for t in range(c["start"], c["end"])]  # fmt: skip
    assert changed and max(changed) <= 1


def test_a_reload_keeps_the_state(visit: Visit, shared: Sample) -> None:
    given = state_of(shared, row=4, sparsity=0.3, answers=2, immutable=["idle"], frozen=[[2, 5]], compare=shared.ics)
    page = visit.open(**given)
    page.locator("#answer-text .result").nth(1).wait_for()
    text, state = page.locator("#answer-text").inner_text(), visit.state()
    assert given.items() <= state.items()
    page.reload()
    page.locator("#answer-text .result").nth(1).wait_for()
    assert page.locator("#answer-text").inner_text() == text and visit.state() == state
    assert page.locator("#title-request").inner_text().startswith("Recording 4 (trial ")
    assert visit.errors == []


def test_a_job_is_shown_and_cancelled(visit: Visit, shared: Sample) -> None:
    page = visit.open(dataset=shared.dataset, classifier=shared.classifier)
    assert page.locator("#new-explainer").input_value() == "sparcets"  # the default
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_text(re.compile(r"round \d+ of at most \d+")).wait_for()
    page.reload()  # the job continues
    page.get_by_role("progressbar", name="Fitting sparcets").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("Fitting sparcets was cancelled.").wait_for()
    page.get_by_role("button", name="Fit", exact=True).wait_for()
    assert not [p.name for p in (shared.folder / "explainers").iterdir() if "sparcets" in p.name]
    assert visit.errors == []


def test_errors_are_shown(visit: Visit, shared: Sample) -> None:
    page = visit.open()
    bad = {"name": "gait.csv", "mimeType": "text/csv", "buffer": b"time,label,x\n0,a,1\n"}
    page.get_by_label("Your own file").set_input_files(bad)
    page.get_by_role("alert").get_by_text("gait.csv").wait_for()
    page.get_by_role("button", name="Dismiss").click()
    page = visit.open(**state_of(shared, immutable=NAMES))
    check_error_shown(visit)
    visit.after(lambda: page.get_by_role("button", name="Release all").click())
    assert page.get_by_role("alert").count() == 0 and page.locator("#answer-text .text").is_visible()


def check_error_shown(visit: Visit) -> None:
    """Check that the page shows the API's error message and no answer."""
    visit.page.get_by_role("alert").get_by_text(visit.respond()["error"]["message"]).wait_for()
    assert visit.page.locator("#answer-text").inner_text() == "There is no answer to show."


def test_an_explainer_of_an_older_version_shows_the_reason(visit: Visit, shared: Sample) -> None:
    shutil.copytree(shared.folder / "explainers" / shared.ics, shared.folder / "explainers" / "old")
    record = shared.folder / "explainers" / "old" / "about.json"
    record.write_text(record.read_text().replace('"id": "ics"', '"id": "old"'))
    make_outdated(shared, "old")
    page = visit.open(**state_of(shared, explainer="old"))
    check_error_shown(visit)
    message = page.get_by_role("alert").locator("span").inner_text()
    page.locator("#change-explainer").click()
    page.locator("#have-explainer").select_option(shared.nearest)
    visit.after(lambda: page.locator("#step-explainer").get_by_role("button", name="Use").click())
    assert page.get_by_role("alert").count() == 0 and page.locator("#answer-text .text").is_visible()
    visit.after(lambda: page.locator("#compare").select_option("old"))  # the first answer stays visible
    assert page.get_by_role("alert").locator("span").inner_text() == message
    assert page.locator("#answer-text .result").count() == 1
    assert all("422" in error for error in visit.errors)


def test_a_url_of_removed_items_starts_with_an_empty_state(visit: Visit) -> None:
    page = visit.open(dataset="gone-123", classifier="gone", explainer="gone", row=3)
    assert page.get_by_role("heading", name="Start with data").is_visible()
    page.goto(f"{visit.address}/#%7Bbroken")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.get_by_role("heading", name="Start with data").is_visible() and visit.errors == []


def test_a_long_list_is_shown_in_pages(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    assert page.get_by_text(f"{N_TEST} test recordings").is_visible()
    assert not page.get_by_role("button", name="Show more").is_visible()
    page.locator("#filter-class").select_option("wild")
    page.get_by_text(re.compile(r"^\d test recordings")).wait_for()
    assert set(page.locator("#queries li span:nth-child(2)").all_inner_texts()) == {"wild"}

    def short(route: Any) -> None:  # pages of four
        route.continue_(url=route.request.url.replace("limit=100", "limit=4"))

    page.route("**/queries?*", short)
    page.locator("#filter-class").select_option("")
    page.get_by_text(f"4 of {N_TEST} test recordings").wait_for()
    page.get_by_role("button", name="Show more").click()
    page.get_by_text(f"8 of {N_TEST} test recordings").wait_for()
    rows = page.locator("#queries .nr").all_inner_texts()
    assert rows == [f"#{i}" for i in range(8)]


def test_the_keyboard_reaches_everything(visit: Visit, shared: Sample) -> None:
    page = visit.open(**state_of(shared))
    page.locator("#queries").focus()
    visit.after(lambda: page.keyboard.press("ArrowDown"))
    assert visit.state()["row"] == 1
    visit.after(lambda: page.keyboard.press("End"))
    assert visit.state()["row"] == N_TEST - 1
    page.evaluate("() => document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.className.split(' ')[0]"))
    assert {"queries", "target", "sparsity", "answers", "feature", "more", "copy"} - reached <= {"copy"}
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input')].filter((e) => e.offsetParent && "
        "!(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert unnamed == []


@pytest.mark.parametrize("size", SIZES)
def test_the_layout_fits_the_screen(browser: Any, studio: str, shared: Sample, size: str) -> None:
    visit = Visit(browser, studio, size)
    page = visit.open(**state_of(shared, answers=3, compare=shared.ics, immutable=["left"]))
    page.locator("#answer-text .result").nth(1).wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    rows = page.evaluate(
        "() => [...document.querySelectorAll('.feature-row')].map((e) => e.getBoundingClientRect().top)"
    )
    plot = page.evaluate("() => document.querySelector('#plot .nsewdrag').getBoundingClientRect().top")
    band = page.evaluate("() => document.querySelector('#plot .nsewdrag').getBoundingClientRect().height") / len(NAMES)
    assert np.allclose(rows, plot + band * np.arange(len(NAMES)), atol=3)  # buttons are beside their bands
    assert visit.errors == []
    visit.context.close()


def test_two_pages_are_independent(browser: Any, studio: str, shared: Sample) -> None:
    one, other = Visit(browser, studio), Visit(browser, studio)
    first, second = one.open(**state_of(shared)), other.open(**state_of(shared, row=5, explainer=shared.ics))
    one.after(lambda: first.get_by_role("button", name=re.compile("^left ")).click())
    other.after(lambda: second.locator("#sparsity").fill("9"))
    assert one.state()["immutable"] == ["left"] and "immutable" not in other.state()
    assert first.locator("#answer-text .text").inner_text() == one.answer()["text"]
    assert second.locator("#answer-text .text").inner_text() == other.answer()["text"]
    for visit in (one, other):
        visit.context.close()


def test_the_page_requests_the_token(browser: Any, studio: str, shared: Sample) -> None:
    address, _, token = studio.partition("/?token=")
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/#{json.dumps(state_of(shared))}")
    assert page.get_by_text("This studio needs its token.").is_visible()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Enter").click()
    page.get_by_text("This is not the token of this studio.").wait_for()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Enter").click()
    page.wait_for_selector("body[data-drawn]")  # with the state of the first address
    assert "token" not in page.url and page.evaluate("document.cookie") == ""  # HttpOnly
    context.clear_cookies()
    page.locator("#sparsity").fill("9")  # any request: the page asks again
    page.get_by_text("This studio needs its token.").wait_for()
    context.close()


def test_a_link_on_another_site_opens_the_page(browser: Any, studio: str, shared: Sample, tmp_path: Path) -> None:
    visit = Visit(browser, studio)
    (tmp_path / "other.html").write_text(f"<a href='{visit.address}/#{json.dumps(state_of(shared))}'>link</a>")
    visit.page.goto((tmp_path / "other.html").as_uri())
    visit.page.get_by_text("link").click()
    visit.page.wait_for_selector("body[data-drawn]")
    visit.context.close()
