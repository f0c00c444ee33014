"""Fitting: among paths drawn from an estimate, keeps those whose replay resembles the observation.

This is approximate Bayesian computation in two rounds of population Monte Carlo (Beaumont et al., Biometrika 96, 2009).
The kept paths get new seeds: the chance in the observed transfer is not that of another one, and an interval must cover
both that chance and the uncertainty of the path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sawtooth.stats.interval import beyond
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import NONE_COUNTED, Estimated
from sawtooth.whatif.runs import Drawn, Replayed, Runs, draw, loss_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDS = 2
TRIED = 4
"""Paths tried per round, for each path that is kept."""
RUNS = ROUNDS * TRIED
"""Runs of the observed control, per draw."""
AGAIN = 8
"""Replays of one path, which show how much transfers over it vary."""
RESOLVED = (0.006, 0.5, 0.005, 0.01)
"""The finest comparison of goodput, square root of the number of retransmissions, mean and largest round trip."""
TELLS = 0.5
"""A posterior over more than this part of what was tried says nothing that the bound does not."""
_NAMES = {"rate": "rate_bps", "rtt": "rtt_s", "queue": "queue", "loss": "loss"}
"""The quantities that are fitted, and their names in a drawn path."""


def fit(observed: Observed, estimate: Estimate, runs: Runs, *, draws: int, seed: int) -> list[Drawn]:
    """Returns ``draws`` paths. ``observed`` needs a control that can be replayed, and its goodput; retransmissions and
    smoothed round trips count where they are known."""
    import numpy as np

    assert observed.cc is not None
    rng = np.random.default_rng(seed)
    count = draws * TRIED
    paths = draw(estimate, count, seed)
    tried = _features(observed, runs.of(paths, observed.cc))
    seen = _seen(observed)
    resolved = _known(observed, RESOLVED)
    # First weighted by how much all paths differ, to find one whose transfers resemble this one.
    spread = 1.4826 * np.median(np.abs(tried - np.median(tried, axis=0)), axis=0)
    like = paths[int(np.argmin(_square(tried - seen, np.maximum(spread, resolved))))]
    repeats = runs.of([replace(like, seed=_seed(seed, count + at)) for at in range(AGAIN)], observed.cc)
    noise = np.maximum(_features(observed, repeats).std(axis=0, ddof=1), resolved)
    box = _box(estimate)
    weight = np.ones(count)
    for number in range(1, ROUNDS + 1):
        nearest = np.argsort(_square(tried - seen, noise), kind="stable")[:draws]
        kept, weight = [paths[at] for at in nearest], weight[nearest] / weight[nearest].sum()
        if number == ROUNDS:
            break
        paths, weight = _about(kept, weight, box, count, _seed(seed, number * (count + AGAIN)), rng)
        weight *= [_prior(loss_of(estimate, one.queue_kind), one.loss) for one in paths]
        tried = _features(observed, runs.of(paths, observed.cc))
    # Equal steps through the weights: each path is chosen about as often as its weight says.
    chosen = np.searchsorted(np.cumsum(weight), (np.arange(draws) + 0.5) / draws)
    begin = ROUNDS * (count + AGAIN)
    return [replace(kept[at], seed=_seed(seed, begin + new)) for new, at in enumerate(chosen.clip(0, draws - 1))]


def posterior(estimate: Estimate, paths: Sequence[Drawn], *, by_totals: bool) -> Estimate:
    """The estimate that fitted paths leave: their middle and 90% intervals. Where they still fill what was tried, the
    bound stays; so do those of a rate at which the path was never full, and of a round trip that others may have made
    longer, since the replay has none. ``by_totals``: so does that of a queue, since a few round trips show too little
    of it."""
    import numpy as np

    kept = ("rate", "rtt", "queue") if by_totals else ("rate", "rtt")
    found: dict[str, Any] = {}
    for name, field in _NAMES.items():
        before: Estimated = getattr(estimate, name)
        values = np.array([getattr(one, field) for one in paths])
        low, value, high = (beyond(values, part) for part in (0.05, 0.5, 0.95))
        most = _coordinate(name, before.high) - _coordinate(name, before.low)
        narrowed = _coordinate(name, high) - _coordinate(name, low) < TELLS * most and not (
            name in kept and before.bound
        )
        found[name] = Estimated(value, low, high, f"{before.how}; fitted by replay") if narrowed else before
    return replace(estimate, **found)


def _prior(loss: Estimated, value: float) -> float:
    """The density of the losses that ``draw`` gives to one kind of queue, up to a factor."""
    if not loss.rare:
        return 1.0
    least = loss.high * NONE_COUNTED
    return 1 / loss.high + (1 / (value * math.log(1 / NONE_COUNTED)) if value >= least else 0.0)


def _seed(seed: int, at: int) -> int:
    """Seeds in the numbering of ``draw``, which has used the first ones."""
    return seed * 1000 + at


def _box(estimate: Estimate) -> NDArray[np.float64]:
    """The box to which the second round is limited: low ends and high ends."""
    import numpy as np

    of = {name: getattr(estimate, name) for name in _NAMES}
    return np.array([(_coordinate(name, one.low), _coordinate(name, one.high)) for name, one in of.items()]).T


def _coordinate(name: str, value: float) -> float:
    """The coordinate in which an estimate with a bound is drawn uniformly."""
    return value if name == "loss" else math.log(max(value, 1e-9))


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

    centres = np.array([[_coordinate(name, getattr(one, field)) for name, field in _NAMES.items()] for one in kept])
    width = np.sqrt(2) * np.maximum(centres.std(axis=0), 1e-9)
    low, high = box
    centres = centres.clip(low, high)
    found, parents = np.zeros((0, len(_NAMES))), np.zeros(0, dtype=int)
    while len(found) < count:
        chosen = rng.choice(len(kept), count, p=weight)
        candidates = centres[chosen] + width * rng.normal(size=(count, len(_NAMES)))
        candidates[:, low == high] = low[low == high]
        inside = ((candidates >= low) & (candidates <= high)).all(axis=1)
        found, parents = np.concatenate([found, candidates[inside]]), np.concatenate([parents, chosen[inside]])
    found = found[:count]
    density = np.exp(-0.5 * (((found[:, None] - centres[None]) / width) ** 2).sum(axis=2)) @ weight
    paths = []
    for at, row in enumerate(found.tolist()):
        coordinates = zip(_NAMES.items(), row, strict=True)
        values: dict[str, Any] = {field: one if name == "loss" else math.exp(one) for (name, field), one in coordinates}
        paths.append(replace(kept[parents[at]], seed=seed + at, **values))
    return paths, 1 / np.maximum(density, 1e-300)


def _square(apart: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((apart / scale) ** 2).sum(axis=1)
    return squares


def _features(observed: Observed, found: Sequence[Replayed]) -> NDArray[np.float64]:
    """The features of each transfer: rates and times by logarithm, a count by its square root, whose noise is the same
    everywhere."""
    import numpy as np

    return np.array([_row(observed, one) for one in found])


def _seen(observed: Observed) -> NDArray[np.float64]:
    import numpy as np

    assert observed.goodput_bps is not None
    one = Replayed(
        observed.goodput_bps, observed.retransmitted or 0.0, observed.rtt_mean_s or 0.0, observed.rtt_max_s or 0.0
    )
    return np.array(_row(observed, one))


def _row(observed: Observed, one: Replayed) -> tuple[float, ...]:
    count = one.retransmitted * (observed.segments or 1)
    # Twice the square root of a Poisson count has a standard deviation of one.
    features = (
        math.log(max(one.goodput_bps, 1.0)),
        2 * math.sqrt(count),
        math.log(max(one.rtt_mean_s, 1e-6)),
        math.log(max(one.rtt_max_s, 1e-6)),
    )
    return _known(observed, features)


def _known(observed: Observed, features: tuple[float, ...]) -> tuple[float, ...]:
    """Those features that the observation has. A capture's round trips are of packets, not smoothed."""
    smoothed = observed.path is None
    trips = (observed.rtt_mean_s is not None and smoothed, observed.rtt_max_s is not None and smoothed)
    has = (True, observed.retransmitted is not None, *trips)
    return tuple(one for one, known in zip(features, has, strict=True) if known)
