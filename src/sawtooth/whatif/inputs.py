"""Recognizes an input and reads it: a capture, iperf3's JSON or the text of ss."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError
from sawtooth.io.untrusted import json_value, read_bytes, regular
from sawtooth.sanitize import plain
from sawtooth.whatif.observation import Observed

CAPTURES = (
    *(bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")),
    b"\x1f\x8b",
    bytes.fromhex("28b52ffd"),
)
"""First bytes of pcap (both orders, µs and ns), pcapng, gzip and Zstandard."""
LARGEST_TEXT = 64 * 1024 * 1024
_FIX = "give a capture (pcap, pcapng), what iperf3 -J printed, or what ss -tin printed"


def observe(path: str | Path, *, connection: str | None = None) -> Observed:
    """Reads a measurement from a file; "-" is standard input. ``connection`` selects one: the index in a capture, or
    part of the addresses in ss's output.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``not-a-measurement``, ``unknown-name``,
    ``no-such-connection``, ``bad-usage``, ``application-limited``, and as ``sawtooth.read_capture`` does.
    """
    with readable(str(path)) as file:
        try:
            with open(file, "rb") as opened:
                first = opened.read(4)
                if first.startswith(CAPTURES):
                    return _capture(file, connection)
            content = read_bytes(file, LARGEST_TEXT)
        except FileNotFoundError:
            fix = "check the name and the directory"
            raise InputError("file-not-found", "there is no such file", file=path, fix=fix) from None
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            why = getattr(error, "strerror", None) or str(error)
            raise InputError(
                "file-unreadable", f"cannot read it: {why}", file=path, fix="make it readable, or give another file"
            ) from None
        if len(content) > LARGEST_TEXT:
            raise InputError("not-a-measurement", "it is text of more than 64 MiB", file=path, fix=_FIX)
        try:
            return _text(content.decode(errors="replace"), connection)
        except InputError as error:
            raise error.at(file=path) from None


def _text(content: str, connection: str | None) -> Observed:
    from sawtooth.whatif.iperf3 import from_iperf3
    from sawtooth.whatif.ss import from_ss

    if not content.lstrip().startswith("{"):
        return from_ss(content, connection=connection)
    if connection is not None:
        message = "an iperf3 report is of one test: there is no connection to choose"
        raise InputError("bad-usage", message, field="connection", fix="remove --connection")
    return from_iperf3(_json(content))


def _json(content: str) -> Any:
    try:
        return json_value(content)
    except ValueError as error:
        what = "this is not whole JSON" if isinstance(error, json.JSONDecodeError) else "this JSON cannot be read"
        message = f"{what}: {error}"
        raise InputError("not-a-measurement", message, fix=_FIX) from None


def _capture(path: str, connection: str | None) -> Observed:
    from sawtooth.whatif.from_capture import from_capture

    if connection is not None and not (connection.isdecimal() and len(connection) < 10):
        message = f'"{plain(connection, 60)}" is not the index of a connection'
        raise InputError(
            "bad-usage", message, field="connection", fix="give its index, like --connection 0 for the first"
        )
    return from_capture(path, connection=None if connection is None else int(connection))


@contextmanager
def readable(path: str) -> Iterator[str]:
    """A name that can be opened more than once: standard input is first copied to a file."""
    if path != "-":
        regular(path)
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="sawtooth-", suffix=".input") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield file.name
