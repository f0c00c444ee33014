"""Fitting: among paths drawn from an estimate, keeps those whose replay resembles the observation.

This is approximate Bayesian computation in two rounds of population Monte Carlo (Beaumont et al., Biometrika 96, 2009).
The kept paths get new seeds: the chance in the observed window is not that of another transfer, and an interval must
cover both that chance and the uncertainty of the path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sawtooth.stats.interval import t_quantile
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.replay import Answer, Drawn, Replayed, Runs, draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDS = 2
TRIED = 4
"""Paths tried per round, for each path that is kept."""
RUNS = ROUNDS * TRIED
"""Runs of the observed control, per draw."""
AGAIN = 8
"""Replays of one path, which show how much its windows vary."""
RESOLVED = (0.003, 0.5, 0.005, 0.01)
"""The finest comparison of goodput, square root of the number of retransmissions, mean and largest round trip."""
PART = 0.05
"""Probability beyond either end of an interval."""
FEWEST = round(1 / PART) - 1
"""Runs needed for an interval by rank; with fewer, its end is beyond all of them."""


def fit(observed: Observed, estimate: Estimate, runs: Runs, *, draws: int, seed: int) -> list[Drawn]:
    """Returns ``draws`` paths. ``observed`` needs a control that can be replayed, goodput, segments, retransmissions,
    and the mean and the largest smoothed round trip."""
    import numpy as np

    assert observed.cc is not None
    rng = np.random.default_rng(seed)
    count = draws * TRIED
    paths = draw(estimate, count, seed)
    tried = _looks(observed, runs.of(paths, observed.cc))
    seen = _seen(observed)
    # First weighted by how much all paths differ, to find one whose windows resemble this one.
    spread = 1.4826 * np.median(np.abs(tried - np.median(tried, axis=0)), axis=0)
    like = paths[int(np.argmin(_square(tried - seen, np.maximum(spread, RESOLVED))))]
    luck = runs.of([replace(like, seed=_seed(seed, count + at)) for at in range(AGAIN)], observed.cc)
    noise = np.maximum(_looks(observed, luck).std(axis=0, ddof=1), RESOLVED)
    box = _box(estimate)
    weight = np.ones(count)
    for number in range(1, ROUNDS + 1):
        nearest = np.argsort(_square(tried - seen, noise), kind="stable")[:draws]
        kept, weight = [paths[at] for at in nearest], weight[nearest] / weight[nearest].sum()
        if number == ROUNDS:
            break
        paths, weight = _about(kept, weight, box, count, _seed(seed, number * (count + AGAIN)), rng)
        tried = _looks(observed, runs.of(paths, observed.cc))
    # Equal steps through the weights: each path is chosen about as often as its weight says.
    chosen = np.searchsorted(np.cumsum(weight), (np.arange(draws) + 0.5) / draws)
    begin = ROUNDS * (count + AGAIN)
    return [replace(kept[at], seed=_seed(seed, begin + new)) for new, at in enumerate(chosen.clip(0, draws - 1))]


def _seed(seed: int, at: int) -> int:
    """Seeds in the numbering of ``draw``, which has used the first ones."""
    return seed * 1000 + at


_NAMES = ("rate_bps", "rtt_s", "queue", "loss")


def _box(estimate: Estimate) -> NDArray[np.float64]:
    """The box in which paths are drawn: low ends and high ends."""
    import numpy as np

    of = [estimate.rate, estimate.rtt, estimate.queue, estimate.loss]
    ends = [(_coordinate(name, one.low), _coordinate(name, one.high)) for name, one in zip(_NAMES, of, strict=True)]
    return np.array(ends).T


def _coordinate(name: str, value: float) -> float:
    """The coordinate in which an estimate with a bound is drawn uniformly."""
    return value if name == "loss" else math.log(value)


def _about(
    kept: Sequence[Drawn],
    weight: NDArray[np.float64],
    box: NDArray[np.float64],
    count: int,
    seed: int,
    rng: np.random.Generator,
) -> tuple[list[Drawn], NDArray[np.float64]]:
    """Draws new paths around the kept ones, with twice their variance, and the importance weight of each."""
    import numpy as np

    centres = np.array([[_coordinate(name, getattr(one, name)) for name in _NAMES] for one in kept])
    width = np.sqrt(2) * np.maximum(centres.std(axis=0), 1e-9)
    low, high = box
    found = np.zeros((0, len(_NAMES)))
    while len(found) < count:
        asked = centres[rng.choice(len(kept), count, p=weight)] + width * rng.normal(size=(count, len(_NAMES)))
        asked[:, low == high] = low[low == high]
        found = np.concatenate([found, asked[((asked >= low) & (asked <= high)).all(axis=1)]])
    found = found[:count]
    density = np.exp(-0.5 * (((found[:, None] - centres[None]) / width) ** 2).sum(axis=2)) @ weight
    paths = []
    for at, row in enumerate(found.tolist()):
        values = {name: one if name == "loss" else math.exp(one) for name, one in zip(_NAMES, row, strict=True)}
        paths.append(replace(kept[0], seed=seed + at, **values))
    return paths, 1 / np.maximum(density, 1e-300)


def _square(apart: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((apart / scale) ** 2).sum(axis=1)
    return squares


def _looks(observed: Observed, found: Sequence[Replayed]) -> NDArray[np.float64]:
    """The features of a window, one row each: rates and times by logarithm, a count by its square root, whose noise is
    the same everywhere."""
    import numpy as np

    return np.array([_row(observed, one) for one in found])


def _seen(observed: Observed) -> NDArray[np.float64]:
    import numpy as np

    assert observed.goodput_bps is not None
    assert observed.retransmitted is not None
    assert observed.rtt_mean_s is not None
    assert observed.rtt_max_s is not None
    one = Replayed(observed.goodput_bps, observed.retransmitted, observed.rtt_mean_s, observed.rtt_max_s)
    return np.array(_row(observed, one))


def _row(observed: Observed, one: Replayed) -> tuple[float, ...]:
    count = one.retransmitted * (observed.segments or 1)
    # Twice the square root of a Poisson count has a standard deviation of one.
    return (
        math.log(max(one.goodput_bps, 1.0)),
        2 * math.sqrt(count),
        math.log(max(one.rtt_mean_s, 1e-6)),
        math.log(max(one.rtt_max_s, 1e-6)),
    )


def predicted(cc: str, found: Sequence[Replayed]) -> Answer:
    """The median of the runs, and an interval that contains one more transfer with 90%: by rank if there are enough
    runs, otherwise by Student's t on their logarithms."""
    import numpy as np

    goodput = np.array([one.goodput_bps for one in found])
    median = float(np.median(goodput))
    if len(found) >= FEWEST:
        low, high = (beyond(goodput, PART), beyond(goodput, 1 - PART))
    else:
        low, high = _student(np.log(np.maximum(goodput, 1.0)))
    again = float(np.median([one.retransmitted for one in found]))
    return Answer(cc, median, min(low, median), max(high, median), again, tuple(goodput.tolist()))


def beyond(goodput: NDArray[np.float64], part: float) -> float:
    """The value below which the share ``part`` of further draws lies: the k-th of n draws has k / (n + 1) below it
    (Weibull)."""
    import numpy as np

    return float(np.quantile(goodput, part, method="weibull"))


def _student(logs: NDArray[np.float64]) -> tuple[float, float]:
    reach = t_quantile(logs.size - 1, 1 - 2 * PART) * float(logs.std(ddof=1)) * math.sqrt(1 + 1 / logs.size)
    return math.exp(logs.mean() - reach), math.exp(logs.mean() + reach)
