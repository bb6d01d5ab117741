"""The pieces of the transformer that are written out by hand, against torch's own and against the definition."""

import math

import torch
from torch import nn

from sparcets.training.transformer import HEADS, EncoderLayer, Transformer, positions


def test_positions_are_sines_and_cosines_of_the_step():
    codes = positions(3, 4, torch.device("cpu"))
    slow = 10000.0 ** (-2 / 4)
    expected = [[math.sin(t), math.sin(t * slow), math.cos(t), math.cos(t * slow)] for t in range(3)]
    torch.testing.assert_close(codes, torch.tensor(expected))


def test_an_encoder_layer_is_torchs_own_with_the_same_weights():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        ours = EncoderLayer(8, dropout=0.0)
        theirs = nn.TransformerEncoderLayer(8, HEADS, 16, 0.0, activation="gelu", batch_first=True, norm_first=True)
        x = torch.randn(3, 5, 8)
    names = {
        "norm1": ours.norm_attention,
        "norm2": ours.norm_network,
        "linear1": ours.network[0],
        "linear2": ours.network[2],
        "self_attn.out_proj": ours.output,
    }
    state = {f"{k}.{part}": getattr(m, part) for k, m in names.items() for part in ("weight", "bias")}
    state |= {"self_attn.in_proj_weight": ours.projection.weight, "self_attn.in_proj_bias": ours.projection.bias}
    theirs.load_state_dict(state)
    lengths = torch.tensor([5, 2, 4])
    there = torch.arange(5)[None] < lengths[:, None]
    theirs.train()  # its evaluation mode takes another road
    expected = theirs(x, src_key_padding_mask=~there)
    torch.testing.assert_close(ours(x, there[:, None, None])[there], expected[there])
    torch.testing.assert_close(ours(x, None), theirs(x))


def test_the_place_of_a_pattern_matters_not_only_its_shape():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = Transformer(1, 3, hidden=8, layers=2, dropout=0.0).double().eval()
    early = torch.zeros(1, 30, 1, dtype=torch.float64)
    early[:, 4:7] = 1.0
    assert (net(early) - net(early.roll(15, 1))).abs().max() > 1e-3  # attention alone sees a bag of steps
