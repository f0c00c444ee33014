"""Selection: the points that figures show of a study with very many. A thousand lines look alike, and drawing takes
longer than the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sawtooth.study.result import StudyResult

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 500
"""A study of up to this many points is drawn with all of them."""
_SERIES, _PANELS = 8, 4
_LEAST_X = 40
"""Values of x that are drawn at least, even with the most series and panels."""
_MOST_DRAWN = 400
"""Points that are drawn at most, unless ``_LEAST_X`` demands more."""


def selected(result: StudyResult) -> StudyResult:
    """The result with points at evenly spaced values of each role's columns; the first and the last value, the baseline
    and the highlighted one are among them. The result itself if it has at most ``MOST`` points, or if all are drawn."""
    import numpy as np
    import pandas as pd

    pooled = result.pooled
    if len(pooled) <= MOST:
        return result
    roles = result.study.roles()
    series = _even(_values(pooled, [roles.series]), _SERIES) if roles.series else None
    panels = _even(_values(pooled, roles.panels), _PANELS) if roles.panels else None
    lines = (1 if series is None else len(series)) * (1 if panels is None else len(panels))
    x = _even(_values(pooled, [roles.x]), max(_LEAST_X, _MOST_DRAWN // lines), [(roles.baseline,), (roles.detail,)])
    wanted: list[tuple[list[Any], Any]] = [
        ([roles.x], x),
        ([roles.series], series),
        (list(roles.panels), panels),
    ]

    here = np.ones(len(pooled), dtype=bool)
    for columns, values in wanted:
        if values is not None:
            here &= pd.MultiIndex.from_frame(pooled[columns]).isin(values)
    keys = list(result.places[0].key)
    return result if here.all() else result.only(set(pooled.loc[here, keys].itertuples(index=False, name=None)))


def _values(table: DataFrame, columns: Sequence[str | None]) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(table[list(columns)].itertuples(index=False, name=None)))


def _even(values: list[tuple[Any, ...]], most: int, others: Sequence[tuple[Any, ...]] = ()) -> list[tuple[Any, ...]]:
    """At most ``most`` evenly spaced values, plus those in ``others``."""
    if len(values) <= most:
        return values
    places = {round(at * (len(values) - 1) / (most - 1)) for at in range(most)}
    return [value for at, value in enumerate(values) if at in places or value in others]
