"""Selects the points that a figure of samples shows, and names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sawtooth.figures.layout import Layout, value_text
from sawtooth.figures.lines import Line
from sawtooth.figures.palette import colour, shown
from sawtooth.run import Run
from sawtooth.study import store
from sawtooth.study.result import StudyResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

Seen = TypeVar("Seen")

LEGIBLE = 12
"""Up to this many points are all shown over time or as a distribution. If there are more, only those at the baseline
and at the highlighted values."""
_QUANTILES = 200


@dataclass(frozen=True)
class Point(Generic[Seen]):
    """One point: its key, its name among the points shown, its colour, the look of its line, and the data of each
    seed."""

    key: dict[str, Any]
    name: str
    tint: str
    look: int
    seen: list[Seen]


def points(
    result: StudyResult, layout: Layout, tables: Sequence[str], seen: Callable[[Run], list[Seen]]
) -> list[Point[Seen]]:
    """The points shown, with the data that ``seen`` gets from these tables of each run. Points without data are
    omitted."""
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[Seen]]] = {}
    for place in result.places:
        if is_drawn(layout, place.key):
            run = Run.load(store.point_directory(result.directory, place.id), tables=tables)
            found.setdefault(tuple(place.key.values()), (place.key, []))[1].extend(seen(run))
    names = named(result, layout, [key for key, _ in found.values()])
    return [Point(key, *about, each) for about, (key, each) in zip(names, found.values(), strict=True) if each]


def cumulative(
    shown: Sequence[Point[Seen]], values: Callable[[Point[Seen]], NDArray[np.float64]], column: str
) -> tuple[DataFrame, list[Line], bool]:
    """The distribution of each point's values: a table with the key columns, ``share`` and ``column``; a line for each
    point; and whether a logarithmic axis suits them."""
    import numpy as np
    import pandas as pd

    shares = np.linspace(0, 1, _QUANTILES + 1)
    frames, lines = [], []
    for point in shown:
        samples = values(point)
        if samples.size:
            at = np.quantile(samples, shares)
            frames.append(pd.DataFrame({**point.key, "share": shares, column: at}))
            percent = (100 * shares).tolist()
            lines.append(Line(0, point.name, point.tint, at.tolist(), percent, look=point.look, marked=False))
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    spread = [line.x[-1] / line.x[0] for line in lines if line.x[0] > 0]
    return table, lines, max(spread, default=1) > 10


def is_drawn(layout: Layout, key: dict[str, Any]) -> bool:
    """Whether a figure has room for this point."""
    count = len(layout.x_values) * len(layout.series_values) * len(layout.panel_values)
    return count <= LEGIBLE or key[layout.x] in (layout.baseline, layout.detail)


def named(result: StudyResult, layout: Layout, keys: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, int]]:
    """For each of ``keys``: a name from the fields that vary, a colour by series (by x if there is none), and a look by
    the remaining fields."""
    varied = [name for name in (keys[0] if keys else {}) if len({key[name] for key in keys}) > 1]
    by = layout.series if layout.series in varied else next(iter(varied), None)
    tints: dict[Any, int] = {}
    styles: dict[Any, int] = {}
    for key in keys:
        name = ", ".join(setting_text(result, one, key[one]) for one in varied) or result.study.name
        value = key[by] if by else None
        rest = tuple(key[one] for one in varied if one != by)
        at, look = tints.setdefault(value, len(tints)), styles.setdefault(rest, len(styles))
        yield name, colour(value, at), look


def setting_text(result: StudyResult, name: str, value: Any) -> str:
    """A value of a key column in words."""
    return value_text(result.study.title_of(name), value) if isinstance(value, (int, float)) else shown(value)


def keys_of(result: StudyResult, table: DataFrame) -> list[dict[str, Any]]:
    """The points in a table's rows."""
    names = list(result.places[0].key)
    return [{str(name): value for name, value in row.items()} for row in table[names].to_dict("records")]
