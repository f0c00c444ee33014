"""Figure: series in panels, as a value. ``static`` draws it into files; pages get it as JSON for ``web/draw``, whose
``form.ts`` has the same definition.

A column is numbers. An unknown value is NaN here, null in JSON, and a gap on the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sawtooth.figures.packed_columns import Column, column, plain

if TYPE_CHECKING:
    from pandas import DataFrame

Symbol = Literal["none", "circle", "square", "diamond", "up", "down", "plus", "cross", "tick"]
SYMBOLS: tuple[Symbol, ...] = ("circle", "square", "diamond", "up", "down", "plus")
"""The order in which symbols are given to series."""
DASHES = ("solid", "dashed", "dotted", "dashdot")

_COLOUR = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Axis:
    """An axis. ``label`` does not include the ``unit``. On a ``category`` scale, values are 0, 1, … and have ``names``.
    ``ticks``: positions of labels. ``zero``: a linear scale starts at 0. ``low`` and ``high``: ends that do not follow
    from the data. ``switch``: the page has a button for a logarithmic y. An ``asinh`` scale is linear up to about
    ``bend`` and logarithmic above, so it can show 0.
    """

    label: str
    unit: str = ""
    scale: Literal["linear", "log", "asinh", "category"] = "linear"
    names: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()
    zero: bool = False
    low: float | None = None
    high: float | None = None
    switch: bool = False
    bend: float | None = None

    @classmethod
    def of(cls, title: str, **more: Any) -> Axis:
        """An axis from a title like "throughput, Mbit/s". The unit is the text after the last comma, if it is a single
        word."""
        label, comma, unit = title.rpartition(", ")
        return cls(label, unit, **more) if comma and " " not in unit else cls(title, **more)

    def json(self) -> dict[str, Any]:
        if (self.scale == "category") != bool(self.names):
            raise ValueError(f"axis {self.label}: a category has names, and nothing else has")
        if self.scale == "log" and (self.low is not None and self.low <= 0):
            raise ValueError(f"axis {self.label}: a logarithmic scale has no place for {self.low}")
        if (self.scale == "asinh") != (self.bend is not None) or (self.bend is not None and self.bend <= 0):
            raise ValueError(f"axis {self.label}: an asinh scale has a bend above 0, and nothing else has")
        return {"label": self.label, "unit": self.unit, "scale": self.scale} | _set(
            names=list(self.names),
            ticks=list(self.ticks),
            zero=self.zero,
            low=self.low,
            high=self.high,
            switch=self.switch,
            bend=self.bend,
        )


@dataclass(frozen=True)
class Series:
    """A series: columns of equal length. Series with the same ``name`` share one legend entry; ``quiet``: no entry.

    ``low`` and ``high`` are the ends of each point's interval, drawn as bars or as a ``band``. ``points`` with
    intervals and the symbol ``none`` are vertical lines. ``bars`` and ``boxes`` are at position ``slot`` of ``slots``.
    A box has its median in ``y``, its edges in ``lower`` and ``upper``, and its whiskers' ends in ``low`` and ``high``.
    ``width`` is in CSS pixels.
    """

    name: str
    colour: str
    x: Column
    y: Column
    kind: Literal["line", "steps", "points", "bars", "boxes"] = "line"
    low: Column | None = None
    high: Column | None = None
    band: bool = False
    lower: Column | None = None
    upper: Column | None = None
    dash: str = "solid"
    symbol: Symbol | None = None
    open: bool = False
    width: float | None = None
    slot: int = 0
    slots: int = 1
    quiet: bool = False

    def json(self) -> dict[str, Any]:
        _check_colour(self.colour, self.name)
        columns = {name: getattr(self, name) for name in ("x", "y", "low", "high", "lower", "upper")}
        given = {name: values for name, values in columns.items() if values is not None}
        if len({len(values) for values in given.values()}) != 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in given.items())
            raise ValueError(f"series {self.name}: columns of different lengths: {lengths}")
        if self.kind == "boxes" and len(given) != 6:
            raise ValueError(f"series {self.name}: boxes have low, lower, y, upper and high")
        if self.dash not in DASHES:
            raise ValueError(f"series {self.name}: no dash is called {self.dash}")
        packed = {name: column(values) for name, values in given.items()}
        dash = None if self.dash == "solid" else self.dash
        more = _set(band=self.band, dash=dash, open=self.open, width=self.width, quiet=self.quiet, symbol=self.symbol)
        slots = {"slot": self.slot, "slots": self.slots} if self.slots > 1 else {}
        return {"name": self.name, "colour": self.colour, "kind": self.kind, **packed, **more, **slots}


@dataclass(frozen=True)
class Span:
    """A shaded range of x."""

    start: float
    end: float
    name: str
    colour: str

    def json(self) -> dict[str, Any]:
        _check_colour(self.colour, self.name)
        return {"from": _known(self.start), "to": _known(self.end), "name": self.name, "colour": self.colour}


@dataclass(frozen=True)
class Mark:
    """A line at a value of x or y, with a text."""

    along: Literal["x", "y"]
    at: float
    words: str
    colour: str | None = None

    def json(self) -> dict[str, Any]:
        if self.colour is not None:
            _check_colour(self.colour, self.words)
        return {"along": self.along, "at": _known(self.at), "words": self.words} | _set(colour=self.colour)


@dataclass(frozen=True)
class Panel:
    """Series on one pair of axes."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    title: str = ""
    spans: Sequence[Span] = ()
    marks: Sequence[Mark] = ()

    @property
    def names(self) -> list[str]:
        """Those that a legend lists."""
        return list(dict.fromkeys([*(one.name for one in self.series), *(one.name for one in self.spans)]))

    def json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "x": self.x.json(),
            "y": self.y.json(),
            "series": [one.json() for one in self.series],
        } | _set(spans=[one.json() for one in self.spans], marks=[one.json() for one in self.marks])


