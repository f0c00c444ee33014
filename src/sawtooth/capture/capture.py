"""Capture: the TCP connections of a pcap or pcapng file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth import _core
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import new_directory, write_json, writing
from sawtooth.io.displayable import Displayable
from sawtooth.io.untrusted import regular

if TYPE_CHECKING:
    from pandas import DataFrame

FIX = "give a pcap or pcapng file, plain or packed with gzip or Zstandard, or - for standard input"


@dataclass(frozen=True, repr=False)
class Capture(Displayable):
    """The analysis of a capture: ``facts`` (JSON values only) and tables; docs/reference/capture.md defines them all.

    ``segments`` and ``sacks`` are empty unless the capture was read with the index of a ``connection``.
    """

    path: str
    facts: dict[str, Any]
    series: DataFrame
    losses: DataFrame
    segments: DataFrame
    sacks: DataFrame
    connection: int | None = None

    @cached_property
    def connections(self) -> DataFrame:
        """One row per direction that carries data; nested facts have names with an underscore: ``rtt_base_s``. The
        sentences of ``verdict`` are in ``facts`` only."""
        import pandas as pd

        return pd.DataFrame([row for one in self.facts["connections"] for row in _rows(one)])

    @property
    def problems(self) -> list[str]:
        """Where the file is damaged, and what was left out."""
        return list(self.facts["problems"])

    def save(self, directory: Path | str) -> Path:
        """Writes ``facts.json`` and the tables as Parquet; the directory appears complete or not at all.

        Raises SawtoothError ``disk-full``, or ``unwritable-output`` (also if the directory exists: results are never
        overwritten).
        """
        target = Path(directory)
        tables = {"connections": self.connections, "series": self.series, "losses": self.losses}
        if self.connection is not None:
            tables |= {"segments": self.segments, "sacks": self.sacks}
        with new_directory(target) as aside:
            for name, table in tables.items():
                path = aside / f"{name}.parquet"
                with writing(path):
                    table.to_parquet(path, engine="pyarrow", compression="zstd", index=False)
            write_json(aside / "facts.json", self.facts)
        return target


def read_capture(
    path: str | PathLike[str],
    connection: int | None = None,
    *,
    progress: Callable[[int, int], object] | None = None,
) -> Capture:
    """Reads and analyzes a capture; ``-`` is standard input. ``connection`` is the index of one connection whose every
    segment you want.

    ``progress`` is called with the bytes read and the size of the file (0: unknown). A damaged file is analyzed up to
    the damage, which ``problems`` describes.

    Raises SawtoothError ``file-not-found``, ``file-unreadable``, ``not-a-capture`` or ``no-such-connection``.
    """
    import pandas as pd

    name = os.fspath(path)
    if name != "-":
        # Opening a named pipe would wait forever without a message.
        regular(name)
    try:
        text, tables = _core.read_capture(name, connection, progress)
    except OverflowError as error:
        message = f"there is no connection {connection}: they are counted from 0"
        raise InputError("no-such-connection", message, file=name, fix=f"list them: sawtooth capture {name}") from error
    except ValueError as error:
        raise _refused(error, name) from error
    facts = json.loads(text)
    if connection is not None and connection >= (found := len(facts["connections"])):
        message = f"there is no connection {connection}: the capture has {found}, counted from 0"
        raise InputError("no-such-connection", message, file=name, fix=f"list them: sawtooth capture {name}")
    frames = {kind: pd.DataFrame(tables.get(kind, {})) for kind in ("series", "losses", "segments", "sacks")}
    return Capture(name, facts, connection=connection, **frames)


def _refused(error: ValueError, name: str) -> SawtoothError:
    """The core's message is ``CODE: what is wrong``."""
    code, _, message = str(error).partition(": ")
    if code == "file-not-found":
        return InputError("file-not-found", message, file=name, fix=FIX)
    if code == "file-unreadable":
        return InputError("file-unreadable", message, file=name, fix=FIX)
    if code == "not-a-capture":
        return InputError("not-a-capture", message, file=name, fix=FIX)
    return SawtoothError("core-failed", str(error), file=name, fix="this is a defect of sawtooth: please report it")


def _rows(connection: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The directions of a connection that carry data, flattened."""
    common = _flat({name: value for name, value in connection.items() if name not in ("index", "directions")})
    for number, direction in enumerate(connection["directions"]):
        if "data_packets" in direction:
            direction = {name: value for name, value in direction.items() if name != "verdict"}
            yield {"connection": connection["index"], "direction": number} | common | _flat(direction)


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        flat |= _flat(value, f"{prefix}{name}_") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
