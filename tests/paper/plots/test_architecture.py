"""The drawing of the SPARCE architecture: its labels are the sizes of the networks."""

import torch
from torch import nn

from sparcets.training import ARCHITECTURES
from sparcets.training.generator import Discriminator, Generator
from sparcets_paper.plots.architecture import count_parameters, plot_architecture

SIZES = {"n_features": 6, "n_targets": 1, "backbone": "lstm"}
LIMITS = {"low": -torch.ones(6), "high": torch.ones(6)}
GENERATOR = Generator(**SIZES, **LIMITS, mutable=[*range(5)], hidden=8, layers=2, dropout=0.0, head="sparse")


def test_the_paper_s_method_with_its_sizes_within_the_canvas():
    classifier = ARCHITECTURES.load("bilstm")(6, 3, 4, 2, 0.0)
    figure = plot_architecture(GENERATOR, Discriminator(**SIZES, hidden=4, layers=1), classifier, 20, 6)
    figure.canvas.draw()
    found = {text.get_text(): text.get_window_extent() for text in figure.axes[0].texts}
    exact = sum(p.numel() for p in GENERATOR.parameters())
    for text in (
        *("query\n20 × 6", "residual δ\nrise − fall", "real series of\nthe target class"),
        f"generator\n{exact / 1000:.3g} k parameters\n2 bi-LSTM, 6 → 2×8",
        "sparsity layer: rise\ndense, 16 → 5\nReLU",
    ):
        assert text in found, text
    assert any("bi-LSTM, 6 → 2×4\ndense, 8 → 1" in text for text in found)
    for text, box in found.items():
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text
    assert count_parameters(nn.Linear(999, 1000)) == "1 M parameters"
