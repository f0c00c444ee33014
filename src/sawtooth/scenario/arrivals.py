"""Transfers that come by themselves: a flow's ``source`` of kind ``arrivals``. A list of them is foreign text."""

from __future__ import annotations

import csv
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.foreign import decimal, read_bytes
from sawtooth.plain import plain
from sawtooth.scenario.part import Part
from sawtooth.scenario.ranges import between
from sawtooth.scenario.sizes import Sizes, lines_of, mean_bytes, version
from sawtooth.scenario.units import Loss, Rate, Span

MOST = 1_000_000
"""Transfers of a list."""
_LARGEST_FILE = 64 << 20
_LARGEST = 10**15
_LONGEST_S = 30 * 86_400
_SHORTEST_NS = 1_000
"""Between two, on average."""

Every = Annotated[Span, between("1 us", "1 h", Span)]


def _load(given: object) -> Rate | Loss:
    if isinstance(given, (Rate, Loss)):
        return given
    return Loss.parse(given) if isinstance(given, str) and given.rstrip().endswith("%") else Rate.parse(given)


Load = Annotated[Rate | Loss, PlainValidator(_load, json_schema_input_type=Rate | Loss), PlainSerializer(str)]


class Arrivals(Part):
    """Transfers that arrive over time, each over a new connection."""

    kind: Literal["arrivals"] = Field(description="`arrivals`")
    every: Every | None = Field(None, description="mean time between transfers; arrival times are random (Poisson)")
    load: Load | None = Field(
        None,
        description="instead of `every`: mean offered load, as a payload rate, or as a share such as `30%` of the "
        "slowest rate on the path; arrival times are random as well",
    )
    times: str | None = Field(
        None, description="instead of `every`: a CSV file with the column `t_s`, and `bytes` if `sizes` is absent"
    )
    sizes: Sizes | None = Field(None, description="size of a transfer: `10 kB`, or a table")
    open: int = Field(10_000, ge=1, le=100_000, description="most transfers open at once; later ones wait in order")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        given = [name for name in ("every", "load", "times") if getattr(self, name) is not None]
        if len(given) != 1:
            if given:
                both = " and ".join(given)
                fix = f"remove all but one of {both}"
                raise InputError("conflict", f"{both} exclude each other", field=given[1], fix=fix)
            message = "this source does not say when transfers start"
            fix = 'add one of every = "20 ms", load = "30%" or times = "transfers.csv"'
            raise InputError("missing-field", message, field="every", fix=fix)
        if self.times is not None:
            try:
                listed = read_transfers(self.times)
            except InputError as error:
                raise InputError(error.code, error.message, file=error.file, field="times", fix=error.fix) from None
            if listed.bytes and self.sizes is not None:
                message = "the file in times has the size of each transfer, so sizes would be ignored"
                raise InputError("conflict", message, field="sizes", fix="remove sizes")
            if listed.bytes:
                return self
        if self.sizes is None:
            message = "this source does not say how large transfers are"
            raise InputError("missing-field", message, field="sizes", fix='add sizes = "100 kB"')
        if isinstance(self.load, Loss) and not self.load.ppb:
            raise InputError(
                "out-of-range",
                "a load of 0% sends nothing",
                field="load",
                fix='write load = "30%", or remove the flow',
            )
        return self

    def compile(self, bottleneck_bps: int | None) -> compiled.Arrivals:
        """As engines take it. ``bottleneck_bps``: of the slowest transmitter on the way; None: there is none.

        Raises InputError ``conflict`` for a share of that, ``out-of-range`` for more than one in a microsecond.
        """
        sizes: compiled.Tagged = ("fixed", 0)
        if self.sizes is not None:
            sizes = ("fixed", self.sizes.bytes) if hasattr(self.sizes, "bytes") else self.sizes.compile()
        if self.times is not None:
            listed = read_transfers(self.times)
            return compiled.Arrivals(
                ("at_ns", listed.times_ns), ("each", listed.bytes) if listed.bytes else sizes, self.open
            )
        return compiled.Arrivals(("poisson_ns", self._mean_ns(bottleneck_bps)), sizes, self.open)

    def _mean_ns(self, bottleneck_bps: int | None) -> int:
        if self.every is not None:
            return self.every.ns
        assert self.load is not None
        assert self.sizes is not None
        if isinstance(self.load, Rate):
            load_bps = Fraction(self.load.bps)
        elif bottleneck_bps is not None:
            load_bps = Fraction(bottleneck_bps) * self.load.ppb / 10**9
        else:
            message = f'"{self.load}" is a share of a link\'s rate, and no link on this way has a rate'
            raise InputError("conflict", message, field="load", fix='write it as a rate: load = "30 Mbit/s"')
        mean_ns = round(Fraction(mean_bytes(self.sizes)) * 8 * 10**9 / load_bps)
        if not _SHORTEST_NS <= mean_ns <= _LONGEST_S * 10**9:
            message = f'"{self.load}" with these sizes starts a transfer every {mean_ns / 1e9:.3g} s'
            raise InputError(
                "out-of-range", message, field="load", fix="choose a load that starts a transfer every 1 us … 30 d"
            )
        return mean_ns


