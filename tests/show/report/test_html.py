"""The report: its text, that it is self-contained, and that markup in the data is escaped."""

import base64
import json
import re
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from sparcets.core.errors import DataError, MissingExtraError
from sparcets.core.evidence import VERDICTS
from sparcets.core.info import ModelCheck
from sparcets.evaluation.evaluate import evaluate
from sparcets.show import report as html
from sparcets.show.report import write_report

SCRIPT = re.compile(r"<script[^>]*>.*?</script>", flags=re.S)


def made(e, folder, **options):
    return write_report(e, folder / "report.html", **options).read_text(encoding="utf-8")


def words(page):
    """Return the visible text of a page as one line."""
    text = []
    parser = HTMLParser()
    parser.handle_data = text.append
    parser.feed(re.sub(r"<style>.*?</style>", "", SCRIPT.sub("", page), flags=re.S))
    return " ".join(" ".join(text).split())


def numbers(page, name):
    found = re.search(rf'<script type="text/plain" id="{name}-numbers">([^<]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def test_every_answer_has_its_text(explanation, tmp_path):
    seen = words(made(explanation, tmp_path))
    for i in range(len(explanation)):
        for line in explanation.text(i).splitlines():
            said = " ".join(line.strip().removeprefix("- ").removeprefix("Careful: ").split())
            assert said.replace(": ", " : ", 1) in seen or said in seen  # tags end after the first colon
    assert "6 answers to 5 queries by sparcets ; 4 of the 5 that needed a change are valid." in seen
    assert "6 explanations towards well & <fit>" in seen


def test_queries_are_named_where_they_have_names(explanation, tmp_path):
    ids, subjects = np.array([f"<b>trial</b> {i}" for i in explanation.query_index]), np.arange(6) + 70
    page = made(replace(explanation, ids=ids, subjects=subjects), tmp_path)
    seen = words(page)
    assert "<b>trial</b> 3, subject 74, unchanged" in seen and "answer query id subject verdict predicted" in seen
    assert "<b>trial" not in page
    plain = words(made(explanation, tmp_path))
    assert "(query 3, unchanged" in plain and "answer query verdict predicted" in plain


def test_figures_are_drawn_from_the_data_in_the_page(explanation, tmp_path):
    page = made(explanation, tmp_path)
    figures = numbers(page, "pictures-2")
    assert set(figures) == {"curves", "map", "body"}
    recorded = figures["curves"]["data"][1]["y"]
    np.testing.assert_allclose(recorded, explanation.query[2, :, 2], rtol=1e-4)
    assert set(numbers(page, "pictures-0")) == {"curves", "map", "body", "answers"}, "once, with the first of two"
    assert "answers" not in numbers(page, "pictures-1") and set(numbers(page, "set")) == {"frequency"}
    for key in figures:
        assert f'data-name="{key}"' in page


def test_the_table_can_be_sorted_by_numbers(explanation, tmp_path):
    page = made(explanation, tmp_path)
    head, body = re.search(r'<table id="answers"><thead>(.*?)</thead><tbody>(.*?)</tbody>', page, re.S).groups()
    names = re.findall(r"<button[^>]*>(.*?)</button>", head)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)]
    assert names[:7] == ["answer", "query", "verdict", "predicted", "target", "status", "probability"]
    assert names[7:] == ["changed, %", "segments", "warnings"]
    assert len(rows) == 6 and all(len(row) == len(names) for row in rows)
    assert rows[0][6] == "0.90" and rows[0][7] == "5" and rows[3][5] == "not_found"
    assert [re.sub("<.*?>", "", row[2]) for row in rows] == [str(VERDICTS[word]) for word in explanation.verdict]
    # No other models, all but the last stretch a limb; the third leaves the range of the data, and is from a neighbour.
    assert [row[-1] for row in rows] == ["2", "2", "4", "0", "0", "1"]


def test_names_and_reasons_are_escaped(explanation, tmp_path):
    page = made(explanation, tmp_path, title="<script>alert(1)</script>")
    outside = SCRIPT.sub("", page)
    assert "<script>alert" not in page and "<i>load" not in outside and "<impossible>" not in outside
    assert "it is <impossible>" in words(page) and "<i>load</i>" in words(page)


def test_a_model_that_knows_nothing_is_spoken_against_first(explanation, tmp_path):
    check = ModelCheck(score=0.3, chance=0.4, n_series=20, held_out=True, doubts=("the model is <i>no</i> use",))
    page = made(replace(explanation, info=replace(explanation.info, model=check)), tmp_path)
    told = "Careful:</b> the model is &lt;i&gt;no&lt;/i&gt; use."
    assert page.index('id="summary"') < page.index(told) < page.index("that needed a change are valid") + 400
    assert page.count("the model is &lt;i&gt;no&lt;/i&gt; use") > 1  # with the answers, too
    assert told not in made(explanation, tmp_path)


def test_nothing_is_loaded_from_elsewhere(explanation, tmp_path):
    outside = SCRIPT.sub("", made(explanation, tmp_path))
    assert "://" not in outside and "@import" not in outside and "url(" not in outside
    assert "Content-Security-Policy\" content=\"default-src 'none'" in outside


def test_scores_in_words(explanation, tmp_path):
    without = words(made(explanation, tmp_path))
    assert "Quality" not in without and "No other models were asked" in without
    plain = evaluate(explanation, progress=False)
    measured = words(made(explanation, tmp_path, scores=plain))
    assert "80 % of the 5 answers make the model predict the target" in measured
    assert "No other models were asked" in measured, "there are no judges without transfer"
    frame = plain.per_query.assign(transfer=1.0, transfer_fcn=[1.0, 1, 0, 0, np.nan, 1], transfer_tcn=0.0)
    judged = replace(plain, per_query=frame, summary={**plain.summary, "transfer": plain.summary["valid"]})
    seen = words(made(explanation, tmp_path, scores=judged))
    assert "Independent judges agree with 80 % of them" in seen and "No independent judges" not in seen
    assert "1 of 2 independent judges say well & <fit> too (fcn yes, tcn no)." in seen
    assert "judges" in seen and "1 of 2" in seen and "none of 2 independent judges agrees" in seen


def test_scores_of_another_explanation_raise_and_nothing_is_made(explanation, tmp_path):
    scores = evaluate(explanation[:2], progress=False)
    with pytest.raises(DataError, match="not those of this explanation"):
        write_report(explanation, tmp_path / "r.html", scores=scores)
    assert list(tmp_path.iterdir()) == []


def test_of_very_many_answers_the_first_are_shown(explanation, tmp_path, monkeypatch):
    monkeypatch.setattr(html, "MAX_ANSWERS", 4)
    page = made(explanation, tmp_path)
    assert page.count("<article") == 4 and "2 more are left out" in words(page)
    assert "6 answers to 5 queries" in words(page), "the summary covers all"
    assert "left out" not in words(made(explanation[:4], tmp_path))


def test_without_plotly_the_error_says_what_to_install(explanation, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(MissingExtraError, match=r"reports need plotly. .*sparcets\[plots\]"):
        write_report(explanation, tmp_path / "r.html")


def test_nothing_to_report(explanation, tmp_path):
    with pytest.raises(DataError, match="nothing to report"):
        write_report(explanation[:0], tmp_path / "r.html")
