"""One page that needs no network: the pictures of captures, to be zoomed, with a million segments and more.

Not plotly: a million bars are three million corners and some 50 MB of page there, all redrawn through WebGL at each
zoom. Here a script rasterises the bars itself: a frame takes some ns for each segment in view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.capture import marks
from sawtooth.capture.graphs import ROUND_TRIPS
from sawtooth.capture.marks import LIMITS, MARKS
from sawtooth.capture.packed import pack
from sawtooth.capture.view import View, views
from sawtooth.capture.zoom import Zoom
from sawtooth.pages import sealed
from sawtooth.storage import write_bytes

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.capture.capture import Capture

_LIMITS = {"sender": 1, "receiver_window": 2, "congestion_window": 3, "path": 4, "idle": 5}
"""Numbers of what the facts call so."""
_SCRIPTS = ("columns.js", "graphs.js", "capture.js")


def write_page(captures: Capture | Sequence[Capture], path: Path, zoom: Zoom | None = None) -> Path:
    """Writes the page, which opens at ``zoom``; a capture a column, each on its own axes.

    Raises SawtoothError ``conflict`` where the connection whose segments were read carries no data,
    ``unwritable-output`` or ``disk-full``.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    shown = views(captures if isinstance(captures, Sequence) else [captures])
    home = resources.files("sawtooth.capture") / "templates"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((home / "capture.html.j2").read_text(encoding="utf-8"))
    zoom = zoom or Zoom()
    content = {
        "zoom": [zoom.start_s, zoom.end_s if np.isfinite(zoom.end_s) else None],
        "look": _look(),
        "views": [_packed(view) for view in shown],
    }
    html = template.render(
        views=[_told(view) for view in shown],
        scripts=[Markup((home / name).read_text(encoding="utf-8")) for name in _SCRIPTS],
        # "<" would be able to end the element that holds it.
        content=Markup(json.dumps(content, allow_nan=False).replace("<", "\\u003c")),
    )
    write_bytes(path, sealed(html).encode())
    return path


def _look() -> dict[str, Any]:
    return {
        "data": marks.DATA,
        "ack": marks.ACK,
        "window": marks.WINDOW,
        "sack": marks.SACK,
        "dsack": marks.DSACK,
        "rtt": marks.RTT,
        "kinds": {number: vars(mark) for number, mark in MARKS.items()},
        "limits": {number: vars(limit) for number, limit in LIMITS.items()},
        "roundTrips": ROUND_TRIPS,
    }


def _packed(view: View) -> dict[str, Any]:
    """Times in ns, everything in whole numbers; -1 where a number is not known."""
    sacks, series = view.sacks.assign(dsack=view.sacks["dsack"].astype(np.int64)), view.series
    return {
        "name": view.name,
        "ends": view.ends,
        "end": view.end_s,
        "rtt": view.rtt_s,
        "data": _columns(view.data.rename(columns={"length": "size"}), ("seq", "size", "kind", "frame")),
        "acks": _columns(view.acks, ("ack", "window", "frame")),
        "sacks": _columns(sacks, ("start", "end", "dsack")),
        "rtts": _columns(view.rtts, ("rtt_s",)),
        "series": _columns(series, ("goodput_bps", "in_flight_bytes", "window_bytes", "rtt_min_s", "limit")),
    }


def _columns(table: DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    """Columns in seconds become ns."""
    found = {}
    for name in ("t_s", *names):
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        factor = 1e9 if name.endswith("_s") else 1.0
        found[name] = pack(np.where(np.isnan(values), -1.0, np.round(values * factor)))
    return found


def _told(view: View) -> dict[str, Any]:
    """What the page says in words and numbers, for those who see no picture: as the text has it."""
    counts = view.data["kind"].value_counts()
    facts = view.judged.facts
    return {
        "name": view.name,
        "ends": view.ends,
        "duration": marks.quantity(facts["duration_s"], "s"),
        "acknowledged": marks.quantity(facts["acknowledged_bytes"], "B"),
        "goodput": marks.rate(facts["goodput_bps"]),
        "rtt": marks.quantity(view.rtt_s, "s") if view.rtt_s else "–",
        "segments": view.judged.segments,
        "drawn": len(view.data),
        "retransmissions": view.judged.retransmits,
        "holes": facts["filled_holes"],
        "kinds": [(mark.name, int(counts[number])) for number, mark in MARKS.items() if number in counts],
        "limits": [(LIMITS[_LIMITS[name]].name, 100 * s) for name, s in view.judged.limits.items() if name in _LIMITS],
    }
