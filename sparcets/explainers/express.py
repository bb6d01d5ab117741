"""First answers on a GPU to as many queries as there are: while it works on some, others are copied in and out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import BATCH, Classifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.enforcement import IMMUTABLE, BoundConstraints
from sparcets.explainers.queries import Block
from sparcets.explainers.recipe import Recipe
from sparcets.explainers.request import Question
from sparcets.explanation import Explanation
from sparcets.series_info import SeriesInfo
from sparcets.trade_off import Place

AT_ONCE = 8192  # queries; enough to fill a large GPU


def suits(question: Question, recipe: Recipe, classifier: Classifier) -> bool:
    """Whether first answers need nothing of the host: no guide, no cap, no constraint but features left alone."""
    voice = recipe.voices[0]
    return (
        recipe.device.type == "cuda"
        and voice is classifier
        and voice.device == recipe.device
        and not (recipe.generator.guided or recipe.double)
        and question.n == 1
        and question.sparsity is None
        and set(question.constraints.kinds()) <= {IMMUTABLE}
    )


def explain_at_once(block: Block, question: Question, recipe: Recipe, place: Place, info: SeriesInfo) -> Explanation:
    """Answer a block of queries by one pass each; what the classifier does not accept is ``not_found``, for others.

    Parameters
    ----------
    block, question
        What is asked, and :func:`suits`.
    recipe, place
        What was fitted, and where on the trade-off the answers should be.
    info
        Names, units and scale of the data.
    """
    X = np.require(block.X, requirements=["C", "W"])  # torch takes no read-only memory
    query, made, target, before, after = _answer(X, block.target, question.constraints, recipe, place)
    there, valid = before.argmax(1) == target, after.argmax(1) == target
    return Explanation(
        query=query,
        counterfactual=made,
        target=target,
        status=np.where(there, "unchanged", np.where(valid, "generated", "not_found")),
        reason=np.full(len(X), "", dtype="<U1"),
        query_index=np.arange(block.first, block.first + len(X)),
        proba_before=before,
        proba_after=after,
        info=info,
        mutable=question.constraints.mutable,
        constraints=question.said,
    )


def fill_in(explanation: Explanation, rows: IntArray, found: Explanation) -> Explanation:
    """Return an explanation with other answers in some rows; its arrays are written into."""
    for name in ("counterfactual", "status", "proba_after"):
        getattr(explanation, name)[rows] = getattr(found, name)
    reason = explanation.reason.astype(found.reason.dtype)
    reason[rows] = found.reason
    return replace(explanation, reason=reason)


@torch.no_grad()
def _answer(
    X: FloatArray, target: IntArray | None, constraints: BoundConstraints, recipe: Recipe, place: Place
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]:
    """Return the queries, counterfactuals (batch, time, features), targets, and probabilities before and after."""
    voice, device = recipe.voices[0], recipe.device
    series = torch.from_numpy(X)
    # Memory by NumPy, which asks for large pages; copied by torch, on all cores.
    kept, made = torch.from_numpy(np.empty_like(X)), torch.from_numpy(np.empty_like(X))
    wanted = torch.empty(len(X), dtype=torch.int64) if target is None else torch.from_numpy(target.copy())
    before, after = torch.empty(2, len(X), voice.n_classes, dtype=torch.float64)
    least = np.where(constraints.mutable, constraints.tolerance, np.inf)
    smallest = torch.as_tensor(least, dtype=made.dtype, device=device)
    size = min(len(X), AT_ONCE if isinstance(voice, TorchClassifier) else BATCH)  # a stranger may need much memory
    on_gpu = device.type == "cuda"
    lanes = [torch.empty((size, *X.shape[1:]), dtype=made.dtype, pin_memory=on_gpu) for _ in range(2)]
    under_way: list[tuple[slice, Tensor, list[Tensor], torch.cuda.Event | None]] = []

    def collect() -> None:
        rows, lane, said, done = under_way.pop(0)
        if done is not None:
            done.synchronize()  # waits for this part alone
        before[rows], after[rows], wanted[rows] = said
        made[rows].copy_(lane)

    for number, first in enumerate(range(0, len(X), size)):
        rows = slice(first, min(first + size, len(X)))
        lane = lanes[number % 2][: rows.stop - rows.start]
        lane.copy_(series[rows])
        raw = lane.to(device, non_blocking=True)
        heard = voice.log_proba(raw.clone())  # the model may write into what it is given
        if target is None:  # the runner-up; among equals, the first is the prediction
            asked = heard.sort(dim=1, descending=True, stable=True).indices[:, 1]
        else:
            asked = wanted[rows].to(device, non_blocking=True)
        answer, said = recipe.generate(raw, asked, smallest, place)
        there = heard.argmax(1) == asked
        lane.copy_(torch.where(there[:, None, None], raw, answer), non_blocking=True)
        said = torch.where(there[:, None], heard, said)
        told = [part.to("cpu", non_blocking=True) for part in (heard.exp().double(), said.exp().double(), asked)]
        done = torch.cuda.current_stream(device).record_event() if on_gpu else None
        under_way.append((rows, lane, told, done))
        kept[rows].copy_(series[rows])  # the user's array stays the user's
        if len(under_way) > 1:
            collect()
    while under_way:
        collect()
    return kept.numpy(), made.numpy(), wanted.numpy(), before.numpy(), after.numpy()
