"""Reading a TOML file, with every way that it can fail said plainly."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError, nearest
from sawtooth.storage import regular

_LARGEST = 10 * 1024 * 1024
STDIN = "/dev/stdin"


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file. Raises SawtoothError: ``file-not-found``, ``file-unreadable`` or ``not-toml``."""
    if str(path) != STDIN:
        regular(path)
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        fix = _near_file(Path(path)) or "check the name and the directory"
        raise InputError("file-not-found", "there is no such file", file=path, fix=fix) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError("file-unreadable", f"cannot read it: {why}", file=path, fix="give a readable file") from None
    if len(data) > _LARGEST:
        fix = "is it really a scenario or study?"
        raise InputError("file-unreadable", "it is larger than 10 MiB", file=path, fix=fix)
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        message = f"it is not UTF-8 text (byte {error.start})"
        raise InputError("not-toml", message, file=path, fix="save it as UTF-8") from None
    except ValueError as error:
        fix = 'text is quoted: rtt = "20 ms"'
        raise InputError("not-toml", f"it is not TOML: {error}", file=path, fix=fix) from None
    except RecursionError:
        raise InputError("not-toml", "it is nested too deeply", file=path, fix="use plain tables") from None


def _near_file(path: Path) -> str | None:
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.suffix == ".toml"]
    except (OSError, ValueError):
        return None
    near = nearest(path.name, beside)
    return f'did you mean "{path.parent / near}"?' if near else None
