"""An explanation as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparcets.explanation.amounts import percent
from sparcets.explanation.said import said_after, said_before
from sparcets.explanation.verdict import VERDICTS
from sparcets.notebooks import html_card

if TYPE_CHECKING:
    from sparcets.explanation.result import Explanation

MAX_ROWS = 10  # answers that are shown


def explanation_card(e: Explanation) -> str:
    """Return a row for each of the first answers as HTML."""
    shown = e[:MAX_ROWS]
    known = {head: values for head, values in (("id", shown.ids), ("subject", shown.subjects)) if values is not None}
    reached = "p(target)" if e.numbers is None else "reached"
    heads = ("answer", "query", *known, "verdict", "predicted", "target", "status", reached, "changed")
    rows = [
        (
            i,
            int(one.query_index[0]),
            *(str(values[i]) for values in known.values()),
            VERDICTS[str(one.verdict[0])],
            said_before(one),
            str(one.target_names[0]),
            str(one.status[0]),
            said_after(one),
            percent(float(one.share_changed[0])),
        )
        for i, one in enumerate(shown)
    ]
    needed = e.status != "unchanged"
    already = f", {int((~needed).sum())} are in the target already" if not needed.all() else ""
    lines = [
        f"{int((e.valid & needed).sum())} of the {int(needed.sum())} that needed a change are valid{already}; "
        f"by {e.method or 'an unknown method'}",
        "in words: text(i), as a picture: plot(i), as a table: to_frame()",
    ]
    lines += [f"the first {len(shown)} of {len(e)} answers:"] if len(e) > len(shown) else []
    return html_card(f"Explanation: {len(e)} answer{'s' * (len(e) != 1)}", lines, heads=heads, rows=rows)
