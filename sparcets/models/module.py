"""Modules of torch, programs of ``torch.export``, and models of Keras, which are modules on one backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError
from sparcets.core.side_inputs import name_of_series
from sparcets.models.base import PREDICT_BATCH
from sparcets.models.estimator import package
from sparcets.models.interface import Batch, Interface

if TYPE_CHECKING:  # torch imports it lazily, because it is slow
    from torch.export import ExportedProgram

_PROGRAM = "torch.export.exported_program.ExportedProgram"
_TRAINING = {"aten.dropout": 2, "aten.batch_norm": 5}  # position of the argument for training or evaluation


def adapt(model: Any) -> Interface | None:
    """Return the interface of a model of Keras, an exported program, or a module; None for anything else.

    With PyTorch as its backend, a model of Keras is a module, but with another output.
    """
    if package(model) in ("keras", "tf_keras", "tensorflow") and hasattr(model, "predict_on_batch"):
        return _keras(model)
    if any(f"{kind.__module__}.{kind.__name__}" == _PROGRAM for kind in type(model).__mro__):
        return _program(model)
    if isinstance(model, nn.Module):
        return Interface(call=model, name=type(model).__name__, kind="logits")
    return None


def _keras(model: Any) -> Interface:
    """Return the interface of a model of Keras; its output is assumed to be a softmax, or a sigmoid with one output."""
    # A list of shapes for several outputs; None before the model is built.
    shape = getattr(model, "output_shape", None)
    columns = shape[-1] if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[-1], int) else None

    name = getattr(model, "name", None) or type(model).__name__
    inputs = [one.name for one in getattr(model, "inputs", None) or []]  # None before the model is built
    in_one_dict = len(inputs) > 1

    def call(series: Any, **side: Any) -> Any:
        if in_one_dict:
            series, side = {name_of_series(inputs, side, name): series, **side}, {}
        # Not predict(), which is compiled again for each batch size.
        return model(series, training=False, **side)

    as_module = isinstance(model, nn.Module)
    return Interface(
        call=call if not as_module else SeveralInputs(model, inputs, name) if in_one_dict else model,
        name=name,
        kind="sigmoid" if columns == 1 else "probabilities",
        n_classes=columns if columns != 1 else None,
    )


class SeveralInputs(nn.Module):
    """A module or program with several inputs, called with the series and the others as arguments by name.

    A model takes all in one dict; a program of ``torch.export`` takes them as it was exported, the first ``n_in_order``
    by position and others by name. The only name that is not a side input is that of the series.
    """

    def __init__(self, model: nn.Module, names: list[str], name: str, n_in_order: int | None = None) -> None:
        super().__init__()
        self.model, self.names, self.name, self.n_in_order = model, names, name, n_in_order

    def forward(self, series: Tensor, **side: Tensor) -> Any:
        """Call the model."""
        given = {name_of_series(self.names, side, self.name): series, **side}
        if self.n_in_order is None:
            return self.model(given)
        in_order, by_name = self.names[: self.n_in_order], self.names[self.n_in_order :]
        return self.model(*(given[name] for name in in_order), **{name: given[name] for name in by_name})


def _program(model: Any) -> Interface:
    """Return the interface of an exported program; its output is logits unless the user specifies another kind."""
    for node in model.graph.nodes:
        place = _TRAINING.get(str(node.target).rpartition(".")[0])
        if place is not None and len(node.args) > place and node.args[place] is True:
            raise CapabilityError(
                "this program was exported in training mode: its dropout or batch normalisation would change its "
                "predictions. Call model.eval() before torch.export.export."
            )
    inputs = [n for n in model.graph.nodes if n.op == "placeholder" and n.name in model.graph_signature.user_inputs]
    call = model.module()
    if len(inputs) > 1:
        spec = model.call_spec.in_spec
        in_order, _ = spec.children() if hasattr(spec, "children") else spec.children_specs  # positional, and by name
        call = SeveralInputs(call, [node.name for node in inputs], "this program", in_order.num_children)
    return Interface(call=call, name="ExportedProgram", kind="logits", batch=_batch(model, inputs[0]))


def _batch(program: ExportedProgram, series: Any) -> Batch | None:
    """Return the smallest and largest batch of the program, or None for any; ``series`` is its first input."""
    n = series.meta["val"].shape[0]
    if isinstance(n, int):
        return n, n
    allowed = program.range_constraints.get(n.node.expr)
    if allowed is None:
        return None
    smallest = max(1, int(allowed.lower))
    largest = int(allowed.upper) if allowed.upper < torch.iinfo(torch.int32).max else PREDICT_BATCH
    return None if (smallest, largest) == (1, PREDICT_BATCH) else (smallest, max(smallest, largest))
