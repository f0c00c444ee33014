"""report.html of links that were probed: one page that needs no network, and its figures as files with their tables.

The pictures in it are the SVG files themselves: plotly.js alone would make each page 5 MB, for series that are drawn as
parts anyway.
"""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from sawtooth.congestion.model import CongestionModel
from sawtooth.congestion.report.figures import LinkFigure, figures
from sawtooth.congestion.report.link import Assumed, Link
from sawtooth.congestion.report.plots import draw
from sawtooth.congestion.report.verdict import assumption, checks, notes, training, verdict
from sawtooth.congestion.series import RttSeries
from sawtooth.errors import InputError
from sawtooth.pages import sealed
from sawtooth.storage import new_directory, write_bytes
from sawtooth.tables import csv_text

MOST = 50
"""Series of one report."""
_ESTIMATING = 0.9
"""Share of the time of a long series; the rest is drawing."""
MOST_ROWS = 200
"""Of a figure's table in the page; the CSV beside it has them all."""


def write_report(
    series: Sequence[RttSeries],
    directory: Path,
    model: CongestionModel,
    assumed: Assumed,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Makes ``directory`` with report.html and plots/NAME.png, .svg and .csv for each figure; returns the page's path.

    Each of ``series`` is a link. Where there are several, names begin with a link's number. ``progress`` is called with
    the share that is done. Nothing is there until all is. Raises SawtoothError ``unwritable-output`` (also when it
    exists), ``disk-full``, ``too-many-points`` for more than 50 links, and as ``estimate`` does.
    """
    from jinja2 import Environment, StrictUndefined

    if len(series) > MOST:
        fix = "give fewer files, or take those apart that hold many series"
        raise InputError("too-many-points", f"{len(series)} series, at most {MOST} are in one report", fix=fix)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    home = resources.files("sawtooth.congestion.report") / "templates"
    template = environment.from_string((home / "report.html.j2").read_text(encoding="utf-8"))
    with new_directory(directory) as aside:
        plots = aside / "plots"
        plots.mkdir()
        told = []
        for number, one in enumerate(series, 1):

            def estimated(done: float, before: int = number - 1) -> None:
                if progress is not None:
                    progress((before + _ESTIMATING * done) / len(series))

            link = Link.of(one, model, assumed, estimated)
            prefix = f"{number}-" if len(series) > 1 else ""
            drawn = [_drawn(figure, prefix, plots) for figure in figures(link, model, assumed)]
            told.append(_told(link, model, number, drawn))
            if progress is not None:
                progress(number / len(series))
        html = template.render(
            links=told, assumption=assumption(assumed, model), level=f"{model.level:.0%}", most_rows=MOST_ROWS
        )
        write_bytes(aside / "report.html", sealed(html).encode())
    return directory / "report.html"


def _told(link: Link, model: CongestionModel, number: int, drawn: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "number": number,
        "name": link.name,
        "begins": link.begins,
        "target": link.series.target,
        "difference": link.series.difference,
        "verdict": verdict(link, model.level),
        "training": training(link, model),
        "checks": [asdict(one) for one in checks(link)],
        "notes": notes(link),
        "figures": drawn,
    }


def _drawn(figure: LinkFigure, prefix: str, plots: Path) -> dict[str, Any]:
    """Writes a figure's files, and what the page has of them."""
    name = f"{prefix}{figure.name}"
    draw(figure, name, plots)
    text = csv_text(figure.table)
    write_bytes(plots / f"{name}.csv", text.encode())
    lines = list(csv.reader(text.splitlines()))
    picture = base64.b64encode((plots / f"{name}.svg").read_bytes()).decode("ascii")
    return {
        "name": name,
        "title": figure.title,
        "caption": figure.caption,
        "picture": f"data:image/svg+xml;base64,{picture}",
        "columns": lines[0],
        "rows": lines[1 : MOST_ROWS + 1],
        "count": len(figure.table),
    }
