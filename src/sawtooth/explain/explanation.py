"""Explanation: the one value that text, page and JSON show. Every part may be unknown; then it says why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from sawtooth.whatif import Answer, Choice, Estimated, Observed, SelfTest

QUANTITIES = ("rate", "rtt", "queue", "loss", "burst", "ack_loss", "window")
"""Parts of a path with a number, named as in ``whatif``."""
BY_PATH = ("random", "bursts")
"""Causes of losses for which no queue is needed."""


@dataclass(frozen=True)
class Limit:
    """What held the sender back for most of the time: ``share`` of it, first at ``since_s``; ``shares`` has all
    limits. ``by`` is None if unknown."""

    by: str | None
    why: str
    share: float | None = None
    since_s: float | None = None
    shares: tuple[tuple[str, float], ...] = ()

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"shares": dict(self.shares)}


@dataclass(frozen=True)
class Lost:
    """Segments lost; ``count`` and ``segments`` are None if the input does not count them. ``where`` and ``kind`` say
    where on the path and by what."""

    count: int | None
    segments: int | None
    where: Choice
    kind: Choice

    @property
    def share(self) -> float | None:
        return None if self.count is None or not self.segments else self.count / self.segments

    @property
    def by_path(self) -> bool:
        """Whether the path itself may lose data, at random or in bursts."""
        return self.kind.answer is None or any(one in self.kind.answer for one in BY_PATH)

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "count": self.count,
            "segments": self.segments,
            "share": self.share,
            "where": self.where.describe(),
            "kind": self.kind.describe(),
        }


@dataclass(frozen=True)
class Gain:
    """What one change would give: goodput and mean round trip, each with its 90% interval. ``goodput_bps`` is None if
    only ``low_bps`` is known; all are None if nothing is, and ``why`` says the reason."""

    change: str
    cc: str | None
    why: str = ""
    goodput_bps: float | None = None
    low_bps: float | None = None
    high_bps: float | None = None
    rtt_s: float | None = None
    rtt_low_s: float | None = None
    rtt_high_s: float | None = None

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Probed:
    """What a series of probes or a trace of hops shows: shares, times in s, and a sentence. ``next`` says what would
    narrow it, "" if nothing would."""

    what: str
    sent: int
    lost: int
    rtt_min_s: float | None
    rtt_mean_s: float | None
    rtt_max_s: float | None
    says: str
    lost_from: str | None = None
    next: str = ""

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Explanation:
    """What the inputs say together.

    ``path`` has the quantities that are known, ``kinds`` its kind of queue, loss process and other traffic;
    ``cannot_tell`` has a reason for each part that is unknown, by name. ``observed`` is the transfer that was
    explained, None without one. ``controls`` are ``whatif``'s answers, ``gains`` all changes with their effect.
    ``next`` says what to measure next. ``problems``: what is damaged in the inputs; ``doubts``: where they contradict
    each other, or the path has what the simulated one lacks.
    """

    inputs: tuple[str, ...]
    limited: Limit
    lost: Lost
    path: dict[str, Estimated]
    kinds: dict[str, Choice]
    control: Choice
    observed: Observed | None = None
    test: SelfTest | None = None
    controls: tuple[Answer, ...] = ()
    gains: tuple[Gain, ...] = ()
    probed: tuple[Probed, ...] = ()
    next: tuple[str, ...] = ()
    cannot_tell: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "inputs": list(self.inputs),
            "observed": None if self.observed is None else self.observed.describe(),
            "limited": self.limited.describe(),
            "lost": self.lost.describe(),
            "path": {name: value.describe() for name, value in self.path.items()}
            | {name: value.describe() for name, value in self.kinds.items()},
            "control": self.control.describe(),
            "self_test": None if self.test is None else self.test.describe(),
            "would_give": [gain.describe() for gain in self.gains],
            "probed": [one.describe() for one in self.probed],
            "measure_next": list(self.next),
            "cannot_tell": self.cannot_tell,
            "problems": list(self.problems),
            "doubts": list(self.doubts),
        }
