"""Descriptions of hand-made answers: what changes, when, by how much and in which units."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.evidence import Evidence
from sparcets.show.report import write_report
from sparcets.show.text import narrate
from sparcets.testing.data import make_series


def test_the_long_and_the_short_form(answer):
    text = narrate(answer({(3, 0): 1.0, (4, 0): 2.0}, units=("rad", "bar"), rate=4.0))
    assert text.splitlines() == [
        "? Doubtful: no other models were asked about it.",
        "The model says sick. For it to say well:",
        "  - roll from 0.75 to 1.25 s: 1.5 rad higher",
        "Unchanged: pressure. Nothing changes before 0.75 s or after 1.25 s.",
        "10 % of the values that may change do. The model's probability of well goes from 0.10 to 0.88.",
    ]
    text = narrate(answer({(3, 0): 1.0, (4, 0): 2.0}), short=True)
    assert text == ("? Doubtful: well instead of sick (probability 0.10 → 0.88): roll in steps 3 to 4.")


FLAT = ("elbow_x", "elbow_y", "wrist_x", "wrist_y")
DEEP = ("elbow_x", "elbow_y", "elbow_z", "wrist_x", "wrist_y", "wrist_z")
DOWN = {(t, 4): -1.0 - (t % 2) for t in range(3, 6)}


@pytest.mark.parametrize(
    ("changes", "given", "phrase"),
    [
        ({(9, 1): -0.25}, {}, "pressure in step 9: 0.25 lower"),
        ({(2, 0): 1.0, (3, 0): 4.0}, {"units": ("rad", "")}, "roll in steps 2 to 3: 2.5 rad higher"),
        ({(2, 0): 3.0, (3, 0): -3.0}, {"units": ("m", "")}, "roll in steps 2 to 3: both ways by up to 3 m"),
        ({(t, 3): -2.0 for t in range(3, 6)}, {"names": FLAT}, "wrist_y in steps 3 to 5: 2 lower"),
        (DOWN, {"names": DEEP}, "wrist_y in steps 3 to 5: 1.7 further towards −y"),
        ({(t, 4): (-1.0) ** t for t in range(3, 7)}, {"names": DEEP},
         "wrist_y in steps 3 to 6: to and fro along y by up to 1"),
        (DOWN, {"names": tuple(name.replace("wrist", "gravity") for name in DEEP)},
         "gravity_y in steps 3 to 5: 1.7 lower"),
    ],
    ids=["one step", "mean", "both ways", "height", "axis", "to and fro", "no body"],
)  # fmt: skip
def test_a_change_in_words(answer, changes, given, phrase):
    """Only heights of a body are raised; in space, no axis is known to be the height."""
    assert f"\n  - {phrase}\n" in narrate(answer(changes, **given))


def test_the_largest_changes_in_standard_deviations_come_first_and_the_rest_is_listed(answer):
    text = narrate(answer({(0, 0): 2.0, (5, 1): 3.0, (7, 0): -3.0}))
    assert text.index("step 7: 3 lower") < text.index("step 0: 2 higher")
    assert "pressure in" not in text, "0.75 standard deviations of 5.75; the others are most"
    assert "And 1 other change (13 % of all change), in pressure." in text
    many = answer({(6 * t, 0): 1.0 for t in range(20)}, n_steps=120)
    assert narrate(many).count("  - roll") == 8 and "And 12 other changes" in narrate(many)
    assert narrate(many, short=True).count("roll") == 3 and "other edits" in narrate(many, short=True)


def test_features_that_stay_and_the_share_of_what_may_change(answer):
    names = ("hand_x", "hand_y", "load", "ball_x", "ball_y")
    text = narrate(answer({(3, 2): 1.0}, names=names, mutable=np.array([True, True, True, False, False])))
    assert "Unchanged: hand. Not allowed to change: ball." in text, "by the name of the group"
    half = narrate(answer({(3, 0): 1.0}, names=names))
    assert "Unchanged: hand_y, load and ball." in half, "a group that changed in part is listed by its features"
    everywhere = {(t, f): 1.0 for t in range(10) for f in range(2)}
    assert "Unchanged" not in narrate(answer(everywhere)) and "Nothing changes" not in narrate(answer(everywhere))
    assert "50 % of" in narrate(answer({(t, 0): 1.0 for t in range(5)}, mutable=np.array([True, False])))
    padded = narrate(answer({(0, 0): 1.0}, lengths=np.array([2])))
    assert "25 % of" in padded and "after step 0" in padded, "padding does not count"
    assert "0.2 % of" in narrate(answer({(0, 0): 1.0}, n_steps=250))


def test_judges_and_oracle_where_they_are_known(answer):
    measures = {"transfer": 0.67, "transfer_fcn": 1.0, "transfer_tcn": 0.0, "transfer_gru": 1.0, "oracle": 1.0}
    text = narrate(answer({(3, 0): 1.0}), measures=measures)
    assert "2 of 3 independent judges say well too (fcn yes, tcn no, gru yes)." in text
    assert "The process that generated the data agrees." in text and "Careful" not in text
    assert "judge" not in narrate(answer({(3, 0): 1.0}))
    assert "None of 2 independent judges say" in narrate(
        answer({(3, 0): 1.0}), measures={"transfer_a": 0.0, "transfer_b": 0.0, "transfer_c": np.nan}
    )


@pytest.mark.parametrize(
    ("support", "sentence"),
    [
        ([1.0, 0.8, 0.6], "Other models agree: convolutions, interval quantiles, shapelets."),
        ([1.0, 0.5, 0.6], "Other models agree: convolutions, shapelets; not: interval quantiles."),
        ([0.0, 0.0, 0.5], "Other models do not agree (convolutions, interval quantiles and shapelets)."),
        ([np.nan] * 3, None),
        (None, None),
    ],
)
def test_other_models_where_they_are_known(answer, support, sentence):
    known = Evidence.none(1)
    if support is not None:
        known = Evidence(families=("convolutions", "interval quantiles", "shapelets"), support=np.array([support]))
    text = narrate(answer({(3, 0): 1.0}, evidence=known))
    assert sentence in text if sentence else "Other models" not in text


def test_an_unchanged_answer(answer):
    already = answer({}, status=np.array(["unchanged"]))
    for short in (False, True):
        told = "The model already says well (probability 0.88); nothing has to change."
        assert narrate(already, short=short).endswith(told)
        assert narrate(already, short=short).startswith("= Unchanged: ")


@pytest.mark.parametrize("reason", ["the constraints undo every change", "the constraints undo every change."])
def test_not_found_with_a_reason(answer, reason):
    missed = {"status": np.array(["not_found"]), "reason": np.array([reason]), "proba_after": np.array([[0.7, 0.3]])}
    text = narrate(answer({(0, 0): 1.0}, **missed))
    first, second = text.splitlines()
    assert first.startswith("○ Not reached: the model does not predict the target") and "best attempt" in first
    assert second == "The model says sick, not well: the constraints undo every change."
    assert narrate(answer({(0, 0): 1.0}, **missed), short=True) == f"○ Not reached: {second}"
    assert "nothing is changed" in narrate(answer({}, **missed))


@pytest.mark.parametrize("reason", ["the classifier predicts 'well' with p(well) = 0.996; 0.999 was asked for", ""])
@pytest.mark.parametrize("short", [False, True])
def test_what_flips_but_is_not_sure_enough(answer, reason, short):
    lost = {"status": np.array(["not_found"]), "reason": np.array([reason]), "proba_after": np.array([[0.004, 0.996]])}
    text = narrate(answer({(0, 0): 1.0}, confidence=0.999, **lost), short=short)
    assert "does not predict" not in text
    assert "o change was found" not in text and "0.996" in text and "1.00" not in text
    assert "0.999 was asked for" in text or (short and not reason)
    other = narrate(answer({(0, 0): 1.0}, confidence=0.999, **{**lost, "proba_after": np.array([[0.7, 0.3]])}))
    assert "the model does not predict the target" in other


def test_a_missing_answer_is_not_described_as_found(answer):
    """Of three requested answers, the third may be missing and filled with a copy of the first, which is valid."""
    text = narrate(answer({(0, 0): 1.0}, status=np.array(["not_found"]), reason=np.array(["only 2 different answers"])))
    assert "No change was found" not in text and "not well: only 2 different answers." in text  # others were found
    assert text.startswith("○ Not reached: this repeats another answer")


@pytest.fixture(scope="module")
def answers():
    X, _ = make_series(90)
    numbers = 10 * X[:, :, :2].mean(1)
    about = {"output_names": ["pressure", "flow"], "output_units": ["mmHg", "l/s"]}
    ds = sp.Dataset.from_arrays(X, numbers, task="regression", **about)
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
        assert after in page and "pressure at least 5 mmHg" in page
        assert "nan" not in page.lower().split("<script")[0] and ">reached<" in page and ">probability<" not in page
