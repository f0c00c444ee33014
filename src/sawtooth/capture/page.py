"""One page without network access: zoomable pictures of captures, with a million segments and more.

Figures are drawn as on all pages. A script first draws a few hundred segments that are in the page uncompressed, then
all, which must be unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.capture.curves import curves, stretches
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.marks import LIMITS, MARKS
from sawtooth.capture.packed_columns import pack
from sawtooth.capture.verdict import verdict
from sawtooth.capture.view import View, views
from sawtooth.capture.zoom import Zoom
from sawtooth.figures import render
from sawtooth.figures.page_shell import embedded, script
from sawtooth.io.atomic_io import write_bytes

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.capture.capture import Capture


def write_page(
    captures: Capture | Sequence[Capture],
    path: Path,
    zoom: Zoom | None = None,
    identified: Sequence[Identification] | None = None,
) -> Path:
    """Writes the page, which opens at ``zoom``; several captures share the axes. ``identified`` has the congestion
    control of each; without it they are identified here.

    Raises SawtoothError ``conflict`` if the connection whose segments were read carries no data, ``unwritable-output``
    or ``disk-full``.
    """
    from markupsafe import Markup

    given = captures if isinstance(captures, Sequence) else [captures]
    shown = views(given)
    if identified is None:
        identified = [identify_capture(one) for one in given]
    zoom = zoom or Zoom()
    content = {
        "zoom": [zoom.start_s, zoom.end_s if np.isfinite(zoom.end_s) else None],
        "views": [_packed(view) for view in shown],
    }
    context = {
        "views": [_describe(view, which) for view, which in zip(shown, identified, strict=True)],
        "caption": _caption(shown),
        "script": Markup(script("capture")),
        "content": Markup(embedded(content)),
    }
    write_bytes(path, render("sawtooth.capture", "capture.html.j2", context, [curves(shown)]).encode())
    return path


def _caption(shown: Sequence[View]) -> str:
    begins = "The shading shows what limits the transfer"
    if len(shown) > 1:
        begins = "All captures on the same axes; time starts at each first segment"
    summary = "mean goodput, most bytes in flight, and minimum to maximum RTT"
    return f"{begins}. Each interval shows {summary}; a few extreme values are cut off."


_FIELDS = {
    "data": ("seq", "size", "kind", "frame"),
    "acks": ("ack", "window", "frame"),
    "sacks": ("start", "end", "dsack"),
}
_FIRST = 700
"""Ranges of time with one bar each, until all segments are unpacked."""


def _packed(view: View) -> dict[str, Any]:
    """Times in ns, everything in whole numbers; -1 for unknown."""
    sacks = view.sacks.assign(dsack=view.sacks["dsack"].astype(np.int64))
    tables = {"data": view.data.rename(columns={"length": "size"}), "acks": view.acks, "sacks": sacks}
    return {
        "name": view.name,
        "ends": view.ends,
        "end": view.end_s,
        "limits": stretches(view),
        "first": {name: _first(table, _FIELDS[name]) for name, table in tables.items()},
    } | {name: _columns(table, _FIELDS[name]) for name, table in tables.items()}


def _first(table: DataFrame, names: tuple[str, ...]) -> dict[str, list[float]]:
    """A first picture: the last row of each range of time. Data in order is one bar from the lowest to the highest
    number; other data is sampled."""
    import pandas as pd

    if len(table) > 2 * _FIRST:
        usual = table["kind"] == 0 if "size" in table else pd.Series(True, index=table.index)
        plain, others = table[usual], table[~usual]
        t = plain["t_s"].to_numpy(dtype=np.float64)
        stretch = ((t - t[:1]) / max(float(np.ptp(t)) if len(t) else 0.0, 1e-9) * (_FIRST - 1)).astype(np.int64)
        found = plain.groupby(stretch).last()
        if "size" in table:
            low, high = plain["seq"].groupby(stretch).min(), (plain["seq"] + plain["size"]).groupby(stretch).max()
            found = found.assign(seq=low, size=high - low)
        table = pd.concat([found, others.iloc[:: max(1, len(others) // _FIRST)]]).sort_values("t_s", kind="stable")
    return {name: [round(float(value), 9) for value in table[name]] for name in ("t_s", *names)}


def _columns(table: DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Converts columns in seconds to ns."""
    found = {}
    for name in ("t_s", *names):
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        factor = 1e9 if name.endswith("_s") else 1.0
        found[name] = pack(np.where(np.isnan(values), -1.0, np.round(values * factor)))
    return found


def _describe(view: View, identified: Identification) -> dict[str, Any]:
    """The page's words and numbers, also for readers who cannot see the pictures."""
    counts = view.data["kind"].value_counts()
    return {
        "name": view.name,
        "ends": view.ends,
        "verdict": verdict(view.judged, identified),
        "segments": view.judged.segments,
        "drawn": len(view.data),
        "holes": view.judged.facts["filled_holes"],
        "kinds": [(mark.name, int(counts[number])) for number, mark in MARKS.items() if number in counts],
        "limits": [
            (limit.name, 100 * share)
            for name, share in view.judged.limits.items()
            for limit in LIMITS.values()
            if limit.fact == f"{name}_s"
        ],
    }
