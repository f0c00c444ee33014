"""Sizes of transfers: one for all, or a distribution; what a file says of one is foreign text, read strictly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from sawtooth import compiled
from sawtooth.errors import InputError
from sawtooth.foreign import decimal, read_bytes
from sawtooth.plain import plain
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import of_kind
from sawtooth.scenario.ranges import between
from sawtooth.scenario.units import Size

MOST_POINTS = 100_000
"""Of a distribution."""
_LARGEST_FILE = 16 << 20
_LARGEST = 10**15
"""Bytes of a transfer."""
_PPB = 10**9
_EXAMPLE = 'sizes = "10 kB", or sizes = { kind = "lognormal", mean = "100 kB", sigma = 1 }'

Bytes = Annotated[Size, between("1 byte", "1000 TB", Size)]


class Lognormal(Part):
    """Log-normal sizes."""

    kind: Literal["lognormal"] = Field(description="`lognormal`")
    mean: Bytes = Field(description="mean size")
    sigma: float = Field(
        ge=0, le=5, description="standard deviation of the natural logarithm; 0: every size is the mean"
    )

    @property
    def mean_bytes(self) -> float:
        """Of the sizes."""
        return float(self.mean.bytes)

    def compile(self) -> compiled.Tagged:
        """As engines take it."""
        return "lognormal", {"mean_bytes": self.mean.bytes, "sigma_ppb": round(self.sigma * _PPB)}


class Pareto(Part):
    """Sizes with a long tail: a Pareto distribution cut at both ends."""

    kind: Literal["pareto"] = Field(description="`pareto`")
    least: Bytes = Field(description="smallest size")
    most: Bytes = Field(description="largest size")
    shape: float = Field(ge=0.01, le=100, description="shape parameter; the smaller, the longer the tail")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.least > self.most:
            message = f'"{self.least}" is more than the most, "{self.most}"'
            raise InputError("out-of-range", message, field="least", fix="swap least and most")
        return self

    @property
    def mean_bytes(self) -> float:
        """Of the sizes."""
        low, high, shape = self.least.bytes, self.most.bytes, self.shape
        if low == high:
            return float(low)
        share = 1 - (low / high) ** shape
        if math.isclose(shape, 1, abs_tol=1e-9):
            return float(low * math.log(high / low) / share)
        return float(shape / (shape - 1) * (low - high * (low / high) ** shape) / share)

    def compile(self) -> compiled.Tagged:
        """As engines take it."""
        bounds = {"least_bytes": self.least.bytes, "most_bytes": self.most.bytes}
        return "pareto", {**bounds, "shape_ppb": round(self.shape * _PPB)}


class Cdf(Part):
    """Sizes from a file with their cumulative distribution."""

    kind: Literal["cdf"] = Field(description="`cdf`")
    file: str = Field(description="file with one line per size: bytes, and the share of transfers that are no larger")

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        try:
            read_cdf(self.file)
        except InputError as error:
            raise InputError(error.code, error.message, file=error.file, field="file", fix=error.fix) from None
        return self

    @property
    def mean_bytes(self) -> float:
        """Of the sizes."""
        points = read_cdf(self.file)
        total = float(points[0][0] * points[0][1])
        for (low, begins), (high, ends) in itertools.pairwise(points):
            total += (low + high) / 2 * (ends - begins)
        return max(1.0, total / _PPB)

    def compile(self) -> compiled.Tagged:
        """As engines take it."""
        return "cdf", read_cdf(self.file)


KINDS: Mapping[str, type[Lognormal | Pareto | Cdf]] = {"lognormal": Lognormal, "pareto": Pareto, "cdf": Cdf}


def _sizes(given: object) -> Any:
    if isinstance(given, (Size, *KINDS.values())):
        return given
    if isinstance(given, Mapping):
        return of_kind(given, KINDS, "distribution of sizes", _EXAMPLE)
    size = Size.parse(given)
    if not 1 <= size.bytes <= _LARGEST:
        raise InputError("out-of-range", f'"{size}" is outside 1 byte … 1000 TB', fix='write it like "10 kB"')
    return size


def _written(sizes: Any) -> Any:
    return str(sizes) if isinstance(sizes, Size) else sizes.model_dump(mode="json")


Sizes = Annotated[
    Size | Lognormal | Pareto | Cdf,
    PlainValidator(_sizes, json_schema_input_type=Size | Lognormal | Pareto | Cdf),
    PlainSerializer(_written),
]


def mean_bytes(sizes: Size | Lognormal | Pareto | Cdf) -> float:
    """Of a transfer."""
    return float(sizes.bytes) if isinstance(sizes, Size) else sizes.mean_bytes


def read_cdf(name: str) -> tuple[tuple[int, int], ...]:
    """Points of a distribution: bytes, and the share that is no larger in parts per billion; both never fall, and the
    last share is all of them.

    Raises SawtoothError: ``file-not-found``, ``file-unreadable``, ``bad-cdf`` with the line.
    """
    return _read(name, version(name))


def version(name: str) -> object:
    """What changes when the file does; None where there is none."""
    try:
        about = Path(name).stat()
    except (OSError, ValueError):
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=16)
def _read(path: str, version: object) -> tuple[tuple[int, int], ...]:
    data = read_bytes(path, _LARGEST_FILE)
    try:
        return _points(lines_of(data, _LARGEST_FILE))
    except ValueError as error:
        fix = "give lines of a size in bytes and a cumulative share, 0 to 1 or 0 to 100, in order"
        raise InputError("bad-cdf", f"it is no distribution: {error}", file=path, fix=fix) from None


def lines_of(data: bytes, most: int) -> list[str]:
    """Lines of a text. Raises ValueError with a sentence."""
    if len(data) > most:
        raise ValueError(f"it is larger than {most >> 20} MiB")
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start})") from None


def _points(lines: Sequence[str]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[float, float, int]] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].replace(",", " ").split()
        if not text:
            continue
        if len(text) != 2:
            raise ValueError(f"line {number} has {len(text)} fields, not 2")
        try:
            size, share = (decimal(one) for one in text)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not 0 <= size <= _LARGEST:
            raise ValueError(f"line {number}: a size of {plain(text[0], 40)} bytes")
        if not 0 <= share <= 100:
            raise ValueError(f"line {number}: {plain(text[1], 40)} is no share, 0 to 1 or 0 to 100")
        if found and size < found[-1][0]:
            raise ValueError(f"line {number}: {size:g} bytes are fewer than the {found[-1][0]:g} before")
        if found and share < found[-1][1]:
            raise ValueError(f"line {number}: the share falls, from {found[-1][1]:g} to {share:g}")
        found.append((size, share, number))
        if len(found) > MOST_POINTS:
            raise ValueError(f"more than {MOST_POINTS} points")
    if not found:
        raise ValueError("it has no points")
    whole = found[-1][1]
    if whole not in (1, 100):
        raise ValueError(f"the last share is {whole:g}, neither 1 nor 100")
    if found[0][0] < 1 and found[0][1] > 0:
        raise ValueError(f"line {found[0][2]}: transfers of 0 bytes")
    if round(found[-1][0]) < 1:
        raise ValueError("all transfers have 0 bytes")
    return tuple((round(size), _PPB if share == whole else round(share / whole * _PPB)) for size, share, _ in found)
