"""The answer in a browser: verdict, curve and slider, locks, curves by hand, undo, groups, dark mode."""

import re
from pathlib import Path

import numpy as np
import pytest

from sparcets.core.evidence import VERDICTS
from tests.axe import serious_findings

from .conftest import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def open_curve(visit, shared, **more):
    """Open a recording with our own method and wait for its curve."""
    page = visit.open(**shared.state(**{"explainer": shared.sparcets, "target": "wild", **more}))
    page.wait_for_selector("body[data-curve]")
    return page


def value_of(page, cap):
    """Return the position of the slider for a cap."""
    shown = [float(text.strip(" %")) / 100 for text in page.locator("#ticks span").all_inner_texts()]
    assert shown
    return page.evaluate(
        "async (cap) => { const { stopOf } = await import('/static/js/curve.js'); return String(stopOf(cap)); }", cap
    )


def test_the_slider_stands_on_the_curve(visit, shared):
    page = open_curve(visit, shared)
    answer = visit.answer()
    curve = visit.post("/curves", {"explainer": shared.sparcets, "rows": [0], "target": "wild"})
    assert curve["needed"] == pytest.approx(answer["share_changed"]) and len(curve["share"]) > 10
    # It starts at the answer that the method gives by itself: the smallest that other models agree with.
    assert page.locator("#sparsity").input_value() == value_of(page, None)
    assert all(share > 0.5 for share in answer["support"].values())
    assert "the smallest found that all kinds of other models agree with" in page.locator("#sparsity-text").inner_text()
    thumb = page.locator("#curve .mark.current").bounding_box()
    slider = page.locator("#sparsity").bounding_box()
    at = int(value_of(page, None)) / int(page.locator("#sparsity").get_attribute("max"))
    assert thumb["x"] + thumb["width"] / 2 == pytest.approx(slider["x"] + 8 + at * (slider["width"] - 16), abs=2)
    assert page.locator("#curve .zone.green").count() == 1 and page.locator("#curve .best").count() == 1
    assert "other models of every kind agree, too:" in page.locator("#curve-text").inner_text()

    words = {answer["verdict"]["word"]}
    for cap in (0.05, 0.01):
        visit.after(lambda cap=cap: page.locator("#sparsity").fill(value_of(page, cap)))
        answer = visit.answer()
        words.add(answer["verdict"]["word"])
        verdict = answer["verdict"]
        assert page.locator("#badge").inner_text() == f"{verdict['symbol']} {verdict['word'].capitalize()}"
        check_look(page, answer)
        assert answer["share_changed"] <= cap
        assert f"at most {100 * cap:.2g}" in page.locator("#sparsity-text").inner_text()
    assert len(words) > 1  # belief is lost
    page.locator("#sparsity").focus()
    visit.after(lambda: page.keyboard.press("ArrowRight"))
    assert visit.state()["sparsity"] == 0.02
    visit.after(lambda: page.get_by_role("button", name="Back to the answer without a limit").click())
    assert "sparsity" not in visit.state() and visit.errors == []


def check_look(page, answer):
    """Check that only a believed answer is drawn as one."""
    word, line = answer["verdict"]["word"], page.evaluate("() => document.querySelector('#plot').data.at(-1).line")
    legend = page.locator(".key.after").inner_text()
    if word in ("believed", "unchanged"):
        assert line["dash"] == "solid" and legend == "answer"
    else:
        assert line["dash"] == "dash" and legend == word
    tone = page.evaluate(
        f"() => getComputedStyle(document.documentElement).getPropertyValue('--{answer['verdict']['tone']}').trim()"
    )
    assert line["color"] == (tone if word != "believed" else line["color"])


def test_a_curve_is_changed_by_hand_and_the_rest_is_found(visit, shared):
    page = open_curve(visit, shared)
    page.get_by_role("button", name="Change a curve by hand").click()
    page.locator("#hand").scroll_into_view_if_needed()
    box = page.locator("#hand").bounding_box()
    x, y = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * (NAMES.index("top") + 0.5) / 4
    page.mouse.move(x, y)
    page.mouse.down()
    visit.after(lambda: page.mouse.move(x, y - 8, steps=4))
    page.mouse.move(x, y - 12)
    visit.after(page.mouse.up)
    (stroke,) = visit.state()["strokes"]
    assert stroke["feature"] == "top" and stroke["by"] > 0 and stroke["at"] == pytest.approx(10, abs=1)
    drawn = visit.answer()
    told = page.locator("#hand-text").inner_text()
    k = ["brisk", "calm", "wild"].index("wild")
    assert "The model says" in told and f"wild {100 * drawn['probability_after'][k]:.2g}"[:7] in told
    assert page.locator("#verdict .facts.method").inner_text() == "drawn by hand"
    visit.after(lambda: page.get_by_role("button", name="Keep this and find the rest").click())
    whole = visit.answer()
    steps = range(max(0, stroke["at"] - stroke["width"]), min(20, stroke["at"] + stroke["width"] + 1))
    kept = [[a["counterfactual"][t][2] for t in steps] for a in (drawn, whole)]
    assert kept[0] == kept[1] and whole["valid"]  # what was drawn stays
    assert {name for edit in whole["edits"] for name in edit["features"]} > {"top"}
    visit.after(lambda: page.keyboard.press("Control+z"))
    assert "findRest" not in visit.state() and len(visit.state()["strokes"]) == 1
    visit.after(lambda: page.keyboard.press("Control+z"))
    assert "strokes" not in visit.state()  # one pull was one action
    assert visit.errors == []


