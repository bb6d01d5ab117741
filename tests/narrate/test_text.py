"""Sentences say what changes, where, by how much and in which units: hand-made answers, read by their meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcets.explanation import Explanation
from sparcets.narrate.text import narrate
from sparcets.series_info import SeriesInfo

INFO = replace(
    SeriesInfo.measure(np.array([[[0.0, 0.0]], [[2.0, 8.0]]]), ("sick", "well")),  # standard deviations 1 and 4
    feature_names=("roll", "gravity.x"),
)


def answer(changes: dict[tuple[int, int], float], *, n_steps: int = 10, **other: Any) -> Explanation:
    """One answer that moves the entries (step, feature) by these amounts."""
    query = np.full((1, n_steps, 2), 5.0)
    counterfactual = query.copy()
    for place, change in changes.items():
        counterfactual[0][place] += change
    values: dict[str, Any] = {
        "query": query,
        "counterfactual": counterfactual,
        "target": np.array([1]),
        "status": np.array(["generated"]),
        "reason": np.array([""]),
        "query_index": np.array([0]),
        "proba_before": np.array([[0.9, 0.1]]),
        "proba_after": np.array([[0.125, 0.875]]),
        "info": INFO,
        "mutable": np.array([True, True]),
    }
    return Explanation(**{**values, **other})


def test_a_change_in_steps() -> None:
    text = narrate(answer({(3, 0): 1.0, (4, 0): 2.0}))
    assert text == (
        "The model would say well (probability 0.88) instead of sick if roll were 1.5 higher in steps 3 to 4. "
        "10 % of the values that may change do."
    )


def test_a_single_step_a_lower_value_and_its_unit() -> None:
    text = narrate(answer({(9, 1): -0.25}, info=replace(INFO, units=("rad", "g"))))
    assert "if gravity.x were 0.25 g lower in step 9." in text


def test_times_in_seconds_where_the_rate_is_known() -> None:
    text = narrate(answer({(t, 0): 1.0 for t in range(2, 5)}, info=replace(INFO, sampling_rate=4.0)))
    assert "roll were 1 higher from 0.50 to 1.25 s." in text, "steps 2, 3 and 4 last until the fifth begins"


def test_the_largest_change_in_standard_deviations_comes_first() -> None:
    text = narrate(answer({(0, 0): 2.0, (5, 1): 7.0, (7, 0): -3.0}))
    assert text.index("roll were 3 lower") < text.index("roll were 2 higher") < text.index("gravity.x were 7 higher")


def test_a_long_small_change_outweighs_a_short_large_one() -> None:
    text = narrate(answer({**{(t, 0): 1.0 for t in range(5)}, (8, 0): 3.0}))
    assert text.index("1 higher in steps 0 to 4") < text.index("3 higher in step 8")


def test_ups_and_downs_do_not_cancel_out() -> None:
    text = narrate(answer({(2, 0): 3.0, (3, 0): -3.0, (6, 0): 1.0}, info=replace(INFO, units=("m", ""))))
    assert "roll were changed by -3 to +3 m in steps 2 to 3" in text
    assert text.index("by -3 to +3") < text.index("1 m higher in step 6"), "and it is the larger change"


def test_only_the_largest_five_are_told_and_the_rest_is_counted() -> None:
    six = {(t, 0): 1.0 + t for t in range(0, 12, 2)}
    text = narrate(answer(six, n_steps=20))
    assert text.count(" were ") == 5 and "; and 1 smaller change." in text and "in step 0" not in text
    eight = {(t, 0): 1.0 + t for t in range(0, 16, 2)}
    assert "; and 3 smaller changes." in narrate(answer(eight, n_steps=20))
    five = {(t, 0): 1.0 + t for t in range(0, 10, 2)}
    assert "smaller" not in narrate(answer(five))


def test_the_share_is_of_what_may_change_and_small_shares_are_not_none() -> None:
    half = answer({(t, 0): 1.0 for t in range(5)}, mutable=np.array([True, False]))
    assert narrate(half).endswith(" 50 % of the values that may change do.")
    padded = answer({(0, 0): 1.0}, lengths=np.array([2]))
    assert " 25 % of" in narrate(padded)
    assert " 0.2 % of" in narrate(answer({(0, 0): 1.0}, n_steps=250))
    assert " 100 % of" in narrate(answer({(t, f): 1.0 for t in range(10) for f in range(2)}))


def test_an_unchanged_answer() -> None:
    already = answer({}, status=np.array(["unchanged"]))
    assert narrate(already) == "The model already says well (probability 0.88); nothing has to change."


@pytest.mark.parametrize("reason", ["the constraints undo every change", "the constraints undo every change."])
def test_nothing_found_with_its_reason(reason: str) -> None:
    missed = np.array([[0.7, 0.3]])
    text = narrate(answer({(0, 0): 1.0}, status=np.array(["not_found"]), reason=np.array([reason]), proba_after=missed))
    assert text == (
        "No change was found that makes the model say well instead of sick: the constraints undo every change."
    )


def test_nothing_found_without_a_reason_tells_how_near_it_came() -> None:
    text = narrate(answer({(0, 0): 1.0}, status=np.array(["not_found"]), proba_after=np.array([[0.7, 0.3]])))
    assert text.startswith("No change was found") and text.endswith("the best attempt reached a probability of 0.30.")


def test_an_answer_that_is_missing_is_never_told_as_found() -> None:
    """Of three answers asked for, the third may be missing; its place holds a copy of the first, which is valid."""
    text = narrate(answer({(0, 0): 1.0}, status=np.array(["not_found"]), reason=np.array(["only 2 different answers"])))
    assert text.startswith("No change was found") and "only 2 different answers" in text


def test_text_of_an_explanation_is_that_of_the_answer() -> None:
    one, two = answer({(0, 0): 1.0}), answer({(0, 1): -1.0})
    both = replace(
        one,
        **{
            name: np.concatenate([getattr(one, name), getattr(two, name)])
            for name in ("query", "counterfactual", "target", "status", "reason", "query_index")
        },
        proba_before=np.repeat(one.proba_before, 2, axis=0),
        proba_after=np.repeat(one.proba_after, 2, axis=0),
    )
    assert [both.text(), both.text(1), both.text(-1)] == [narrate(one), narrate(two), narrate(two)]
