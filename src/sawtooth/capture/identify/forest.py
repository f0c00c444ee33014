"""Boosted decision trees read from a JSON file and evaluated.

scikit-learn trained them (experiments/train_identify.py).

Trees add to the logits of the classes in turn: the first tree to the first class, and so on. A tree is its nodes in
preorder: ``feature`` (−1: a leaf), ``threshold`` of inner nodes (at most: the branch that follows, else the other one),
and ``value`` of the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sawtooth.capture.identify.trace import Floats, Integers


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees, one tree after the other; all are walked at once."""

    feature: Integers
    number: Floats
    """A node's threshold, or a leaf's value."""
    right: Integers
    roots: Integers
    base: Floats
    """Initial logits, one per class."""

    @classmethod
    def read(cls, trees: list[dict[str, Any]], base: list[float]) -> Forest:
        sizes = [len(tree["feature"]) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        feature = np.concatenate([tree["feature"] for tree in trees]).astype(np.int64)
        number = np.zeros(len(feature))
        number[feature >= 0] = np.concatenate([tree["threshold"] for tree in trees])
        number[feature < 0] = np.concatenate([tree["value"] for tree in trees])
        right = np.concatenate([_right(tree["feature"]) + root for tree, root in zip(trees, roots, strict=True)])
        return cls(feature, number, right, roots, np.array(base, dtype=float))

    def logits(self, values: Floats) -> Floats:
        """The logits, one per class."""
        node = self.roots
        while (inner := self.feature[node] >= 0).any():
            below = values[self.feature[node]] <= self.number[node]
            node = np.where(inner, np.where(below, node + 1, self.right[node]), node)
        return np.asarray(self.base + self.number[node].reshape(-1, len(self.base)).sum(axis=0))


def _right(feature: list[int]) -> Integers:
    """For each node of one tree, the node to go to above the threshold; 0 for leaves."""
    right = np.zeros(len(feature), dtype=np.int64)
    waiting: list[int] = []
    for node, split in enumerate(feature):
        if node and feature[node - 1] < 0:
            right[waiting.pop()] = node
        if split >= 0:
            waiting.append(node)
    return right
