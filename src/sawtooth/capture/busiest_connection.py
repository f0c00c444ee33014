"""Reads a capture with every segment of the connection that carries most of its data."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike

from sawtooth.capture.capture import Capture, read_capture
from sawtooth.errors import InputError


def read_busiest(path: str | PathLike[str], *, progress: Callable[[int, int], object] | None = None) -> Capture:
    """Reads a capture; twice only if its first connection is not the one with the most data.

    Raises as ``read_capture`` does, and InputError ``unsupported`` if standard input would be read twice.
    """
    capture = read_capture(path, 0, progress=progress)
    busiest = busiest_connection(capture)
    if busiest == 0:
        return capture
    if os.fspath(path) == "-":
        fix = f"add --connection {busiest}"
        message = "connection 0 does not carry the most data, and standard input can be read only once"
        raise InputError("unsupported", message, field="connection", fix=fix)
    return read_capture(path, busiest, progress=progress)


def busiest_connection(capture: Capture) -> int:
    """The index of the connection with the most bytes of data in both directions together; 0 if none carries data."""
    carried = [sum(way.get("payload_bytes", 0) for way in one["directions"]) for one in capture.facts["connections"]]
    return max(range(len(carried)), key=carried.__getitem__, default=0)
