"""Utilization: the share of a line's rate in use on the wire; and the ceiling that headers put on goodput.

Goodput is payload. On the wire each segment also has its Ethernet, IP and TCP headers, and a retransmission uses the
line again. So goodput never reaches the rate: of 1,514-byte frames with timestamps 1,448 bytes are payload, which is
95.6%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from sawtooth.run import Run
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Flow, Transmitter
from sawtooth.scenario.header_sizes import ETHERNET, IPV4, UDP, frame_bytes
from sawtooth.stats.path import slowest
from sawtooth.stats.queueing import Queueing
from sawtooth.stats.throughput import span, throughput

_LINUX = ("kernel", "netns")
"""Engines that count bytes like Linux, without a link's overhead."""


@dataclass(frozen=True)
class Ceiling:
    """The ceiling on the goodput of all flows together: ``share`` of the bottleneck's ``rate_bps``."""

    rate_bps: float
    share: float

    @property
    def goodput_bps(self) -> float:
        return self.rate_bps * self.share


def ceiling(compiled: Compiled) -> Ceiling | None:
    """The ceiling with full segments. None if no single transmitter limits all flows."""
    line = slowest(compiled, compiled.flows[0].forward) if compiled.flows else None
    if line is None:
        return None
    index = compiled.transmitters.index(line)
    shares = []
    for flow in compiled.flows:
        crossed = [link for link in compiled.way(flow.forward) if link.transmitter == index]
        if not crossed:
            return None
        payload, frame = _full(compiled, flow)
        shares.append(payload / (frame + crossed[0].overhead_bytes))
    return Ceiling(mean_rate_bps(line, 0, compiled.duration_ns), max(shares))


def mean_rate_bps(line: Transmitter, from_ns: int, to_ns: int) -> float:
    """The mean of a rate that changes in steps; of any other kind, its long-run rate."""
    if line.pace is None or line.pace.steps is None or to_ns <= from_ns:
        return float(line.lasting_bps)
    steps = [(0, line.rate_bps), *line.pace.steps, (to_ns, 0)]
    bits = 0.0
    for (begins, rate), (ends, _) in pairwise(steps):
        bits += rate * max(0, min(ends, to_ns) - max(begins, from_ns))
    return bits / (to_ns - from_ns)


def utilization(run: Run, queue: Queueing | None) -> float:
    """What the bottleneck sent divided by what its rate allows, from the end of the warm-up; NaN without a bottleneck.

    On an engine without a table of queues, all segments are full and sent once: goodput with its headers.
    """
    compiled = run.scenario.compile()
    if queue is not None and len(queue.table) and "sent_bytes" in queue.table:
        line = slowest(compiled, compiled.flows[0].forward)
        assert line is not None
        from_ns, to_ns = round(span(run)[0] * 1e9), round(float(queue.table["t_s"].max()) * 1e9)
        sent = float(queue.table["sent_bytes"].sum())
        if run.engine in _LINUX:
            sent += _uncounted(compiled, line) * float(queue.table["sent_packets"].sum())
        room = mean_rate_bps(line, from_ns, to_ns) * (to_ns - from_ns) / 1e9
        return sent * 8 / room if room > 0 else math.nan
    most = ceiling(compiled)
    if "queues" in run.tables or most is None:
        return math.nan
    return float(throughput(run).mean()) * 1e6 / most.goodput_bps


def _full(compiled: Compiled, flow: Flow) -> tuple[int, int]:
    """Payload and frame of a flow's full segment, in bytes."""
    if flow.datagrams is not None:
        return flow.datagrams.bytes, flow.datagrams.bytes + ETHERNET + IPV4 + UDP
    ends = [compiled.hosts[compiled.source(flow)], compiled.hosts[compiled.target(flow)]]
    mss = min(one.mss for one in ends)
    return mss, frame_bytes(mss, timestamps=all(one.timestamps for one in ends))


def _uncounted(compiled: Compiled, line: Transmitter) -> int:
    index = compiled.transmitters.index(line)
    return next(link.overhead_bytes for link in compiled.links if link.transmitter == index)
