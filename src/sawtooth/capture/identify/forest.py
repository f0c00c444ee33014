"""Boosted decision trees that a JSON file holds: read, and asked. scikit-learn grew them (tools/train_identify.py).

A tree adds to the logit of one class: the first to the first's, and so on in turn. It is its nodes in preorder:
``feature`` (−1: a leaf), ``threshold`` of those that are no leaf (at most: the branch that follows, else the one after
it), and ``value`` of the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sawtooth.capture.identify.trace import Floats, Integers


@dataclass(frozen=True)
class Tree:
    feature: Integers
    number: Floats
    """A node's threshold, or a leaf's value."""
    right: Integers

    @classmethod
    def read(cls, kept: dict[str, Any]) -> Tree:
        feature = np.array(kept["feature"], dtype=np.int64)
        number = np.zeros(len(feature))
        number[feature >= 0] = kept["threshold"]
        number[feature < 0] = kept["value"]
        right = np.zeros(len(feature), dtype=np.int64)
        waiting: list[int] = []
        for node in range(len(feature)):
            if node and feature[node - 1] < 0:
                right[waiting.pop()] = node
            if feature[node] >= 0:
                waiting.append(node)
        return cls(feature, number, right)

    def value(self, values: Floats) -> float:
        node = 0
        while (feature := int(self.feature[node])) >= 0:
            node = node + 1 if values[feature] <= self.number[node] else int(self.right[node])
        return float(self.number[node])


@dataclass(frozen=True)
class Forest:
    trees: tuple[Tree, ...]
    base: Floats
    """Logits before any tree, one a class."""

    @classmethod
    def read(cls, trees: list[dict[str, Any]], base: list[float]) -> Forest:
        return cls(tuple(Tree.read(tree) for tree in trees), np.array(base, dtype=float))

    def logits(self, values: Floats) -> Floats:
        """One a class."""
        added = np.array([tree.value(values) for tree in self.trees]).reshape(-1, len(self.base))
        return np.asarray(self.base + added.sum(axis=0))
