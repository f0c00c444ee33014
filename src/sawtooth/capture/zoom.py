"""Zoom: the range of a connection's time that a picture shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sawtooth.errors import InputError
from sawtooth.scenario import Span


@dataclass(frozen=True)
class Zoom:
    """From ``start_s`` to ``end_s``, both in seconds since the connection's first segment (default: everything)."""

    start_s: float = 0.0
    end_s: float = math.inf

    @classmethod
    def parse(cls, text: str) -> Zoom:
        """Parses two times with units, ``"0s,0.75s"``; the second may be missing: ``"2 s,"``.

        Raises InputError ``bad-quantity``, ``missing-unit`` or ``unknown-unit``, and ``out-of-range`` if the end is not
        after the start.
        """
        start, comma, end = text.partition(",")
        if not comma:
            fix = 'write the start and the end to show, like "0s,0.75s"'
            raise InputError("bad-quantity", f'"{text}" is not two times with a comma between', field="zoom", fix=fix)
        try:
            zoom = cls(
                Span.parse(start.strip()).seconds if start.strip() else 0.0,
                Span.parse(end.strip()).seconds if end.strip() else math.inf,
            )
        except InputError as error:
            raise error.at(field="zoom") from error
        if zoom.end_s <= zoom.start_s:
            fix = 'write the earlier time first, like "0s,0.75s"'
            raise InputError("out-of-range", f'"{text}" ends before it starts', field="zoom", fix=fix)
        return zoom
