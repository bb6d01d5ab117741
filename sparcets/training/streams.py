"""Work that waits for nobody, side by side: small networks leave most of a GPU idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(calls: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Return what each call gives; on a GPU each runs on a stream of its own, and what follows waits for all.

    In a captured graph they become branches. The backward pass of each runs where its forward pass ran, so it is side
    by side as well. What the calls read must outlive them, and none may write what another reads.

    >>> side_by_side([lambda: 1, lambda: 2], torch.device("cpu"))
    [1, 2]
    """
    if device.type != "cuda" or len(calls) < 2:
        return [call() for call in calls]
    here = torch.cuda.current_stream(device)
    results = []
    others = [_stream(device, number) for number in range(len(calls) - 1)]
    for stream, call in zip(others, calls[1:], strict=True):
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            results.append(call())
    first = calls[0]()
    for stream in others:
        here.wait_stream(stream)
    return [first, *results]


@lru_cache(maxsize=64)
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return stream
