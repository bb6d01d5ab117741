"""The size of a network, compared with its stored weights before it is built."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def check_sizes(hidden: int, layers: int, shapes: Collection[Sequence[int]]) -> None:
    """Raise ValueError if weights of these shapes are too few for the network that is about to be built.

    A damaged number in a file may ask for a network that does not fit in memory.

    Parameters
    ----------
    hidden, layers
        Size of the network.
    shapes
        Shapes of the stored weights.

    Examples
    --------
    >>> check_sizes(8, 1, [(8, 3), (8,)])
    >>> check_sizes(8000, 1, [(8, 3), (8,)])
    Traceback (most recent call last):
    ValueError: a network of 8000 hidden units and 1 layers has other weights
    """
    if layers > len(shapes) or hidden > max((size for shape in shapes for size in shape), default=0):
        raise ValueError(f"a network of {hidden} hidden units and {layers} layers has other weights")
