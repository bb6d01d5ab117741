"""wrap(model, batch=…): the model only sees batches it accepts, and the result is that of one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sparcets as sp
from sparcets.core.errors import ConfigError, ModelOutputError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(30)


class Picky(MeanModule):
    def forward(self, x: Tensor) -> Tensor:
        if not 2 <= len(x) <= 8:
            raise AssertionError(f"a batch of {len(x)}")
        return super().forward(x)


def picky(x: Any) -> Any:
    assert 2 <= len(x) <= 8, f"a batch of {len(x)}"
    return mean_proba(x)


@pytest.mark.parametrize(("model", "plain"), [(Picky(), MeanModule()), (picky, mean_proba)], ids=["module", "callable"])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 30])
def test_small_batches_are_padded_and_large_ones_split(model: Any, plain: Any, n: int) -> None:
    found = sp.wrap(model, n_classes=3, batch=(2, 8)).predict_proba(X[:n])
    np.testing.assert_allclose(found, sp.wrap(plain, n_classes=3).predict_proba(X[:n]), atol=1e-6)


def test_gradients_go_through() -> None:
    x = torch.tensor(X[:9], requires_grad=True)
    sp.wrap(Picky(), n_classes=3, batch=(2, 8)).log_proba(x)[:, 0].sum().backward()  # type: ignore[attr-defined]
    assert x.grad is not None and bool((x.grad[:, :, 0] != 0).all())


def test_an_explainer_with_such_a_model() -> None:
    clf = sp.wrap(Picky(), n_classes=3, batch=(2, 8))
    assert sp.Nearest(clf).fit(X, Y).explain(X[Y == 0][:1], target=1).valid.all()


@pytest.mark.parametrize("batch", [3, (0, 4), (4, 2), (1, 2, 3), (1.5, 2), "ab", (True, 2)])
def test_other_sizes_are_refused(batch: Any) -> None:
    with pytest.raises(ConfigError, match=r"smallest and the largest number of series.*such as \(2, 64\), got"):
        sp.wrap(MeanModule(), batch=batch)


@pytest.mark.parametrize("model", [Picky(), picky], ids=["module", "callable"])
def test_a_failing_model_is_named_with_its_own_error_chained(model: Any) -> None:
    with pytest.raises(ModelOutputError, match=r"your model \w+ failed on an input of shape .*a batch of 1") as caught:
        sp.wrap(model, n_classes=3).predict_proba(X[:1])
    assert isinstance(caught.value.__cause__, AssertionError)
