"""How many more packets a run lost than its loss rate predicts, and what a margin would be without that excess.

A control variate, as the field of simulation calls it.

If each packet is lost independently, losses minus their expected number are 0 on average, whatever the senders do (a
martingale). So the part of a margin that varies with this excess is noise, and can be subtracted: a control variate
(Lavenberg and Welch 1981; Law and Kelton, section 11.4). At a loss of a few packets per run, most of the noise is of
this kind. Early losses matter more than late ones, so a run has one number for each of ``PARTS`` of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.scenario.compiled import Compiled

if TYPE_CHECKING:
    from sawtooth.run import Run
    from sawtooth.search.samples import SampledPoint

PARTS = 4
_SEEDS = 10
"""Seeds per number, before it is subtracted: fewer cannot show its effect."""

ExcessLosses = tuple[float, ...]
"""The excess losses of one run, or of all runs of a margin."""


@dataclass(frozen=True)
class Steady:
    """A place with the effect of excess losses removed."""

    place: Any
    n: int
    mean: float
    variance: float


def steadied(
    points: Sequence[SampledPoint[Any]], along: Sequence[Sequence[float]] | None = None
) -> Sequence[SampledPoint[Any] | Steady]:
    """``points`` without the differences between seeds that excess losses explain. Unchanged if the excess is not known
    everywhere, or with too few seeds. ``along``: coordinates of each point along which the effect changes."""
    import numpy as np

    parts = {len(excess) for one in points for excess in one.excess_losses}
    seeds = sum(one.n for one in points)
    if len(parts) != 1 or 0 in parts or any(len(one.excess_losses) != one.n for one in points):
        return points
    margins = [np.array(one.margins) for one in points]
    excesses = [np.array(one.excess_losses) for one in points]
    if along is not None:
        excesses = [np.hstack([one, *(one * at for at in there)]) for one, there in zip(excesses, along, strict=True)]
    terms = excesses[0].shape[1]
    if seeds < _SEEDS * terms:
        return points
    within = np.concatenate([one - one.mean() for one in margins])
    by = np.concatenate([one - one.mean(axis=0) for one in excesses])
    effect = np.linalg.lstsq(by, within, rcond=None)[0]
    found = []
    for one, margin, excess in zip(points, margins, excesses, strict=True):
        left = margin - excess @ effect
        variance = float(left.var(ddof=1)) if one.n > 1 else 0.0
        found.append(Steady(one.place, one.n, float(left.mean()), variance * seeds / (seeds - terms)))
    return found


def excess_losses(run: Run) -> ExcessLosses:
    """Losses above expectation in each part of the run; empty if no link has independent losses."""
    import numpy as np

    excess: list[float] = []
    lost, queues = run.tables.get("links"), run.tables.get("queues")
    if lost is None or queues is None:
        return ()
    for link, transmitter, share in _lossy(run.scenario.compile()):
        gone = lost["lost"][lost["link"] == link].to_numpy()
        came = queues["sent_packets"][queues["transmitter"] == transmitter].to_numpy()
        if len(gone) != len(came) or len(gone) < PARTS or not np.isfinite(came).all():
            return ()
        excess += [float(part.sum()) for part in np.array_split(gone - share * came, PARTS)]
    return tuple(excess)


def _lossy(compiled: Compiled) -> list[tuple[int, int, float]]:
    """Links that lose packets independently, the transmitter that feeds each alone, and the loss share."""
    ways = [way for one in compiled.senders for way in (one.forward, one.backward)]
    found = []
    for number, link in enumerate(compiled.links):
        if not link.loss_ppb or link.loss_pattern is not None or link.losses:
            continue
        feeds = {_feed(compiled, way[: way.index(number) + 1]) for way in ways if number in way}
        feed = feeds.pop() if len(feeds) == 1 else None
        through = [way for way in ways if any(compiled.links[at].transmitter == feed for at in way)]
        if feed is not None and all(number in way for way in through):
            found.append((number, feed, link.loss_ppb / 1e9))
    return found


def _feed(compiled: Compiled, way: Sequence[int]) -> int | None:
    """The last transmitter of a path, if from there on only its last link removes or adds packets."""
    for number, link in reversed(list(zip(way, compiled.way(way), strict=True))):
        if link.policer or link.duplicate or link.corrupt or (link.loss_ppb and number != way[-1]):
            return None
        if link.transmitter is not None:
            return link.transmitter
    return None
