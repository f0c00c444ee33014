"""Trees that vote on a state: what they learn, how certain they are, and what they refuse to read."""

import json
from typing import Any

import numpy as np
import pytest

from sawtooth.link_estimate.forest import Forest

WRONG = 0.01


def rings(count: int, seed: int, noise: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Three states, by distance from the center: no line separates them."""
    random = np.random.default_rng(seed)
    rows = random.uniform(-1, 1, (count, 4))
    away = np.hypot(rows[:, 0], rows[:, 1]) + random.normal(0, noise, count)
    return rows, np.digitize(away, [0.5, 0.9])


@pytest.fixture(scope="module")
def forest(patience: None) -> Forest:
    return Forest.learn(*rings(600, 1), WRONG)


def test_what_no_line_parts_is_distinguished(forest: Forest) -> None:
    rows, states = rings(300, 2)
    assert (forest.predict(rows).argmax(axis=1) == states).mean() > 0.8


def test_of_what_it_is_sure_of_few_are_wrong(forest: Forest) -> None:
    rows, states = rings(1000, 3)
    chances = forest.predict(rows)
    sure = chances.max(axis=1) >= forest.sure
    assert 0.1 < sure.mean() < 1
    assert (chances.argmax(axis=1) != states)[sure].mean() < 3 * WRONG


def test_a_forest_that_was_read_votes_the_same(forest: Forest) -> None:
    again = Forest.read(json.loads(json.dumps(forest.describe())), 4, 3)
    rows, _ = rings(100, 4)
    np.testing.assert_allclose(again.predict(rows), forest.predict(rows), atol=1e-12)
    assert again.sure == pytest.approx(forest.sure, abs=1e-4)


LEAF = [[0.2, 0.3, 0.5]]


@pytest.mark.parametrize(
    "described",
    [
        {"sure": 0.5, "trees": []},
        {"sure": 1.5, "trees": [[LEAF]]},
        {"sure": 0.5, "trees": [[[0, 1.0, 0, 1], LEAF]]},
        {"sure": 0.5, "trees": [[[0, 1.0, 1, 3], LEAF, LEAF]]},
        {"sure": 0.5, "trees": [[[9, 1.0, 1, 2], LEAF, LEAF]]},
        {"sure": 0.5, "trees": [[[0, float("nan"), 1, 2], LEAF, LEAF]]},
        {"sure": 0.5, "trees": [[[[0.5, 0.5]]]]},
    ],
)
def test_trees_that_lead_nowhere_are_refused(described: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"tree|none|broadcast"):
        Forest.read(described, 4, 3)
