"""report.html of probed links: one page without network access, and its figures as files with their tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sawtooth.errors import InputError
from sawtooth.figures import TableFigure, render
from sawtooth.figures.static import draw
from sawtooth.io.atomic_io import new_directory, write_bytes
from sawtooth.io.csv import csv_text
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.report.figures import figures
from sawtooth.link_estimate.report.link import Assumed, Link
from sawtooth.link_estimate.report.verdict import assumption, checks, notes, training, verdict
from sawtooth.link_estimate.series import RttSeries

MOST = 50
"""Most series of one report."""
_ESTIMATING = 0.9
"""Share of the time for a long series; the rest is drawing."""
MOST_ROWS = 200
"""Most rows of a figure's table on the page; the CSV next to it has all."""


def write_report(
    series: Sequence[RttSeries],
    directory: Path,
    model: CongestionModel,
    assumed: Assumed,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Makes ``directory`` with report.html and plots/NAME.png, .svg and .csv for each figure; returns the page's path.
    The answer of a single window is only a table.

    Each of ``series`` is a link. With several, names begin with the link's number. ``progress`` is called with the
    finished share. The directory appears only when it is complete. Raises SawtoothError ``unwritable-output`` (also if
    it exists), ``disk-full``, ``too-many-points`` for more than 50 links, and as ``estimate`` does.
    """
    if len(series) > MOST:
        fix = "give fewer files, or split files that hold many series"
        raise InputError("too-many-points", f"{len(series)} series, at most {MOST} are in one report", fix=fix)
    with new_directory(directory) as aside:
        plots = aside / "plots"
        plots.mkdir()
        links, drawn = [], []
        for number, one in enumerate(series, 1):

            def estimated(done: float, before: int = number - 1) -> None:
                if progress is not None:
                    progress((before + _ESTIMATING * done) / len(series))

            link = Link.of(one, model, assumed, estimated)
            prefix = f"{number}-" if len(series) > 1 else ""
            written = []
            for figure in figures(link, model, assumed):
                name = f"{prefix}{figure.name}"
                rows = _rows(figure, plots / f"{name}.csv")
                # The picture of a single window's answer would show no more than the verdict.
                if figure.name != "estimates" or len(figure.table) > 1:
                    drawn.append(replace(figure, name=name, group=figure.group and f"{prefix}{figure.group}"))
                    draw(drawn[-1], plots)
                    written.append({"name": name, "title": figure.title, "caption": figure.caption} | rows)
            links.append(_link_content(link, model, number, written))
            if progress is not None:
                progress(number / len(series))
        write_bytes(aside / "report.html", _page(links, drawn, model, assumed).encode())
    return directory / "report.html"


def _page(links: list[dict[str, Any]], drawn: list[TableFigure], model: CongestionModel, assumed: Assumed) -> str:
    content = {"links": links, "assumption": assumption(assumed, model), "level": f"{model.level:.0%}"}
    return render("sawtooth.link_estimate.report", "report.html.j2", content | {"most_rows": MOST_ROWS}, drawn)


def _link_content(link: Link, model: CongestionModel, number: int, written: list[dict[str, Any]]) -> dict[str, Any]:
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
        "figures": written,
    }


def _rows(figure: TableFigure, file: Path) -> dict[str, Any]:
    """Writes the figure's table and returns what the page shows of it."""
    text = csv_text(figure.table)
    write_bytes(file, text.encode())
    lines = list(csv.reader(text.splitlines()))
    return {"columns": lines[0], "rows": lines[1 : MOST_ROWS + 1], "count": len(figure.table)}
