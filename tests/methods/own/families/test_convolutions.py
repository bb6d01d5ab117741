"""Random convolutions: the shares of steps by a plain loop, their mixtures and draw, and their gradients."""

from itertools import combinations

import numpy as np
import pytest
import torch

from sparcets.methods.own import convolutions
from sparcets.methods.own.convolutions import (
    LENGTH,
    PER_MIXTURE,
    RAISED,
    SETS,
    SHARP_SETS,
    RandomConvolutions,
)

X = torch.tensor(np.random.default_rng(0).standard_normal((3, 17, 4)), dtype=torch.float32)
KERNELS = [[2.0 if i in raised else -1.0 for i in range(LENGTH)] for raised in combinations(range(LENGTH), RAISED)]
PER_SET = 7  # mixtures, of twelve kernels each
SOME = (0, 7, 83, 84, 167)  # kernels of both sets, in the order of the features


def outputs(module, series, i, column):
    """Return the outputs of one kernel (batch, time) of the i-th dilation; series count as 0 beyond their ends."""
    mixture, j = divmod(column, PER_MIXTURE)
    mixed = (series @ module.mixing[i, :, mixture]).numpy()
    step, n_steps = int(module.dilation[i]), mixed.shape[1]
    made = np.zeros_like(mixed)
    for t in range(n_steps):
        for k, weight in enumerate(KERNELS[mixture % PER_SET + PER_SET * j]):
            at = t + (k - LENGTH // 2) * step
            if 0 <= at < n_steps:
                made[:, t] += weight * mixed[:, at]
    return made


def by_bias(module, series):
    """Return the features of series (batch, biases, dilations, kernels)."""
    n_dilations, n_kernels, n_biases = module.bias.shape
    return module(series).numpy().reshape(len(series), n_biases, n_dilations, n_kernels)


@pytest.mark.parametrize("sharp", [False, True])
def test_features_are_shares_of_steps_above_the_bias_counted_by_ramps_or_sharply(sharp):
    module = RandomConvolutions.draw(X, seed=0, sharp=sharp)
    new = torch.randn(3, 17, 4, generator=torch.Generator().manual_seed(1))  # none of its outputs is a bias
    n_dilations, n_kernels, n_biases = module.bias.shape
    features, n_sets = by_bias(module, new), SHARP_SETS if sharp else SETS
    assert n_kernels == n_sets * len(KERNELS) and len(KERNELS) == PER_SET * PER_MIXTURE == 84
    assert module.n_sets == len(module.columns()) == n_sets and module.width.any() == (not sharp)
    for i in range(n_dilations):
        for kernel in (*SOME, n_kernels - 1):
            made = outputs(module, new, i, kernel)
            for b in range(n_biases):
                above = made - module.bias[i, kernel, b].item()
                shares = above > 0 if sharp else np.clip(above / module.width[i, kernel].item() + 0.5, 0, 1)
                np.testing.assert_allclose(features[:, b, i, kernel], shares.mean(1), atol=1e-5)
    assert module(X.clone().requires_grad_(True)).requires_grad != sharp


def test_biases_are_outputs_of_training_series_and_rise():
    drawn = RandomConvolutions.draw(X, seed=0)
    for i in range(len(drawn.dilation)):
        for kernel in SOME:
            made = outputs(drawn, X, i, kernel)
            for bias in drawn.bias[i, kernel]:
                assert np.abs(made - bias.item()).min() < 1e-4
    assert (drawn.bias.diff(dim=2) >= 0).all() and (drawn.width > 0).all()


@pytest.mark.parametrize(("sharp", "n_sets"), [(False, SETS), (True, SHARP_SETS)])
def test_every_other_set_mixes_channels_in_the_data_s_own_units(sharp, n_sets):
    scale = np.array([1.0, 100.0, 1.0, 2.0], dtype=np.float32)
    plain, scaled = (RandomConvolutions.draw(X, seed=0, scale=s, sharp=sharp) for s in (None, scale))
    plain_sets, scaled_sets = (m.mixing.reshape(2, 4, n_sets, PER_SET).unbind(2) for m in (plain, scaled))
    for i, (equal, own) in enumerate(zip(plain_sets, scaled_sets, strict=True)):
        assert torch.equal(equal != 0, own != 0)  # of the same channels
        if i % 2 == 0:
            assert torch.equal(equal, own)
            continue
        weighted = equal * torch.tensor(scale)[:, None]
        torch.testing.assert_close(own, weighted / weighted.norm(dim=1, keepdim=True))
        with_large = own[:, 1] != 0
        assert with_large.any() and (own[:, 1][with_large] > 0.99).all()
        assert (own[:, [0, 2, 3]].transpose(1, 2)[with_large] < 0.03).all()
    first, last = (module.columns()[i] for module, i in ((scaled, 0), (scaled, -1)))
    assert torch.equal(plain(X)[:, first], scaled(X)[:, first])
    assert not torch.equal(plain(X)[:, last], scaled(X)[:, last])


@pytest.mark.parametrize("scale", [None, np.array([1.0, 100.0, 1.0, 2.0], dtype=np.float32)], ids=["plain", "scaled"])
def test_gradients_are_those_of_finite_differences(scale):
    module = RandomConvolutions.draw(X, seed=0, scale=scale).double()
    weight = torch.randn(module(X.double()).shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs = X.double().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: module(x) @ weight, inputs)
    (gradient,) = torch.autograd.grad((module(inputs) @ weight).sum(), inputs)
    assert (gradient != 0).flatten(1).any(1).all()


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("steps", [1, 40, 10**6])  # one series at a time, two, all
def test_features_and_gradients_do_not_depend_on_how_the_batch_is_split(monkeypatch, sharp, steps):
    series = torch.randn(7, 17, 4, generator=torch.Generator().manual_seed(1))
    module = RandomConvolutions.draw(X, seed=0, sharp=sharp)
    results = []
    for at_a_time in (7 * 17, steps):
        monkeypatch.setattr(convolutions, "STEPS_AT_A_TIME", at_a_time)
        inputs = series.clone().requires_grad_(True)
        features = module(inputs)
        assert features.requires_grad != sharp
        if not sharp:
            features.square().sum().backward()
        results.append((features.detach(), inputs.grad))
    assert len(results[0][0]) == 7
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-4)
