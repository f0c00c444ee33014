"""Tree: the tree of a parsed text, evaluated by a caller who knows its names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError
from sawtooth.scenario.expressions.amount import EXAMPLE, NUMBER, Amount, Dimension

if TYPE_CHECKING:
    from numpy.typing import NDArray

Resolve = Callable[["Measure"], Amount]
"""Returns the value of a measure; raises SawtoothError for an unknown name."""


@dataclass(frozen=True)
class Number:
    """A number as written, with its unit."""

    amount: Amount
    text: str

    @property
    def measures(self) -> Iterator[Measure]:
        yield from ()

    def amount_of(self, resolve: Resolve) -> Amount:
        return self.amount


@dataclass(frozen=True)
class Measure:
    """A name, ``mean_mbps`` or ``path.rate``, with its settings: ``mean_mbps(cc='bbr', loss=1%)``.

    ``settings`` are in the order of the text, with values as in a scenario file ("1%", 3, true). ``at`` is the position
    in the text, from 1.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()
    at: int = 1

    @property
    def measures(self) -> Iterator[Measure]:
        yield self

    def amount_of(self, resolve: Resolve) -> Amount:
        return resolve(self)

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={_value_text(value)}" for name, value in self.settings)
        return f"{self.name}({settings})" if settings else self.name


@dataclass(frozen=True)
class Operation:
    """Two expressions joined by +, -, * or /."""

    sign: str
    left: Expression
    right: Expression
    at: int

    @property
    def measures(self) -> Iterator[Measure]:
        yield from self.left.measures
        yield from self.right.measures

    def amount_of(self, resolve: Resolve) -> Amount:
        left, right = self.left.amount_of(resolve), self.right.amount_of(resolve)
        if self.sign in "+-":
            left, right = _alike(left, right, self.at, f'"{self.sign}"')
            return replace(left, value=_SIGNS[self.sign](left.value, right.value))
        if self.sign == "/" and not hasattr(right.value, "shape") and right.value == 0:
            message = f"at character {self.at}: it divides by 0"
            raise InputError("bad-expression", message, fix="divide by something else")
        power = 1 if self.sign == "*" else -1
        bits = left.dimension.bits + power * right.dimension.bits
        seconds = left.dimension.seconds + power * right.dimension.seconds
        return Amount(_SIGNS[self.sign](left.value, right.value), Dimension(bits, seconds))


Expression = Number | Measure | Operation
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True)
class Comparison:
    """``left`` must be below or above ``right``; ``text`` is the source text."""

    left: Expression
    sign: str
    right: Expression
    text: str
    at: int

    @property
    def measures(self) -> list[Measure]:
        """All names in it, in order."""
        return [*self.left.measures, *self.right.measures]

    def sides(self, resolve: Resolve) -> tuple[Amount, Amount]:
        """Both sides, in one dimension. Raises SawtoothError: ``bad-expression``, ``missing-unit``, as ``resolve``
        does."""
        return _alike(self.left.amount_of(resolve), self.right.amount_of(resolve), self.at, f'"{self.sign}"')

    def margin(self, resolve: Resolve) -> float | NDArray[Any]:
        """The margin in the unit of ``Amount``: above 0 if the comparison holds, below 0 if not."""
        left, right = self.sides(resolve)
        return left.value - right.value if self.sign.startswith(">") else right.value - left.value

    def __str__(self) -> str:
        return self.text


def _alike(left: Amount, right: Amount, at: int, sign: str) -> tuple[Amount, Amount]:
    """Both in one dimension; a plain 0 has any."""
    if left.dimension == right.dimension:
        return left, right
    for one, other in ((left, right), (right, left)):
        if one.dimension == NUMBER and not hasattr(one.value, "shape"):
            if one.value == 0:
                return replace(left, dimension=other.dimension), replace(right, dimension=other.dimension)
            unit = EXAMPLE.get(other.dimension)
            message = f"at character {at}: beside {sign}, {one.value:.6g} has no unit, but the other side is "
            fix = f'write "{one.value:.6g} {unit}"' if unit else "add a unit"
            raise InputError("missing-unit", message + str(other.dimension), fix=fix)
    message = f"at character {at}: {left.dimension} and {right.dimension} cannot stand on the two sides of {sign}"
    raise InputError("bad-expression", message, fix="compare what has the same unit")


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) and not value[:1].isdigit() else str(value)
