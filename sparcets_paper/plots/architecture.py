"""Drawing of the SPARCE architecture, labelled with the sizes of given networks: figure 2 of the paper."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from sparcets.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONT_SIZE = 8.5
ARROWS = (
    *(("query", "generator"), ("generator", "rise"), ("generator", "fall"), ("rise", "residual")),
    *(("fall", "residual"), ("residual", "counterfactual"), ("query", "counterfactual")),
    *(("real series", "discriminator"), ("counterfactual", "discriminator"), ("counterfactual", "classifier")),
    *(("discriminator", "adversarial"), ("counterfactual", "distance"), ("classifier", "classification")),
)


def plot_architecture(generator: Any, discriminator: Any, classifier: Any, n_steps: int, n_features: int) -> Figure:
    r"""Draw the path from a query to its counterfactual and to the losses, with the sizes of the given networks.

    These are recurrent, and the head of the generator is a sparsity layer. The figure has one axes without ticks.

    >>> import torch
    >>> from sparcets.training.generator import Discriminator, Generator
    >>> from sparcets.training.architectures import BiLstm
    >>> sizes = {"n_features": 12, "n_targets": 1, "backbone": "lstm", "hidden": 16, "layers": 1}
    >>> limits = {"low": torch.zeros(12), "high": torch.ones(12)}
    >>> generator = Generator(**sizes, **limits, mutable=[0, 1], dropout=0.0, head="sparse")
    >>> classifier = BiLstm(12, 4, hidden=32, layers=2, dropout=0.2)
    >>> figure = plot_architecture(generator, Discriminator(**sizes), classifier, 100, 12)
    >>> "query\n100 × 12" in [text.get_text() for text in figure.axes[0].texts]
    True
    """
    head = generator.head
    boxes = {  # name: centre on a canvas of 100 × 50, lines, colour of the frame
        "query": (6, 24, ["query", f"{n_steps} × {n_features}"], style.BEFORE),
        "generator": (21, 24, ["generator", count_parameters(generator), *layer_lines(generator.backbone)], style.BLUE),
        "rise": (37, 34, ["sparsity layer: rise", *layer_lines(head.positive), "ReLU"], style.BLUE),
        "fall": (37, 14, ["sparsity layer: fall", *layer_lines(head.negative), "ReLU"], style.BLUE),
        "residual": (52, 24, ["residual δ", "rise − fall"], style.VERMILION),
        "counterfactual": (70, 24, ["counterfactual", "query + δ"], style.AFTER),
        "real series": (52, 42, ["real series of", "the target class"], style.GREEN),
        "discriminator": (70, 42, ["discriminator", *_described(discriminator), "real or generated?"], style.BLUE),
        "classifier": (70, 6.5, ["classifier (frozen)", *_described(classifier), "which class?"], style.BLUE),
        "adversarial": (91, 42, ["adversarial", "−log D"], style.ORANGE),
        "distance": (91, 24, ["similarity ‖δ‖₁", "sparsity ‖δ‖₀", "smoothness Σ ‖δₜ − δₜ₋₁‖₂"], style.ORANGE),
        "classification": (91, 6.5, ["classification", "−log C"], style.ORANGE),
    }
    with style.new_figure(11.0, 5.0, layout=None) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 100), ylim=(0, 50))
        axes.set_axis_off()
        axes.text(91, 48, "losses of the generator", ha="center", va="center", fontsize=FONT_SIZE, fontweight="bold")
        shapes = {}
        for name, (x, y, lines, colour) in boxes.items():
            frame = {"boxstyle": "round,pad=0.6", "fc": "white", "ec": colour, "lw": 1.2}
            text = axes.text(x, y, "\n".join(lines), ha="center", va="center", fontsize=FONT_SIZE, bbox=frame)
            shapes[name] = text.get_bbox_patch()
        figure.draw_without_rendering()  # sizes the boxes, at which the arrows begin and end
        for start, end in ARROWS:
            around = (start, end) == ("query", "counterfactual")  # below the sparsity layer, not through it
            look = {"arrowstyle": "-|>", "color": style.BEFORE, "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
            look |= {"patchA": shapes[start], "patchB": shapes[end]}
            look |= {"connectionstyle": "arc3,rad=0.5" if around else "arc3"}
            axes.annotate("", boxes[end][:2], boxes[start][:2], arrowprops=look, zorder=1)
    return figure


def layer_lines(network: Any) -> list[str]:
    """Return the recurrent and dense layers of a network, one line per run of layers of one kind.

    >>> from sparcets.training.architectures import BiLstm
    >>> layer_lines(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    ['2 bi-LSTM, 50 → 2×32', 'dense, 64 → 2']
    """
    from torch import nn

    lines = []
    layers = [layer for layer in network.modules() if isinstance(layer, nn.LSTM | nn.Linear)]
    for kind, run in groupby(layers, key=type):
        first, *others = run
        if kind is nn.Linear:
            lines.append(f"dense, {first.in_features} → {first.out_features}")
        else:
            lines.append(f"{f'{len(others) + 1} ' * bool(others)}bi-LSTM, {first.input_size} → 2×{first.hidden_size}")
    return lines


def _described(network: Any) -> list[str]:
    return [count_parameters(network), *layer_lines(network)]


def count_parameters(network: Any) -> str:
    """Return the number of a network's parameters with three significant digits.

    >>> from sparcets.training.architectures import BiLstm
    >>> count_parameters(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    '46.7 k parameters'
    """
    number = sum(int(p.numel()) for p in network.parameters())
    return f"{number / 1e3:.3g} k parameters" if number < 999_500 else f"{number / 1e6:.3g} M parameters"
