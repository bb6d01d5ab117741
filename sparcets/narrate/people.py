"""What is said wherever people are the subject: an explanation describes a model, and advises nobody."""

from __future__ import annotations

from sparcets.explanation.result import Explanation
from sparcets.skeletons import find_skeleton

NO_ADVICE = "This describes the model; it is no advice for treatment."


def advice_note(e: Explanation) -> str:
    """Return the note if the series are known to be of people, by their subjects or by a skeleton; else nothing."""
    people = e.subjects is not None or find_skeleton(e.feature_names) is not None
    return NO_ADVICE if people else ""
