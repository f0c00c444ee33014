"""Trees that vote on the state of a link: scikit-learn trains them, a JSON file stores them, numpy evaluates them.

Extremely randomized trees (Geurts, Ernst and Wehenkel 2006): each node compares one feature with a threshold, and a
state's probability is the share of its training series in the leaves reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sawtooth.link_estimate.gaussian import Floats, scikit

TREES = 60
_LEAST_LEAF = 2


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes by number, the root first: at ``column`` (−1: a leaf) go to ``left`` up to ``threshold``, else to
    ``right``; ``shares`` of each state in a leaf."""

    column: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    shares: Floats

    def predict(self, rows: Floats) -> Floats:
        at = np.zeros(len(rows), dtype=np.int64)
        while (open_ := self.column[at] >= 0).any():
            node = at[open_]
            below = rows[open_, self.column[node]] <= self.threshold[node]
            at[open_] = np.where(below, self.left[node], self.right[node])
        return self.shares[at]


@dataclass(frozen=True, eq=False)
class Forest:
    """``sure`` is the lowest probability with which a state is reported: few held-out series are wrong then."""

    trees: tuple[Tree, ...]
    sure: float

    @classmethod
    def learn(cls, rows: Floats, states: NDArray[np.int64], wrong: float) -> Self:
        """``states`` are numbers from 0. Each series is held out of the trees that drew others; among those reported
        with probability ``sure`` at most the share ``wrong`` is wrong.

        Raises SawtoothError ``tool-missing`` if scikit-learn is not installed.
        """
        learner = scikit("ensemble").ExtraTreesClassifier(
            TREES,
            min_samples_leaf=_LEAST_LEAF,
            max_features=0.5,
            bootstrap=True,
            oob_score=True,
            random_state=1,
        )
        learner.fit(rows, states)
        held_out = np.nan_to_num(learner.oob_decision_function_)
        return cls(tuple(_taken(one.tree_) for one in learner.estimators_), _least(held_out, states, wrong))

    def predict(self, rows: Floats) -> Floats:
        """The probability of each state, one column each."""
        return np.asarray(np.mean([tree.predict(rows) for tree in self.trees], axis=0))

    def describe(self) -> dict[str, Any]:
        """For JSON: a tree is a list of nodes ``[column, threshold, left, right]``, or ``[shares]`` for a leaf."""
        return {"sure": round(self.sure, 4), "trees": [_nodes(tree) for tree in self.trees]}

    @classmethod
    def read(cls, described: dict[str, Any], columns: int, states: int) -> Self:
        """Inverse of ``describe``. Raises ValueError, KeyError, TypeError or IndexError for anything else."""
        trees = tuple(_tree(nodes, columns, states) for nodes in described["trees"])
        sure = float(described["sure"])
        if not trees or not 0 <= sure <= 1:
            raise ValueError("it has no trees, or a probability that is none")
        return cls(trees, sure)


def _taken(tree: Any) -> Tree:
    column = np.where(tree.children_left < 0, -1, tree.feature).astype(np.int64)
    values = tree.value[:, 0, :]
    # With as many digits as the file will have.
    shares = np.round(values / values.sum(axis=1, keepdims=True), 2)
    left, right = (child.astype(np.int64) for child in (tree.children_left, tree.children_right))
    return Tree(column, np.round(tree.threshold, 5), left, right, shares)


def _nodes(tree: Tree) -> list[Any]:
    inner = zip(tree.column.tolist(), tree.threshold.tolist(), tree.left.tolist(), tree.right.tolist(), strict=True)
    return [[shares] if one[0] < 0 else list(one) for one, shares in zip(inner, tree.shares.tolist(), strict=True)]


def _tree(nodes: list[Any], columns: int, states: int) -> Tree:
    count = len(nodes)
    column, left, right = (np.full(count, -1, dtype=np.int64) for _ in range(3))
    threshold, shares = np.zeros(count), np.zeros((count, states))
    for at, node in enumerate(nodes):
        if len(node) > 1:
            column[at], threshold[at], left[at], right[at] = node
            # Children come after their parent, so every path ends.
            ends = at < min(left[at], right[at]) and max(left[at], right[at]) < count
            if not 0 <= column[at] < columns or not ends or not np.isfinite(threshold[at]):
                raise ValueError("a tree has a branch that leads nowhere")
        else:
            shares[at] = node[0]
            if not np.isfinite(shares[at]).all():
                raise ValueError("a tree has a leaf that is none")
    return Tree(column, threshold, left, right, shares)


def _least(held_out: Floats, states: NDArray[np.int64], wrong: float) -> float:
    """The lowest probability above which at most that share is wrong."""
    most, missed = held_out.max(axis=1), held_out.argmax(axis=1) != states
    order = np.argsort(-most, kind="stable")
    share = np.cumsum(missed[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(share <= wrong)
    return float(most[order[good[-1]]]) if len(good) else 1.0
