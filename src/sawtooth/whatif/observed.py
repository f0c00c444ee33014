"""Observed: what a measurement says of one bulk transfer, whatever program wrote it down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth import frames
from sawtooth.engines.sim import controls
from sawtooth.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sawtooth.whatif.estimated import Estimated

CONTROLS = tuple(name for name in controls() if name not in ("dctcp", "prague"))
"""What can be replayed. Where nothing is marked DCTCP and Prague are Reno, and no measurement tells of marks."""
SHORTEST_S = 2.0
FEWEST_SEGMENTS = 100
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
MOST_IDLE = 0.25
"""A transfer whose application had nothing to send for a larger share of its time says little of the path."""


@dataclass(frozen=True)
class Trace:
    """A transfer segment by segment, as arrays in order of time. Times in s since the transfer's start.

    ``delivered_bytes`` is the payload that an event newly delivered, NaN where the event says nothing of the pace of
    deliveries (a hole was filled), ``delivered_sent_s`` when the newest of it was sent, None or NaN where that is not
    known; ``delay_s`` is a round trip or a one-way delay of any zero point: what matters is
    how it changes. ``lost_s`` has the time at which a lost packet was sent, or where that is not seen, the time at
    which its neighbours passed. ``grain_s`` is how finely delays are known,
    ``floor_s`` what a delay is without any wait, where something else than ``delay_s`` says so.
    """

    delivered_t_s: NDArray[np.float64]
    delivered_bytes: NDArray[np.float64]
    delay_t_s: NDArray[np.float64]
    delay_s: NDArray[np.float64]
    sent_t_s: NDArray[np.float64]
    sent_segments: NDArray[np.int64]
    lost_t_s: NDArray[np.float64]
    lost_segments: NDArray[np.int64]
    segments_an_ack: NDArray[np.float64]
    sender_side: bool
    grain_s: float = 0.0
    floor_s: float = math.inf
    delivered_sent_s: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Observed:
    """One bulk transfer. What an input does not say is None; each ``how`` of an estimate names what was used.

    ``goodput_bps`` is payload over ``duration_s``. ``from_start``: slow start is part of it; ``since_data``: the
    handshake before it is not. ``segments`` of data were sent, ``retransmits`` of them again. ``cc_how`` says where
    ``cc`` is from, or why it is not known. ``limited`` has shares of the time by cause: "application", "receive
    window", "send buffer". ``rates_bps`` are payload rates of equal intervals; ``delivery_bps`` is the fastest that
    data arrived for sure, ``standing_bps`` how fast it did while a queue stood, ``bottleneck_bps`` what a sender with
    BBR takes for the bottleneck's. ``rtt_min_s`` is of full segments, or else ``rtt_full_s`` is. ``given`` are
    properties of the path that were told, not measured. ``problems`` say what of the input is damaged or was left out.
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
    rtt_full_s: float | None = None
    rtt_mean_s: float | None = None
    rtt_max_s: float | None = None
    rtt_smoothed: bool = False
    window_bytes: int | None = None
    limited: dict[str, float] = field(default_factory=dict)
    rates_bps: NDArray[np.float64] | None = None
    delivery_bps: float | None = None
    standing_bps: float | None = None
    bottleneck_bps: float | None = None
    connections: int = 1
    given: dict[str, Estimated] = field(default_factory=dict)
    trace: Trace | None = None
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
        for name, most in _PLAUSIBLE.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                message = f"{name} is {value:.6g}: no transfer has less than 0 or more than {most:g}"
                raise InputError("not-a-measurement", message, fix="give what was measured, as it was printed")
        if self.duration_s is not None and self.duration_s < SHORTEST_S:
            message = f"the transfer lasted {self.duration_s:.2g} s; less than {SHORTEST_S:g} s is mostly slow start"
            raise InputError("too-short", message, fix="measure a bulk transfer of ten seconds or more")
        if self.segments is not None and self.segments < FEWEST_SEGMENTS:
            message = f"the transfer had {self.segments} segments of data; fewer than {FEWEST_SEGMENTS} tell nothing"
            raise InputError("too-short", message, fix="measure a bulk transfer of ten seconds or more")
        if self.rtt_min_s is not None and self.rtt_mean_s is not None and self.rtt_mean_s < 0.99 * self.rtt_min_s:
            trips = f"at least {1e3 * self.rtt_min_s:.4g} ms, but {1e3 * self.rtt_mean_s:.4g} ms in the mean"
            message = f"the round trips contradict each other: {trips}; data was sent again too early"
            raise InputError("not-a-measurement", message, fix="measure a bulk transfer, headers of both directions")
        idle = self.limited.get("application", 0.0)
        if idle > MOST_IDLE:
            message = f"the application, not the path, limited the transfer {idle:.0%} of the time"
            raise InputError("application-limited", message, fix="measure a transfer that always has data to send")

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
