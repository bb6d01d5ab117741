"""Random convolutions: the shares of steps by a plain loop, their draw, and their gradients."""

from itertools import combinations

import numpy as np
import pytest
import torch

from sparcets.explainers.sparcets.families.convolutions import (
    DILATIONS,
    LENGTH,
    RAISED,
    SETS,
    SHARP_SETS,
    RandomConvolutions,
)

X = torch.tensor(np.random.default_rng(0).standard_normal((3, 17, 4)), dtype=torch.float32)
KERNELS = [[2.0 if i in raised else -1.0 for i in range(LENGTH)] for raised in combinations(range(LENGTH), RAISED)]


@pytest.fixture(scope="module")
def drawn():
    return RandomConvolutions.draw(X, seed=0)


def outputs(module, series, i, kernel):
    """Return the outputs of one kernel (batch, time) of the i-th dilation; series count as 0 beyond their ends."""
    mixed = (series @ module.mixing[i, :, kernel]).numpy()
    step, n_steps = int(module.dilation[i]), mixed.shape[1]
    made = np.zeros_like(mixed)
    for t in range(n_steps):
        for k, weight in enumerate(KERNELS[kernel % len(KERNELS)]):
            at = t + (k - LENGTH // 2) * step
            if 0 <= at < n_steps:
                made[:, t] += weight * mixed[:, at]
    return made


def test_features_are_smooth_shares_of_steps_above_the_bias(drawn):
    n_dilations, n_kernels, n_biases = drawn.bias.shape
    features = drawn(X).numpy().reshape(3, n_dilations, n_biases, n_kernels)
    assert n_kernels == SETS * len(KERNELS) and len(KERNELS) == 84
    for i in range(n_dilations):
        for kernel in (0, 7, 83, 84, 167):
            made = outputs(drawn, X, i, kernel)
            for b in range(n_biases):
                above = (made - drawn.bias[i, kernel, b].item()) / drawn.width[i, kernel].item()
                np.testing.assert_allclose(features[:, i, b, kernel], (1 / (1 + np.exp(-above))).mean(1), atol=1e-5)


def test_biases_are_outputs_of_training_series_and_rise(drawn):
    for i in range(len(drawn.dilation)):
        for kernel in (0, 7, 83, 84, 167):
            made = outputs(drawn, X, i, kernel)
            for bias in drawn.bias[i, kernel]:
                assert np.abs(made - bias.item()).min() < 1e-4
    assert (drawn.bias.diff(dim=2) >= 0).all() and (drawn.width > 0).all()


def test_kernels_reach_no_further_than_the_series(drawn):
    assert drawn.dilation.tolist() == [1, 2]  # eight times two of seventeen steps
    long = RandomConvolutions.draw(torch.randn(2, 100, 1, generator=torch.Generator().manual_seed(0)), seed=0)
    assert long.dilation[0] == 1 and 50 < (LENGTH - 1) * long.dilation[-1] < 100
    assert (long.dilation.diff() > 0).all() and 2 < len(long.dilation) <= DILATIONS


def test_every_kernel_mixes_some_channels_with_equal_weights(drawn):
    mixed = (drawn.mixing != 0).sum(1)
    assert mixed.min() == 1 and mixed.max() <= 4 and len(mixed.unique()) > 2
    torch.testing.assert_close(drawn.mixing.square().sum(1), torch.ones(mixed.shape))


@pytest.mark.parametrize(("n_steps", "n_features"), [(1, 1), (2, 3), (8, 2), (30, 40)])
def test_series_of_any_size(n_steps, n_features):
    series = torch.randn(5, n_steps, n_features, generator=torch.Generator().manual_seed(0))
    features = RandomConvolutions.draw(series, seed=0)(series)
    assert torch.isfinite(features).all() and (features >= 0).all() and (features <= 1).all()


def test_the_seed_decides(drawn):
    assert torch.equal(RandomConvolutions.draw(X, seed=0)(X), drawn(X))
    assert not torch.equal(RandomConvolutions.draw(X, seed=1)(X), drawn(X))


def test_gradients_are_those_of_finite_differences():
    module = RandomConvolutions.draw(X, seed=0).double()
    weight = torch.randn(module(X.double()).shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda x: module(x) @ weight, X[:1].double().requires_grad_(True))


def test_sharp_counts_are_shares_of_steps_and_have_more_sets():
    sharp = RandomConvolutions.draw(X, seed=0, sharp=True)
    n_dilations, n_kernels, n_biases = sharp.bias.shape
    features = sharp(X).numpy().reshape(3, n_dilations, n_biases, n_kernels)
    made = outputs(sharp, X, 0, 5)
    above = (made > sharp.bias[0, 5, 1].item()).mean(1)
    np.testing.assert_allclose(features[:, 0, 1, 5], above, atol=0.51 / X.shape[1])  # a step at the bias counts half
    assert sharp.n_sets == SHARP_SETS and len(sharp.columns()) == SHARP_SETS


def test_the_columns_of_the_sets_are_all_columns_once_and_those_of_their_kernels(drawn):
    columns = drawn.columns()
    n_dilations, n_kernels, n_biases = drawn.bias.shape
    assert sorted(torch.cat(columns).tolist()) == list(range(n_dilations * n_kernels * n_biases))
    for i, part in enumerate(columns):
        assert (part % n_kernels // 84 == i).all()
