"""Verdicts in figures: only a believed answer is drawn as one, and every figure begins with the verdict in words."""

import numpy as np
import pytest
from matplotlib import colors

from sparcets.core.evidence import VERDICTS, Evidence
from sparcets.core.explanation import join
from sparcets.show import style
from sparcets.show.drawing import agreement_of
from sparcets.show.interactive import agreement_figure, curves_figure, curves_svg, show
from sparcets.show.plots import plot_answer, plot_answers
from tests.show.plots.conftest import BELIEVED, TRICK, evidence

NONE = Evidence.none(1)
MISSED = {"proba_after": np.array([[0.9, 0.1]]), "status": np.array(["not_found"])}
CASES = [
    ("believed", {"evidence": BELIEVED}, style.AFTER, "solid"),
    ("doubtful", {"evidence": evidence(1.0, 0.9, 0.8, 1.0, jumps=1)}, VERDICTS["doubtful"].colour, "dash"),
    ("doubtful", {"evidence": NONE}, VERDICTS["doubtful"].colour, "dash"),
    ("trick", {"evidence": TRICK}, VERDICTS["trick"].colour, "dot"),
    ("not reached", {"evidence": TRICK, **MISSED}, VERDICTS["not reached"].colour, "longdash"),
]


@pytest.mark.parametrize(("word", "given", "colour", "dash"), CASES)
def test_each_verdict_has_its_line_its_name_and_its_words_at_the_top(answer, word, given, colour, dash):
    e = answer({(3, 0): 1.0, (4, 2): 2.0}, **given)
    assert e.verdict.tolist() == [word]
    figure, name = plot_answer(e), VERDICTS[word].label
    after = figure.axes[0].lines[0]
    assert colors.same_color(after.get_color(), colour) and name in after.get_label()
    assert after.is_dashed() == (word != "believed"), "never by colour alone"
    assert any(text.get_text().startswith(f"{VERDICTS[word].title}: ") for text in figure.texts)
    trace = curves_figure(e)["data"][0]
    assert (trace["line"]["color"], trace["line"]["dash"], trace["name"]) == (colour, dash, after.get_label())
    picture = curves_svg(e)
    assert f'stroke="{colour}"' in picture and f">{after.get_label()}</text>" in picture
    assert ("stroke-dasharray" in picture) == (word != "believed")


def test_of_several_answers_each_has_the_colour_of_its_verdict(answer):
    e = join([answer({(2, 0): 4.0}, evidence=BELIEVED), answer({(2, 0): 5.0}, evidence=TRICK)])
    believed, trick, _ = plot_answers(e).axes[0].lines
    assert believed.get_label().startswith("✓ answer 1: believed, p 0.80")
    assert trick.get_label().startswith("✗ attempt 2: trick, p 0.80")
    assert believed.get_color() == style.AFTER and trick.get_linestyle() != believed.get_linestyle()
    red, green, blue = colors.to_rgb(trick.get_color())
    assert red > 1.5 * max(green, blue)


def test_points_of_the_curve_by_what_is_known_at_each(answer):
    points = agreement_of(answer({(3, 0): 1.0}, evidence=BELIEVED))
    assert points.share.tolist() == [10.0, 20.0, 30.0] and points.support.tolist() == [50.0, 30.0, 90.0]
    assert points.word.tolist() == ["not reached", "doubtful", "believed"]
    assert points.best.tolist() == [0.0, 30.0, 90.0], "of what the model accepts, and never falling"


def test_the_curve_is_drawn_where_it_was_measured(answer):
    e = answer({(3, 0): 1.0}, evidence=BELIEVED)
    panel = next(axes for axes in plot_answer(e).axes if axes.get_xlabel().startswith("changed values"))
    drawn = {line.get_label(): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in panel.lines}
    assert [values.tolist() for values in drawn["model and all others agree"]] == [[30.0], [90.0]]
    assert panel.get_title(loc="left") == "the model flips at 20 % (dotted),\nall others follow at 30 % (dashed)"
    assert [line.get_xdata()[0] for line in panel.lines[-2:]] == [20.0, 30.0]
    agreement = agreement_of(e)
    figure = agreement_figure(agreement)
    assert show(figure).data and figure["layout"]["title"]["text"] == panel.get_title(loc="left").replace("\n", " ")
    by_name = {trace["name"]: trace["x"] for trace in figure["data"] if "name" in trace}
    assert by_name["the target is not reached"] == [10.0]
    without = answer({(3, 0): 1.0})
    assert agreement_of(without) is None and len(plot_answer(without).axes) == 3


def test_gaps_interrupt_the_lines_on_paper(answer):
    gap = answer({(8, 0): 1.0})
    for series in (gap.query, gap.counterfactual):
        series[0, 4, 0] = np.nan
    assert curves_svg(gap).count("<polyline") == 4 and "nan" not in curves_svg(gap)
    assert "&lt;b&gt;" in curves_svg(answer({(8, 0): 1.0}, info={"feature_names": ("<b>", "b", "c")}))
