"""RidgeHead: a linear model fitted in closed form; as a classifier, calibrated by leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.arrays import FloatArray, IntArray

PENALTIES = 10.0 ** np.arange(-4, 2.5, 0.5)
TEMPERATURES = 10.0 ** np.arange(0, 1.6, 0.1)  # factors of the logits


class RidgeHead(nn.Module):
    """Ridge regression to ±1 per class; its outputs, scaled by a temperature, are logits.

    Parameters
    ----------
    shift, scale
        Standardise the inputs (inputs,).
    weight, bias
        Of the linear map, (inputs, classes) and (classes,).
    accuracy
        By leave-one-out, a tensor without dimensions.
    """

    shift: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    accuracy: Tensor

    def __init__(self, *, shift: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, accuracy: Tensor) -> None:
        super().__init__()
        named = {"shift": shift, "scale": scale, "weight": weight, "bias": bias, "accuracy": accuracy}
        for name, tensor in named.items():
            self.register_buffer(name, tensor)

    @classmethod
    def fit(cls, inputs: Tensor, y: IntArray, n_classes: int) -> RidgeHead:
        """Fit by one eigendecomposition: of the Gram matrix or of the covariance, whichever is smaller.

        The penalty is the one with the least leave-one-out error, the temperature the one with the best leave-one-out
        likelihood, so that a head on few series is not surer than it should be.

        Parameters
        ----------
        inputs
            Features of the training series (batch, inputs).
        y, n_classes
            Labels (batch,) and number of classes.

        Examples
        --------
        >>> inputs = torch.tensor([[0.0], [0.1], [0.9], [1.0]])
        >>> head = RidgeHead.fit(inputs, np.array([0, 0, 1, 1]), 2)
        >>> head(inputs).argmax(1).tolist()
        [0, 0, 1, 1]
        """
        Y = 2.0 * np.eye(n_classes)[y] - 1
        solution = _solve(inputs, Y)
        temperature = min(TEMPERATURES, key=lambda factor: _log_loss(factor * solution.left_out, y))
        return cls._of(solution, float(temperature), np.mean(solution.left_out.argmax(1) == y))

    @classmethod
    def fit_numbers(cls, inputs: Tensor, y: FloatArray) -> tuple[RidgeHead, FloatArray]:
        """Fit to numbers (batch, outputs); return the head and the leave-one-out predictions.

        The accuracy is the share of the variance that these explain.

        Examples
        --------
        >>> inputs = torch.tensor([[0.0], [1.0], [2.0], [4.0]])
        >>> head, left_out = RidgeHead.fit_numbers(inputs, np.array([[0.0], [1.0], [2.0], [4.0]]))
        >>> head(torch.tensor([[3.0]])).round(decimals=2).tolist(), left_out.shape
        ([[3.0]], (4, 1))
        """
        solution = _solve(inputs, y)
        left = ((y - solution.left_out) ** 2).sum() / max(((y - y.mean(0)) ** 2).sum(), 1e-12)
        return cls._of(solution, 1.0, 1 - left), solution.left_out

    @classmethod
    def _of(cls, solution: _Solution, factor: float, accuracy: Any) -> RidgeHead:
        """Return a solution, times a factor, as a head on the device of the inputs."""
        shift = solution.shift
        return cls(
            shift=shift,
            scale=solution.scale,
            weight=torch.as_tensor(factor * solution.weight, dtype=torch.float32, device=shift.device),
            bias=torch.as_tensor(factor * solution.mean, dtype=torch.float32, device=shift.device),
            accuracy=torch.as_tensor(accuracy, dtype=torch.float32, device=shift.device),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (batch, classes)."""
        return ((inputs - self.shift) * self.scale) @ self.weight + self.bias


@dataclass(frozen=True, eq=False)
class _Solution:
    """Shift and scale of the inputs, the linear map of them, and the leave-one-out predictions (batch, outputs)."""

    shift: Tensor
    scale: Tensor
    weight: FloatArray
    mean: FloatArray
    left_out: FloatArray


def _solve(inputs: Tensor, Y: FloatArray) -> _Solution:
    """Return the ridge regression to numbers (batch, outputs) with the least leave-one-out error."""
    shift, spread = inputs.mean(0), inputs.std(0)
    scale = torch.where(spread > 1e-6, 1 / spread, 0.0) / inputs.shape[1] ** 0.5  # constant inputs are left out
    Z = ((inputs - shift) * scale).double().cpu().numpy()
    values, U, to_weight = _decompose(Z)
    mean = Y.mean(0)
    rotated = U.T @ (Y - mean)  # (rank, outputs)
    penalty, left_out = min(
        ((p, _leave_one_out(values, U, rotated, Y, p)) for p in PENALTIES),
        key=lambda tried: float(((Y - tried[1]) ** 2).mean()),
    )
    weight = to_weight(rotated / (values + penalty)[:, None])
    return _Solution(shift, scale, weight, mean, left_out)


def _decompose(Z: FloatArray) -> tuple[FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return eigenvalues, left singular vectors, and the map from rotated targets to the weights of the inputs."""
    n, d = Z.shape
    if n <= d:
        values, U = np.linalg.eigh(Z @ Z.T)
        return values.clip(0), U, lambda rotated: Z.T @ (U @ rotated)
    values, V = np.linalg.eigh(Z.T @ Z)
    values = values.clip(1e-12)
    root = np.sqrt(values)
    return values, Z @ V / root, lambda rotated: V @ (root[:, None] * rotated)


def _leave_one_out(values: FloatArray, U: FloatArray, rotated: FloatArray, Y: FloatArray, penalty: float) -> FloatArray:
    """Return the prediction of each series (batch, classes) by a fit without it."""
    shrink = values / (values + penalty)
    predicted = U @ (shrink[:, None] * rotated) + Y.mean(0)
    leverage = (U**2 * shrink).sum(1) + 1 / len(Y)
    left_out: FloatArray = Y - (Y - predicted) / (1 - leverage).clip(1e-6)[:, None]
    return left_out


def _log_loss(logits: FloatArray, y: IntArray) -> float:
    top = logits.max(1, keepdims=True)
    normaliser = top[:, 0] + np.log(np.exp(logits - top).sum(1))
    return float((normaliser - logits[np.arange(len(y)), y]).mean())
