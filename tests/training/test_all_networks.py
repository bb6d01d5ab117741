"""Every registered architecture keeps every guarantee; a new one is found here by itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.training import ARCHITECTURES

T, F, K = 11, 3, 4

# Read at the last step, the backward direction of the top layer has seen that step alone: its recurrent weights meet
# the initial state 0 and take a gradient of exactly 0. The paper reads it so.
ZERO_BY_DESIGN = {"bilstm": "backbone.layers.1.weight_hh_l0_reverse", "bigru": "backbone.layers.1.weight_hh_l0_reverse"}

every_architecture = pytest.mark.parametrize("name", list(ARCHITECTURES))


def network(name, n_features=F, *, dropout=0.3, seed=0):
    torch.manual_seed(seed)
    built = ARCHITECTURES.load(name)(n_features, K, hidden=6, layers=2, dropout=dropout)
    _stir(built)
    return built.double().eval()


def _stir(module):
    """Give batch normalisation statistics and weights that are not those of the start, where errors would hide."""
    for m in module.modules():
        if isinstance(m, torch.nn.BatchNorm1d):
            m.running_mean.normal_(0.5, 0.5)
            m.running_var.uniform_(0.5, 2.0)
            torch.nn.init.normal_(m.bias)


def series(n=5, n_steps=T, n_features=F, seed=0):
    return torch.randn(n, n_steps, n_features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def _seed_is_given_back():
    with torch.random.fork_rng(devices=[]):
        yield


@every_architecture
@pytest.mark.parametrize(("n_steps", "n_features", "n"), [(T, F, 5), (1, F, 5), (T, 1, 5), (1, 1, 1), (2, 40, 1)])
def test_logits_are_one_row_per_series_also_for_one_step_and_one_feature(name, n_steps, n_features, n):
    logits = network(name, n_features)(series(n, n_steps, n_features))
    assert logits.shape == (n, K) and torch.isfinite(logits).all()


@every_architecture
@pytest.mark.parametrize("lengths", [None, torch.tensor([11, 4, 1, 7, 11])], ids=["whole", "padded"])
def test_gradients_reach_every_parameter_and_every_entry_of_the_series(name, lengths):
    net, x = network(name).train(), series().requires_grad_()
    torch.nn.functional.cross_entropy(net(x, lengths), torch.tensor([0, 1, 2, 3, 0])).backward()
    for parameter, value in net.named_parameters():
        assert value.grad is not None, parameter
        assert bool(value.grad.abs().max() > 0) != (parameter == ZERO_BY_DESIGN.get(name)), parameter
    inside = torch.ones(5, T, dtype=bool) if lengths is None else torch.arange(T)[None] < lengths[:, None]
    assert (x.grad[inside].abs() > 0).double().mean() > 0.99 and (x.grad[~inside] == 0).all()


@every_architecture
@settings(deadline=None, max_examples=6)
@given(lengths=st.lists(st.integers(1, T), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_padded_batch_gives_what_each_series_gives_alone_without_padding(name, lengths, seed):
    net, x = network(name), series(len(lengths), seed=seed)
    batch = net(x, torch.tensor(lengths))
    alone = torch.cat([net(x[i : i + 1, :length]) for i, length in enumerate(lengths)])
    torch.testing.assert_close(batch, alone, rtol=0, atol=1e-10)


@every_architecture
@pytest.mark.parametrize("filling", [7.0, 1e30, float("inf"), float("nan")])
def test_what_stands_in_the_padding_changes_no_bit(name, filling):
    net, x, lengths = network(name), series(4), torch.tensor([3, 11, 1, 8])
    other = x.clone()
    other[torch.arange(T)[None] >= lengths[:, None]] = filling
    assert torch.equal(net(x, lengths), net(other, lengths))


@every_architecture
def test_training_statistics_do_not_count_the_padding(name):
    x, lengths = series(6), torch.tensor([5, 4, 5, 2, 1, 5])
    short, long = network(name, dropout=0.0).train(), network(name, dropout=0.0).train()
    torch.testing.assert_close(short(x[:, :5], lengths), long(x, lengths), rtol=0, atol=1e-10)
    for key, value in short.state_dict().items():
        torch.testing.assert_close(value, long.state_dict()[key], rtol=0, atol=1e-10)
