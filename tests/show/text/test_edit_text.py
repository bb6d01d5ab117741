"""Answers that consist of edits, as text: features, times, changes, and what requires them."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.edits import KINDS, Coordinates, Edit, EditLists, apply_edits, free_edits
from sparcets.show.edit_text import as_dict
from sparcets.show.report import edits_table
from sparcets.show.text import narrate
from sparcets.studio.results import to_response

STEPS = 10


def edit(start, end, columns=(0,), kind="follow", **other):
    """Return an edit of roll (0), pressure (1), or both; followed is a course that is 1 higher than the query."""
    names = ("roll", "pressure")
    course = {"follow": np.full((end - start, len(columns)), 1.5), "level": np.ones((1, len(columns)))}
    given = {"amount": 1.0, "needed_by": ("model",), "row": 7 if kind == "follow" else None}
    return Edit(
        features=tuple(names[c] for c in columns),
        start=start,
        end=end,
        kind=kind,
        columns=columns,
        coordinates=Coordinates(tolerance=np.zeros(2)),
        **{"course": course.get(kind), **given, **other},
    )


def answered(answer, *edits, query=None, **other):
    """Return an answer that consists of edits."""
    e = answer({}, n_steps=STEPS, **other)
    query = e.query[0] if query is None else query
    e = replace(e, query=query[None], counterfactual=apply_edits(query, edits)[None])
    return replace(e, edit_lists=EditLists((edits,)))


def changes(e):
    return [line[4:] for line in narrate(e).partition("The model")[2].splitlines() if line.startswith("  - ")]


def test_an_answer_that_follows_one_recording(answer):
    edits = edit(2, 4), edit(0, 10, (1,), needed_by=("families",)), edit(0, 2, (0, 1), needed_by=("realism",))
    e = answered(answer, *edits, units=("rad", "bar"), rate=4.0)
    assert narrate(e).splitlines()[2:6] == [
        "The model says sick. For it to say well, following recording 7 of class well:",
        "  - roll from 0.50 to 1.00 s: 1 rad higher",
        "  - pressure throughout: 1 bar higher (needed for the other models)",
        "  - roll and pressure from 0.00 to 0.50 s: roll 1 rad higher and pressure 1 bar higher (needed for realism)",
    ]
    assert narrate(e, short=True) == (
        "? Doubtful: well instead of sick (probability 0.10 → 0.88): roll from 0.50 to 1.00 s, pressure throughout and "
        "roll and pressure from 0.00 to 0.50 s, following recording 7 of class well. Careful: "
        "more than half of the values that may change do (70 %)."
    )
    texts = [one.text for one in e.edits(0)]
    assert texts[0] == "roll from 0.50 to 1.00 s: 1 rad higher, following recording 7 of class well"
    assert as_dict(e.edits(0)[0])["text"] == texts[0] and as_dict(edits[0])["needed_by"] == ["model"]
    assert (apply_edits(e.query[0], e.edits(0)) == e.counterfactual[0]).all()


@pytest.mark.parametrize(
    ("kind", "amount", "words"),
    [
        ("follow", 0.6, "0.6 higher, going 60 % of the way to recording 7 of class well"),
        ("follow", 1.5, "1.5 higher, going 1.5 times the way to recording 7 of class well"),
        ("level", -0.5, "0.5 lower"),
        ("size", 1.25, "1.2 times as far from its mean"),
        ("shift", 2.0, "2 steps later"),
        ("shift", -1.0, "1 step earlier"),
        ("smooth", 2.0, "averaged over 5 steps"),
    ],
)
def test_kinds_and_amounts(answer, kind, amount, words):
    (one,) = answered(answer, edit(2, 6, kind=kind, amount=amount)).edits(0)
    assert one.text == f"roll in steps 2 to 5: {words}"
    assert set(KINDS) <= {"follow", "level", "size", "shift", "smooth", "tempo", "peak"}, "all have words"


def test_who_is_followed_and_what_a_group_is_called(answer):
    e = answered(answer, edit(2, 6), edit(6, 9, (1,), row=8))
    told = [f"following recording {k} of class well" for k in (7, 8)]
    assert [line.rpartition(", ")[2] for line in changes(e)] == told
    assert "following" not in narrate(e, short=True)
    e = answered(answer, edit(2, 6, row=None))
    assert "following what the generator proposes" in narrate(e) and "recording" not in narrate(e, short=True)
    rules = {"explain": {"groups": {"pump": [0, "pressure"]}}}
    assert changes(answered(answer, edit(2, 6, (0, 1)), constraints=rules))[0].startswith("pump in steps 2 to 5: roll")
    course = np.array([[1.5], [-1.5], [0.5], [1.5]])
    (told,) = changes(answered(answer, edit(2, 6, course=course)))
    assert told == "roll in steps 2 to 5: both ways by up to 2"


def test_what_constraints_alter_is_told_and_much_of_it_in_one_phrase(answer):
    e = answered(answer, edit(2, 6))
    for n, told in (
        (1, "by your constraints, pressure in step 0: 2 higher"),
        (4, "your constraints then alter 4 segments of pressure in steps 0 to 6"),
        (0, "roll in steps 2 to 5: 1 higher"),
    ):
        limited = e.counterfactual[0].copy()
        limited[0 : 2 * n : 2, 1] += 2.0
        limited[9, 1] += 1e-4  # what nobody could see is not told
        edits = (*e.edits(0), *free_edits(e.counterfactual[0], limited, e.feature_names))
        made = replace(e, counterfactual=limited[None], edit_lists=EditLists((edits,)))
        assert changes(made)[-1] == told and len(changes(made)) == 1 + bool(n)


def test_gaps_padding_missing_courses_and_numbers_of_a_regressor(answer):
    gappy = np.full((STEPS, 2), 0.5)
    gappy[3, 0] = np.nan
    assert changes(answered(answer, edit(2, 6), query=gappy)) == ["roll in steps 2 to 5: 1 higher"]
    padded = answered(answer, edit(0, 6), lengths=np.array([6]))
    assert changes(padded) == ["roll throughout: 1 higher"]
    forgotten = answered(answer, edit(2, 6))
    forgotten = replace(forgotten, edit_lists=EditLists(((edit(2, 6, course=None),),)))
    assert changes(forgotten) == ["roll in steps 2 to 5: 1 higher"]
    nothing = replace(forgotten, counterfactual=forgotten.query)
    assert changes(nothing) == ["roll in steps 2 to 5: a negligible change"]


def test_reports_and_the_studio_list_the_edits(answer):
    e = answered(answer, edit(2, 6), edit(0, 3, (1,), kind="level", amount=-0.5))
    cells = ("follow recording 7", "<td>2 to 5</td>", "pressure", "-0.5", "model")
    assert all(cell in edits_table(e, 0) for cell in cells)
    (result,) = to_response(e, [0]).answers
    assert [(one.kind, one.row, one.text) for one in result.edits] == [(x.kind, x.row, x.text) for x in e.edits(0)]
    assert edits_table(answer({(3, 0): 1.0}), 0) == "" == edits_table(replace(e, status=np.array(["not_found"])), 0)
