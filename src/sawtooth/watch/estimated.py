"""An estimate of what a connection would get, or the reason why there is none."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from sawtooth.whatif import Observed
from sawtooth.whatif.observation import CONTROLS


@dataclass(frozen=True)
class Range:
    """Goodput in bit/s with its 90% interval. If the result depends on a bottleneck that was never seen full, only
    ``low_bps`` is known and the other two are None."""

    cc: str
    goodput_bps: float | None
    low_bps: float
    high_bps: float | None


class Pending(Enum):
    """Why an estimate may still come, in the words of the live view."""

    WAITING = "not yet"
    RUNNING = "being simulated"


@dataclass(frozen=True)
class Expected:
    """An estimate. ``lossless``: the same congestion control on the same path without its random loss. ``controls``:
    each congestion control on the same path. ``test``: the verdict of the self-test. If there is no estimate,
    ``reason`` says why, in a sentence, and ``pending`` whether one may still come. ``rough``: it is of
    ``rough.rough``.
    """

    reason: str | None = None
    pending: Pending | None = None
    lossless: Range | None = None
    controls: tuple[Range, ...] = ()
    test: str | None = None
    at_s: float = 0.0
    rough: bool = False

    def describe(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        values = asdict(self)
        del values["at_s"], values["pending"], values["rough"]
        return values


def untold(seen: Observed) -> Expected | None:
    """Why an observation is not enough for an estimate; None if it is."""
    if None in (seen.cc, seen.goodput_bps, seen.retransmitted, seen.rtt_min_s, seen.rtt_mean_s, seen.rtt_max_s):
        return Expected(reason="the kernel does not tell enough of it: counts of segments, or round trips")
    if seen.cc not in CONTROLS:
        return Expected(reason=f"the simulator has no {seen.cc}")
    return None
