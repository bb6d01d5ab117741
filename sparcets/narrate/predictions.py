"""What the model says before and after the change, in sentences: classes with probabilities, or numbers with units."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.explanation.result import Explanation
from sparcets.explanation.said import said_after, said_before, subject_of


@dataclass(frozen=True)
class Predictions:
    """Phrases about the model's predictions for one answer.

    Attributes
    ----------
    before, target
        What it says of the query, and what it should say.
    already
        The sentence for a query that is within its target.
    opening
        What the changes are for.
    brief
        The same with what was reached, in a few words.
    moves
        A sentence on what changes in the prediction.
    stands
        What it says of the query, without a full stop.
    not_found
        What was not found, without a full stop.
    attempt
        What the best attempt reached.
    """

    before: str
    target: str
    already: str
    opening: str
    brief: str
    moves: str
    stands: str
    not_found: str
    attempt: str


def predictions_of(answer: Explanation) -> Predictions:
    """Return the phrases for an explanation of length 1."""
    return _of_classes(answer) if answer.numbers is None else _of_numbers(answer)


def _of_classes(answer: Explanation) -> Predictions:
    before, target = said_before(answer), str(answer.target_names[0])
    p_before, p = float(answer.proba_before[0, int(answer.target[0])]), float(answer.probability[0])
    return Predictions(
        before=before,
        target=target,
        already=f"The model already says {target} (probability {p:.2f}); nothing has to change.",
        opening=f"The model says {before}. For it to say {target}:",
        brief=f"{target} instead of {before} (probability {p_before:.2f} → {p:.2f})",
        moves=f"The model's probability of {target} goes from {p_before:.2f} to {p:.2f}.",
        stands=f"The model says {before}",
        not_found=f"No change was found that makes the model say {target} instead of {before}",
        attempt=f"the best attempt reached a probability of {p:.2f}",
    )


def _of_numbers(answer: Explanation) -> Predictions:
    before, after, target = said_before(answer), said_after(answer), str(answer.target_names[0])
    name = subject_of(answer)
    return Predictions(
        before=before,
        target=target,
        already=f"The model already predicts {after}, within the target ({target}); nothing has to change.",
        opening=f"The model predicts {name} of {before}. For {target}:",
        brief=f"{name} from {before} to {after} ({target})",
        moves=f"The model's prediction of {name} goes from {before} to {after}.",
        stands=f"The model predicts {name} of {before}",
        not_found=f"No change was found that takes {name} from {before} to the target ({target})",
        attempt=f"the best attempt reached {after}",
    )
