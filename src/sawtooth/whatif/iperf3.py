"""Reads a transfer from iperf3's JSON (``iperf3 -J``, either end). Parallel streams count as one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.io import untrusted
from sawtooth.scenario.header_sizes import MSS
from sawtooth.whatif.arrivals import Arrival, arrival, queued
from sawtooth.whatif.observation import Observed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TARGET_MET = 0.97
WINDOW_FILLED = 0.9
"""If this share of the offered window was in flight at the median round trip, the transfer waited for the window."""
_LONGER_S = 0.5
"""Shortest interval that counts, in seconds: the last one may be very short."""


class _Report(untrusted.Record):
    """A JSON object in iperf3's report."""

    def wrong(self, message: str) -> InputError:
        return _refused(f"this JSON is not a whole TCP report of iperf3: {message}")

    def needed(self, name: str) -> _Report:
        """An object that every report has."""
        found = self.record(name)
        if found is None:
            raise self.wrong(f'there is no "{name}"')
        return found

    def optional(self, name: str) -> _Report:
        """An optional object; empty if it is absent."""
        return self.record(name) or self.part({})


def from_iperf3(content: Any) -> Observed:
    """From parsed JSON. Raises SawtoothError ``not-a-measurement``, ``application-limited``."""
    if not isinstance(content, dict):
        raise _refused("this JSON is not a TCP report of iperf3: it is no object")
    return _read(_Report(content))


def _refused(message: str) -> InputError:
    return InputError("not-a-measurement", message, fix="give what iperf3 -J printed for a TCP test that ended well")


def _read(report: _Report) -> Observed:
    import numpy as np

    if report.values.get("error"):
        raise _refused(f"iperf3 failed: {report.text('error')}")
    start, end = report.needed("start"), report.needed("end")
    test = start.needed("test_start")
    if test.text("protocol") != "TCP":
        raise _refused(f"this is a test of {test.text('protocol')[:20] or 'nothing known'}, not of TCP")
    received, sent = end.optional("sum_received"), end.optional("sum_sent")
    # Only the receiver knows what arrived; if the server was killed early, the client reports zeros.
    total = received if received.number("bytes", 0, least=0) else sent
    if not total.number("bytes", 0, least=0):
        raise _refused("no data went over it")
    # A receiver's intervals count what arrived, a sender's what its socket accepted.
    samples = report.records("intervals")
    intervals = [one for sample in samples if not (one := sample.needed("sum")).values.get("omitted")]
    streams = [one for sample in samples for one in sample.records("streams") if not one.values.get("omitted")]
    if not all(stream.values.get("sender", True) for stream in streams):
        streams = []
    seconds = np.array([one.number("seconds", least=0) for one in intervals])
    rates = np.array([one.number("bits_per_second", least=0) for one in intervals])
    count = max(1, test.count("num_streams", 1))
    mss = start.count("tcp_mss", 0) or start.count("tcp_mss_default", 0)
    if not 48 <= mss <= 65400:
        mss = MSS
    retransmits = sent.count("retransmits") if streams and "retransmits" in sent.values else None
    goodput, duration = total.number("bits_per_second", least=0), total.number("seconds", least=0)
    ends = [stream.optional("sender") for stream in end.records("streams")]
    rtts, lowest, highest = _seconds(streams, "rtt"), _seconds(ends, "min_rtt"), _seconds(ends, "max_rtt")
    # Versions from 3.10 print the window that the receiver offered.
    window = int(max((stream.number("snd_wnd", 0, least=0) for stream in streams), default=0))
    filled = bool(rtts and window and goodput / count * float(np.median(rtts)) / 8 >= WINDOW_FILLED * window)
    waited = {"receive window": 1.0} if filled else {}
    cc = end.text("sender_tcp_congestion")
    steady = rates[seconds > _LONGER_S]
    # A sender writes whole blocks, and more than arrives while its buffer fills.
    arrived = _arrival(test, streams, seconds, rates, sent, received) if streams else None
    fastest = float(steady.max(initial=0.0)) if not streams else 0.0 if arrived is None else arrived.low
    return Observed(
        source="iperf3",
        what=f"iperf3, {'sender' if streams else 'receiver'}'s report, {count} stream{'s' if count > 1 else ''}",
        goodput_bps=goodput,
        duration_s=duration,
        from_start=not test.values.get("omit"),
        cc=cc or None,
        cc_how="iperf3 says so" if cc else "",
        mss=mss,
        segments=math.ceil(goodput * duration / 8 / mss) + (retransmits or 0),
        retransmits=retransmits,
        rtt_min_s=min(lowest or rtts, default=None),
        rtt_mean_s=float(np.mean(rtts)) if rtts else None,
        rtt_max_s=max(highest or rtts, default=None),
        rtt_smoothed=True,
        rtt_samples=max(1, len(intervals)),
        window_bytes=window or None,
        limited=_limited(test, goodput, count) | waited,
        rates_bps=steady,
        arrival=arrived,
        queued=_queued(streams, len(intervals)),
        delivery_bps=fastest or None,
        connections=count,
    )


def _seconds(records: list[_Report], name: str) -> list[float]:
    """The times that are present and not 0; iperf3 writes µs."""
    return [value / 1e6 for one in records if (value := one.number(name, 0, least=0))]


def _arrival(
    test: _Report,
    streams: list[_Report],
    seconds: NDArray[np.float64],
    rates: NDArray[np.float64],
    sent: _Report,
    received: _Report,
) -> Arrival | None:
    """What arrived, by a sender's report. With ``--omit``, the totals leave out what the buffer held before."""
    import numpy as np

    count = len(streams) // max(1, len(seconds))
    per = _of_intervals(streams, len(seconds), "snd_cwnd")
    arrived = received.number("bytes", 0, least=0)
    whole = bool(arrived) and not test.values.get("omit") and sent.number("bytes", 0, least=0) >= arrived
    return arrival(
        seconds,
        rates * seconds / 8,
        None if per is None else per.sum(axis=1),
        uncounted=sent.number("bytes", 0, least=0) - arrived if whole else None,
        after_s=max(0.0, received.number("seconds", 0, least=0) - float(np.sum(seconds))),
        goodput_bps=received.number("bits_per_second", 0, least=0),
        block=test.count("blksize", 0) * max(1, count),
    )


def _of_intervals(streams: list[_Report], intervals: int, name: str) -> NDArray[np.float64] | None:
    """A number of each stream (columns) at the end of each interval (rows); None if one is missing."""
    import numpy as np

    if not intervals or not streams or len(streams) % intervals or not all(name in one.values for one in streams):
        return None
    return np.array([one.number(name, least=0) for one in streams]).reshape(intervals, -1)


def _queued(streams: list[_Report], intervals: int) -> bool:
    """Whether the window and the round trip of the only stream show a queue, after the first interval."""
    windows, rtts = (_of_intervals(streams, intervals, name) for name in ("snd_cwnd", "rtt"))
    if windows is None or rtts is None or windows.shape[1] != 1:
        return False
    return queued(windows[1:, 0], rtts[1:, 0])


def _limited(test: _Report, goodput: float, streams: int) -> dict[str, float]:
    """A transfer that reached its configured rate was limited by that rate, not by the path."""
    target = test.number("target_bitrate", 0, least=0) * streams
    return {"application": 1.0} if target and goodput >= TARGET_MET * target else {}
