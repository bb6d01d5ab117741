"""One forward pass on a GPU for any number of queries: copies to and from the GPU overlap with its work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.edits import EditLists, free_edits
from sparcets.core.enforcement import IMMUTABLE, BoundConstraints
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.methods.own.generator import drop_negligible
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.methods.request import CallOptions, QueryBlock
from sparcets.models.base import PREDICT_BATCH, Classifier
from sparcets.models.network import TorchClassifier

GPU_BATCH = 8192  # queries per pass; enough to fill a large GPU


def can_use_gpu_path(options: CallOptions, model: FittedModel, classifier: Classifier) -> bool:
    """Return whether one pass can run entirely on the GPU: a generator, no caps, only immutable features."""
    explained = model.ensemble.explained
    return (
        model.device.type == "cuda"
        and explained is classifier
        and explained.device == model.device
        and model.generator is not None
        and not model.ensemble.double
        and options.n == 1
        and options.sparsity is None
        and options.edits is None
        and options.confidence is None
        and set(options.constraints.active_kinds()) <= {IMMUTABLE}
    )


def explain_in_one_pass(
    block: QueryBlock, options: CallOptions, model: FittedModel, point: OperatingPoint, info: SeriesInfo
) -> Explanation:
    """Answer a block of queries by one pass each; answers that the classifier does not accept are ``not_found``.

    Parameters
    ----------
    block, options
        The queries, for which :func:`can_use_gpu_path` holds.
    model, point
        The fitted model, and the operating point.
    info
        Names, units and scale of the data.
    """
    X = np.require(block.series.values, requirements=["C", "W"])  # torch takes no read-only memory
    query, counterfactual, target, before, after = _predict(X, block.target, options.constraints, model, point)
    unchanged, valid = before.argmax(1) == target, after.argmax(1) == target
    return Explanation(
        query=query,
        counterfactual=counterfactual,
        target=target,
        status=np.where(unchanged, "unchanged", np.where(valid, "generated", "not_found")),
        reason=np.full(len(X), "", dtype="<U1"),
        query_index=block.index,
        proba_before=before,
        proba_after=after,
        info=info,
        mutable=options.constraints.mutable,
        frozen=options.constraints.frozen_if_any,
        constraints=options.constraints_given,
    )


def fill_in(explanation: Explanation, rows: IntArray, found: Explanation) -> Explanation:
    """Return an explanation with the answers of another in some rows; its arrays are modified in place."""
    for name in ("counterfactual", "status", "proba_after"):
        getattr(explanation, name)[rows] = getattr(found, name)
    reason = explanation.reason.astype(found.reason.dtype)
    reason[rows] = found.reason
    names = explanation.info.feature_names
    answers = zip(explanation.query, explanation.counterfactual, strict=True)
    lists = [tuple(free_edits(query, made, names)) for query, made in answers]
    if found.edit_lists is not None:
        for row, edits in zip(rows.tolist(), found.edit_lists.lists, strict=True):
            lists[row] = edits
    return replace(explanation, reason=reason, edit_lists=EditLists(tuple(lists)))


@torch.no_grad()
def generate(
    model: FittedModel, raw: Tensor, target: Tensor, tolerance: Tensor, point: OperatingPoint
) -> tuple[Tensor, Tensor]:
    """Return counterfactuals (batch, time, features) in the data's own units, and their log-probabilities.

    Runs on the device of the series. On a GPU the generator computes in bfloat16: that changes residuals by a few
    thousandths, exact zeros stay exact, and the classifier receives what is returned.

    Parameters
    ----------
    model
        The fitted model.
    raw, target
        Queries in the data's own units, and target classes (batch,).
    tolerance
        Smallest change of each feature that counts (features,); infinite where a feature may not change.
    point
        The operating point.
    """
    std, center = model.ensemble.scale_and_center
    with torch.autocast(raw.device.type, torch.bfloat16, enabled=raw.device.type == "cuda"):
        x = model.ensemble.filled(((raw - center) / std).float())
        delta = model.propose(x, target, point.log_sparsity_weight)
    change = drop_negligible(point.residual_scale * delta) * std
    made = torch.where((change != 0) & (change.abs() >= tolerance), raw + change, raw)
    return made, model.ensemble.explained.log_proba(made.clone())  # a copy: the model may write into its input


@torch.no_grad()
def _predict(
    X: FloatArray, target: IntArray | None, constraints: BoundConstraints, model: FittedModel, point: OperatingPoint
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]:
    """Return queries, counterfactuals (batch, time, features), targets, and probabilities before and after."""
    explained, device = model.ensemble.explained, model.device
    series = torch.from_numpy(X)
    # Allocated by NumPy, which requests large pages; copied by torch, on all cores.
    query, made = torch.from_numpy(np.empty_like(X)), torch.from_numpy(np.empty_like(X))
    targets = torch.empty(len(X), dtype=torch.int64) if target is None else torch.from_numpy(target.copy())
    before, after = torch.empty(2, len(X), explained.n_classes, dtype=torch.float64)
    smallest = np.where(constraints.mutable, constraints.tolerance, np.inf)
    tolerance = torch.as_tensor(smallest, dtype=made.dtype, device=device)
    size = min(
        len(X), GPU_BATCH if isinstance(explained, TorchClassifier) else PREDICT_BATCH
    )  # a user's model may be large
    on_gpu = device.type == "cuda"
    buffers = [torch.empty((size, *X.shape[1:]), dtype=made.dtype, pin_memory=on_gpu) for _ in range(2)]
    pending: list[tuple[slice, Tensor, list[Tensor], torch.cuda.Event | None]] = []

    def collect() -> None:
        rows, buffer, results, done = pending.pop(0)
        if done is not None:
            done.synchronize()  # waits for this batch only
        before[rows], after[rows], targets[rows] = results
        made[rows].copy_(buffer)

    for number, first in enumerate(range(0, len(X), size)):
        rows = slice(first, min(first + size, len(X)))
        buffer = buffers[number % 2][: rows.stop - rows.start]
        buffer.copy_(series[rows])
        raw = buffer.to(device, non_blocking=True)
        log_before = explained.log_proba(raw.clone())  # a copy: the model may write into its input
        if target is None:  # the runner-up; a stable sort, so that among equals it is never the prediction itself
            own = log_before.sort(dim=1, descending=True, stable=True).indices[:, 1]
        else:
            own = targets[rows].to(device, non_blocking=True)
        counterfactual, log_after = generate(model, raw, own, tolerance, point)
        unchanged = log_before.argmax(1) == own
        buffer.copy_(torch.where(unchanged[:, None, None], raw, counterfactual), non_blocking=True)
        log_after = torch.where(unchanged[:, None], log_before, log_after)
        probabilities = (log_before.double().exp(), log_after.double().exp())  # singles could become equal
        results = [part.to("cpu", non_blocking=True) for part in (*probabilities, own)]
        done = torch.cuda.current_stream(device).record_event() if on_gpu else None
        pending.append((rows, buffer, results, done))
        query[rows].copy_(series[rows])  # a copy: the result must not share memory with the user's array
        if len(pending) > 1:
            collect()
    while pending:
        collect()
    return query.numpy(), made.numpy(), targets.numpy(), before.numpy(), after.numpy()
