"""Observation: what a measurement says about one bulk transfer, whatever program produced it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth.engines.sim import controls
from sawtooth.errors import InputError, suggestion
from sawtooth.sanitize import plain
from sawtooth.scenario import CONTROLS as RECORDS
from sawtooth.scenario import header_sizes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sawtooth.whatif.arrivals import Arrival
    from sawtooth.whatif.estimate import Estimate
    from sawtooth.whatif.quantity import Choice, Estimated

CONTROLS = tuple(name for name in controls() if None not in RECORDS[name].by_marks)
"""Controls that can be replayed. What depends on ECN marks is Reno without them, and no measurement shows marks."""
BY_MODEL = ("bbr", "bbr3")
"""Controls that follow a model of the path instead of each loss."""
_PLAUSIBLE = {
    **dict.fromkeys(("goodput_bps", "delivery_bps", "standing_bps", "bottleneck_bps"), 1e13),
    **dict.fromkeys(("rtt_handshake_s", "rtt_min_s", "rtt_mean_s", "rtt_max_s"), 3600.0),
    "duration_s": 30 * 86400.0,
    "segments": 1e15,
    "retransmits": 1e15,
    "window_bytes": 1e13,
    "connections": 100_000,
}
"""Upper limits of plausible values; the limits of scenarios where they exist."""


def check_control(name: str) -> None:
    """Raises InputError ``unknown-name`` if no congestion control of Linux or of ``sim`` has this name."""
    if name not in RECORDS:
        fix = f"{suggestion(name, RECORDS)} (omit it for a control of your own)"
        message = f'no congestion control is named "{plain(name, 60)}"'
        raise InputError("unknown-name", message, field="cc", fix=fix)


@dataclass(frozen=True)
class Observed:
    """One bulk transfer; values that the input does not contain are None.

    - ``goodput_bps`` is payload over ``duration_s``. ``from_start``: it includes slow start. ``since_data``: it
      excludes the handshake.
    - ``segments`` of data were sent, of which ``retransmits`` were retransmissions.
    - ``cc_how`` says how ``cc`` is known, or why it is not.
    - ``rtt_mean_s`` and ``rtt_max_s`` are of packets in a capture, and otherwise of ``rtt_samples`` smoothed values.
      ``rtt_smoothed``: ``rtt_min_s`` is one of those, too.
    - ``limited``: shares of the time by cause: "application", "receive window", "send buffer".
    - ``rates_bps``: payload rates of equal intervals, of what arrived, or of what a sending socket took; then
      ``arrival`` has the rate of arrival. ``queued``: the round trip followed the window. ``delivery_bps``: the fastest
      certain rate of arrival. ``standing_bps``: that rate while a queue stood, with the certainty ``standing`` (0 to
      1). ``alone``: that rate was so steady that nobody else used the path. ``bottleneck_bps``: the bottleneck's rate
      as a BBR sender estimates it.
    - ``given``: properties of the path that the user gave. ``path``: the core's estimate from a capture.
    - ``kinds``: of queue, loss process and other traffic (``kinds.PARTS``). ``signs``: their evidence
      (``signs.signs``).
    - ``problems``: what is damaged in the input or was left out.
    """

    source: str
    what: str
    goodput_bps: float | None = None
    duration_s: float | None = None
    from_start: bool = True
    since_data: bool = False
    cc: str | None = None
    cc_how: str = ""
    mss: int = header_sizes.MSS
    timestamps: bool = True
    segments: int | None = None
    retransmits: int | None = None
    rtt_handshake_s: float | None = None
    rtt_min_s: float | None = None
    rtt_mean_s: float | None = None
    rtt_max_s: float | None = None
    rtt_smoothed: bool = False
    rtt_samples: int = 10
    window_bytes: int | None = None
    limited: dict[str, float] = field(default_factory=dict)
    rates_bps: NDArray[np.float64] | None = None
    arrival: Arrival | None = None
    queued: bool = False
    delivery_bps: float | None = None
    standing_bps: float | None = None
    standing: float = 1.0
    alone: bool = False
    bottleneck_bps: float | None = None
    connections: int = 1
    given: dict[str, Estimated] = field(default_factory=dict)
    path: Estimate | None = None
    kinds: dict[str, Choice] = field(default_factory=dict)
    signs: dict[str, float] | None = field(default=None, compare=False)
    problems: tuple[str, ...] = ()

    @property
    def frame_bytes(self) -> int:
        """The Ethernet frame of a full segment as Linux counts it, in bytes; the scenario's rate counts these."""
        return header_sizes.frame_bytes(self.mss, timestamps=self.timestamps)

    @property
    def retransmitted(self) -> float | None:
        """The share of segments that were retransmitted."""
        if self.segments is None or self.retransmits is None:
            return None
        return self.retransmits / max(self.segments, 1)

    def check(self) -> None:
        """Refuses an observation from which nothing can be estimated.

        Raises SawtoothError: ``too-short``, ``application-limited``, ``not-a-measurement``.
        """
        from sawtooth import _core

        for name, most in _PLAUSIBLE.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                message = f"{name} is {value:.6g}: no transfer has less than 0 or more than {most:g}"
                raise InputError("not-a-measurement", message, fix="give the numbers as they were measured")
        segments = None if self.segments is None else int(self.segments)
        rest = segments, self.rtt_min_s, self.rtt_mean_s, self.limited.get("application", 0.0)
        told = _core.refused_transfer(self.duration_s, *rest)
        if told is not None and self.source == "ss":
            # The duration is the time with data in flight, which is short also where the application pauses.
            short = f"data was in flight for only {self.duration_s or 0:.3g} s, too short for more than slow start"
            told = _core.refused_transfer(None, *rest) or (told[0], short, told[2])
        if told is not None:
            code, message, fix = told
            raise InputError(code, message, fix=fix)

    def describe(self) -> dict[str, Any]:
        """As JSON values; unknown values are null."""
        return {
            "source": self.source,
            "what": self.what,
            "goodput_bps": self.goodput_bps,
            "duration_s": self.duration_s,
            "from_start": self.from_start,
            "cc": self.cc,
            "cc_how": self.cc_how or None,
            "mss_bytes": self.mss,
            "segments": self.segments,
            "retransmits": self.retransmits,
            "rtt_handshake_s": self.rtt_handshake_s,
            "rtt_min_s": self.rtt_min_s,
            "rtt_mean_s": self.rtt_mean_s,
            "rtt_max_s": self.rtt_max_s,
            "receive_window_bytes": self.window_bytes,
            "limited": self.limited,
            "problems": list(self.problems),
        }
