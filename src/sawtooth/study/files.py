"""Reads a scenario or study from a regular file or from standard input."""

from __future__ import annotations

from os import PathLike
from typing import Any

from sawtooth.scenario.toml import read_toml

STDIN = "-"


def read_tables(path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file; ``-`` is standard input. Anything that is not a regular file is refused unread.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable`` or ``not-toml``.
    """
    return read_toml(path)
