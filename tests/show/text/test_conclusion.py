"""The verdict in words: what is doubted, with its numbers; a jumping wrist and an impossible hip are never green."""

from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.evidence import REAL, VERDICTS, Evidence, PlausibilityReference, shape_of
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.show.phrases import NO_ADVICE
from sparcets.show.report import write_report
from sparcets.show.verdict import conclude
from tests.show.conftest import hand_made

SMALL = {(3, 0): 1.0}
FAMILIES = ("neural", "intervals", "quantiles", REAL)
LOOKS = {"distance": 0.5, "outside": 0.0, "jumps": 0.0, "stretch": np.nan}


def known(*support, real=1, **looks):
    plausibility = {name: np.array([value]) for name, value in {**LOOKS, **looks}.items()}
    return Evidence(families=FAMILIES, support=np.array([[*support, real]]), plausibility=plausibility)


def asked(support):
    """Return evidence of some families, by name, on an answer that looks like a recording else."""
    return replace(known(1, 1, 1), families=tuple(support), support=np.array([[*support.values()]]))


def test_every_verdict_has_a_symbol_and_a_colour_that_can_be_read():
    assert list(VERDICTS) == ["believed", "doubtful", "trick", "not reached", "unchanged"]
    assert [v.tone for v in VERDICTS.values()] == ["green", "amber", "red", "grey", "grey"]
    assert len({v.symbol for v in VERDICTS.values()}) == 5, "not by colour alone"

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for verdict in VERDICTS.values():
        for paper in ("#ffffff", verdict.tint):
            assert (luminance(paper) + 0.05) / (luminance(verdict.colour) + 0.05) > 4.5, verdict.word


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        (known(1, 0.8, 0.6),
         "✓ Believed: other models of all 3 kinds agree, and the changed series looks like real ones."),
        (known(1, 0.5, 1), "? Doubtful: other models of 1 kind out of 3 do not agree (intervals)."),
        (known(np.nan, 1, 1), "? Doubtful: it is not known what other models say about it."),
        (known(1, 1, 1, distance=1),
         "✓ Believed: other models of all 3 kinds agree, and the changed series looks like real ones."),
        (known(1, 1, 1, real=0.5),
         "? Doubtful: discriminators can tell it from recordings."),
        (known(1, 1, 0, real=0), "? Doubtful:\n"
         "  - other models of 1 kind out of 3 do not agree (quantiles)\n"
         "  - discriminators can tell it from recordings"),
        (asked({"neural": 1, "intervals": 1, "quantiles": 1}),
         "? Doubtful: no discriminator was asked whether it looks like a recording."),
        (asked({"neural": 1, "intervals": 1, REAL: 1}),
         "? Doubtful: other models of only 2 kinds were asked, and a believed answer needs 3."),
        (asked({"neural": 0, REAL: 1}), "✗ Trick:\n  - this may fool the model rather than explain it\n"
         "  - other models do not agree (neural)"),
        (known(0, 0, 1), "✗ Trick:\n  - this may fool the model rather than explain it\n"
         "  - other models of 2 kinds out of 3 do not agree (neural, intervals)"),
        (Evidence.none(1), "? Doubtful: no other models were asked about it."),
    ],
    ids=["believed", "one against", "unknown", "far", "recognised", "both", "no discriminators",
         "few kinds", "one kind", "trick", "none"],
)  # fmt: skip
def test_what_is_doubted_in_words(answer, evidence, text):
    assert str(conclude(answer(SMALL, evidence=evidence))) == text
    assert answer(SMALL, evidence=evidence).text(0).startswith(text), "at the top"


def test_a_fall_over_several_steps_is_named():
    """Found by a reader: pressure that falls by 0.9 in three steps, each of which is as large as a real one."""
    rng = np.random.default_rng(0)
    X = 5 + 0.1 * rng.uniform(-1, 1, size=(40, 30, 1))
    info = replace(SeriesInfo.from_series(X, ("leak", "healthy")), sampling_rate=20.0, feature_names=("pressure",))
    assert info.largest_step is not None and 0.19 < info.largest_step[0] < 0.2
    query = np.full((30, 1), 5.0)
    made = query.copy()
    made[10:, 0] -= np.minimum(0.15 * np.arange(1, 21), 0.45)
    e = answer_of(info, query, made)
    jumps = float(shape_of(e, info, None)["jumps"][0])
    assert conclude(replace(e, evidence=known(1, 1, 1, jumps=jumps))).doubts == (
        "pressure moves by 0.45 within 3 steps (0.15 s); in real series by at most 0.2",
    )


