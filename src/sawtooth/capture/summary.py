"""Summary: what limits a transfer, what was lost and how long its round trip is, decided in one place.

The rules are in docs/reference/capture.md; text, page, ``identify`` and ``whatif`` use this judgement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HIDDEN_BY_WINDOW = 0.5
HIDDEN_BY_IDLENESS = 0.2
HIDDEN_BY_APPLICATION = 0.5
"""Share of the time limited by receive window, idleness or application, beyond which the flight shows no congestion
window."""


@dataclass(frozen=True)
class Judgement:
    """The judgement of one direction of a connection; ``facts`` are the reader's for that direction, with data."""

    direction: int
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, connection: Mapping[str, Any], direction: int | None = None) -> Judgement | None:
        """The judgement of a connection's direction (default: with more data). None if it carries none."""
        ways = connection["directions"]
        if direction is None:
            direction = max((0, 1), key=lambda at: ways[at].get("payload_bytes", 0))
        return cls(direction, ways[direction]) if "data_packets" in ways[direction] else None

    @property
    def limits(self) -> dict[str, float]:
        """Shares of the time between data segments, by what delayed the next one: ``sender``, ``receiver_window``,
        ``congestion_window``, ``path``, ``idle``, ``unknown``; largest first."""
        seconds = {name.removesuffix("_s"): value for name, value in self.facts["limits"].items() if value > 0}
        whole = sum(seconds.values())
        return {name: value / whole for name, value in sorted(seconds.items(), key=lambda one: -one[1])}

    @property
    def limit(self) -> str | None:
        """The limit for most of the time, by the common rule for limits; None if no time passed."""
        import numpy as np

        from sawtooth._core import largest_shares

        limits = self.limits
        at = int(largest_shares(np.array([list(limits.values())], dtype=float))[0])
        return list(limits)[at] if at >= 0 else None

    @property
    def application(self) -> float:
        """The share of the time in which the application had nothing to send."""
        return self.limits.get("sender", 0.0) + self.limits.get("idle", 0.0)

    @property
    def receive_window(self) -> float:
        return self.limits.get("receiver_window", 0.0)

    @property
    def segments(self) -> int:
        """Segments with data, retransmissions included."""
        return int(self.facts["data_packets"])

    @property
    def retransmits(self) -> int:
        return int(self.facts["retransmits"])

    @property
    def round_trip(self) -> Mapping[str, float] | None:
        """``min_s``, ``mean_s``, ``median_s``, ``p95_s``, ``max_s``, ``samples`` of both halves; None without any."""
        trips: Mapping[str, float] | None = self.facts["rtt"]["whole"]
        return trips

    def hides_window(self) -> str | None:
        """Why the flight shows no congestion window; None if it may."""
        if self.receive_window > HIDDEN_BY_WINDOW:
            return "the receive window is the limit, not the congestion window"
        if self.limits.get("idle", 0.0) > HIDDEN_BY_IDLENESS or self.application > HIDDEN_BY_APPLICATION:
            return "the sender was idle, waiting for its application"
        return None
