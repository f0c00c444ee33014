"""Schedule: when each probe is due. Counted from the start, so a late probe never delays the next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Slot ``i`` is due at ``start_ns + i * pace_ns`` of the monotonic clock."""

    start_ns: int
    pace_ns: int

    def due_ns(self, slot: int) -> int:
        """When it is due."""
        return self.start_ns + slot * self.pace_ns

    def next_slot(self, slot: int, now_ns: int) -> int:
        """The slot to use instead of ``slot``: itself, or after a suspension the first one that is less than half a
        pace late. So two probes are never closer than half a pace, and missed ones are never sent in a burst."""
        if now_ns <= self.due_ns(slot) + self.pace_ns // 2:
            return slot
        return max(slot, -(-(now_ns - self.start_ns - self.pace_ns // 2) // self.pace_ns))
