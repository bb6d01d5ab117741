"""Places on the trade-off between changed entries and truth, and which of them to choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PRICE = 0.2  # of changing everything, against a share of answers that are not true: decides the knee
FURTHER = 0.1  # price of going twice as far as the generator: what it made looked real to its critic, the rest did not


@dataclass(frozen=True)
class Place:
    """A place on the trade-off, measured on training series that were held out.

    Attributes
    ----------
    strength
        Logarithm of how much more than usual a changed entry costs.
    loudness
        Factor of the changes.
    valid, transfer, changed
        Shares: of answers that the classifier accepts, that a witness accepts which had no part in the training, and of
        mutable entries that changed.
    """

    strength: float
    loudness: float
    valid: float
    transfer: float
    changed: float

    @property
    def truth(self) -> float:
        """The share of answers that are good for something."""
        return min(self.valid, self.transfer)

    @property
    def worth(self) -> float:
        """What decides the default: true answers, at a price for every change and for exaggerating."""
        return self.truth - PRICE * self.changed - FURTHER * (self.loudness - 1)

    def to_dict(self) -> dict[str, float]:
        """Return plain values."""
        return {
            "strength": math.exp(self.strength),
            "loudness": self.loudness,
            "valid": self.valid,
            "transfer": self.transfer,
            "changed": self.changed,
        }


def knee(places: Sequence[Place]) -> Place:
    """Return the place of most worth, of equals the one that changes least."""
    return max(places, key=lambda place: (round(place.worth, 6), -place.changed))