def hips(amplitude=29.0):
    """Return angles of two hips of forty people, between ± ``amplitude`` degrees."""
    phase = np.linspace(0, 2 * np.pi, 40)[:, None]
    t = np.linspace(0, 4 * np.pi, 50)[None]
    left, right = np.sin(t + phase), np.sin(t + phase + np.pi)
    return amplitude * np.stack([left, right], axis=2), np.arange(40) % 2


def answer_of(info, query, made, support=True):
    """Return one valid answer that every family believes, or that no family was asked about."""
    proba = {"proba_before": np.eye(info.n_classes)[[0]], "proba_after": np.eye(info.n_classes)[[1]]}
    e = hand_made(info, query, {}, counterfactual=made[None], status=np.array(["refined"]), **proba)
    return replace(e, evidence=Evidence(families=FAMILIES, support=np.ones((1, 4)))) if support else e


def drawn_and_reported(e, doubt, folder):
    """Check that figure and report say an answer's verdict and a doubt before anything else, in its own colour."""
    verdict = VERDICTS[str(e.verdict[0])]
    figure = e.plot(0)
    (line,) = (line for line in figure.axes[0].lines if line.get_label() != "recorded")
    assert (line.get_color(), line.get_label()) == (verdict.colour, f"attempt ({verdict.label})") and line.is_dashed()
    said = next(text.get_text() for text in figure.texts if text.get_text().startswith(verdict.title))
    assert doubt in said.replace("\n", " ")
    article = write_report(e, folder / "report.html").read_text(encoding="utf-8").partition("<article")[2]
    assert article.index(f'class="conclusion {verdict.tone}"') < article.index(doubt) < article.index("For it to say")
    assert f"attempt ({verdict.label})</text>" in article, "the picture for paper too"


def test_a_hip_beyond_the_data_is_doubtful_and_said_with_its_numbers(tmp_path):
    X, y = hips()
    ds = sp.Dataset.from_arrays(X, y, feature_names=["LeftHip", "RightHip"], units="°", sampling_rate=50)
    info = SeriesInfo.from_series(ds.X_train, ("slow", "fast"), source=ds)
    made = ds.X_test[0].copy()
    made[10:20, 0], made[20:30, 0] = np.linspace(0, 66, 10), np.linspace(0, -74, 10)
    e = answer_of(info, ds.X_test[0], made)
    looks = PlausibilityReference.fit(Series(ds.X_train), ds.y_train, info).measure(e)
    e = replace(e, evidence=replace(e.evidence, plausibility=looks))
    assert e.believed[0] and e.verdict[0] == "doubtful"
    assert "LeftHip goes to −74° and 66°, where real series have −29 to 29°" in e.text(0)
    assert "LeftHip" in e.text(0).splitlines()[1] or "LeftHip" in e.text(0).splitlines()[2], "at the top"
    drawn_and_reported(e, "LeftHip goes to −74°", tmp_path)


def test_a_wrist_that_jumps_is_doubtful(tmp_path):
    """In simulated catching, the left wrist jumps by 0.37 m for a tenth of a second; the elbow stays."""
    ds = sp.load_dataset("catching", seed=0)
    made = ds.X_test[0].copy()
    made[30:36, ds.feature_names.index("LeftWrist_x")] += 0.37  # 6 steps at 60 Hz
    info = SeriesInfo.from_series(ds.X_train, ds.class_names, source=ds)
    e = answer_of(info, ds.X_test[0], made)
    looks = PlausibilityReference.fit(Series(ds.X_train), ds.y_train, info).measure(e)
    e = replace(e, evidence=replace(e.evidence, plausibility=looks))
    assert e.believed[0] and VERDICTS[str(e.verdict[0])].tone == "amber"
    stretched, jumps = conclude(e).doubts[:2]
    assert stretched.startswith("the limb from Left") and "longer by up to" in stretched
    assert jumps.startswith("LeftWrist_x jumps by 0.3") and "within one step (0.017 s); in real series by" in jumps
    trick = replace(e, evidence=replace(e.evidence, support=np.array([[0, 0, 0, 1]])))
    assert VERDICTS[str(trick.verdict[0])].tone == "red" and set(conclude(e).doubts) < set(conclude(trick).doubts)
    for either in (e, trick):
        drawn_and_reported(either, "the limb from Left", tmp_path)


def test_no_advice_where_people_are_the_subject(answer):
    assert NO_ADVICE not in answer(SMALL).text(0)
    assert answer(SMALL, subjects=np.array(["P1"])).text(0).endswith(NO_ADVICE)
    names = ("wrist_x", "wrist_y", "elbow_x", "elbow_y")
    assert answer(SMALL, names=names).text(0).endswith(NO_ADVICE)
