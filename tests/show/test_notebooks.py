"""What notebooks show: cards of objects, and pictures without any setup."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

NAMES = ["<script>alert(1)</script>", "a & b", "c"]


@pytest.fixture(scope="module")
def shown():
    """Return one object of each kind that has a card, with names as a user's file may have them."""
    X, y = make_series(60)
    labels = np.array(NAMES)[y]
    about = {"feature_names": [*NAMES, "d"], "name": "<b>mine</b>", "sampling_rate": 50, "units": "m/s"}
    ds = sp.Dataset.from_arrays(X, labels, **about)
    ex = sp.Nearest(sp.wrap(mean_proba, class_names=list(ds.class_names))).fit(ds)
    e = ex.explain(ds.X_test, target="a & b")
    return {"dataset": ds, "explainer": ex, "explanation": e, "scores": sp.evaluate(e)}


@pytest.mark.parametrize("kind", ["dataset", "explainer", "explanation", "scores"])
def test_cards_are_escaped(shown, kind):
    card = shown[kind]._repr_html_()
    assert card.startswith("<div><b>") and card.endswith("</div>")
    assert "<script>" not in card and "<b>mine" not in card and "a & b" not in card
    if kind != "scores":  # which name no class and no feature
        assert "&lt;script&gt;" in card and "a &amp; b" in card


def test_cards_say_what_there_is(shown):
    card = shown["dataset"]._repr_html_()
    assert "48 training + 12 test series" in card and "at 50 Hz" in card and "c (m/s)" in card
    assert '<td style="text-align:right">16</td><td style="text-align:right">4</td>' in card
    e = shown["explanation"]
    assert e._repr_html_().count("<tr>") == 11 and "the first 10 of 12 answers" in e._repr_html_()
    assert e[:3]._repr_html_().count("<tr>") == 4 and "the first" not in e[:3]._repr_html_()
    assert "universality" in shown["scores"]._repr_html_() and "12 answers" in shown["scores"]._repr_html_()
    assert "4 features (4 mutable)" in shown["explainer"]._repr_html_()
    assert "not fitted yet" in sp.Nearest(shown["explainer"].classifier)._repr_html_()


def test_a_picture_is_shown_by_itself_and_once(shown):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = shown["explanation"].plot(0)
    image, size = figure._repr_png_()
    assert image.startswith(b"\x89PNG") and size["width"] == pytest.approx(80 * 11, abs=1)
    assert pyplot.get_fignums() == []  # what pyplot knows, a notebook would show a second time
