"""Programs of ``torch.export``: modules whose sizes, and whose mode, were fixed when they were exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from sparcets.classifiers.base import PREDICT_BATCH
from sparcets.classifiers.batching import Batch
from sparcets.classifiers.wrapped.interface import Adapted
from sparcets.errors import CapabilityError

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
    return Adapted(call=model.module(), name="ExportedProgram", kind="logits", batch=_batch(model))


def _batch(program: ExportedProgram) -> Batch | None:
    """Return the numbers of series that the program takes, or None for any."""
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in program.graph_signature.user_inputs]
    if len(inputs) != 1:
        raise CapabilityError(
            f"this program takes {len(inputs)} inputs ({', '.join(n.name for n in inputs)}), where sparcets gives one, "
            "the series. Export a module that takes the series alone."
        )
    n = inputs[0].meta["val"].shape[0]
    if isinstance(n, int):
        return n, n
    allowed = program.range_constraints.get(n.node.expr)
    if allowed is None:
        return None
    smallest = max(1, int(allowed.lower))
    largest = int(allowed.upper) if allowed.upper < torch.iinfo(torch.int32).max else PREDICT_BATCH
    return None if (smallest, largest) == (1, PREDICT_BATCH) else (smallest, max(smallest, largest))
