"""Reads one connection of a capture, and the path that the core estimates from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.capture.identify import Identification
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.errors import InputError
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.kinds import kinds
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Estimated
from sawtooth.whatif.replayable import identified
from sawtooth.whatif.signs import signs

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.capture import Capture

NO_DATA_FIX = "capture a bulk transfer over TCP, at either end or between them"
_LIMITS = {"application": "application", "receive_window": "receive window"}


def from_capture(path: str | Path, *, connection: int | None = None) -> Observed:
    """The connection with that index, or the one with most bytes, in the direction with more data.

    Raises SawtoothError: ``not-a-measurement`` (no connection carries data, or its acknowledgements are missing),
    ``no-such-connection``, and as ``sawtooth.read_capture`` does.
    """
    capture = read_transfer(path, connection=connection)
    try:
        return observed_in(capture, identify_capture(capture))
    except InputError as error:
        raise error.at(file=path) from None


def read_transfer(path: str | Path, *, connection: int | None = None) -> Capture:
    """The capture with every segment of that connection. Raises SawtoothError as ``from_capture`` does, except for
    missing acknowledgements."""
    from sawtooth.capture import read_capture

    connections = read_capture(path).facts["connections"]
    if connection is not None and not 0 <= connection < len(connections):
        fix = f"choose 0 to {len(connections) - 1}" if connections else NO_DATA_FIX
        message = f"there is no connection {connection}"
        raise InputError("no-such-connection", message, file=path, field="connection", fix=fix)
    if connection is None:
        connection = max(range(len(connections)), key=lambda at: _bytes(connections[at]), default=None)
    if connection is None or not _bytes(connections[connection]):
        message = "no TCP connection in this capture carries data"
        raise InputError("not-a-measurement", message, file=path, fix=NO_DATA_FIX)
    return read_capture(path, connection=connection)


def _bytes(connection: dict[str, Any]) -> int:
    return max(int(one.get("payload_bytes", 0)) for one in connection["directions"])


def observed_in(capture: Capture, control: Identification) -> Observed:
    """The transfer of the connection whose segments were read. Raises SawtoothError ``not-a-measurement`` if its
    acknowledgements are missing, ``too-short`` and ``application-limited``."""
    from sawtooth import _core

    connection = capture.connection
    assert connection is not None
    facts = capture.facts["connections"][connection]
    shown = json.loads(_core.capture_path(json.dumps(facts), _columns(capture.segments), _columns(capture.sacks)))
    if "Err" in shown:
        raise InputError(shown["Err"]["code"], shown["Err"]["message"], fix=shown["Err"]["fix"])
    seen, path = shown["Ok"]["seen"], shown["Ok"]["path"]
    ends = (facts["client"], facts["server"])
    sender, receiver = ends if seen["direction"] == 0 else ends[::-1]
    cc, cc_how = identified(control)
    same = ("goodput_bps", "duration_s", "from_start", "mss", "timestamps", "segments", "retransmits", "window_bytes")
    trips = ("rtt_handshake_s", "rtt_min_s", "rtt_mean_s", "rtt_max_s")
    observed = Observed(
        source="capture",
        what=f"connection {connection}, {sender} → {receiver}, seen {seen['place']}",
        since_data=True,
        cc=cc,
        cc_how=cc_how,
        limited={name: seen[field] for field, name in _LIMITS.items() if seen[field] > 0},
        path=_estimate(path["Ok"]) if "Ok" in path else None,
        problems=tuple(capture.problems),
        **{name: seen[name] for name in (*same, *trips)},
    )
    if observed.path is None or observed.goodput_bps is None:
        return observed
    direction = int(seen["direction"])
    losses = capture.losses[capture.losses["connection"] == connection]
    observed = replace(observed, signs=signs(facts["directions"][direction], capture.segments, losses, direction))
    return replace(observed, kinds=kinds(observed))


def _columns(table: DataFrame) -> dict[str, Any]:
    import numpy as np

    return {str(name): np.ascontiguousarray(column.to_numpy()) for name, column in table.items()}


def _estimate(path: dict[str, Any]) -> Estimate:
    quantities: dict[str, Any] = {
        name: Estimated(**path[name]) for name in ("rate", "rtt", "queue", "loss", "burst", "ack_loss")
    }
    return Estimate(
        **quantities,
        burst_loss=path["burst_loss"],
        delayed_ack=path["delayed_ack"],
        delayed_ack_how=path["delayed_ack_how"],
        window=None if path["window"] is None else Estimated(**path["window"]),
        by_replay=path["open_loss"],
        cannot_tell=tuple(path["cannot_tell"]),
    )
