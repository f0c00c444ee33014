"""Which points a figure of samples draws, and what they are called there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sawtooth.draw.palette import colour, shown
from sawtooth.draw.panels import Layout, value_text
from sawtooth.run import Run
from sawtooth.study import store
from sawtooth.study.result import StudyResult

if TYPE_CHECKING:
    from pandas import DataFrame

Seen = TypeVar("Seen")

LEGIBLE = 12
"""Points that are all drawn over time, or as a distribution; of more, those at the baseline and at what stands out."""


@dataclass(frozen=True)
class Point(Generic[Seen]):
    """One point: its key, its name among those drawn, its colour and the look of its line, and what each seed saw."""

    key: dict[str, Any]
    name: str
    tint: str
    look: int
    seen: list[Seen]


def points(
    result: StudyResult, layout: Layout, tables: Sequence[str], seen: Callable[[Run], list[Seen]]
) -> list[Point[Seen]]:
    """The points that are drawn, with what ``seen`` finds in these tables of each run; those without it left out."""
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[Seen]]] = {}
    for place in result.places:
        if is_drawn(layout, place.key):
            run = Run.load(store.point_directory(result.directory, place.id), tables=tables)
            found.setdefault(tuple(place.key.values()), (place.key, []))[1].extend(seen(run))
    names = named(result, layout, [key for key, _ in found.values()])
    return [Point(key, *about, each) for about, (key, each) in zip(names, found.values(), strict=True) if each]


def is_drawn(layout: Layout, key: dict[str, Any]) -> bool:
    """Whether a point is among those that a figure has room for."""
    count = len(layout.x_values) * len(layout.series_values) * len(layout.panel_values)
    return count <= LEGIBLE or key[layout.x] in (layout.baseline, layout.detail)


def named(result: StudyResult, layout: Layout, keys: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, int]]:
    """A name of what varies among ``keys``, a colour by series (by x without one) and a look by the rest, for each."""
    varied = [name for name in (keys[0] if keys else {}) if len({key[name] for key in keys}) > 1]
    by = layout.series if layout.series in varied else next(iter(varied), None)
    tints: dict[Any, int] = {}
    looks: dict[Any, int] = {}
    for key in keys:
        name = ", ".join(said(result, one, key[one]) for one in varied) or result.study.name
        value = key[by] if by else None
        rest = tuple(key[one] for one in varied if one != by)
        at, look = tints.setdefault(value, len(tints)), looks.setdefault(rest, len(looks))
        yield name, colour(value, at), look


def said(result: StudyResult, name: str, value: Any) -> str:
    """A value of a key column in words."""
    return value_text(result.study.title_of(name), value) if isinstance(value, (int, float)) else shown(value)


def keys_of(result: StudyResult, table: DataFrame) -> list[dict[str, Any]]:
    """The points of a table's rows."""
    names = list(result.places[0].key)
    return [{str(name): value for name, value in row.items()} for row in table[names].to_dict("records")]
