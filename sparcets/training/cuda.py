"""Training on a GPU: a whole step as one CUDA graph, and independent work on parallel streams.

Small networks spend their time launching kernels. A graph launches all kernels of a step at once; streams let several
small networks share the GPU.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor, nn

from sparcets.training.loop import Batch, Step

log = logging.getLogger(__name__)
Result = TypeVar("Result")
WARM_UP = 3  # eager steps before the capture, so that libraries and optimisers have allocated what they need


class CapturedStep:
    """Runs a step eagerly at first, then captures it as a CUDA graph and replays that; eagerly if the capture fails.

    The warm-up steps are real steps of the training, so nothing is computed twice and the result equals that of the
    eager step up to rounding.

    Parameters
    ----------
    step
        Must not wait for the device in ``update``.
    device
        Where it runs; anything but CUDA is passed through.
    """

    def __init__(self, step: Step, device: torch.device) -> None:
        self.step = step
        self.names = step.names
        self._device = device
        self._taken = 0
        self._plain = device.type != "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: dict[str, Tensor] = {}
        self._output: Tensor | None = None

    def update(self, batch: Batch) -> Tensor:
        """Take one step."""
        if self._plain:
            return self.step.update(batch)
        if self._graph is None:
            if self._taken < WARM_UP:
                return self._warm_up(batch)
            self._capture(batch)
            if self._graph is None:
                return self.step.update(batch)
        if any(batch[name].shape != held.shape for name, held in self._inputs.items()):
            return self.step.update(batch)
        for name, held in self._inputs.items():
            held.copy_(batch[name], non_blocking=True)
        self._graph.replay()
        assert self._output is not None
        return self._output

    def _warm_up(self, batch: Batch) -> Tensor:
        self._taken += 1
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            values = self.step.update(batch)
        torch.cuda.current_stream(self._device).wait_stream(stream)
        return values

    def _capture(self, batch: Batch) -> None:
        inputs = {name: rows.to(self._device, copy=True) for name, rows in batch.items()}
        graph = torch.cuda.CUDAGraph()
        # A failed capture leaves the random generator in capture mode; its state is replaced by this copy.
        index = self._device.index if self._device.index is not None else torch.cuda.current_device()
        random = torch.cuda.default_generators[index]
        spare = random.clone_state()
        try:
            # Records, computes nothing. Other threads may use the GPU meanwhile: families are fitted beside networks.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                output = self.step.update(inputs)
        except RuntimeError as error:
            log.warning("training without a CUDA graph, which is slower: %s", str(error).splitlines()[0])
            torch.cuda.synchronize(self._device)
            random.graphsafe_set_state(spare)
            self._plain = True
            return
        self._graph, self._inputs, self._output = graph, inputs, output

    def validate(self) -> Mapping[str, float]:
        """Return the step's own values."""
        return self.step.validate()


def graph_adam(
    network: nn.Module, device: torch.device, *, lr: float, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.Adam:
    """Return Adam in the form that a CUDA graph can hold: its counters and learning rate live on the device."""
    if device.type == "cuda":
        rate = torch.tensor(lr, dtype=torch.float32, device=device)
        return torch.optim.Adam(network.parameters(), lr=rate, betas=betas, capturable=True, fused=True)
    return torch.optim.Adam(network.parameters(), lr=lr, betas=betas)


def run_on_streams(calls: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Return the results of independent calls; on a GPU each call runs on a stream of its own.

    Work queued afterwards waits for all of them. In a captured graph the calls become parallel branches, and their
    backward passes run on the same streams. Inputs must outlive the calls, and no call may write what another reads.

    >>> run_on_streams([lambda: 1, lambda: 2], torch.device("cpu"))
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
