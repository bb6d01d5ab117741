"""Places on the trade-off between changed entries and truth, and which of them to choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PRICE = 0.2  # of changing everything, against a share of answers that are not true: decides the knee
UNCUT = 1.0  # the level at which nothing is cut


@dataclass(frozen=True)
class Place:
    """A place on the trade-off, measured on training series that were held out.

    Attributes
    ----------
    strength, level
        The logarithm of the one, and how deep the cut is.
    valid, transfer, changed
        Shares: of answers that the classifier accepts, that a witness accepts which had no part in the training, and of
        mutable entries that changed.
    """

    strength: float
    level: float
    valid: float
    transfer: float
    changed: float

    @property
    def truth(self) -> float:
        """The share of answers that are good for something."""
        return min(self.valid, self.transfer)

    @property
    def worth(self) -> float:
        """What decides the default: true answers, at a price for every change."""
        return self.truth - PRICE * self.changed

    def to_dict(self) -> dict[str, float]:
        """Return plain values."""
        return {
            "strength": math.exp(self.strength),
            "level": self.level,
            "valid": self.valid,
            "transfer": self.transfer,
            "changed": self.changed,
        }


def knee(places: Sequence[Place]) -> Place:
    """Return the place of most worth, of equals the one that changes least; nothing is cut there.

    A cut goes as far as those who are asked allow. They still agree; those who are not asked agree less than before.
    """
    whole = [place for place in places if place.level >= UNCUT]
    return max(whole, key=lambda place: (round(place.worth, 6), -place.changed))
