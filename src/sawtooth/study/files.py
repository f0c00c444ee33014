"""What a scenario or study is read from: a regular file, or standard input."""

from __future__ import annotations

from os import PathLike
from typing import Any

from sawtooth.scenario.toml import read_toml

STDIN = "-"


def read_tables(path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file; ``-`` is standard input. Anything else that is no regular file is refused unread.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable`` or ``not-toml``.
    """
    return read_toml(path)
