"""Drawing of the SPARCE architecture, labelled with the sizes of given networks: figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.show import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Layers that change the number of channels: their label, and the attributes that hold their sizes.
SIZED = {
    "Conv1d": ("convolution", "in_channels", "out_channels"),
    "Linear": ("dense", "in_features", "out_features"),
}
RECURRENT = {"LSTM", "GRU", "RNN"}
SKIPPED = {"shortcut"}  # children on a residual connection

FONT_SIZE = 8.5
MAX_LINE = 27  # longer lines are wrapped in the boxes of discriminator and classifier
MIDDLE = 24.0  # height of the path from the query to the counterfactual, on a canvas of 100 × 50
FRAME = "#f4f4f4"
Point = tuple[float, float]


class Layer(NamedTuple):
    """One layer: its kind and its input and output sizes; ``directions`` is 2 if it is bidirectional."""

    kind: str
    inputs: int
    outputs: int
    directions: int = 1


def plot_architecture(
    generator: Any,
    discriminator: Any,
    classifier: Any,
    n_steps: int | None = None,
    n_features: int | None = None,
) -> Figure:
    r"""Draw the path from a query to its counterfactual and to the losses, with the sizes of the given networks.

    Parameters
    ----------
    generator, discriminator, classifier
        Networks (nn.Modules): a generator with a sparsity layer as its head, and any others.
    n_steps, n_features
        Size of one series; by default "T" steps and the number of input features of the discriminator.

    Returns
    -------
    figure
        One axes without ticks.

    Examples
    --------
    >>> import torch
    >>> from sparcets.training.generator import Discriminator, Generator
    >>> from sparcets.training.architectures import BiLstm
    >>> sizes = {"n_features": 12, "n_targets": 1, "backbone": "lstm", "hidden": 16, "layers": 1}
    >>> limits = {"low": torch.zeros(12), "high": torch.ones(12)}
    >>> generator = Generator(**sizes, **limits, mutable=[0, 1], dropout=0.0, head="sparse")
    >>> classifier = BiLstm(12, 4, hidden=32, layers=2, dropout=0.2)
    >>> figure = plot_architecture(generator, Discriminator(**sizes), classifier, n_steps=100)
    >>> "query\n100 × 12" in [text.get_text() for text in figure.axes[0].texts]
    True
    """
    n_inputs = next(_layers(discriminator)).inputs
    size = f"{n_steps or 'T'} × {n_features or n_inputs}"
    with style.new_figure(10.0, 5.0, layout=None) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 100), ylim=(0, 50))
        axes.set_axis_off()
        _draw_generator(axes, generator)
        _draw_series(axes, size)
        _draw_loss_networks(axes, discriminator, classifier)
    return figure


def layer_lines(network: Any) -> list[str]:
    """Return the layers of a network, one line per run of layers of one kind.

    >>> from sparcets.training.architectures import BiLstm
    >>> layer_lines(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    ['bi-LSTM, 2 layers, 50 → 2×32', 'dense, 64 → 2']
    """
    lines = []
    for kind, run in groupby(_layers(network), key=lambda layer: layer.kind):
        layers = list(run)
        count = f", {len(layers)} layers" if len(layers) > 1 else ""
        directions = "2×" if layers[-1].directions == 2 else ""
        lines.append(f"{kind}{count}, {layers[0].inputs} → {directions}{layers[-1].outputs}")
    return lines


def count_parameters(network: Any) -> str:
    """Return the number of a network's parameters with three significant digits.

    >>> from sparcets.training.architectures import BiLstm
    >>> count_parameters(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    '46.7 k parameters'
    """
    number = sum(int(p.numel()) for p in network.parameters())
    if number < 1000:
        return f"{number} parameters"
    return f"{number / 1e3:.3g} k parameters" if number < 999_500 else f"{number / 1e6:.3g} M parameters"


def _layers(network: Any) -> Iterator[Layer]:
    """Yield the layers that change the number of channels, in the order of the network's children."""
    kind = type(network).__name__
    if kind in RECURRENT:
        directions = 2 if network.bidirectional else 1
        layer = Layer(f"bi-{kind}" if directions == 2 else kind, network.input_size, network.hidden_size, directions)
        yield from [layer] * network.num_layers  # only the first input and the last output are shown
    elif kind in SIZED:
        word, inputs, outputs = SIZED[kind]
        yield Layer(word, getattr(network, inputs), getattr(network, outputs))
    elif kind.endswith("EncoderLayer"):
        inner = [layer for child in network.children() for layer in _layers(child)]
        yield from (Layer("attention", layer.inputs, layer.inputs) for layer in inner[:1])
    else:
        for name, child in network.named_children():
            if name not in SKIPPED:
                yield from _layers(child)


def _draw_generator(axes: Axes, generator: Any) -> None:
    head = generator.head
    body = [line for child in generator.children() if child is not head for line in layer_lines(child)]
    _frame(axes, (14, 8), (49, 41), "generator", count_parameters(generator))
    _box(axes, (16, 12), (28, 36), "\n\n".join(body), style.BLUE)
    _arrow(axes, (11, MIDDLE), (16, MIDDLE))
    _frame(axes, (30, 10), (48, 38), "sparsity layer", "", fill="white")
    _node(axes, (45.5, MIDDLE), "−")
    _line(axes, [(28, MIDDLE), (31.5, MIDDLE)])
    for half, word, side in ((head.positive, "rise", 1), (head.negative, "fall", -1)):
        height = MIDDLE + 7 * side
        _box(axes, (34, height - 4), (43, height + 4), f"{word}: {layer_lines(half)[0]}\nReLU", style.BLUE)
        _line(axes, [(31.5, MIDDLE), (31.5, height)])
        _arrow(axes, (31.5, height), (34, height))
        _line(axes, [(43, height), (45.5, height)])
        _arrow(axes, (45.5, height), (45.5, MIDDLE + 1.2 * side))
    _arrow(axes, (46.7, MIDDLE), (52, MIDDLE))


def _draw_series(axes: Axes, size: str) -> None:
    steps = np.linspace(0, 1, 90)
    query = 0.55 * np.sin(9 * steps)
    delta = np.maximum(0.9 * np.cos(9 * (steps - 0.6)), 0) * (np.abs(steps - 0.6) < 0.3)
    _series(axes, (1, MIDDLE - 4), f"query\n{size}", [(query, style.BEFORE)])
    _series(axes, (52, MIDDLE - 4), "residual δ", [(delta - 0.4, style.VERMILION)])
    _series(axes, (67, MIDDLE - 4), "", [(query, style.FIXED), (query + delta, style.AFTER)])
    axes.text(70, MIDDLE + 4.6, "counterfactual", va="bottom", fontsize=FONT_SIZE)
    _arrow(axes, (62, MIDDLE), (63.3, MIDDLE))
    _node(axes, (64.5, MIDDLE), "+")
    _arrow(axes, (65.7, MIDDLE), (67, MIDDLE))
    _line(axes, [(6, MIDDLE - 4), (6, 4), (64.5, 4)])
    _arrow(axes, (64.5, 4), (64.5, MIDDLE - 1.2))
    _series(axes, (52, 36.5), "real series of\nthe target class", [(0.6 * np.cos(11 * steps), style.GREEN)])


def _draw_loss_networks(axes: Axes, discriminator: Any, classifier: Any) -> None:
    for network, name, bottom, question in (
        (discriminator, "discriminator", 35.5, "real or generated?"),
        (classifier, "classifier (frozen)", 1, "which class?"),
    ):
        lines = [line if len(line) < MAX_LINE else "\n".join(line.rsplit(", ", 1)) for line in layer_lines(network)]
        lines = lines if len(lines) <= 3 else [lines[0], "…", lines[-1]]  # the box has room for three lines
        _frame(axes, (66, bottom), (84.5, bottom + 13.5), name, "")
        text = "\n".join([count_parameters(network), *lines, question])
        axes.text(75.25, bottom + 5.8, text, ha="center", va="center", fontsize=FONT_SIZE, zorder=4)
    _arrow(axes, (62, 40.5), (66, 40.5))
    _arrow(axes, (69, MIDDLE + 4), (69, 35.5))
    _arrow(axes, (69, MIDDLE - 4), (69, 14.5))
    for (start, height), low, high, text in (
        ((84.5, 40.5), 36.5, 44.5, "adversarial\n−log D"),
        ((77, MIDDLE), 16, 32, "similarity\n‖δ‖₁\n\nsparsity\n‖δ‖₀\n\nsmoothness\nΣ ‖δₜ − δₜ₋₁‖₂"),
        ((84.5, 7.5), 3.5, 11.5, "classification\n−log C"),
    ):
        _box(axes, (88, low), (99, high), text, style.ORANGE)
        _arrow(axes, (start, height), (88, height))
    axes.text(82.5, MIDDLE + 0.5, "minus query", ha="center", va="bottom", fontsize=FONT_SIZE - 1, color=style.BEFORE)
    axes.text(93.5, 45.2, "losses of the\ngenerator", ha="center", va="bottom", fontsize=FONT_SIZE, fontweight="bold")


def _box(axes: Axes, low: Point, high: Point, text: str, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=0.8"
    axes.add_patch(
        FancyBboxPatch(low, high[0] - low[0], high[1] - low[1], boxstyle=shape, fc="white", ec=colour, lw=1.2, zorder=3)
    )
    axes.text(
        (low[0] + high[0]) / 2,
        (low[1] + high[1]) / 2,
        text.replace(", ", "\n"),
        ha="center",
        va="center",
        fontsize=FONT_SIZE,
        zorder=4,
    )


def _frame(axes: Axes, low: Point, high: Point, title: str, note: str, fill: str = FRAME) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=1.2"
    axes.add_patch(
        FancyBboxPatch(
            low, high[0] - low[0], high[1] - low[1], boxstyle=shape, fc=fill, ec=style.FIXED, lw=0.8, zorder=1
        )
    )
    axes.text(low[0] + 1, high[1] - 0.8, title, ha="left", va="top", fontsize=FONT_SIZE, fontweight="bold", zorder=4)
    axes.text(high[0] - 1, high[1] - 0.8, note, ha="right", va="top", fontsize=FONT_SIZE, color=style.BEFORE, zorder=4)


def _series(axes: Axes, low: Point, text: str, curves: Sequence[tuple[Any, str]]) -> None:
    _box(axes, low, (low[0] + 10, low[1] + 8), "", style.BEFORE)
    for values, colour in curves:
        axes.plot(
            low[0] + 1 + 8 * np.linspace(0, 1, len(values)), low[1] + 4 + 2.6 * values, color=colour, lw=1.3, zorder=4
        )
    axes.text(low[0] + 5, low[1] + 8.6, text, ha="center", va="bottom", fontsize=FONT_SIZE, zorder=4)


def _node(axes: Axes, at: Point, sign: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(at, 1.2, fc="white", ec=style.BEFORE, lw=1.1, zorder=3))
    axes.text(*at, sign, ha="center", va="center_baseline", fontsize=10, zorder=4)


def _line(axes: Axes, corners: Sequence[Point]) -> None:
    axes.plot(*zip(*corners, strict=True), color=style.BEFORE, lw=1.1, zorder=2, solid_joinstyle="round")


def _arrow(axes: Axes, start: Point, end: Point) -> None:
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": style.BEFORE, "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
    )
