"""Programs of ``torch.export``: modules whose sizes, and whose mode, were fixed when they were exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError
from sparcets.models.base import PREDICT_BATCH
from sparcets.models.inputs import name_of_series
from sparcets.models.interface import Adapted
from sparcets.models.views import Batch

if TYPE_CHECKING:  # torch loads it on use, and it takes long
    from torch.export import ExportedProgram

_PROGRAM = "torch.export.exported_program.ExportedProgram"
_TRAINING = {"aten.dropout": 2, "aten.batch_norm": 5}  # place of the argument that tells training from evaluation


def adapt(model: Any) -> Adapted | None:
    """Return an exported program as a module; its output are logits unless the user says otherwise."""
    if not any(f"{kind.__module__}.{kind.__name__}" == _PROGRAM for kind in type(model).__mro__):
        return None
    for node in model.graph.nodes:
        place = _TRAINING.get(str(node.target).rpartition(".")[0])
        if place is not None and len(node.args) > place and node.args[place] is True:
            raise CapabilityError(
                "this program was exported in training mode: its dropout or batch normalisation would change its "
                "predictions. Call model.eval() before torch.export.export."
            )
    inputs = [n for n in model.graph.nodes if n.op == "placeholder" and n.name in model.graph_signature.user_inputs]
    call = model.module() if len(inputs) == 1 else Program(model.module(), model, [n.name for n in inputs])
    return Adapted(call=call, name="ExportedProgram", kind="logits", batch=_batch(model, inputs[0]))


class Program(nn.Module):
    """An exported program with several inputs, which it takes in the way it was exported: in their order, or by name.

    Parameters
    ----------
    module, program
        Of ``torch.export``.
    names
        Of its inputs; the one that no side input is named after are the series.
    """

    def __init__(self, module: nn.Module, program: ExportedProgram, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names
        spec: Any = program.call_spec.in_spec
        in_order, _ = spec.children() if hasattr(spec, "children") else spec.children_specs  # and by name
        self.n_in_order = in_order.num_children

    def forward(self, series: Tensor, **side: Tensor) -> Any:
        """Return what the program returns."""
        by_name = {name_of_series(self.names, side, "this program"): series, **side}
        ordered = [by_name[name] for name in self.names]
        return self.module(
            *ordered[: self.n_in_order], **{name: by_name[name] for name in self.names[self.n_in_order :]}
        )


def _batch(program: ExportedProgram, series: Any) -> Batch | None:
    """Return the numbers of series that the program takes, or None for any; ``series`` is its first input."""
    n = series.meta["val"].shape[0]
    if isinstance(n, int):
        return n, n
    allowed = program.range_constraints.get(n.node.expr)
    if allowed is None:
        return None
    smallest = max(1, int(allowed.lower))
    largest = int(allowed.upper) if allowed.upper < torch.iinfo(torch.int32).max else PREDICT_BATCH
    return None if (smallest, largest) == (1, PREDICT_BATCH) else (smallest, max(smallest, largest))
