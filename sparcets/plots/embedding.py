"""t-SNE maps of queries, real series of the target class and counterfactuals: figure 3 of the paper."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import ShapeError
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERPLEXITY = 4.4  # the paper's
ITERATIONS = 300  # the paper's
COLUMNS = 4

STYLES = {
    "queries": style.MethodStyle(style.VERMILION, "o", ""),
    "targets": style.MethodStyle(style.GREEN, "^", ""),
    "counterfactuals": style.MethodStyle(style.BLUE, "x", ""),
}


class Points(NamedTuple):
    """Positions in one map, each (samples, 2)."""

    queries: FloatArray
    targets: FloatArray
    counterfactuals: FloatArray


def embed(
    queries: Any, targets: Any, counterfactuals: Mapping[str, Any], seed: int = 0, *, at_most: int = 200
) -> dict[str, Points]:
    """Embed queries, real series of the target class and counterfactuals in the plane, one map per method.

    t-SNE with the paper's settings (2 components, perplexity 4.4, 300 iterations) on flattened series, standardised per
    feature by the queries and targets.

    Parameters
    ----------
    queries, targets
        Real series (batch, time, features).
    counterfactuals
        Series (batch, time, features) by method.
    seed
        Seed of the map and of the subsampling.
    at_most
        Maximum number of series of each kind in a map. Arrays of the same length are subsampled alike, so the queries
        and the counterfactuals drawn belong together.

    Returns
    -------
    points
        Positions by method.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(8, 5, 2))
    >>> maps = embed(x, x + 9, {"SPARCE": x + 8})
    >>> maps["SPARCE"].queries.shape
    (8, 2)
    """
    real = [_subsample(array, seed, at_most) for array in (queries, targets)]
    made = {method: _subsample(array, seed, at_most) for method, array in counterfactuals.items()}
    for name, array in {"queries": real[0], "targets": real[1], **made}.items():
        if array.ndim != 3 or array.shape[1:] != real[0].shape[1:] or len(array) == 0:
            raise ShapeError(
                f"{name} must be (batch, time, features) with at least one series, of the same size, got "
                f"shape {array.shape} beside queries of {real[0].shape}. For a single series pass x[None]."
            )
    values = np.concatenate(real)
    center, scale = values.mean((0, 1)), values.std((0, 1))
    scale = np.where(scale > 0, scale, 1.0)
    maps = {}
    for method, array in made.items():
        parts = [(part - center) / scale for part in (*real, array)]
        positions = _tsne(np.concatenate(parts).reshape(sum(map(len, parts)), -1), seed)
        maps[method] = Points(*np.split(positions, np.cumsum([len(part) for part in parts])[:-1]))
    return maps


def plot_embedding(points: Mapping[str, Points]) -> Figure:
    """Draw the maps returned by :func:`embed` side by side.

    Parameters
    ----------
    points
        Positions of queries, targets and counterfactuals, each (samples, 2), by method.

    Returns
    -------
    figure
        One axes per method, four in a row. The axes have no ticks: t-SNE preserves neighbourhoods, not distances.

    Examples
    --------
    >>> here = np.zeros((3, 2))
    >>> [axes.get_title(loc="left") for axes in plot_embedding({"SPARCE": Points(here, here + 1, here + 2)}).axes]
    ['SPARCE']
    """
    if not points:
        raise ShapeError("there is no map to draw, got an empty mapping. Pass the result of embed(...).")
    n_columns = min(COLUMNS, len(points))
    n_rows = -(-len(points) // n_columns)
    with style.new_figure(max(4.2, 2.3 * n_columns), 0.5 + 2.4 * n_rows) as figure:
        grid = figure.add_gridspec(n_rows, n_columns)
        for i, (method, positions) in enumerate(points.items()):
            axes = figure.add_subplot(grid[i // n_columns, i % n_columns])
            for (kind, look), xy in zip(STYLES.items(), positions, strict=True):
                x, y = np.asarray(xy).T
                # Counterfactuals overlap their queries where little changed: small markers keep both visible.
                size = 8 if kind == "counterfactuals" else 22
                axes.scatter(x, y, s=size, c=look.colour, marker=look.marker, lw=0.9, alpha=0.75, label=kind)
            axes.set_title(style.escape_mathtext(method), loc="left")
            axes.set(xticks=[], yticks=[], xlabel="t-SNE 1 (no unit)")
            if i % n_columns == 0:
                axes.set_ylabel("t-SNE 2 (no unit)")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(STYLES), markerscale=1.4)
    return figure


def _subsample(array: Any, seed: int, at_most: int) -> FloatArray:
    values = np.asarray(array, dtype=float)
    if values.ndim == 0 or len(values) <= at_most:
        return values
    rows = np.random.default_rng(seed).choice(len(values), at_most, replace=False)
    return np.asarray(values[np.sort(rows)])


def _tsne(flat: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    if len(flat) <= PERPLEXITY:
        raise ShapeError(
            f"a map needs at least {int(PERPLEXITY) + 1} series, got {len(flat)}. Pass more queries and targets."
        )
    # scikit-learn 1.5 renamed n_iter to max_iter.
    iterations = "max_iter" if "max_iter" in inspect.signature(TSNE).parameters else "n_iter"
    settings = {"n_components": 2, "perplexity": PERPLEXITY, "random_state": seed, iterations: ITERATIONS}
    return np.asarray(TSNE(**settings).fit_transform(flat), dtype=float)
