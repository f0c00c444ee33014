"""The empty path: how long packets and transfers take if nothing waits, from the compiled scenario alone.

If delays change, the shortest counts. A varying rate counts as the compiled scenario states it (for a trace, its mean).
Jitter and the wait for an aggregate are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Flow, Link, Probe, Transmitter
from sawtooth.scenario.header_sizes import frame_bytes

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.typing import ArrayLike

PROBE_FRAME = 98
"""Bytes of a ping with 56 bytes of data, as all engines send it."""


def slowest(compiled: Compiled, links: Iterable[int]) -> Transmitter | None:
    """The transmitter with the lowest rate along ``links``; None if no link there has a rate."""
    return min(compiled.transmitters_of(links), key=lambda one: one.rate_bps, default=None)


def trip_s(compiled: Compiled, links: Iterable[int], frame: Any) -> Any:
    """Seconds for one frame of this many bytes over ``links``; an array for several frames."""
    return sum(_delay_s(link) + _sending_s(compiled, link, frame) for link in compiled.way(links))


def round_trip_s(compiled: Compiled, probe: Probe) -> float:
    """Seconds from a probe to its answer."""
    there, back = trip_s(compiled, probe.forward, PROBE_FRAME), trip_s(compiled, probe.backward, PROBE_FRAME)
    return float(there + back)


def transfers_s(compiled: Compiled, flow: Flow, sizes: ArrayLike) -> ndarray[Any, Any]:
    """The shortest time in seconds from a connection's opening until the sender knows that ``sizes`` bytes (each above
    0) arrived.

    This assumes a sender that knows the path: a handshake, then all segments back to back at the lowest rate along the
    path, and the acknowledgement of the last. There is no slow start and no delayed acknowledgement.
    """
    import numpy as np

    sender = compiled.hosts[compiled.source(flow)]
    empty = frame_bytes(0, timestamps=sender.timestamps)
    full = frame_bytes(sender.mss, timestamps=sender.timestamps)
    segments, rest = np.divmod(np.asarray(sizes), sender.mss)
    last = empty + rest
    first = np.where(segments > 0, full, last)
    way = compiled.way(flow.forward)
    handshake = trip_s(compiled, flow.forward, empty) + trip_s(compiled, flow.backward, empty)
    sending = segments * max(_sending_s(compiled, link, full) for link in way)
    sending += np.where(rest > 0, np.max([_sending_s(compiled, link, last) for link in way], axis=0), 0)
    # All except the first segment, which is already on its way.
    behind = sending - np.max([_sending_s(compiled, link, first) for link in way], axis=0)
    found = handshake + trip_s(compiled, flow.forward, first) + behind + trip_s(compiled, flow.backward, empty)
    return np.asarray(found, dtype=float)


def _delay_s(link: Link) -> float:
    return min([link.delay_ns, *(delay_ns for _, delay_ns in link.delays)]) / 1e9


def _sending_s(compiled: Compiled, link: Link, frame: Any) -> Any:
    if link.transmitter is None:
        return frame * 0.0
    return (frame + link.overhead_bytes) * 8 / compiled.transmitters[link.transmitter].rate_bps
