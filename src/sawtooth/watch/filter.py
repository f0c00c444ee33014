"""The filter: which connections are shown, in the syntax of ss.

dst 192.0.2.0/24 and ( dport = :443 or port 80 ) and not cc bbr
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sawtooth.errors import InputError, suggestion
from sawtooth.sanitize import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sawtooth.watch.sample import Sample

Holders = Callable[["Sample"], Sequence[str]]
"""Process names for the sockets of a sample."""
Condition = Callable[["Sample", Holders], "NDArray[np.bool_]"]
WORDS = ("src", "dst", "sport", "dport", "port", "process", "cc", "state", "not", "(")
_TOKEN = re.compile(r"[()!]|[^\s()!]+")
_COMPARED: dict[str, Callable[[NDArray[np.int64], int], NDArray[np.bool_]]] = {
    "=": lambda ports, one: ports == one,
    "==": lambda ports, one: ports == one,
    "eq": lambda ports, one: ports == one,
    "!=": lambda ports, one: ports != one,
    "ne": lambda ports, one: ports != one,
    ">": lambda ports, one: ports > one,
    "gt": lambda ports, one: ports > one,
    "<": lambda ports, one: ports < one,
    "lt": lambda ports, one: ports < one,
    ">=": lambda ports, one: ports >= one,
    "ge": lambda ports, one: ports >= one,
    "<=": lambda ports, one: ports <= one,
    "le": lambda ports, one: ports <= one,
}
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
"""IPv4 addresses mapped into IPv6."""
_JOINS = ("and", "&", "&&", "or", "|", "||")
_MOST_WORDS = 200
_FIX = "use the words of ss: dst 192.0.2.0/24, dport = :443, port 443, process NAME, cc cubic, and, or, not, ( )"


def condition(text: str) -> Condition:
    """Parse a filter. Raises SawtoothError ``bad-usage``, ``unknown-name``, ``out-of-range``."""
    words = _TOKEN.findall(text)
    if not words:
        return lambda sample, _: np.ones(len(sample), bool)
    if len(words) > _MOST_WORDS:
        raise _wrong(f"it has more than {_MOST_WORDS} words")
    reader = _Reader(words)
    found = reader.either()
    if reader.next is not None:
        raise _wrong(f'"{plain(reader.next, 40)}" is one too many')
    return found


def _wrong(message: str) -> InputError:
    return InputError("bad-usage", message, field="FILTER", fix=_FIX)


class _Reader:
    """Parser with the precedence of ss: not, and, or. Terms without an operator between them are joined by and."""

    def __init__(self, words: list[str]) -> None:
        self._words, self._at = words, 0

    @property
    def next(self) -> str | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def take(self, what: str) -> str:
        if self.next is None:
            raise _wrong(f"{what} is missing at its end")
        self._at += 1
        return self._words[self._at - 1]

    def either(self) -> Condition:
        left = self.both()
        while self.next in ("or", "|", "||"):
            self.take("or")
            left = _or(left, self.both())
        return left

    def both(self) -> Condition:
        left = self.one()
        while self.next not in (None, ")", "or", "|", "||"):
            if self.next in ("and", "&", "&&"):
                self.take("and")
            left = _and(left, self.one())
        return left

    def one(self) -> Condition:
        word = self.take("a condition")
        if word in ("not", "!"):
            return _not(self.one())
        if word == "(":
            found = self.either()
            if self.next != ")":
                raise _wrong("a bracket is not closed")
            self.take(")")
            return found
        if word in ("src", "dst"):
            if self.next in ("=", "==", "eq"):
                self.take("=")
            return _address(word, self.take("an address"))
        if word in ("sport", "dport", "port"):
            compare = _COMPARED[self.take("=")] if self.next in _COMPARED else _COMPARED["="]
            return _port(word, compare, self.take("a port"))
        if word in ("process", "cc", "state"):
            if self.next in ("=", "==", "eq"):
                self.take("=")
            return {"process": _process, "cc": _control, "state": _state}[word](self.take(f"the {word}"))
        if word in (*_JOINS, ")"):
            raise _wrong(f'a condition is missing before "{word}"')
        raise InputError(
            "unknown-name",
            f'"{plain(word, 40)}" is not a word of a filter',
            field="FILTER",
            fix=suggestion(word, WORDS),
        )


def _or(left: Condition, right: Condition) -> Condition:
    return lambda sample, holders: left(sample, holders) | right(sample, holders)


def _and(left: Condition, right: Condition) -> Condition:
    return lambda sample, holders: left(sample, holders) & right(sample, holders)


def _not(inner: Condition) -> Condition:
    return lambda sample, holders: ~inner(sample, holders)


def _address(end: str, text: str) -> Condition:
    address, port = text, None
    bracketed = re.fullmatch(r"\[([^]]*)\](?::(\S+))?", text)
    if bracketed:
        address, port = bracketed[1], bracketed[2]
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
    ports = None if port in (None, "", "*") else _port({"src": "sport", "dst": "dport"}[end], _COMPARED["="], str(port))
    if address in ("", "*"):
        return ports if ports is not None else (lambda sample, _: np.ones(len(sample), bool))
    try:
        network = ipaddress.ip_network(address, strict=False)
    except ValueError:
        message = f'"{plain(address, 60)}" is not an address or prefix; names are not resolved'
        raise InputError(
            "bad-usage", message, field="FILTER", fix="write it as 192.0.2.0/24 or 2001:db8::/32"
        ) from None
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        # ss writes an IPv4 address of an IPv6 socket in this form.
        network = ipaddress.IPv4Network((network.network_address.packed[12:], network.prefixlen - 96))
    if isinstance(network, ipaddress.IPv4Network):
        first, length, family = b"\0" * 10 + b"\xff\xff" + network.network_address.packed, 96 + network.prefixlen, 4
    else:
        first, length, family = network.network_address.packed, network.prefixlen, 6
    mask = np.frombuffer(((((1 << length) - 1) << (128 - length)) if length else 0).to_bytes(16, "big"), np.uint8)
    wanted = np.frombuffer(first, np.uint8) & mask

    def inside(sample: Sample, _: Holders) -> NDArray[np.bool_]:
        whole = _sixteen(sample, end)
        mapped = (whole[:, :12] == np.frombuffer(b"\0" * 10 + b"\xff\xff", np.uint8)).all(axis=1)
        of_family = mapped if family == 4 else ~mapped
        found: NDArray[np.bool_] = of_family & ((whole & mask) == wanted).all(axis=1)
        return found

    if ports is None:
        return inside
    return _and(inside, ports)


def _sixteen(sample: Sample, end: str) -> NDArray[np.uint8]:
    """Addresses of one end as 16 bytes; IPv4 addresses are mapped into IPv6."""
    addresses = sample.sockets[end].copy()
    ipv4 = sample.sockets["family"] == socket.AF_INET
    addresses[ipv4, 12:] = addresses[ipv4, :4]
    addresses[ipv4, :10], addresses[ipv4, 10:12] = 0, 0xFF
    return addresses


def _port(word: str, compare: Callable[[NDArray[np.int64], int], NDArray[np.bool_]], text: str) -> Condition:
    digits = text.removeprefix(":")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 5:
        try:
            number = socket.getservbyname(digits, "tcp")
        except (OSError, ValueError):
            message = f'"{plain(text, 40)}" is not a port'
            raise InputError(
                "bad-usage", message, field="FILTER", fix="write :443, or a name of /etc/services"
            ) from None
    else:
        number = int(digits)
    if number > 65535:
        raise InputError("out-of-range", f"{number} is not a port", field="FILTER", fix="choose a port from 0 to 65535")
    ends = ("sport", "dport") if word == "port" else (word,)

    def having(sample: Sample, _: Holders) -> NDArray[np.bool_]:
        found = [compare(sample.sockets[one].astype(np.int64), number) for one in ends]
        either: NDArray[np.bool_] = np.logical_or.reduce(found)
        return either

    return having


def _process(name: str) -> Condition:
    return lambda sample, holders: np.array([name in holder for holder in holders(sample)], bool)


def _control(name: str) -> Condition:
    return lambda sample, _: sample.cc == name.encode(errors="replace")


def _state(name: str) -> Condition:
    from sawtooth.watch.layout import STATES

    known = {state.lower(): number for number, state in STATES.items()} | {"established": 1, "connected": 1}
    number = known.get(name.lower())
    if number is None:
        message = f'"{plain(name, 40)}" is not a state of a connection'
        raise InputError("unknown-name", message, field="FILTER", fix=suggestion(name, known))
    return lambda sample, _: sample.sockets["state"] == number
