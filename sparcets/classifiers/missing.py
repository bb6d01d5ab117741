"""What a wrapped model gets for missing values, by the rule or the function of the user."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray, missing_entries
from sparcets.errors import ModelOutputError
from sparcets.gaps import Missing, fill_gaps
from sparcets.networks.filling import fill_gaps as fill_tensor


def filled_series(X: FloatArray, missing: Missing, lengths: IntArray | None = None) -> FloatArray:
    """Return series (batch, time, features) as the model gets them.

    Parameters
    ----------
    X, lengths
        Series with NaN, and true lengths or None.
    missing
        The rule, or the user's function; only what it returns for missing values is used.
    """
    if missing == "keep":
        return X
    if isinstance(missing, str):
        return fill_gaps(X, missing, lengths)
    gaps = missing_entries(X)
    if gaps is None:
        return X
    try:
        filled = np.asarray(missing(X.copy()), dtype=X.dtype)
    except Exception as error:  # the user's code may raise anything
        raise ModelOutputError(
            f"the function given as missing= failed on series of shape {X.shape}: {type(error).__name__}: {error}."
        ) from error
    if filled.shape != X.shape:
        raise ModelOutputError(f"the function given as missing= must return shape {X.shape}, got {filled.shape}.")
    return np.where(gaps, filled, X)


def filled_tensor(x: Tensor, missing: Missing, lengths: Tensor | None = None) -> Tensor:
    """Return a tensor of series as the model gets it, with gradients; see :func:`filled_series`.

    What a function fills in is a constant: gradients flow to what was measured.
    """
    if missing == "keep":
        return x
    if isinstance(missing, str):
        return fill_tensor(x, missing, lengths)
    filled = filled_series(x.detach().cpu().numpy(), missing)
    return torch.where(x.isnan(), torch.as_tensor(filled, dtype=x.dtype, device=x.device), x)
