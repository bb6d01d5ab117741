"""ICS: instance-wise counterfactual search by gradient descent (after Wachter et al.; the paper's section 4)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.info import SeriesInfo
from sparcets.core.progress import yield_to_urgent_work
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray
from sparcets.core.settings import IcsConfig
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, Request
from sparcets.models.base import Classifier
from sparcets.models.interface import Batch
from sparcets.training.device import threads_for
from sparcets.training.networks import fill_gaps
from sparcets.training.projection import Projection

# Queries in a descent on a CPU, always the same number: sums over another number differ in their last bits, which a
# descent amplifies. So an answer is independent of the other queries in the batch.
ROWS = 16


class Ics(BaseExplainer[IcsConfig]):
    """Moves noise towards the query and the target class at once, many queries at a time.

    The loss of a query is λ · ‖C(x) − target‖₂ + ‖x − x_q‖₁ / (T·F), in standardised units. It starts from uniform
    noise between the query's smallest and largest value; λ grows, by doubling or by ``lambda_step``, for the queries
    that are not valid yet.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> ex = sp.Ics(clf, sp.IcsConfig.tiny()).fit(X, y, progress=False)
    >>> ex.explain(X[:4], target=1, progress=False).counterfactual.shape
    (4, 20, 4)
    """

    config_class = IcsConfig
    needs_gradients = True
    supports_numbers = True
    supports_lengths = True
    takes_padding = False

    def _explain(self, request: Request) -> Answers:
        model = request.classifier
        config, scaler, device = self.config, request.info.scaler, model.device
        query = torch.tensor(scaler.transform(request.X).astype(np.float32), device=device)
        start = torch.tensor(self._noise(request, query.cpu().numpy()), device=device)
        search = _Search(model, query, torch.tensor(request.target, device=device), request, config)
        with threads_for(ROWS * query[0].numel()):
            found = search.run(start)
        moved = (found.cpu().numpy() * scaler.scale + scaler.center).astype(request.X.dtype)
        return Answers.one_per_query(request, request.apply_limits(moved), "refined")

    def _noise(self, request: Request, query: FloatArray) -> FloatArray:
        """Draw each query's start from its own seed, so that it is independent of the rest of the batch."""
        noise = np.empty_like(query)
        for i, series in enumerate(query):
            name = hashlib.sha256(request.X[i].tobytes()).hexdigest()
            rng = generator(self.config.seed, f"{name}/{request.target[i]}")
            noise[i] = rng.uniform(np.nanmin(series), np.nanmax(series), series.shape)
        return noise

    def _state(self) -> dict[str, Any]:
        return {}  # nothing is fitted

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        pass


class _Search:
    """The descent of one batch; each query has its own λ, and its descent ends once it is valid."""

    def __init__(self, model: Classifier, query: Tensor, target: Tensor, request: Request, config: IcsConfig) -> None:
        self.model, self.query, self.target, self.request, self.config = model, query, target, request, config
        scaler = request.info.scaler
        own = request.X.dtype  # the classifier receives float64 where the data are
        self.center = torch.tensor(scaler.center.astype(own), device=query.device)
        self.scale = torch.tensor(scaler.scale.astype(own), device=query.device)
        gaps = request.series.gaps is not None
        self.projection = Projection(request.constraints, scaler, gaps=gaps).to(query.device)
        self.measured = fill_gaps(query, otherwise=0.0) if gaps else query
        # Smallest and largest number of queries that descend together.
        self.batch: Batch = (ROWS, ROWS) if query.device.type == "cpu" else (1, len(query))

    def run(self, start: Tensor) -> Tensor:
        """Return the found series (batch, time, features), standardised."""
        config = self.config
        if self.projection.gaps:  # missing entries start, and stay, where they add nothing to the loss
            start = torch.where(self.query.isnan(), self.measured, start)
        found, valid = start.clone(), torch.zeros_like(self.target, dtype=torch.bool)
        trade_off = start.new_full((len(start),), config.prediction_weight)
        for _ in range(config.max_lambdas):
            for rows in torch.split((~valid).nonzero()[:, 0], self.batch[1]):
                n = len(rows)  # a block that is too small repeats its last row
                block = rows[torch.arange(max(n, self.batch[0]), device=rows.device).clamp(max=n - 1)]
                found[rows] = self._descend(found[block], block, trade_off[block])[:n]
                with torch.no_grad():
                    said = self.model.log_proba(self._constrained(found[block], block)).exp().cpu().numpy()
                valid[rows] = torch.as_tensor(
                    self.request.is_reached(said, block.cpu().numpy())[:n], device=valid.device
                )
            if valid.all():
                break
            trade_off[~valid] += trade_off[~valid] if config.lambda_step is None else config.lambda_step
        return found

    def _descend(self, start: Tensor, rows: Tensor, trade_off: Tensor) -> Tensor:
        x = start.clone().requires_grad_(True)
        config = self.config
        optimiser = torch.optim.Adam([x], lr=config.lr, betas=(config.beta1, config.beta2))
        for _ in range(config.steps):
            yield_to_urgent_work()
            optimiser.zero_grad()
            # One descent per query: their losses share nothing, so the sum has the same gradients.
            self.loss(x, rows, trade_off).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return x.detach()

    def loss(self, x: Tensor, rows: Tensor, trade_off: Tensor) -> Tensor:
        """Return the loss of each query (batch,)."""
        proba = self.model.log_proba(self._constrained(x, rows)).exp()
        one_hot = torch.nn.functional.one_hot(self.target[rows], proba.shape[1])
        prediction = torch.linalg.vector_norm(proba - one_hot, dim=1)
        distance = (x - self.measured[rows]).abs().mean((1, 2))
        result: Tensor = trade_off * prediction + distance
        return result

    def _constrained(self, x: Tensor, rows: Tensor) -> Tensor:
        """Return the input of the classifier: with the constraints applied, in the data's own units."""
        query = self.query[rows]
        delta = self.projection(query, x - self.measured[rows])
        raw: Tensor = (query + delta) * self.scale + self.center
        return raw
