"""Answers about numbers in words, pictures, the report and the notebook."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.show.report import write_report
from sparcets.testing.data import make_series


@pytest.fixture(scope="module")
def answers():
    X, _ = make_series(90)
    numbers = 10 * X[:, :, :2].mean(1)
    ds = sp.Dataset.from_arrays(
        X, numbers, task="regression", output_names=["pressure", "flow"], output_units=["mmHg", "l/s"]
    )
    ex = sp.Nearest(sp.wrap(lambda Z: 10 * np.asarray(Z)[:, :, :2].mean(1), task="regression")).fit(ds)
    low = ds.X_test[10 * ds.X_test[:, :, 0].mean(1) < 3][:1]
    return ex.explain(np.repeat(low, 3, axis=0), [sp.AtLeast(5, output=0), sp.AtLeast(1e9, output=0), sp.AtMost(1e9)])


def test_text_speaks_of_the_number_that_was_asked_for(answers):
    before, after = answers.prediction_before[0, 0], answers.prediction[0, 0]
    assert f"The model predicts pressure of {before:.4g} mmHg. For pressure at least 5 mmHg:" in answers.text(0)
    assert f"prediction of pressure goes from {before:.4g} mmHg to {after:.4g} mmHg" in answers.text(0)
    assert answers.text(0, short=True).startswith(f"? Doubtful: pressure from {before:.4g} mmHg to {after:.4g} mmHg")
    assert "probability" not in answers.text(0) and "a real series within the target" in answers.text(0)
    assert f"The model predicts pressure of {before:.4g} mmHg, not pressure at least 1e+09 mmHg: no" in answers.text(1)
    assert "The model already predicts" in answers.text(2)


def test_pictures_and_pages_hold_the_numbers(answers, tmp_path):
    pytest.importorskip("matplotlib")
    after = f"{answers.prediction[0, 0]:.4g} mmHg"
    assert after in answers.plot(0).get_suptitle()
    write_report(answers, tmp_path / "report.html")
    for page in (answers._repr_html_(), (tmp_path / "report.html").read_text(encoding="utf-8")):
        assert after in page
        assert "pressure at least 5 mmHg" in page
        assert "nan" not in page.lower().split("<script")[0] and ">reached<" in page and ">probability<" not in page