class Listed:
    """Transfers of a file: times in ns, in order, and bytes; none where the file has no such column."""

    def __init__(self, times_ns: tuple[int, ...], bytes: tuple[int, ...]) -> None:
        self.times_ns, self.bytes = times_ns, bytes


def read_transfers(name: str) -> Listed:
    """A list of transfers: CSV with the columns ``t_s`` and perhaps ``bytes``.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-transfers`` with the line.
    """
    return _read(name, version(name))


@lru_cache(maxsize=4)
def _read(path: str, version: object) -> Listed:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _listed(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = "give CSV with t_s, seconds since the flow's start in order, and bytes"
        raise InputError("bad-transfers", f"it is no list of transfers: {error}", file=path, fix=fix) from None


def _listed(lines: list[str]) -> Listed:
    if not lines:
        raise ValueError("it is empty")
    if len(lines) > MOST + 1:
        raise ValueError(f"more than {MOST:,} transfers")
    names = [name.strip() for name in lines[0].split(",")]
    if sorted(names) not in (["t_s"], ["bytes", "t_s"]):
        raise ValueError(f"line 1: its columns are '{plain(lines[0], 60)}', not t_s and bytes")
    if any('"' in line or "\0" in line for line in lines):
        raise ValueError("its fields are quoted")
    values: dict[str, list[int]] = {name: [] for name in names}
    before = 0
    for number, row in enumerate(csv.reader(lines[1:]), 2):
        if len(row) != len(names):
            raise ValueError(f"line {number} has {len(row)} fields, not {len(names)}")
        told = dict(
            zip(names, (_number(text, name, number) for name, text in zip(names, row, strict=True)), strict=True)
        )
        time = round(told["t_s"] * 10**9)
        if not 0 <= told["t_s"] <= _LONGEST_S:
            raise ValueError(f"line {number}: t_s is {told['t_s']:g}, not 0 … {_LONGEST_S}")
        if time < before:
            raise ValueError(f"line {number}: {told['t_s']:g} s is before the line above")
        before = time
        values["t_s"].append(time)
        if "bytes" in told:
            if told["bytes"] != int(told["bytes"]) or not 1 <= told["bytes"] <= _LARGEST:
                raise ValueError(f"line {number}: {told['bytes']:g} is no number of bytes from 1 on")
            values["bytes"].append(int(told["bytes"]))
    if not values["t_s"]:
        raise ValueError("it has no transfers")
    return Listed(tuple(values["t_s"]), tuple(values.get("bytes", ())))


def _number(text: str, name: str, line: int) -> float:
    if not text.strip():
        raise ValueError(f"line {line}: {name} is missing")
    try:
        return decimal(text.strip())
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
