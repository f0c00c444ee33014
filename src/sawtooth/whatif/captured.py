"""What a capture says of one of its connections."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.capture.identify.captured import identify_capture
from sawtooth.capture.judgement import Judgement
from sawtooth.errors import InputError
from sawtooth.whatif import tracing
from sawtooth.whatif.identified import identified
from sawtooth.whatif.observed import Observed

if TYPE_CHECKING:
    from sawtooth.capture import Capture

_BETWEEN = 0.1
"""A capture point that is so far from both ends, of the whole round trip, is between them."""
NO_DATA_FIX = "capture a bulk transfer over TCP, at either end or between them"


def from_capture(path: str | Path, *, connection: int | None = None) -> Observed:
    """The connection of that index, or the one with the most bytes, in the direction that has more data.

    Raises SawtoothError: ``not-a-measurement`` (no connection carries data, or its acknowledgements are not there),
    ``no-such-connection``, and as ``sawtooth.read_capture``.
    """
    from sawtooth.capture import read_capture

    told = read_capture(path).facts["connections"]
    if connection is not None and not 0 <= connection < len(told):
        fix = f"choose 0 to {len(told) - 1}" if told else NO_DATA_FIX
        message = f"there is no connection {connection}"
        raise InputError("no-such-connection", message, file=path, field="connection", fix=fix)
    if connection is None:
        connection = max(range(len(told)), key=lambda at: _bytes(told[at]), default=None)
    if connection is None or not _bytes(told[connection]):
        message = "no TCP connection in this capture carries data"
        raise InputError("not-a-measurement", message, file=path, fix=NO_DATA_FIX)
    try:
        capture = read_capture(path, connection=connection)
        return dataclasses.replace(_observed(capture, connection), problems=tuple(capture.problems))
    except InputError as error:
        raise error.at(file=path) from None


def _bytes(told: dict[str, Any]) -> int:
    return max(int(one.get("payload_bytes", 0)) for one in told["directions"])


def _observed(capture: Capture, connection: int) -> Observed:
    told = capture.facts["connections"][connection]
    direction = max((0, 1), key=lambda at: told["directions"][at].get("payload_bytes", 0))
    facts, shaken = told["directions"][direction], told["handshake"]
    judged = Judgement(direction, facts)
    data, acks = tracing.tables(capture.segments, capture.sacks, direction)
    if not acks.ack.any():
        message = "the acknowledgements of this connection are not in the capture"
        raise InputError("not-a-measurement", message, fix="capture both directions")
    mss = int(facts["mss"])
    _, trips = tracing.round_trips(data, acks)
    back = tracing.echoes(data, acks)
    sender_side = not (back.size and trips.size) or back.min() < trips.min()
    halves = [shaken.get("rtt_client_s"), shaken.get("rtt_server_s")]
    beyond = halves[1 - direction] if shaken["seen"] else None
    if sender_side:
        trace = tracing.at_sender(data, acks, mss, math.inf if beyond is None else beyond)
    else:
        trace = tracing.at_receiver(data, acks, mss)
    both = sum(halves) if shaken["seen"] and None not in halves else None
    least = float(trips.min()) + (float(back.min()) if back.size else 0.0) if trips.size else facts["rtt"].get("base_s")
    if least is None and both is None:
        message = "this capture shows no round trip: neither the handshake nor data that is acknowledged"
        raise InputError("not-a-measurement", message, fix=NO_DATA_FIX)
    duration = float(facts["duration_s"])
    # From the capture point to the receiver and back; the sender's part is never shorter than this.
    nearer = float(back.min()) if back.size else 0.0
    ends = (told["client"], told["server"])
    where = "at the sender" if sender_side else "at the receiver"
    if least and trips.size and min(nearer, float(trips.min())) > _BETWEEN * least:
        where = f"between the ends, nearer {where[3:]}: losses behind that point may be missing"
    limited = {"application": judged.application, "receive window": judged.receive_window}
    cc, cc_how = identified(identify_capture(capture))
    return Observed(
        source="capture",
        what=f"connection {connection}, {ends[direction]} → {ends[1 - direction]}, seen {where}",
        goodput_bps=facts["goodput_bps"],
        duration_s=duration,
        from_start=bool(shaken["seen"]),
        since_data=True,
        cc=cc,
        cc_how=cc_how,
        mss=min(65400, max(48, mss)),
        timestamps=bool(data.tsval.any()),
        segments=judged.segments,
        retransmits=judged.retransmits,
        rtt_handshake_s=both,
        rtt_min_s=least if judged.round_trip is None else judged.round_trip["min_s"],
        rtt_full_s=least,
        rtt_mean_s=None if judged.round_trip is None else judged.round_trip["mean_s"],
        rtt_max_s=None if judged.round_trip is None else judged.round_trip["max_s"],
        window_bytes=int(facts["window_max_bytes"]) if facts.get("window_max_bytes") else None,
        limited={name: share for name, share in limited.items() if share > 0},
        trace=trace,
    )
