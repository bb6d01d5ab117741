"""The drawing of the SPARCE architecture: its labels are the sizes of the networks."""

from __future__ import annotations

import io

import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from sparcets.training import ARCHITECTURES
from sparcets.training.generator import Discriminator, Generator
from sparcets_paper.plots.architecture import count_parameters, layer_lines, plot_architecture

CLASSIFIER = ARCHITECTURES.load("bilstm")(6, 3, 4, 2, 0.0)


SIZES = {"n_features": 6, "n_targets": 1, "backbone": "lstm"}
LIMITS = {"low": -torch.ones(6), "high": torch.ones(6)}
GENERATOR = Generator(**SIZES, **LIMITS, mutable=[*range(5)], hidden=8, layers=2, dropout=0.0, head="sparse")
DISCRIMINATOR = Discriminator(**SIZES, hidden=4, layers=1)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_paper_s_method_with_its_sizes() -> None:
    figure = plot_architecture(GENERATOR, DISCRIMINATOR, CLASSIFIER, 20, 6)
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
    network = GENERATOR
    exact = sum(p.numel() for p in network.parameters())
    assert count_parameters(network) == f"{exact / 1000:.3g} k parameters"
    assert count_parameters(network) in texts(plot_architecture(network, DISCRIMINATOR, CLASSIFIER))
    assert count_parameters(nn.Linear(2, 3)) == "9 parameters"
    assert count_parameters(nn.Linear(999, 1000)) == "1 M parameters"


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
    plot_architecture(GENERATOR, DISCRIMINATOR, network).savefig(io.BytesIO(), dpi=30)


def test_all_text_is_within_the_canvas() -> None:
    figure = plot_architecture(GENERATOR, DISCRIMINATOR, CLASSIFIER, 100)
    figure.canvas.draw()
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