def test_every_action_can_be_undone(visit, shared):
    page = visit.open(**shared.state())
    assert page.locator("#undo").is_disabled() and page.locator("#redo").is_disabled()
    visit.after(lambda: page.get_by_role("button", name=re.compile("^left ")).click())
    visit.after(lambda: page.locator("#queries [role=option]").nth(2).click())
    assert visit.state()["row"] == 2 and visit.state()["immutable"] == ["left"]
    visit.after(lambda: page.get_by_role("button", name="Undo").click())
    assert visit.state()["row"] == 0 and visit.state()["immutable"] == ["left"]
    visit.after(lambda: page.keyboard.press("Control+z"))
    assert "immutable" not in visit.state() and page.locator("#undo").is_disabled()
    visit.after(page.go_forward)  # the browser's own buttons do the same
    assert visit.state()["immutable"] == ["left"]
    assert page.get_by_role("button", name=re.compile("^left ")).get_attribute("aria-pressed") == "true"
    visit.after(lambda: page.keyboard.press("Control+Shift+z"))
    assert visit.state()["row"] == 2 and page.locator("#redo").is_disabled()
    visit.after(page.go_back)
    assert visit.state()["row"] == 0 and visit.errors == []


def test_time_is_locked_by_dragging_and_by_the_form(visit, shared):
    page = visit.open(**shared.state())

    def drag(band, choice):
        page.locator("#plot").scroll_into_view_if_needed()
        box = page.locator("#plot .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 48 * band + 12)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 48 * band + 20, steps=6)
        page.mouse.up()
        page.get_by_role("button", name=choice).click()

    visit.after(lambda: drag(1, "Lock all features"))
    ((start, stop),) = visit.state()["frozen"]
    assert (start, stop) == pytest.approx((5, 10), abs=1)
    visit.after(lambda: page.get_by_role("button", name=re.compile("^Release ")).click())
    visit.after(lambda: drag(2, "Lock top only"))
    assert visit.state()["frozenFeatures"] == {"top": [[start, stop]]} and "frozen" not in visit.state()
    page.locator("#lock-time [name=feature]").select_option("constructor")
    page.locator("#lock-time [name=from]").fill("1.5")
    page.locator("#lock-time [name=to]").fill("1.7")
    visit.after(lambda: page.get_by_role("button", name="Lock", exact=True).click())
    assert visit.state()["frozenFeatures"]["constructor"] == [[15, 18]]
    values = np.array(visit.get("/datasets/own/series/0")["values"])
    changed = np.array(visit.answer()["counterfactual"]) != values
    assert not changed[start:stop, 2].any() and not changed[15:18, 1].any() and changed[start:stop, 0].any()
    visit.after(lambda: page.get_by_role("button", name="Release all").click())
    assert "frozenFeatures" not in visit.state()


def drawn_map(page):
    """Return how many cells of the map of a group have a value, and the size of its picture on the page."""
    return page.evaluate(
        "() => { const map = document.querySelector('#group-map'), image = map.querySelector('.heatmaplayer image');"
        " const { width, height } = image.getBoundingClientRect(); const bytes = image.href.baseVal.length;"
        " return { width, height, bytes, cells: map.data[0].z.flat().filter((v) => v !== null).length }; }"
    )


def test_what_changes_for_all_of_a_class(visit, shared):
    page = visit.open(**shared.state(view="group", source="calm", target="wild"))
    table = page.locator("#confusion table").first
    cells = [[int(c) for c in row.locator("td").all_inner_texts()] for row in table.locator("tbody tr").all()]
    assert np.sum(cells) == 18 and "Held out" in table.locator("caption").inner_text()
    points = page.evaluate("() => document.querySelector('#points').data.map((t) => t.x.length)")
    assert sum(points) == visit.get(
        f"/classifiers/{shared.classifier}/queries?limit=1")["total"]  # fmt: skip
    visit.after(lambda: page.locator("#group-go").click(), "group")
    assert page.get_by_role("heading", name=re.compile(r"calm → wild: \d+ recordings")).is_visible()
    page.locator("#group-map .heatmaplayer image").wait_for()
    before = drawn_map(page)
    assert before["cells"] > 10 and before["width"] > 300 and before["height"] > 50 and before["bytes"] > 200
    assert page.locator("#group-map .ytick text").all_text_contents() == NAMES  # also "constructor"
    assert page.locator(".patterns tbody tr").count() > 0
    assert page.locator("#group-result .verdicts .badge").count() > 0
    with page.expect_download() as download:
        page.locator("#group-result [data-kind=html]").click()
    assert Path(download.value.path()).read_text().count("<article") == sum(cell[1] for cell in cells)
    page.evaluate("() => document.querySelector('#points').emit('plotly_click', { points: [{ customdata: 3 }] })")
    page.wait_for_function("() => !document.querySelector('#table').hidden")
    assert visit.state()["row"] == 3
    page.go_back()
    page.get_by_role("heading", name=re.compile(r"calm → wild: \d+ recordings")).wait_for()  # the result is still there
    page.locator("#group-map .heatmaplayer image").wait_for()
    assert drawn_map(page) == before and visit.state()["target"] == "wild"
    assert visit.errors == []


def test_the_colours_of_verdicts_are_those_of_reports():
    style = (Path(__file__).parents[2] / "sparcets" / "studio" / "static" / "style.css").read_text()
    for verdict in VERDICTS.values():
        assert f"--{verdict.tone}: {verdict.colour}; --{verdict.tone}-tint: {verdict.tint};" in style


def test_axe_finds_nothing_serious(visit, shared):
    page = open_curve(visit, shared)
    assert serious_findings(page, "light") == serious_findings(page, "dark") == []
    assert serious_findings(visit.open(), "light") == []  # the first page, with the steps of a start
