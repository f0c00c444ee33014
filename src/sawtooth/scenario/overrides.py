"""Sets fields by dotted path, as ``--set`` and the axes of a study do.

``path.rtt`` is a field; ``host.hz`` all hosts'; ``hosts.h1.hz`` one host's; ``flows.cc`` every flow's that has one;
``flows.0.cc`` the first's; ``flows.NAME.cc`` and ``links.NAME.loss`` by name.
"""

from __future__ import annotations

from typing import Any

from sawtooth.errors import InputError
from sawtooth.sanitize import plain
from sawtooth.scenario.toml import parse_toml


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parses ``KEY=VALUE`` from the command line. VALUE is TOML if it is valid TOML (``3``, ``true``, ``["a"]``), else
    text. A kernel's name is text also if it looks like a number (``host.kernel=6.10``), but not in a list, where it
    needs quotes.

    Raises SawtoothError ``bad-override``.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes of the command line, as Python has them.
        fix = "type it anew, without bytes of another encoding"
        raise InputError("bad-override", f'"{plain(text, 80)}" is not UTF-8', field="--set", fix=fix) from None
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(
            "bad-override",
            f'"{plain(text, 80)}" is not FIELD=VALUE',
            field="--set",
            fix='write it like path.rtt="140 ms"',
        )
    key, value = key.strip(), value.strip()
    read = parse_value(value)
    # As a number, 6.10 would be 6.1. A bool is no name.
    is_name = key.rpartition(".")[2] == "kernel" and type(read) in (int, float)
    return key, value if is_name else read


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself."""
    try:
        read = parse_toml(f"value = {text}")
    except InputError:
        return text
    return read["value"] if list(read) == ["value"] else text
