"""The drawing of the method, labelled from the networks themselves: figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.errors import CapabilityError
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Layers that change the width of the data: their word in the drawing, and where they keep their sizes.
SIZED = {
    "Conv1d": ("convolution", "in_channels", "out_channels"),
    "Embedding": ("class", "num_embeddings", "embedding_dim"),
    "Linear": ("dense", "in_features", "out_features"),
}
RECURRENT = {"LSTM", "GRU", "RNN"}
BESIDE = {"shortcut"}  # children beside the way of the data, not on it

FONT = 8.5
WIDE = 27  # letters that no longer fit into the box of a judge
MIDDLE = 24.0  # height of the way from the query to the counterfactual, on a canvas of 100 × 50
FRAME = "#f4f4f4"
Place = tuple[float, float]


class Layer(NamedTuple):
    """One layer: its kind, and the sizes of what goes in and comes out; ``ways`` is 2 where time is read both ways."""

    kind: str
    inputs: int
    outputs: int
    ways: int = 1


def plot_architecture(
    generator: Any,
    discriminator: Any,
    classifier: Any,
    n_steps: int | None = None,
    n_features: int | None = None,
) -> Figure:
    r"""Draw the way from a query to its counterfactual and to the losses, with the sizes of these very networks.

    Parameters
    ----------
    generator, discriminator, classifier
        Networks (nn.Modules). Where the generator has a ``head``, it is drawn apart from what comes before it; where
        that head has two halves, as the sparsity layer has, both are drawn.
    n_steps, n_features
        Size of one series; by default T steps, and as many features as the discriminator takes.

    Returns
    -------
    figure
        One axes without numbers: a drawing.

    Examples
    --------
    >>> from sparcets.networks.discriminators import Discriminator
    >>> from sparcets.networks.recurrent import BiLstm
    >>> judge = Discriminator(n_features=12, n_targets=1, backbone="lstm", hidden=16, layers=1)
    >>> figure = plot_architecture(judge, judge, BiLstm(12, 4, hidden=32, layers=2, dropout=0.2), n_steps=100)
    >>> "query\n100 × 12" in [text.get_text() for text in figure.axes[0].texts]
    True
    """
    for name, network in {"generator": generator, "discriminator": discriminator, "classifier": classifier}.items():
        if not hasattr(network, "named_children"):
            raise CapabilityError(
                f"the {name} must be an nn.Module, got {type(network).__name__}. Pass the network itself: its layers "
                "are read off it."
            )
    taken = next((layer.inputs for layer in _layers(discriminator)), "F")
    size = f"{n_steps or 'T'} × {n_features or taken}"
    with style.new_figure(10.0, 5.0, layout=None) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 100), ylim=(0, 50))
        axes.set_axis_off()
        _draw_generator(axes, generator)
        _draw_series_and_their_way(axes, size)
        _draw_judges(axes, discriminator, classifier)
    return figure


def describe(network: Any) -> list[str]:
    """Say what a network is made of, one line per run of layers of one kind.

    >>> from sparcets.networks.recurrent import BiLstm
    >>> describe(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    ['bi-LSTM, 2 layers, 50 → 2×32', 'dense, 64 → 2']
    """
    lines = []
    for kind, run in groupby(_layers(network), key=lambda layer: layer.kind):
        layers = list(run)
        count = f", {len(layers)} layers" if len(layers) > 1 else ""
        ways = "2×" if layers[-1].ways == 2 else ""
        lines.append(f"{kind}{count}, {layers[0].inputs} → {ways}{layers[-1].outputs}")
    return lines


def count_parameters(network: Any) -> str:
    """Write the number of a network's parameters in three figures.

    >>> from sparcets.networks.recurrent import BiLstm
    >>> count_parameters(BiLstm(50, 2, hidden=32, layers=2, dropout=0.2))
    '46.7 k parameters'
    """
    number = sum(int(p.numel()) for p in network.parameters())
    if number < 1000:
        return f"{number} parameters"
    return f"{number / 1e3:.3g} k parameters" if number < 999_500 else f"{number / 1e6:.3g} M parameters"


def _layers(network: Any) -> Iterator[Layer]:
    """Walk through the layers that change the width of the data, in the order in which the network holds them."""
    kind = type(network).__name__.removeprefix("Parametrized")  # torch's prefix where weights are normalised
    if kind in RECURRENT:
        ways = 2 if network.bidirectional else 1
        layer = Layer(f"bi-{kind}" if ways == 2 else kind, network.input_size, network.hidden_size, ways)
        yield from [layer] * network.num_layers  # told are what goes into the first and what comes out of the last
    elif kind in SIZED:
        word, inputs, outputs = SIZED[kind]
        yield Layer(word, getattr(network, inputs), getattr(network, outputs))
    elif kind.endswith("EncoderLayer"):
        inner = [layer for child in network.children() for layer in _layers(child)]
        yield from (Layer("attention", layer.inputs, layer.inputs) for layer in inner[:1])
    elif hasattr(network, "forwards") and hasattr(network, "backwards"):  # the same layers once more, from the end
        for layer in _layers(network.forwards):
            yield layer._replace(kind=f"bi-{layer.kind}", ways=2)
    else:
        for name, child in network.named_children():
            if name not in BESIDE:
                yield from _layers(child)


def _draw_generator(axes: Axes, generator: Any) -> None:
    head = getattr(generator, "head", None)
    body = [line for child in generator.children() if child is not head for line in describe(child)]
    told = [line for line in body if line.startswith("class, ")]
    _frame(axes, (14, 8), (49, 41), "generator", count_parameters(generator))
    _box(axes, (16, 12), (28, 36), "\n\n".join(line for line in body if line not in told), style.BLUE)
    if told:
        _box(axes, (1, 33), (11, 38), f"wanted {told[0]}", style.BEFORE)
        _arrow(axes, (11, 35), (16, 35))
    _arrow(axes, (11, MIDDLE), (16, MIDDLE))
    if head is None:
        _arrow(axes, (28, MIDDLE), (52, MIDDLE))
    elif hasattr(head, "positive") and hasattr(head, "negative"):
        _frame(axes, (30, 10), (48, 38), "sparsity layer", "", fill="white")
        _node(axes, (45.5, MIDDLE), "−")
        _line(axes, [(28, MIDDLE), (31.5, MIDDLE)])
        for half, word, side in ((head.positive, "rise", 1), (head.negative, "fall", -1)):
            height = MIDDLE + 7 * side
            _box(axes, (34, height - 4), (43, height + 4), f"{word}: {describe(half)[0]}\nReLU", style.BLUE)
            _line(axes, [(31.5, MIDDLE), (31.5, height)])
            _arrow(axes, (31.5, height), (34, height))
            _line(axes, [(43, height), (45.5, height)])
            _arrow(axes, (45.5, height), (45.5, MIDDLE + 1.2 * side))
        _arrow(axes, (46.7, MIDDLE), (52, MIDDLE))
    else:
        ending = ["tanh, less the query"] if getattr(generator, "kind", "") == "series" else []
        _arrow(axes, (28, MIDDLE), (34, MIDDLE))
        _box(axes, (34, 12), (47, 36), "\n\n".join([*describe(head), *ending]), style.BLUE)
        _arrow(axes, (47, MIDDLE), (52, MIDDLE))


def _draw_series_and_their_way(axes: Axes, size: str) -> None:
    steps = np.linspace(0, 1, 90)
    query = 0.55 * np.sin(9 * steps)
    delta = np.maximum(0.9 * np.cos(9 * (steps - 0.6)), 0) * (np.abs(steps - 0.6) < 0.3)
    _series(axes, (1, MIDDLE - 4), f"query\n{size}", [(query, style.BEFORE)])
    _series(axes, (52, MIDDLE - 4), "residual δ", [(delta - 0.4, style.VERMILION)])
    _series(axes, (67, MIDDLE - 4), "", [(query, style.FIXED), (query + delta, style.AFTER)])
    axes.text(70, MIDDLE + 4.6, "counterfactual", va="bottom", fontsize=FONT)
    _arrow(axes, (62, MIDDLE), (63.3, MIDDLE))
    _node(axes, (64.5, MIDDLE), "+")
    _arrow(axes, (65.7, MIDDLE), (67, MIDDLE))
    _line(axes, [(6, MIDDLE - 4), (6, 4), (64.5, 4)])
    _arrow(axes, (64.5, 4), (64.5, MIDDLE - 1.2))
    _series(axes, (52, 36.5), "real series of\nthe wanted class", [(0.6 * np.cos(11 * steps), style.GREEN)])


def _draw_judges(axes: Axes, discriminator: Any, classifier: Any) -> None:
    for network, name, bottom, question in (
        (discriminator, "discriminator", 35.5, "real or made?"),
        (classifier, "classifier (frozen)", 1, "which class?"),
    ):
        lines = [line if len(line) < WIDE else "\n".join(line.rsplit(", ", 1)) for line in describe(network)]
        lines = lines if len(lines) <= 3 else [lines[0], "…", lines[-1]]  # as many as the box holds
        _frame(axes, (66, bottom), (84.5, bottom + 13.5), name, "")
        text = "\n".join([count_parameters(network), *lines, question])
        axes.text(75.25, bottom + 5.8, text, ha="center", va="center", fontsize=FONT, zorder=4)
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
    axes.text(82.5, MIDDLE + 0.5, "less the query", ha="center", va="bottom", fontsize=FONT - 1, color=style.BEFORE)
    axes.text(93.5, 45.2, "losses of the\ngenerator", ha="center", va="bottom", fontsize=FONT, fontweight="bold")


def _box(axes: Axes, low: Place, high: Place, text: str, colour: str) -> None:
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
        fontsize=FONT,
        zorder=4,
    )


def _frame(axes: Axes, low: Place, high: Place, title: str, note: str, fill: str = FRAME) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=1.2"
    axes.add_patch(
        FancyBboxPatch(
            low, high[0] - low[0], high[1] - low[1], boxstyle=shape, fc=fill, ec=style.FIXED, lw=0.8, zorder=1
        )
    )
    axes.text(low[0] + 1, high[1] - 0.8, title, ha="left", va="top", fontsize=FONT, fontweight="bold", zorder=4)
    axes.text(high[0] - 1, high[1] - 0.8, note, ha="right", va="top", fontsize=FONT, color=style.BEFORE, zorder=4)


def _series(axes: Axes, low: Place, text: str, curves: Sequence[tuple[Any, str]]) -> None:
    _box(axes, low, (low[0] + 10, low[1] + 8), "", style.BEFORE)
    for values, colour in curves:
        axes.plot(
            low[0] + 1 + 8 * np.linspace(0, 1, len(values)), low[1] + 4 + 2.6 * values, color=colour, lw=1.3, zorder=4
        )
    axes.text(low[0] + 5, low[1] + 8.6, text, ha="center", va="bottom", fontsize=FONT, zorder=4)


def _node(axes: Axes, at: Place, sign: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(at, 1.2, fc="white", ec=style.BEFORE, lw=1.1, zorder=3))
    axes.text(*at, sign, ha="center", va="center_baseline", fontsize=10, zorder=4)


def _line(axes: Axes, corners: Sequence[Place]) -> None:
    axes.plot(*zip(*corners, strict=True), color=style.BEFORE, lw=1.1, zorder=2, solid_joinstyle="round")


def _arrow(axes: Axes, start: Place, end: Place) -> None:
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": style.BEFORE, "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
    )
