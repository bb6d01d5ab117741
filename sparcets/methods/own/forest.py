"""Forest: randomised trees as tensors, with smooth splits for gradients and with sharp ones to vote."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.core.errors import preserve_warning_filters
from sparcets.core.seeding import preserve_random_state
from sparcets.core.series import FloatArray, IntArray

WIDTH = 0.2  # of a smooth split, in standard deviations of its input
MAX_FEATURES = 0.1  # share of the inputs tried at every split
FLOOR = 1e-4  # smallest probability: bounds the logarithm
FEW_SERIES = 200  # with fewer, leaves may be smaller
MAX_PATHS = 50_000  # numbers in the paths of a forest, at most: it is faster to walk down a larger one
# Feature, threshold and width of the ways into the nodes below the root of each tree (trees * ways,), padded to the
# largest tree; which of them lead to which leaf (trees, leaves, ways); and the values of the leaves
# (classes, trees * leaves).
Paths = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Forest(nn.Module):
    """Extremely randomised trees over features of series; all trees in one list of nodes, level by level.

    The children of the i-th inner node of a level are the nodes i and n + i of the next one, where n is the number of
    inner nodes of the level; leaves end. So a pass needs one selection per level for all trees together; and small
    forests, whose every path fits into a matrix, a single product: they are limited by the number of operations.

    Parameters
    ----------
    inner
        For every node whether it splits (nodes,).
    level
        Its level (nodes,), ascending; those of level 0 are the roots.
    feature, threshold, width
        Of every node (nodes,); meaningless for leaves.
    value
        Class probabilities of every node (nodes, classes), or numbers (nodes, outputs).
    accuracy
        Out of bag, a tensor without dimensions; 1 where every tree has learnt from all series.
    """

    inner: Tensor
    level: Tensor
    feature: Tensor
    threshold: Tensor
    width: Tensor
    value: Tensor
    accuracy: Tensor
    child: Tensor
    way_feature: Tensor
    way_threshold: Tensor
    way_width: Tensor
    leaf_value: Tensor

    def __init__(
        self,
        *,
        inner: Tensor,
        level: Tensor,
        feature: Tensor,
        threshold: Tensor,
        width: Tensor,
        value: Tensor,
        accuracy: Tensor,
    ) -> None:
        super().__init__()
        named = {"inner": inner, "level": level, "feature": feature, "threshold": threshold}
        named |= {"width": width, "value": value, "accuracy": accuracy}
        for name, tensor in named.items():
            self.register_buffer(name, tensor)
        if level.max() >= len(level):  # of a damaged file: each level would take memory
            raise ValueError(f"a forest of {len(level)} nodes has no level {int(level.max())}")
        self.sizes = [int(n) for n in np.bincount(level.cpu().numpy())]  # of the levels
        self.n_trees, self.n_levels = self.sizes[0], len(self.sizes)
        nodes = torch.arange(len(level), device=level.device)
        children = nodes[:, None].repeat(1, 2)  # a leaf is its own child
        for part, end in zip(torch.split(nodes, self.sizes), np.cumsum(self.sizes).tolist(), strict=True):
            splits = part[inner[part]]
            children[splits] = end + nodes[: 2 * len(splits)].reshape(2, -1).T
        self.register_buffer("child", children.flatten(), persistent=False)  # left and right of each node
        # The way into each node below the roots: the split above it, of negative width if the node is on the left.
        parent, sign = nodes.clone(), torch.ones_like(width)
        parent[children[inner]], sign[children[inner, 0]] = nodes[inner, None], -1
        above = parent[self.n_trees :]
        self.register_buffer("way_feature", feature[above], persistent=False)
        self.register_buffer("way_threshold", threshold[above], persistent=False)
        self.register_buffer("way_width", width[above] * sign[self.n_trees :], persistent=False)
        start = 0
        for i, part in enumerate(torch.split(above, self.sizes[1:])):  # places in the level above
            self.register_buffer(f"above_{i}", part - start, persistent=False)
            start += self.sizes[i]
        self.register_buffer("leaf_value", value * ~inner[:, None], persistent=False)  # zero for inner nodes
        self._paths: tuple[tuple[torch.dtype, torch.device], Paths | None] | None = None

    @classmethod
    def fit(
        cls,
        inputs: Tensor,
        y: np.ndarray[Any, Any],
        n_classes: int | None = None,
        *,
        n_trees: int,
        max_depth: int | None,
        seed: int,
    ) -> tuple[Forest, FloatArray | None]:
        """Grow trees; return the forest and what it gives each series out of bag (batch, outputs), if trees have bags.

        Labels ``y`` are of ``n_classes`` classes, some of which may have no series; or numbers (batch, outputs), of
        which the accuracy is the share of their variance that is explained. Without ``max_depth`` trees are of any
        depth, which are the sharpest.

        Examples
        --------
        >>> inputs = torch.arange(40.0)[:, None]
        >>> forest, _ = Forest.fit(inputs, (np.arange(40) > 20).astype(int), 2, n_trees=40, max_depth=4, seed=0)
        >>> forest.log_proba(inputs[[0, 39]]).argmax(1).tolist(), forest.votes(inputs[[0, 39]]).shape
        ([0, 1], torch.Size([2, 40, 2]))
        >>> forest, left_out = Forest.fit(inputs, inputs.numpy(), n_trees=20, max_depth=None, seed=0)
        >>> bool(((forest.mean(inputs) - inputs).abs() < 4).all()), left_out.shape
        (True, (40, 1))
        """
        with preserve_random_state():
            from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        # Sharp trees of classes learn from all series, and have no measure of their own.
        bagged = n_classes is None or max_depth is not None
        settings = {
            "bootstrap": bagged,
            "oob_score": bagged,
            "max_features": MAX_FEATURES if inputs.shape[1] >= 1 / MAX_FEATURES else None,
            "max_depth": max_depth,
            "min_samples_leaf": 1 if max_depth is None else (5 if len(inputs) >= FEW_SERIES else 2),
            "random_state": seed % 2**32,
            # One core is left for the networks, which are trained at the same time.
            "n_jobs": max(1, (os.cpu_count() or 2) - 1),
        }
        if n_classes is None:
            grown: Any = ExtraTreesRegressor(n_trees, **settings)
        else:
            grown = ExtraTreesClassifier(n_trees, criterion="entropy", **settings)
        with preserve_warning_filters(
            ignore=None if n_classes else UserWarning
        ):  # of few trees, a series may be in every bag
            grown.fit(inputs.cpu().numpy(), y)
        columns = _level_order([one.tree_ for one in grown.estimators_])
        value = columns.pop("value").astype(np.float64)
        if n_classes is not None:
            of_present, value = value, np.zeros((len(value), n_classes))
            value[:, grown.classes_] = of_present / of_present.sum(1, keepdims=True)
        tensors = {name: torch.tensor(column, device=inputs.device) for name, column in columns.items()}
        forest = cls(
            **tensors,
            value=torch.tensor(value.astype(np.float32), device=inputs.device),
            width=WIDTH * inputs.std(0)[tensors["feature"]] + 1e-6,
            accuracy=torch.tensor(getattr(grown, "oob_score_", 1.0), dtype=torch.float32, device=inputs.device),
        )
        if not bagged:
            return forest, None
        return forest, grown.oob_prediction_.reshape(y.shape) if n_classes is None else grown.oob_decision_function_

    def log_proba(self, inputs: Tensor) -> Tensor:
        """Return log-probabilities (batch, classes), bounded, with gradients through smooth splits."""
        return self.mean(inputs).clamp_min(FLOOR).log()

    def mean(self, inputs: Tensor) -> Tensor:
        """Return the mean of the trees (batch, classes or outputs), with gradients through smooth splits."""
        paths = self._all_paths(inputs)
        total = self._walk(inputs) if paths is None else _follow(inputs, *paths)
        return total / self.n_trees

    def _walk(self, inputs: Tensor) -> Tensor:
        """Return the sum of what the trees give (batch, classes), level by level."""
        # The share of what reaches a node that goes on, for all levels in one pass; then down, what reaches the nodes.
        goes = torch.sigmoid((_select(inputs, self.way_feature) - self.way_threshold) / self.way_width)
        reach = [inputs.new_ones(len(inputs), self.n_trees)]
        for i, part in enumerate(torch.split(goes, self.sizes[1:], dim=1)):
            # Of two children: two gradients are added up per node, and their order makes no difference.
            reach.append(reach[-1].index_select(1, self.get_buffer(f"above_{i}")) * part)
        return torch.cat(reach, dim=1) @ self.leaf_value

    def _all_paths(self, inputs: Tensor) -> Paths | None:
        """Return the paths to all leaves, kept from pass to pass; None if they are too large."""
        key = inputs.dtype, inputs.device
        kept = self._paths  # another thread may replace it meanwhile
        if kept is None or kept[0] != key:
            self._paths = kept = key, self._find_paths(inputs)
        return kept[1]

    def _find_paths(self, inputs: Tensor) -> Paths | None:
        """Return the paths to all leaves, of the type and on the device of some inputs."""
        nodes, inner = np.arange(len(self.inner)), self.inner.cpu().numpy()
        parent = nodes.copy()
        parent[self.child.cpu().numpy().reshape(-1, 2)[inner]] = nodes[inner, None]
        tree = nodes
        for _ in range(self.n_levels):
            tree = parent[tree]  # up to the roots, which are the first nodes
        leaf, below = nodes[~inner], nodes[self.n_trees :]
        # Numbers of leaves, and of nodes below the root, among those of their tree.
        number, way = np.zeros_like(nodes), np.zeros_like(nodes)
        number[leaf], way[below] = _numbers(tree[leaf]), _numbers(tree[below])
        n_leaves, n_ways = int(number.max()) + 1, int(way.max()) + 1
        if self.n_trees * n_leaves * n_ways > MAX_PATHS:
            return None
        leads, at = inputs.new_zeros(self.n_trees, n_leaves, n_ways), leaf
        for _ in range(self.n_levels - 1):
            moves = at >= self.n_trees
            leads[tree[leaf[moves]], number[leaf[moves]], way[at[moves]]] = 1
            at = parent[at]
        feature = self.way_feature.new_zeros(self.n_trees, n_ways)
        threshold, width = inputs.new_zeros(feature.shape), inputs.new_ones(feature.shape)
        own = tree[below], way[below]
        feature[own], threshold[own], width[own] = self.way_feature, self.way_threshold, self.way_width
        value = inputs.new_zeros(self.n_trees, n_leaves, self.value.shape[1])
        value[tree[leaf], number[leaf]] = self.value[~self.inner]
        return feature.flatten(), threshold.flatten(), width.flatten(), leads, value.flatten(0, 1).T.contiguous()

    @torch.no_grad()
    def votes(self, inputs: Tensor) -> Tensor:
        """Return the class probabilities that each tree gives (batch, trees, classes), by sharp splits."""
        series = torch.arange(len(inputs), device=inputs.device).repeat_interleave(self.n_trees) * inputs.shape[1]
        node = torch.arange(self.n_trees, device=inputs.device).repeat(len(inputs))
        values = inputs.flatten()
        # Selecting from lists is the fastest way of indexing.
        for _ in range(self.n_levels - 1):
            own = values.index_select(0, series + self.feature.index_select(0, node))
            goes_right = own > self.threshold.index_select(0, node)
            node = self.child.index_select(0, torch.add(goes_right, node, alpha=2))
        return self.value.index_select(0, node).reshape(len(inputs), self.n_trees, -1)


def _follow(inputs: Tensor, feature: Tensor, threshold: Tensor, width: Tensor, leads: Tensor, value: Tensor) -> Tensor:
    """Return the sum of what the trees give (batch, classes), by the paths to their leaves; see ``Paths``."""
    goes = F.logsigmoid((_select(inputs, feature) - threshold) / width)
    reach = torch.bmm(leads, goes.T.reshape(len(leads), -1, len(inputs))).exp()  # (trees, leaves, B)
    return (value @ reach.flatten(0, 1)).T


def _select(inputs: Tensor, feature: Tensor) -> Tensor:
    """Return columns of inputs, some of them several times."""
    # Selecting is faster, but on a GPU only indexing adds up gradients in an order that is always the same.
    return inputs[:, feature] if inputs.is_cuda else inputs.index_select(1, feature)


def _numbers(group: IntArray) -> IntArray:
    """Return the number of each item among those of its group.

    >>> _numbers(np.array([3, 1, 3, 3, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    order, count = np.argsort(group, kind="stable"), np.bincount(group)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return numbers


def _level_order(trees: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the nodes of all trees as columns, level by level, in the order that :class:`Forest` expects."""
    names = ("inner", "level", "feature", "threshold", "value")
    columns: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in names}
    number, node, level = np.arange(len(trees)), np.zeros(len(trees), dtype=np.int64), 0
    offsets = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])[:-1]])
    left, right, feature, threshold = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("children_left", "children_right", "feature", "threshold")
    )
    # Of classes (nodes, 1, classes), of numbers (nodes, outputs, 1).
    value = np.concatenate([tree.value.reshape(tree.node_count, -1) for tree in trees])
    while len(node):
        at = offsets[number] + node
        inner = left[at] >= 0
        columns["inner"].append(inner)
        columns["level"].append(np.full(len(at), level))
        columns["feature"].append(np.maximum(feature[at], 0))
        columns["threshold"].append(threshold[at].astype(np.float32))
        columns["value"].append(value[at])
        at, number = at[inner], np.tile(number[inner], 2)
        node, level = np.concatenate([left[at], right[at]]), level + 1
    return {name: np.concatenate(parts) for name, parts in columns.items()}
