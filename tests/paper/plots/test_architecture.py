"""The drawing of the SPARCE architecture: its labels are the sizes of the networks."""

from __future__ import annotations

import io

import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from sparcets.core.errors import CapabilityError
from sparcets.training import ARCHITECTURES
from sparcets.training.generator import Discriminator, Generator
from sparcets_paper.plots.architecture import count_parameters, layer_lines, plot_architecture

CLASSIFIER = ARCHITECTURES.load("bilstm")(6, 3, 4, 2, 0.0)


def generator(*, head: str = "sparse", backbone: str = "lstm", n_targets: int = 1, mutable: int = 5) -> Generator:
    limits = torch.ones(6)
    return Generator(
        n_features=6,
        mutable=list(range(mutable)),
        n_targets=n_targets,
        backbone=backbone,
        hidden=8,
        layers=2,
        dropout=0.0,
        head=head,
        low=-limits,
        high=limits,
    )


def discriminator(backbone: str = "lstm", n_targets: int = 1) -> Discriminator:
    return Discriminator(n_features=6, n_targets=n_targets, backbone=backbone, hidden=4, layers=1)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_paper_s_method_with_its_sizes() -> None:
    figure = plot_architecture(generator(), discriminator(), CLASSIFIER, 20, 6)
    figure.savefig(io.BytesIO(), dpi=30)
    found = texts(figure)
    for text in (
        *("query\n20 × 6", "residual δ", "counterfactual", "real series of\nthe target class", "+", "−"),
        *("generator", "bi-LSTM\n2 layers\n6 → 2×8", "sparsity layer"),
        *("rise: dense\n16 → 5\nReLU", "fall: dense\n16 → 5\nReLU"),
        *("discriminator", "classifier (frozen)", "adversarial\n−log D", "classification\n−log C"),
    ):
        assert text in found, text
    assert any("bi-LSTM, 6 → 2×4\ndense, 8 → 1" in text for text in found)
    assert any(all(word in text for word in ("similarity", "sparsity", "smoothness")) for text in found)


def test_the_number_of_parameters_is_counted() -> None:
    network = generator()
    exact = sum(p.numel() for p in network.parameters())
    assert count_parameters(network) == f"{exact / 1000:.3g} k parameters"
    assert count_parameters(network) in texts(plot_architecture(network, discriminator(), CLASSIFIER))
    assert count_parameters(nn.Linear(2, 3)) == "9 parameters"
    assert count_parameters(nn.Linear(999, 1000)) == "1 M parameters"


def test_other_generators_are_drawn_as_they_are() -> None:
    whole = texts(plot_architecture(generator(head="series"), discriminator(), CLASSIFIER))
    assert "dense\n16 → 5\n\ntanh\nminus query" in whole and "sparsity layer" not in whole and "−" not in whole
    residual = texts(plot_architecture(generator(head="residual", backbone="gru"), discriminator(), CLASSIFIER))
    assert "dense\n16 → 5" in residual and "bi-GRU\n2 layers\n6 → 2×8" in residual
    for_all = texts(plot_architecture(generator(backbone="tcn", n_targets=3), discriminator(), CLASSIFIER))
    assert "target class\n3 → 8" in for_all and "bi-convolution\n8 layers\n14 → 2×8" in for_all


def test_default_sizes_of_the_series() -> None:
    assert "query\nT × 6" in texts(plot_architecture(generator(), discriminator("tcn"), CLASSIFIER))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("bilstm", ["bi-LSTM, 2 layers, 6 → 2×4", "dense, 8 → 3"]),
        ("bigru", ["bi-GRU, 2 layers, 6 → 2×4", "dense, 8 → 3"]),
        ("fcn", ["convolution, 3 layers, 6 → 8", "dense, 8 → 3"]),
        ("resnet", ["convolution, 9 layers, 6 → 8", "dense, 8 → 3"]),
        ("tcn", ["convolution, 8 layers, 6 → 8", "dense, 8 → 3"]),
        ("transformer", ["convolution, 6 → 8", "attention, 2 layers, 8 → 8", "dense, 8 → 3"]),
    ],
)
def test_every_architecture_is_described(name: str, lines: list[str]) -> None:
    network = ARCHITECTURES.load(name)(6, 3, 4, 2, 0.0)
    assert layer_lines(network) == lines
    plot_architecture(generator(), discriminator(n_targets=3), network).savefig(io.BytesIO(), dpi=30)


def test_other_networks_are_described_too() -> None:
    stack = nn.Sequential(nn.LSTM(6, 7, num_layers=2), nn.utils.parametrizations.spectral_norm(nn.Linear(7, 2)))
    assert layer_lines(stack) == ["LSTM, 2 layers, 6 → 7", "dense, 7 → 2"] and layer_lines(stack[1]) == ["dense, 7 → 2"]
    assert layer_lines(nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 2))) == ["dense, 2 layers, 6 → 2"]
    assert layer_lines(nn.TransformerEncoderLayer(6, 2)) == ["attention, 6 → 6"]


def test_a_network_of_unknown_layers_or_of_many_kinds_is_drawn_too() -> None:
    assert "query\nT × F" in texts(plot_architecture(nn.Identity(), nn.Identity(), nn.Identity()))
    layers = [nn.LSTM(6, 6), nn.Linear(6, 7), nn.LSTM(7, 7), nn.Linear(7, 2)]
    found = texts(plot_architecture(nn.Identity(), discriminator(), nn.Sequential(*layers)))
    assert any("LSTM, 6 → 6\n…\ndense, 7 → 2\nwhich class?" in text for text in found)


def test_all_text_is_within_the_canvas() -> None:
    figure = plot_architecture(generator(n_targets=3), discriminator("tcn", 3), CLASSIFIER, 100)
    figure.canvas.draw()
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()


def test_other_objects_than_networks_raise() -> None:
    with pytest.raises(CapabilityError, match=r"the classifier must be an nn.Module, got str. Pass the network"):
        plot_architecture(generator(), discriminator(), "bilstm")
