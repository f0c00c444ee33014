"""The answers of the process that runs modules, as bytes. If a module writes into this stream, the answer becomes
unreadable, but nothing else happens.

An answer consists of two lengths (eight bytes each), a head in JSON, and the columns of its tables, one after the
other. Nothing is unpickled, so the bytes cannot execute code in the process that reads them.
"""

from __future__ import annotations

import json
import os
import select
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray

    Tables = Mapping[str, Mapping[str, ndarray[Any, Any]]]

_LENGTHS = struct.Struct("<QQ")
_MOST_HEAD = 16 << 20
_MOST_BODY = 1 << 30
_PART = 1 << 20
_TYPES = ("float64", "int64", "uint64")


def readable(descriptors: Sequence[int], timeout_s: float) -> bool:
    """Wait up to ``timeout_s`` until one of the descriptors can be read or has ended. False at the timeout."""
    # select() only supports descriptors below 1,024.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


class Garbled(Exception):
    """The bytes are not a valid answer."""


def packed(kind: str, value: Any, tables: Tables | None = None) -> bytes:
    """An answer as bytes: its kind, a JSON value, and optional tables of numbers."""
    columns = [(name, column, values) for name, table in (tables or {}).items() for column, values in table.items()]
    described = [(name, column, values.dtype.name, len(values)) for name, column, values in columns]
    head = json.dumps([kind, value, described]).encode()
    body = b"".join(values.tobytes() for _, _, values in columns)
    return _LENGTHS.pack(len(head), len(body)) + head + body


class Answers:
    """Reads answers from a descriptor without blocking."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._found = bytearray()

    def next(self) -> tuple[str, Any, dict[str, dict[str, ndarray[Any, Any]]]] | None:
        """The next answer: kind, value, tables. None if it is not complete yet.

        Raises Garbled, and EOFError if the writer has closed.
        """
        while (missing := self._missing()) and readable([self._descriptor], 0.0):
            part = os.read(self._descriptor, min(missing, _PART))
            if not part:
                raise EOFError
            self._found += part
        if missing:
            return None
        whole, self._found = bytes(self._found), bytearray()
        try:
            return _unpacked(whole)
        except (ValueError, TypeError, RecursionError) as error:
            raise Garbled(str(error)) from error

    def _missing(self) -> int:
        """Number of bytes missing from the current answer."""
        if len(self._found) < _LENGTHS.size:
            return _LENGTHS.size - len(self._found)
        head, body = _LENGTHS.unpack_from(self._found)
        if head > _MOST_HEAD or body > _MOST_BODY:
            raise Garbled("it claims to be too long")
        return int(_LENGTHS.size + head + body - len(self._found))


def _unpacked(whole: bytes) -> tuple[str, Any, dict[str, dict[str, ndarray[Any, Any]]]]:
    import numpy as np

    head, _ = _LENGTHS.unpack_from(whole)
    at = _LENGTHS.size + head
    kind, value, described = json.loads(whole[_LENGTHS.size : at])
    tables: dict[str, dict[str, ndarray[Any, Any]]] = {}
    for name, column, type_name, count in described:
        if type_name not in _TYPES or not isinstance(count, int) or count < 0:
            raise ValueError("a column is no column")
        # A writable copy, like the core's arrays.
        tables.setdefault(name, {})[column] = np.frombuffer(whole, type_name, count, at).copy()
        at += 8 * count
    if at != len(whole):
        raise ValueError("its columns have other lengths")
    return kind, value, tables
