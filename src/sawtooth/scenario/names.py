"""Text from a user that a terminal shows."""

from __future__ import annotations

from sawtooth.errors import InputError
from sawtooth.sanitize import is_plain, plain


def one_line(value: str) -> str:
    """Refuses text that a terminal would not show as printable characters on one line."""
    if not is_plain(value):
        message = f'"{plain(value, 60)}" has characters that steer a terminal'
        raise InputError("bad-name", message, fix="leave out control characters, line ends and marks of direction")
    return value
