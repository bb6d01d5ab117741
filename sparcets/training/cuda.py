"""Training on a GPU: a whole step as one CUDA graph.

Small networks spend their time launching kernels; a graph launches all kernels of a step at once.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

from sparcets.training.loop import Batch, Step

log = logging.getLogger(__name__)
WARM_UP = 3  # eager steps before the capture, so that libraries and optimisers have allocated what they need


class CapturedStep:
    """Runs a step eagerly at first, then captures it as a CUDA graph and replays that; eagerly if the capture fails.

    The warm-up steps are real steps of the training, so nothing is computed twice and the result equals that of the
    eager step up to rounding. The step must not wait for the device in ``update``. On anything but CUDA, it is passed
    through.
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


def graph_adam(
    network: nn.Module, device: torch.device, *, lr: float, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.Adam:
    """Return Adam in the form that a CUDA graph can hold: its counters and learning rate live on the device."""
    if device.type == "cuda":
        rate = torch.tensor(lr, dtype=torch.float32, device=device)
        return torch.optim.Adam(network.parameters(), lr=rate, betas=betas, capturable=True, fused=True)
    return torch.optim.Adam(network.parameters(), lr=lr, betas=betas)
