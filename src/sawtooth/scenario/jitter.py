"""Jitter: how a packet's delay deviates; by a distribution's name, or by a file, foreign text that is read strictly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.foreign import read_bytes
from sawtooth.plain import plain
from sawtooth.scenario.sizes import lines_of, version
from sawtooth.scenario.units import Loss, Span
from sawtooth.scenario.varying import NONE, Short, of_text

_DEVIATIONS = 4096
"""Entries of a table, as of netem's own."""
_SCALE = 8192
_SHAPE = 3
"""Of the Pareto distribution: its deviation is finite, its third moment is not."""
_MOST_DEVIATIONS = 16 * 1024
"""As netem takes."""
_LARGEST_FILE = 1024 * 1024
"""Bytes."""
_LOWEST, _HIGHEST = -(2**15), 2**15 - 1


class Jitter(Short):
    """Random deviation of each packet's delay (tc-netem's `delay TIME JITTER`), never below no delay."""

    deviation: Span = Field(description="standard deviation; for `uniform`, the largest deviation")
    distribution: Literal["uniform", "normal", "pareto", "paretonormal", "table"] = Field(
        "uniform", description="`pareto` has a long tail; `paretonormal` is a quarter normal and three quarters pareto"
    )
    table: str | None = Field(
        None,
        description="for distribution `table`: a file like tc-netem's `.dist`, whole numbers in 1/8192 of `deviation` "
        "with equal probability",
    )
    correlation: Loss = Field(NONE, description="correlation of each draw with the previous one")
    ordered: bool = Field(
        True, description="keep the packets in order; false: each has an independent delay, as in netem"
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.distribution == "table" and self.table is None:
            raise InputError(
                "missing-field",
                'distribution = "table" needs a file',
                field="table",
                fix='write table = "measured.dist"',
            )
        if self.table is None:
            return self
        if self.distribution != "table":
            message = f'a table replaces the distribution, so it conflicts with "{self.distribution}"'
            raise InputError("conflict", message, field="table", fix='remove table, or write distribution = "table"')
        try:
            read_deviations(self.table)
        except InputError as error:
            raise InputError(error.code, error.message, file=error.file, field="table", fix=error.fix) from None
        return self

    def compile(self) -> compiled.Jitter:
        found = deviations(self.distribution) if self.table is None else read_deviations(self.table)
        return compiled.Jitter(self.deviation.ns, found, self.correlation.ppb, self.ordered)


JitterModel = Annotated[Jitter, of_text("deviation")]


@cache
def deviations(distribution: str) -> tuple[int, ...]:
    """Deviations of 4096 equal chances, in 1/8192 of the standard deviation; none for ``uniform``.

    By the inverse of each distribution, with mean 0 and deviation 1; then cut to 16 bits, four deviations, as netem's
    are, which takes a quarter from the deviation of ``pareto``.
    """
    if distribution == "uniform":
        return ()
    chances = [(number + 0.5) / _DEVIATIONS for number in range(_DEVIATIONS)]
    normal = _standard([NormalDist().inv_cdf(chance) for chance in chances])
    pareto = _standard([(1 - chance) ** (-1 / _SHAPE) for chance in chances])
    mixed = _standard([(one + 3 * other) / 4 for one, other in zip(normal, pareto, strict=True)])
    values = {"normal": normal, "pareto": pareto, "paretonormal": mixed}[distribution]
    return tuple(max(_LOWEST, min(_HIGHEST, round(value * _SCALE))) for value in values)


def _standard(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return [(value - mean) / deviation for value in values]


def read_deviations(name: str) -> tuple[int, ...]:
    """Deviations of equal chances, in 1/8192 of the standard deviation, by a file as tc-netem's: whole numbers between
    white space, ``#`` before what is no number.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-table`` with the line.
    """
    return _read(name, version(name))


@lru_cache(maxsize=16)
def _read(path: str, version: object) -> tuple[int, ...]:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _numbers(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = f"give whole numbers from {_LOWEST} to {_HIGHEST}, as netem's tables have"
        raise InputError("bad-table", f"it is no table of deviations: {error}", file=path, fix=fix) from None


def _numbers(lines: Sequence[str]) -> tuple[int, ...]:
    found: list[int] = []
    for number, line in enumerate(lines, 1):
        for text in line.partition("#")[0].split():
            digits = text.removeprefix("-")
            whole = digits.isascii() and digits.isdigit() and len(digits) <= 5
            if not whole or not _LOWEST <= int(text) <= _HIGHEST:
                raise ValueError(f"line {number}: {plain(text, 40)} is no whole number of 16 bits")
            found.append(int(text))
        if len(found) > _MOST_DEVIATIONS:
            raise ValueError(f"more than {_MOST_DEVIATIONS} numbers")
    if not found:
        raise ValueError("it has no numbers")
    return tuple(found)
