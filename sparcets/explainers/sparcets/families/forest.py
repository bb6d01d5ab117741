"""Forest: randomised trees as tensors, with smooth splits for gradients and with sharp ones to vote."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import IntArray

WIDTH = 0.2  # of a smooth split, in standard deviations of its input
MAX_FEATURES = 0.1  # share of the inputs tried at every split
FLOOR = 1e-4  # smallest probability: bounds the logarithm
FEW_SERIES = 200  # with fewer, leaves may be smaller


class Forest(nn.Module):
    """Extremely randomised trees over features of series; all trees in one list of nodes, level by level.

    The children of the i-th inner node of a level are the nodes i and n + i of the next one, where n is the number of
    inner nodes of the level; leaves end. So a pass needs one gather per level for all trees together.

    Parameters
    ----------
    inner
        For every node whether it splits (nodes,).
    level
        Its level (nodes,), ascending; those of level 0 are the roots.
    feature, threshold, width
        Of every node (nodes,); meaningless for leaves.
    value
        Class probabilities of every node (nodes, classes).
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
    split_feature: Tensor
    split_threshold: Tensor
    split_width: Tensor
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
        # Per level: positions of inner nodes and leaves within it, and where it starts in the list of nodes.
        sizes = np.bincount(level.cpu().numpy())
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.n_trees, self.n_levels = int(sizes[0]), len(sizes)
        for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
            splits = inner[start : start + size]
            self.register_buffer(f"splits_{i}", splits.nonzero()[:, 0], persistent=False)
            self.register_buffer(f"leaves_{i}", (~splits).nonzero()[:, 0], persistent=False)
            self.register_buffer(f"nodes_{i}", torch.arange(start, start + size, device=level.device), persistent=False)
        at_split = {"feature": feature, "threshold": threshold, "width": width}
        for name, tensor in at_split.items():
            self.register_buffer(f"split_{name}", tensor[inner], persistent=False)
        self.register_buffer("leaf_value", value[~inner], persistent=False)

    @classmethod
    def fit(
        cls, inputs: Tensor, y: IntArray, n_classes: int, *, n_trees: int, max_depth: int | None, seed: int
    ) -> Forest:
        """Grow trees.

        Parameters
        ----------
        inputs
            Features of the training series (batch, inputs).
        y, n_classes
            Labels (batch,) and number of classes; of some classes there may be no series.
        n_trees, max_depth
            Size; None for trees of any depth, which are the sharpest.
        seed
            Same seed, same trees.

        Examples
        --------
        >>> inputs = torch.arange(40.0)[:, None]
        >>> forest = Forest.fit(inputs, (np.arange(40) > 20).astype(int), 2, n_trees=40, max_depth=4, seed=0)
        >>> forest.log_proba(inputs[[0, 39]]).argmax(1).tolist(), forest.votes(inputs[[0, 39]]).shape
        ([0, 1], torch.Size([2, 40, 2]))
        """
        from sklearn.ensemble import ExtraTreesClassifier

        leaf = 1 if max_depth is None else (5 if len(y) >= FEW_SERIES else 2)
        grown = ExtraTreesClassifier(
            n_trees,
            criterion="entropy",
            max_features=MAX_FEATURES if inputs.shape[1] >= 1 / MAX_FEATURES else None,
            max_depth=max_depth,
            min_samples_leaf=leaf,
            bootstrap=max_depth is not None,  # sharp trees learn from all series, and have no measure of their own
            oob_score=max_depth is not None,
            random_state=seed % 2**32,
            # One core is left for the networks, which are trained at the same time.
            n_jobs=max(1, (os.cpu_count() or 2) - 1),
        ).fit(inputs.cpu().numpy(), y)
        columns = _level_order([one.tree_ for one in grown.estimators_])
        value = np.zeros((len(columns["level"]), n_classes), dtype=np.float32)
        value[:, grown.classes_] = columns.pop("value")
        tensors = {name: torch.tensor(column, device=inputs.device) for name, column in columns.items()}
        width = WIDTH * inputs.std(0)[tensors["feature"]] + 1e-6
        accuracy = torch.tensor(getattr(grown, "oob_score_", 1.0), dtype=torch.float32, device=inputs.device)
        return cls(**tensors, value=torch.tensor(value, device=inputs.device), width=width, accuracy=accuracy)

    def log_proba(self, inputs: Tensor) -> Tensor:
        """Return log-probabilities (batch, classes), bounded, with gradients through smooth splits."""
        # The splits of all levels in one pass; then down the levels, what reaches the nodes.
        right = torch.sigmoid((inputs[:, self.split_feature] - self.split_threshold) / self.split_width)
        sizes = [len(self.get_buffer(f"splits_{i}")) for i in range(self.n_levels)]
        goes = zip(torch.split(1 - right, sizes, dim=1), torch.split(right, sizes, dim=1), strict=True)
        reach, ends = inputs.new_ones(len(inputs), self.n_trees), []
        for i, (left, right) in enumerate(goes):
            ends.append(reach[:, self.get_buffer(f"leaves_{i}")])
            reach = reach[:, self.get_buffer(f"splits_{i}")]
            reach = torch.cat([reach * left, reach * right], dim=1)
        total = torch.cat(ends, dim=1) @ self.leaf_value
        return (total / self.n_trees).clamp_min(FLOOR).log()

    @torch.no_grad()
    def votes(self, inputs: Tensor) -> Tensor:
        """Return the class probabilities that each tree gives (batch, trees, classes), by sharp splits."""
        position = torch.arange(self.n_trees, device=inputs.device).expand(len(inputs), -1)  # within the level
        final = torch.zeros_like(position)  # node in the list of all nodes
        open_ = torch.ones_like(position, dtype=torch.bool)
        for i in range(self.n_levels):
            splits, nodes = self.get_buffer(f"splits_{i}"), self.get_buffer(f"nodes_{i}")
            node = nodes[position.clamp(max=len(nodes) - 1)]
            final = torch.where(open_, node, final)
            open_ = open_ & self.inner[node]
            if not len(splits):
                break
            rank = torch.zeros(len(nodes), dtype=torch.long, device=inputs.device)
            rank[splits] = torch.arange(len(splits), device=inputs.device)
            goes_right = inputs.gather(1, self.feature[node]) > self.threshold[node]
            position = rank[position.clamp(max=len(nodes) - 1)] + len(splits) * goes_right
        return self.value[final]


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
    value = np.concatenate([tree.value[:, 0] for tree in trees])
    value = value / value.sum(1, keepdims=True)
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
