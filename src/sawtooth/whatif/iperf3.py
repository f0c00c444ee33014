"""What iperf3's JSON (``iperf3 -J``, either end) says of a transfer; streams that ran side by side count as one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.whatif.observed import Observed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TARGET_MET = 0.97
WINDOW_FILLED = 0.9
"""Of the offered window that was on its way at the median round trip: then the transfer waited for it."""


def from_iperf3(content: Any) -> Observed:
    """From parsed JSON. Raises SawtoothError ``not-a-measurement``, ``application-limited``."""
    try:
        return _read(content)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _refused(f"this JSON is not a whole TCP report of iperf3 ({type(error).__name__}: {error})") from error


def _refused(message: str) -> InputError:
    return InputError("not-a-measurement", message, fix="give what iperf3 -J printed for a TCP test that ended well")


def _read(content: Any) -> Observed:
    import numpy as np

    if content.get("error"):
        raise _refused(f"iperf3 failed: {str(content['error'])[:200]}")
    asked = content["start"]["test_start"]
    if asked.get("protocol") != "TCP":
        raise _refused(f"this is a test of {str(asked.get('protocol'))[:20]}, not of TCP")
    end = content["end"]
    received, sent = end.get("sum_received") or {}, end.get("sum_sent") or {}
    # Only the receiver knows what arrived; a server killed early leaves its client with zeros.
    total = received if received.get("bytes") else sent
    if not total.get("bytes"):
        raise _refused("no data went over it")
    # A receiving end's intervals are of what arrived; those of a sending end are of what its socket took.
    intervals = [one["sum"] for one in content["intervals"] if not one["sum"].get("omitted")]
    streams = [stream for one in content["intervals"] for stream in one["streams"] if not stream.get("omitted")]
    if not all(stream.get("sender", True) for stream in streams):
        streams = []
    rates = np.array([one["bits_per_second"] for one in intervals if one["seconds"] > 0.5], dtype=float)
    count = max(1, int(asked.get("num_streams", 1)))
    rtts = [stream["rtt"] / 1e6 for stream in streams if stream.get("rtt")]
    mss = int(content["start"].get("tcp_mss") or content["start"].get("tcp_mss_default") or 1448)
    if not 48 <= mss <= 65400:
        mss = 1448
    retransmits = sent.get("retransmits") if streams else None
    goodput, duration = float(total["bits_per_second"]), float(total["seconds"])
    ends = [stream.get("sender") or {} for stream in end.get("streams", [])]
    lowest = [one["min_rtt"] / 1e6 for one in ends if one.get("min_rtt")]
    highest = [one["max_rtt"] / 1e6 for one in ends if one.get("max_rtt")]
    # Versions from 3.10 on print the window that the receiver offered.
    window = max((stream.get("snd_wnd") or 0 for stream in streams), default=0)
    filled = bool(rtts and window and goodput / count * float(np.median(rtts)) / 8 >= WINDOW_FILLED * window)
    waited = {"receive window": 1.0} if filled else {}
    side = "sender's" if streams else "receiver's"
    return Observed(
        source="iperf3",
        what=f"iperf3, {side} report, {count} stream{'s' if count > 1 else ''}",
        goodput_bps=goodput,
        duration_s=duration,
        from_start=not asked.get("omit"),
        cc=end.get("sender_tcp_congestion"),
        cc_how="iperf3 says so" if end.get("sender_tcp_congestion") else "",
        mss=mss,
        segments=math.ceil(goodput * duration / 8 / mss) + (retransmits or 0),
        retransmits=retransmits,
        rtt_min_s=min(lowest or rtts, default=None),
        rtt_mean_s=float(np.mean(rtts)) if rtts else None,
        rtt_max_s=max(highest or rtts, default=None),
        rtt_smoothed=True,
        window_bytes=int(window) if window else None,
        limited=_limited(asked, goodput, count) | waited,
        rates_bps=rates,
        delivery_bps=_fastest(intervals, total, sent) if streams else float(rates.max()) if rates.size else None,
        connections=count,
    )


def _fastest(intervals: list[dict[str, Any]], arrived: dict[str, Any], sent: dict[str, Any]) -> float | None:
    """Payload bit/s that got through at least, over the intervals in a row that show most: of what the socket took in,
    the part may have stayed in the send buffer that was there at the end.
    """
    import numpy as np

    kept = max(0.0, float(sent.get("bytes") or 0) - float(arrived["bytes"]))
    took = np.array([one["seconds"] for one in intervals], dtype=float)
    taken = np.array([one["bits_per_second"] for one in intervals], dtype=float) * took / 8
    took, taken = _spans(took), _spans(taken)
    long = took > 0.5
    return float(((taken - kept)[long] * 8 / took[long]).max()) if long.any() else None


def _spans(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of parts in a row: from the one before each row to the one before each column."""
    import numpy as np

    total = np.concatenate([[0.0], np.cumsum(parts)])
    return np.asarray(total[None, :] - total[:, None])


def _limited(asked: dict[str, Any], goodput: float, streams: int) -> dict[str, float]:
    """A transfer that met the rate it was told to keep was limited by that, not by the path."""
    target = float(asked.get("target_bitrate") or 0) * streams
    return {"application": 1.0} if target and goodput >= TARGET_MET * target else {}
