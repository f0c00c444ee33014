"""Names that a scenario file gives."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from sawtooth.errors import InputError
from sawtooth.plain import is_plain, plain


def _not_a_number(value: str) -> str:
    if value.isdigit():
        fix = f'begin it with a letter, like "n{value}": flows.0 means the first flow'
        raise InputError("bad-name", f'a name made of digits only, "{value}", would be read as a position', fix=fix)
    return value


def one_line(value: str) -> str:
    """Refuses what a terminal would not show as letters on one line."""
    if not is_plain(value):
        message = f'"{plain(value, 60)}" has characters that steer a terminal'
        raise InputError("bad-name", message, fix="leave out control characters, line ends and marks of direction")
    return value


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+-]{1,40}$"), AfterValidator(_not_a_number)]
"""Letters, digits, ``_``, ``+`` and ``-``, at most 40."""
End = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_+-]{1,40}|[sr]\*)$")]
"""A host's name; on a dumbbell also ``s*`` or ``r*``."""
