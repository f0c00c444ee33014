"""Reads RTT series from files, and recognizes the program that wrote them."""

from __future__ import annotations

from pathlib import Path

from sawtooth.errors import InputError
from sawtooth.io.atomic_io import ASIDE
from sawtooth.io.untrusted import read_bytes
from sawtooth.link_estimate.inputs import atlas, csv, ping, run, scamper
from sawtooth.link_estimate.inputs.record import Record, bad, records
from sawtooth.link_estimate.series import RttSeries
from sawtooth.run import is_saved

__all__ = ["LARGEST", "load_series", "read_series"]

LARGEST = 1 << 30
"""Bytes of a file: about a month of probes every 100 ms."""


def read_series(path: str | Path, *, pace_s: float | None = None) -> list[RttSeries]:
    """The series in a file: the prober's output, the output of ping (iputils, BusyBox, macOS), ping results of scamper
    (JSON, by sc_warts2json) or RIPE Atlas, CSV with units in its header, or a saved run with probes.

    "-" is standard input. ``pace_s`` is the time between probes if the file lacks it: ping without -D, CSV without
    times. Returns one series per probed target, in the order of the file.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``not-a-series`` naming the line, ``missing-unit``
    for a CSV column without one, ``missing-field`` if a pace is required, ``not-a-result`` for a directory.
    """
    if pace_s is not None and not 0 < pace_s < 1e6:
        raise InputError(
            "out-of-range", f"a pace of {pace_s:g} s is not possible", field="pace", fix='write one like "100 ms"'
        )
    if str(path) != "-" and (Path(path).is_dir() or is_saved(Path(path))):
        return run.read(Path(path))
    text = _text(path)
    try:
        return _read(text, str(path), pace_s)
    except InputError as error:
        raise error.at(file=path) from None


def load_series(path: str | Path) -> RttSeries:
    """The single series in a file of any kind that ``read_series`` supports.

    Raises SawtoothError as ``read_series`` does, and ``not-a-series`` if there are several.
    """
    found = read_series(path)
    if len(found) > 1:
        labels = ", ".join(one.label for one in found[:8])
        fix = "call read_series, and choose one of them"
        raise InputError("not-a-series", f"it has {len(found)} series: {labels}", file=path, fix=fix)
    return found[0]


def _read(text: str, source: str, pace_s: float | None) -> list[RttSeries]:
    start = text.lstrip("\ufeff \t\r\n")
    if not start:
        raise bad("it is empty")
    if ping.is_ping(text):
        return ping.read(text, source, pace_s)
    if start[0] in "{[":
        found = records(text)
        if any(_is_atlas(one) for one in found):
            return atlas.read(found, source)
        return scamper.read(found, source)
    return csv.read(text, source, pace_s)


def _is_atlas(record: Record) -> bool:
    return "prb_id" in record.values or "msm_id" in record.values


def _text(path: str | Path) -> str:
    content = read_bytes(path, LARGEST)
    if len(content) > LARGEST:
        raise bad("it is larger than 1 GiB").at(file=path)
    if str(path).endswith(ASIDE):
        fix = "wait until its prober has ended; after a crash, remove its last line if it is incomplete, and rename it"
        raise InputError("not-a-series", "it is not finished", file=path, fix=fix)
    if b"\0" in content:
        raise bad("it is not text").at(file=path)
    return content.decode(errors="replace")
