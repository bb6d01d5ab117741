"""The fitted model: residuals of its generator in batches."""

import math

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.model import CPU_BATCH, build_generator
from sparcets.methods.own.prototypes import Prototypes
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(36, n_steps=9)
X = 3 * X + 5  # units of its own, so that nothing is standardised by chance
INFO = SeriesInfo.from_series(X, ("a", "b", "c"))
Z = INFO.scaler.transform(X).astype(np.float32)


@pytest.fixture
def model(build_model):
    """Return a function that builds a model whose members have the given sharpness."""

    def build(*sharpness, **kwargs):
        members = [MeanModule(sharpness=s) for s in sharpness or (10.0,)]
        return build_model(INFO, members, Prototypes(Series(X), Y, np.arange(len(Y)), INFO.scaler), **kwargs)

    return build


def test_the_generator_is_given_target_and_sparsity_weight(model):
    delta = model().propose(torch.tensor(Z[:4]), torch.tensor([0, 1, 2, 0]), math.log(2.5))
    assert delta.amax((1, 2)).tolist() == pytest.approx([2.5] * 4)
    assert [f for row in delta for f in row[0].nonzero().ravel().tolist()] == [0, 1, 2, 0]


@pytest.mark.parametrize("n", [1, CPU_BATCH, 2 * CPU_BATCH + 1])  # the last part is a single series
def test_many_series_are_computed_in_parts_with_the_same_result(model, n):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        generator = build_generator(sp.ExplainerConfig.tiny(), INFO, [0, 1, 2, 3], hidden=4, layers=1).eval()
        x = torch.randn(n, 9, 4)
    target = torch.arange(n) % 3
    with torch.no_grad():
        whole = generator(x, target, torch.full((n,), 0.5))
    torch.testing.assert_close(model(generator=generator).propose(x, target, 0.5), whole)


def test_without_a_generator_nothing_is_proposed(model):
    with pytest.raises(ValueError, match="this model has no generator: its answers are searched"):
        model(generates=False).propose(torch.tensor(Z[:4]), torch.zeros(4, dtype=torch.int64), 0.0)


def test_the_generator_is_built_by_the_settings_and_the_data():
    config = sp.ExplainerConfig().override("generator.backbone=gru", "gate=feature")
    generator = build_generator(config, INFO, [1, 3], hidden=5, layers=2)
    assert (generator.hidden, generator.layers) == (5, 2)
    assert (
        generator.mutable.tolist() == [0, 1, 0, 1]
        and generator.entry_gate is None
        and generator.feature_gate is not None
    )
    assert generator.target_embedding.num_embeddings == 3
    assert (
        isinstance(generator.backbone.backbone.layers[0], torch.nn.GRU) and len(generator.backbone.backbone.layers) == 2
    )
