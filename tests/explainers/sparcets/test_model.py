"""The fitted model: residuals of its generator in batches, prototypes of queries, and pruning by its ensemble."""

import math

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers.sparcets.model import CPU_BATCH, build_generator
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explanation.series_info import SeriesInfo
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
        return build_model(INFO, members, Prototypes(Z[Y != 2], Y[Y != 2]), selector=MeanModule(), **kwargs)

    return build


def test_the_generator_is_given_target_and_sparsity_weight(model):
    delta = model().propose(torch.tensor(Z[:4]), torch.tensor([0, 1, 2, 0]), math.log(2.5))
    assert delta.amax((1, 2)).tolist() == pytest.approx([2.5] * 4)
    assert [f for row in delta for f in row[0].nonzero().ravel().tolist()] == [0, 1, 2, 0]


@pytest.mark.parametrize("uses_prototype", [False, True])
@pytest.mark.parametrize("n", [1, CPU_BATCH, 2 * CPU_BATCH + 1])  # the last part is a single series
def test_many_series_are_computed_in_parts_with_the_same_result(model, uses_prototype, n):
    config = sp.ExplainerConfig.tiny()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        generator = build_generator(
            config, INFO, [0, 1, 2, 3], hidden=4, layers=1, uses_prototype=uses_prototype
        ).eval()
        x, prototype = torch.randn(2, n, 9, 4)
    target, prototype = torch.arange(n) % 3, prototype if uses_prototype else None
    with torch.no_grad():
        whole = generator(x, target, torch.full((n,), 0.5), prototype)
    torch.testing.assert_close(model(generator=generator).propose(x, target, 0.5, prototype), whole)


def test_the_first_prototype_is_the_nearest_and_only_used_by_a_generator_for_prototypes(model):
    x, target = torch.tensor(Z[:6]), np.array([0, 1, 0, 1, 0, 2])
    assert model().nearest_prototype(x, target) is None
    built = model(uses_prototype=True)
    nearest = built.prototypes.nearest(x, target, 1)[:, 0]
    first = built.nearest_prototype(x, target)
    torch.testing.assert_close(first[:5], torch.tensor(built.prototypes.series[nearest[:5]]))
    assert torch.equal(first[5], x[5])  # there is none of class 2


def test_answers_are_pruned_to_what_the_most_demanding_member_needs(model):
    x, target = torch.tensor(Z[Y == 0][:6]), torch.ones(6, dtype=torch.int64)
    long = model().propose(x, target, math.log(6.0))
    pruned = {members: model(*members).prune(x, long, target) for members in [(10.0,), (1.0,), (10.0, 1.0)]}
    counts = {members: (delta != 0).sum((1, 2)) for members, delta in pruned.items()}
    assert (counts[1.0,] > counts[10.0,]).all() and torch.equal(counts[10.0, 1.0], counts[1.0,])
    assert (model(10.0, 1.0).ensemble.agreement(x + pruned[10.0, 1.0], target) > 0.89).all()
    one = torch.ones(6, dtype=torch.int64)
    assert (model().prune(x, long, target, at_most=one) != 0).sum((1, 2)).amax() == 1


def test_negligible_changes_are_pruned_even_if_they_convince(model):
    x = torch.tensor(INFO.scaler.transform(np.full((2, 9, 4), 5.0)), dtype=torch.float32)  # all features equal
    small, target = torch.zeros_like(x), torch.ones(2, dtype=torch.int64)
    small[..., 1] = 0.09
    built = model(1e3)
    assert (built.ensemble.agreement(x + small, target) > 0.9).all()
    assert not built.prune(x, small, target).any()


def test_the_generator_is_built_by_the_settings_and_the_data():
    config = sp.ExplainerConfig().override("generator.backbone=gru", "gate=feature")
    generator = build_generator(config, INFO, [1, 3], hidden=5, layers=2, uses_prototype=False)
    assert (generator.hidden, generator.layers, generator.uses_prototype) == (5, 2, False)
    assert (
        generator.mutable.tolist() == [0, 1, 0, 1]
        and generator.entry_gate is None
        and generator.feature_gate is not None
    )
    assert generator.target_embedding.num_embeddings == 3
    assert (
        isinstance(generator.backbone.backbone.layers[0], torch.nn.GRU) and len(generator.backbone.backbone.layers) == 2
    )
