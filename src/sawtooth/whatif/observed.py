"""Observed: what a measurement says of one bulk transfer, whatever program wrote it down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth import frames
from sawtooth.engines.sim import controls
from sawtooth.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sawtooth.whatif.estimate import Estimate
    from sawtooth.whatif.estimated import Estimated

CONTROLS = tuple(name for name in controls() if name not in ("dctcp", "prague"))
"""What can be replayed. Where nothing is marked DCTCP and Prague are Reno, and no measurement tells of marks."""
_PLAUSIBLE = {
    **dict.fromkeys(("goodput_bps", "delivery_bps", "standing_bps", "bottleneck_bps"), 1e13),
    **dict.fromkeys(("rtt_handshake_s", "rtt_min_s", "rtt_mean_s", "rtt_max_s"), 3600.0),
    "duration_s": 30 * 86400.0,
    "segments": 1e15,
    "retransmits": 1e15,
    "window_bytes": 1e13,
    "connections": 100_000,
}
"""What no transfer has more of; the limits of scenarios, where they have one."""


@dataclass(frozen=True)
class Observed:
    """One bulk transfer. What an input does not say is None; each ``how`` of an estimate names what was used.

    ``goodput_bps`` is payload over ``duration_s``. ``from_start``: slow start is part of it; ``since_data``: the
    handshake before it is not. ``segments`` of data were sent, ``retransmits`` of them again. ``cc_how`` says where
    ``cc`` is from, or why it is not known. ``limited`` has shares of the time by cause: "application", "receive
    window", "send buffer". ``rates_bps`` are payload rates of equal intervals; ``delivery_bps`` is the fastest that
    data arrived for sure, ``standing_bps`` how fast it did while a queue stood, as sure as ``standing`` (0 to 1),
    ``bottleneck_bps`` what a sender with
    BBR takes for the bottleneck's. ``given`` are properties of the path that were told, not measured; ``path`` is what
    the core estimated of a capture. ``problems`` say what of the input is damaged or was left out.
    """

    source: str
    what: str
    goodput_bps: float | None = None
    duration_s: float | None = None
    from_start: bool = True
    since_data: bool = False
    cc: str | None = None
    cc_how: str = ""
    mss: int = frames.MSS
    timestamps: bool = True
    segments: int | None = None
    retransmits: int | None = None
    rtt_handshake_s: float | None = None
    rtt_min_s: float | None = None
    rtt_mean_s: float | None = None
    rtt_max_s: float | None = None
    rtt_smoothed: bool = False
    window_bytes: int | None = None
    limited: dict[str, float] = field(default_factory=dict)
    rates_bps: NDArray[np.float64] | None = None
    delivery_bps: float | None = None
    standing_bps: float | None = None
    standing: float = 1.0
    bottleneck_bps: float | None = None
    connections: int = 1
    given: dict[str, Estimated] = field(default_factory=dict)
    path: Estimate | None = None
    problems: tuple[str, ...] = ()

    @property
    def frame_bytes(self) -> int:
        """A full segment's Ethernet frame as Linux counts it: what the scenario's rate is counted in."""
        return frames.frame_bytes(self.mss, timestamps=self.timestamps)

    @property
    def retransmitted(self) -> float | None:
        """The share of segments that were sent again."""
        if self.segments is None or self.retransmits is None:
            return None
        return self.retransmits / max(self.segments, 1)

    def check(self) -> None:
        """Refuses what no estimate can come from.

        Raises SawtoothError: ``too-short``, ``application-limited``, ``not-a-measurement``.
        """
        from sawtooth import _core

        for name, most in _PLAUSIBLE.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                message = f"{name} is {value:.6g}: no transfer has less than 0 or more than {most:g}"
                raise InputError("not-a-measurement", message, fix="give the numbers as they were measured")
        told = _core.refused_transfer(
            self.duration_s,
            None if self.segments is None else int(self.segments),
            self.rtt_min_s,
            self.rtt_mean_s,
            self.limited.get("application", 0.0),
        )
        if told is not None:
            code, message, fix = told
            raise InputError(code, message, fix=fix)

    def describe(self) -> dict[str, Any]:
        """As JSON values; what is not known is null."""
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
