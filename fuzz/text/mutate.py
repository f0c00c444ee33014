"""Mutations: what damage, age and malice do to a text. The same ``random.Random`` gives the same mutations."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[A-Za-z_]+|[0-9]+(?:\.[0-9]+)?|\s+|.', re.DOTALL)
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
NUMBERS = (
    *(b"0", b"-0", b"1", b"-1", b"0.1", b"-0.5", b"2", b"255", b"256", b"65535", b"65536", b"1e-9", b"1e9", b"1e18"),
    *(b"2147483648", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1e21", b"1e22", b"1e-320"),
    *(b"1e308", b"-1e308", b"1e309", b"1e999", b"nan", b"NaN", b"inf", b"Infinity", b"-Infinity", b"1_000", b"0x10"),
    *(b"9" * 30, b"9" * 400, b"9" * 5000, b"0." + b"0" * 400 + b"1", "٣".encode(), b"", b"1.2.3", b"+5", b"1e", b"--1"),
)
WORDS = (
    *(b"", b"null", b"true", b"false", b"{}", b"[]", b'""', b"*", b".", b"..", b"-", b"#", b"=", b"\\", b"\n", b"\r\n"),
    *(b"\x00", b"\x1b[2J", b"\xff\xfe", "\u202e".encode(), "\x85".encode(), "\ufeff".encode(), b"\\u0000", b"\\ud800"),
    *(
        b"'''",
        b'"""',
        b"[[",
        b"]]",
        b"%s%n",
        b"a" * 300,
        b"a" * 5000,
        b"../../../etc/passwd",
        b"__class__",
        b" ",
        b"\t",
    ),
)
_JSON: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.5, 1e-9, 1e18, 1e21, 1e308, 2**63, 2**64, 10**30, "", "x", "1", "\x1b[2J"),
    *("\u202e\n", "a" * 5000, [], {}, [[]], [{}], [1e308, 1e308], {"": 0}, float("nan"), float("inf")),
)
_DEEP = 3000
_LARGEST = 300_000


def mutated(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """One of ``seeds`` after a few mutations."""
    text = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        text = rng.choice(_KINDS)(rng, text, seeds)[:_LARGEST]
    return text


def _span(rng: Random, text: bytes) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 2, 4, 10, 40, 200)))


def _flip(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    if not text:
        return b"\x00"
    at = rng.randrange(len(text))
    return text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]


def _remove(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(rng, text)
    return text[:start] + text[end:]


def _cut(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    return text[: rng.randrange(len(text) + 1)]


def _repeat(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(rng, text)
    return text[:end] + text[start:end] * rng.choice((1, 2, 10, 300, 3000)) + text[end:]


def _splice(rng: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    start, end = _span(rng, other)
    at = rng.randrange(len(text) + 1)
    return text[:at] + other[start:end] + text[at:]


def _token(rng: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    """Replaces one token: by another of the text, one of another seed, or one that often breaks readers."""
    tokens = list(_TOKEN.finditer(text[:50_000]))
    if not tokens:
        return rng.choice(WORDS)
    chosen = rng.choice(tokens)
    other = rng.choice((rng.choice(tokens)[0], rng.choice(WORDS), rng.choice(NUMBERS), _another(rng, seeds)))
    return text[: chosen.start()] + other + text[chosen.end() :]


def _another(rng: Random, seeds: Sequence[bytes]) -> bytes:
    found = _TOKEN.findall(rng.choice(seeds)[:20_000])
    return rng.choice(found) if found else b""


def _number(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    found = list(_NUMBER.finditer(text[:100_000]))
    if not found:
        return text + rng.choice(NUMBERS)
    chosen = rng.choice(found)
    return text[: chosen.start()] + rng.choice(NUMBERS) + text[chosen.end() :]


def _line(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    lines = text.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at : at + 1] = [lines[at]] * rng.choice((2, 5, 50, 1000))
    return b"\n".join(lines)


def _nest(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(text) + 1)
    opened, closed = rng.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"{a=", b"}"), (b"a.", b""), (b"(", b")"), (b'"', b'"'))
    )
    times = rng.choice((2, 20, _DEEP))
    return text[:at] + opened * times + b"1" + closed * rng.choice((times, 0, times - 1)) + text[at:]


def _json(rng: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    """Replaces, removes or duplicates a value somewhere in a JSON text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _token(rng, text, [text])
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(places) < 5000:
        one = waiting.pop()
        inside = list(one.items()) if isinstance(one, dict) else list(enumerate(one)) if isinstance(one, list) else []
        places += [(one, key) for key, _ in inside]
        waiting += [part for _, part in inside]
    if not places:
        return text
    holder, key = rng.choice(places)
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice((1, 3, 500))
        case 2:
            source, other = rng.choice(places)
            found = source[other] if other in source or (isinstance(other, int) and other < len(source)) else None
            # Excludes itself, which would recurse without end.
            holder[key] = json.loads(json.dumps(found))
        case _:
            holder[key] = rng.choice(_JSON)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")


_KINDS = (
    *(_flip, _remove, _cut, _repeat, _splice, _nest),
    *(_token, _token, _token, _number, _number, _number, _line, _line, _json, _json, _json),
)
