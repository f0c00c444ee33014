"""The segments of a capture's connection in the form of the classifier; and identification of a file of either kind."""

from __future__ import annotations

from os import PathLike, fspath

import numpy as np

from sawtooth.capture.busiest_connection import read_busiest
from sawtooth.capture.capture import Capture, read_capture
from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify.classifier import Identification, identify
from sawtooth.capture.identify.trace import Segments
from sawtooth.capture.summary import Judgement

_COLUMNS = ("direction", "seq", "length", "ack", "flags", "tsval", "tsecr", "window")


def captured(capture: Capture) -> Segments:
    """The segments of a capture. Raises ValueError if it was read without a connection's segments."""
    table = capture.segments
    if capture.connection is None or table.empty:
        raise ValueError("the capture was read without a connection's segments: read_capture(path, connection)")
    columns = {name: table[name].to_numpy().astype(np.int64) for name in _COLUMNS}
    return Segments(t_s=table["t_s"].to_numpy(dtype=float), **columns).in_order()


def identify_capture(capture: Capture) -> Identification:
    """Identifies the connection whose segments were read. Raises ValueError if none were."""
    segments = captured(capture)
    assert capture.connection is not None
    return identify(segments, Judgement.of(capture.facts["connections"][capture.connection]))


def identify_file(path: str | PathLike[str], connection: int | None = None) -> Identification:
    """Identifies a capture's connection (default: the one with the most data) or that of a per-packet CSV
    (``csv.read_csv``).

    Raises SawtoothError as ``read_capture`` and ``read_csv`` do.
    """
    if fspath(path).endswith(".csv"):
        return identify(read_csv(fspath(path)))
    return identify_capture(read_busiest(path) if connection is None else read_capture(path, connection))
