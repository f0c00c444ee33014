"""Changes within a window: found when the queue changes, and only then."""

import numpy as np
import pytest

from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.steady import BLOCK, change


def queue(count: int, size_s: float, seed: int, keep: float = 0.7) -> np.ndarray:
    """A delay that varies, and returns."""
    random = np.random.default_rng(seed)
    found = np.zeros(count)
    for at, push in enumerate(random.normal(0, size_s, count - 1), 1):
        found[at] = keep * found[at - 1] + push
    return 0.06 + found


def series(*parts: np.ndarray) -> RttSeries:
    rtt_s = np.concatenate(parts)
    return RttSeries(50 + np.arange(len(rtt_s)) * 0.1, rtt_s, 0.1, "test", clock="start")


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_that_moves_otherwise_from_the_middle_on_has_changed(seed: int) -> None:
    found = change(series(queue(480, 4e-3, seed), queue(520, 1e-3, seed + 100)))
    assert found is not None
    assert abs(found.index - 480) <= BLOCK
    assert found.at_s == pytest.approx(50 + found.index * 0.1)


@pytest.mark.parametrize("keep", [0.0, 0.7, 0.97])
def test_a_queue_that_stays_has_not(keep: float) -> None:
    assert sum(change(series(queue(1000, 2e-3, seed, keep))) is not None for seed in range(40)) <= 1


def test_lost_probes_do_not_matter() -> None:
    rtt_s = queue(1000, 2e-3, 1)
    rtt_s[np.random.default_rng(2).random(1000) < 0.2] = np.nan
    assert change(series(rtt_s)) is None


def test_few_probes_and_long_silence_tell_nothing() -> None:
    assert change(series(queue(300, 1e-3, 1))) is None
    assert change(series(queue(500, 4e-3, 1), np.full(100, np.nan), queue(400, 1e-3, 2))) is None