@dataclass(frozen=True)
class Figure:
    """A figure. ``name``: of its element and its files. ``sentence``: describes the picture for people who do not see
    it.

    ``across``: panels per row, if there is room. ``alike``: all panels have the same scales. Figures of the same
    ``group`` show the same range of x when zoomed. ``height``: of a panel, in CSS pixels. ``saved``: the columns of the
    CSV that the page saves; without them, the CSV has the drawn data.
    """

    name: str
    title: str
    sentence: str
    panels: Sequence[Panel]
    across: int | None = None
    alike: bool = False
    group: str | None = None
    height: int | None = None
    saved: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Every character in the picture."""
        found = [self.title]
        for panel in self.panels:
            found += [panel.title, *panel.names, *(mark.words for mark in panel.marks)]
            for axis in (panel.x, panel.y):
                found += [axis.label, axis.unit, *axis.names]
        return "".join(sorted({*"".join(found)}))

    def json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps(…, allow_nan=False)``. Raises ValueError if the figure is inconsistent."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a figure's name is of letters, digits, - and .: {self.name!r}")
        if not self.panels:
            raise ValueError(f"figure {self.name}: no panel")
        if not self.sentence:
            raise ValueError(f"figure {self.name}: no sentence for those who do not see it")
        table = {str(name): [plain(value) for value in values] for name, values in self.saved.items()}
        return {
            "name": self.name,
            "title": self.title,
            "sentence": self.sentence,
            "panels": [one.json() for one in self.panels],
        } | _set(across=self.across, alike=self.alike, group=self.group, height=self.height, table=table)


@dataclass(frozen=True)
class TableFigure(Figure):
    """A figure of a report. ``table`` contains all that is drawn. It is shown below the ``caption``, and is a file."""

    caption: str = field(kw_only=True)
    table: DataFrame = field(kw_only=True)

    @classmethod
    def of(
        cls, name: str, title: str, caption: str, table: DataFrame, panels: Sequence[Panel], **more: Any
    ) -> TableFigure:
        """Title and caption describe it for people who do not see it."""
        return cls(name, title, f"{title}. {caption}".strip(), panels, caption=caption, table=table, **more)


def _set(**fields: Any) -> dict[str, Any]:
    """The fields that are set: not None, False or empty."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value is not False and value != [] and value != {}
    }


def _known(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in a figure")
    return float(value)


def _check_colour(colour: str, whose: str) -> None:
    if not _COLOUR.fullmatch(colour):
        raise ValueError(f"{whose}: a colour is #rrggbb, not {colour!r}")
