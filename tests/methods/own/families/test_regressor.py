"""Regressors of the families: they learn a number, know by how much they are off, and are saved."""

import numpy as np
import pytest
import torch

from sparcets.methods.own.family import FEATURES, FamilyRegressor, FamilyWithin
from sparcets.models.views import Goal
from sparcets.testing.data import make_series

X = torch.tensor(make_series(120)[0])
Y = X[:, :, :2].mean(1).double().numpy()
Y = (Y - Y.mean(0)) / Y.std(0)


@pytest.mark.parametrize("family", FEATURES)
@pytest.mark.parametrize("role", ["member", "judge"])
def test_numbers_are_learnt_and_restored(family, role):
    made = getattr(FamilyRegressor, f"fit_{role}")(family, X[:100], Y[:100], 0)
    numbers = (made(X[100:]) if role == "member" else made.votes(X[100:])).detach().numpy()
    assert numbers.shape[1:] == (20, 2)
    error = np.sqrt(((numbers.mean(0) - Y[100:]) ** 2).mean(0))
    assert (error < 0.5).all()  # of 1, by always predicting the mean
    # The spread is measured on series that were left out, so that it foretells the error on others.
    assert (error < 3 * made.spread.numpy()).all()
    again = FamilyRegressor.from_arrays(family, made.to_arrays())
    torch.testing.assert_close(again(X[:5]), made(X[:5]), rtol=0, atol=0)
    torch.testing.assert_close(again.spread, made.spread, rtol=0, atol=0)


def test_the_view_agrees_with_the_numbers():
    member = FamilyRegressor.fit_member("intervals", X, Y, 0)
    view = FamilyWithin(member, Goal(np.array([[0.5, np.inf], [-np.inf, np.inf]]), ("in", "out")))
    numbers, log_proba = member(X), view(X)
    assert log_proba.shape == (2, 120, 2)
    np.testing.assert_array_equal((log_proba[..., 0] > log_proba[..., 1]).numpy(), (numbers[..., 0] > 0.5).numpy())
    torch.testing.assert_close(log_proba.exp().sum(-1), torch.ones(2, 120))
