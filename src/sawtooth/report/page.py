"""report.html: one page that needs no network, with all figures, their tables, the comparison and the provenance."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import SawtoothError
from sawtooth.figures import TableFigure, render
from sawtooth.figures.fonts import families
from sawtooth.figures.layout import value_text
from sawtooth.figures.palette import shown
from sawtooth.figures.static import draw
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.csv import csv_text
from sawtooth.programs import Finished, finished
from sawtooth.report import cards, headline, path
from sawtooth.report.figures import figures
from sawtooth.report.number_text import counted, known, number, percent, short, signed
from sawtooth.report.selection import selected
from sawtooth.run import Run
from sawtooth.run.pack import PACKS, RUNS
from sawtooth.sanitize import plain
from sawtooth.stats import STATISTICS
from sawtooth.study import application, estimates, store
from sawtooth.study.axis import text
from sawtooth.study.directions import mean_of
from sawtooth.study.interval_text import COUNTED, THE_SAME, by_start, ends, interval, intervals, means
from sawtooth.study.mean_counts import COUNTS
from sawtooth.study.measures import RPM, measured
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL
from sawtooth.study.study import ALONE

if TYPE_CHECKING:
    from pandas import DataFrame

_SPREAD = ("std", "min", "25%", "50%", "75%", "max")
MOST_ROWS = 200
"""Maximum number of rows of a figure's table in the page. The CSV file has all rows."""
MOST_POINTS = 1000
"""Maximum number of points in the page's other tables. The study's CSV files have all."""
_ANSWERS = ("mean", "mean-log", "response", "measures", "trade", "share", "probe-estimates")
"""Figures that can answer the study's question. The first one that exists is shown as the answer."""
_LINES, _COLUMNS = 40, 500
"""The most of a program's output on a page."""
_AGAIN = ("mean-log", "side-by-side")
"""Figures that show the same as the figure of means. They are only saved as files."""


def write_report(result: StudyResult) -> Path:
    """Write plots/NAME.png, .svg and .csv for each figure, and report.html. Returns the path of report.html.

    Existing files are replaced, because everything is derived from the saved runs. Raises SawtoothError
    ``unwritable-output``, ``disk-full`` or ``not-a-result``.
    """
    plots = result.directory / "plots"
    if plots.is_symlink():
        message = "plots is a link to somewhere else; nothing is written through it"
        raise SawtoothError("not-a-result", message, file=plots, fix="remove the link")
    with writing(plots):
        plots.mkdir(exist_ok=True)
    drawn = selected(result)
    made = figures(drawn)
    if drawn is not result:
        few = f" {len(drawn.records):,} of {len(result.records):,} points are drawn; table.csv has all."
        made = [dataclasses.replace(figure, caption=figure.caption + few) for figure in made]
    for figure in made:
        draw(figure, plots)
        write_bytes(plots / f"{figure.name}.csv", csv_text(figure.table).encode())
    page = result.directory / "report.html"
    filters = {
        "counted": counted,
        "shown": shown,
        "text": text,
        "number": number,
        "signed": signed,
        "short": short,
        "percent": percent,
    }
    content, shapes = _content(result, drawn, made)
    html = render("sawtooth.report", "report.html.j2", content, shapes, filters)
    write_bytes(page, html.encode())
    return page


def _content(
    result: StudyResult, drawn: StudyResult, made: list[TableFigure]
) -> tuple[dict[str, Any], list[TableFigure]]:
    """The values for the page's template, and the page's figures. ``drawn``: the points that figures show."""
    description = result.description
    first = Run.load(store.point_directory(result.directory, result.places[0].id), tables=("programs",))
    scenario = first.scenario
    seeds = list(dict.fromkeys(place.seed for place in result.places))
    has_means = any(figure.name == "mean" for figure in made)
    on_page = [figure for figure in made if not (has_means and figure.name in _AGAIN)]
    if len(result.records) == 1 and any("goodput_mbps" in figure.table for figure in made):
        on_page = [figure for figure in on_page if figure.name != "throughput-over-time"]
    best = _best(on_page, result.study.headline)
    on_page.sort(key=lambda figure: figure is not best)
    completions = _measured(result, result.completions)
    content = {
        "study": result.study,
        "engine": result.engine,
        "path": path.parts(result),
        "answer": "" if result.study.is_of_probes else headline.sentence(drawn, headline.compared(drawn, cards.who)),
        "ways": result.opposite,
        "cards": cards.cards(result if result.study.is_of_probes else drawn),
        "cards_of": len(drawn.records),
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                "caption": _caption(figure),
                "table": _cells(figure.table.head(MOST_ROWS)),
                "rows": len(figure.table),
                "again": [other.name for other in made if other not in on_page] if figure is on_page[0] else [],
            }
            for figure in on_page
        ],
        "estimates": _estimates(result),
        "known": known,
        "ends": cards.ends(result),
        "most_rows": MOST_ROWS,
        "all_rows": len(result.records),
        "keys": [(key, result.study.title_of(key)) for key in result.places[0].key if key != ALONE],
        "rows": _rows(result),
        "changes": result.pooled[result.study.roles().x].nunique() > 1,
        "baseline": _at(result, result.study.roles().baseline),
        "programs": [(one.describe(), _printed(one)) for one in finished(first)],
        "measured": [(name, result.study.titles[name]) for name in measured(scenario)],
        "shares": _shares(result),
        "latency": _measured(result, result.latency),
        "completions": completions,
        "applications": _applications(result),
        "spread": [(name, title) for name, title in zip(STATISTICS[2:], _SPREAD, strict=True)],
        "published": result.published,
        "warnings": result.warnings,
        "seeds": seeds,
        "counts": COUNTS,
        "counted_so": f"; {COUNTED}" if len(seeds) > 1 else "",
        "points": len(result.places),
        "duration": str(scenario.duration),
        "means": means(result.records),
        "intervals": ". ".join(line for line in (intervals(result.records), by_start(result.moved)) if line),
        "several": any(len(set(means)) > 1 for means in result.by_seed),
        "interval": str(scenario.interval),
        "scenario": json.dumps(scenario.to_dict(), indent=2, ensure_ascii=False),
        "vary": {axis.field: ", ".join(text(value) for value in axis.values) for axis in result.study.axes()},
        "description": description,
        "packed": RUNS if (result.directory / PACKS).is_dir() else 0,
    }
    return content, on_page


def _printed(program: Finished) -> str:
    """The end of what a program printed, fit for a page."""
    lines = (program.stdout + program.stderr).decode(errors="replace").splitlines()[-_LINES:]
    return "\n".join(plain(line, _COLUMNS) for line in lines)


def _best(figures: list[TableFigure], column: str) -> TableFigure | None:
    """The figure that answers the study's question and shows the headline; None for a single point."""
    first = () if column == headline.THROUGHPUT else ("share",) if column == headline.SHARE else ("measures", "trade")
    order = list(dict.fromkeys([*first, *_ANSWERS]))
    found = [figure for figure in figures if figure.name in order]
    return min(found, key=lambda figure: order.index(figure.name), default=None)


def _caption(figure: TableFigure) -> str:
    _, missing = families(figure.words)
    if not missing:
        return figure.caption
    return f"{figure.caption} No font of the machine that drew it has {missing}: boxes stand for that in PNG and SVG."


def _estimates(result: StudyResult) -> list[dict[str, Any]]:
    """One row per point with a flow's throughput and its estimate. Only for studies of probes."""
    if not result.study.is_of_probes:
        return []
    rows = estimates.summary(result.probed, list(result.places[0].key))
    return [{**row, "interval": estimates.interval(row)} for row in rows]


def _at(result: StudyResult, value: Any) -> str:
    return value_text(result.study.title_of(result.study.roles().x), value)


def _rows(result: StudyResult) -> list[dict[str, Any]]:
    """The study's table, with notes on misprints and a gap between groups."""
    x = result.study.roles().x
    keys = list(result.places[0].key)
    rows: list[dict[str, Any]] = []
    before = None
    for row, seeds, moved in itertools.islice(
        zip(result.records, result.by_seed, result.moved, strict=True), MOST_POINTS
    ):
        group = [row[key] for key in keys if key != x]
        known = result.published.row({key: row[key] for key in keys}) if result.published is not None else None
        misprint = known["mean_mbps"] if known is not None and not known["trusted"] else None
        shown_interval = interval(row, ",.2f", moved.means[ALL] if moved else ()).replace("-", "–")
        rows.append(
            {
                **row,
                "ways": [mean_of(result, row, names) for names in result.opposite],
                "interval": shown_interval,
                "seeds": ends(seeds),
                "misprint": misprint,
                "gap": before is not None and group != before,
            }
        )
        before = group
    return rows


def _shares(result: StudyResult) -> list[dict[str, Any]]:
    """One row per flow over all seeds, with a gap between points. Empty if no scenario has several flows."""
    if result.shares.empty:
        return []
    keys = list(result.places[0].key)
    moved = {tuple(row[key] for key in keys): one for row, one in zip(result.records, result.moved, strict=True) if one}
    rows: list[dict[str, Any]] = []
    before = None
    for found in _first_points(result, result.shares).to_dict("records"):
        row = {str(name): value for name, value in found.items()}
        low, high = row["share_low_percent"], row["share_high_percent"]
        known_ends = "–" if math.isnan(low) else f"{number(low, 1)} … {number(high, 1)}"
        point = [row[key] for key in keys]
        if low == high and tuple(point) in moved:
            row["interval"] = f"by start {ends(moved[tuple(point)].percent(row['flow'], ALL))}"
        else:
            row["interval"] = THE_SAME if low == high else known_ends
        rows.append({**row, "first": point != before, "gap": before not in (None, point)})
        before = point
    return rows


def _first_points(result: StudyResult, table: DataFrame) -> DataFrame:
    """The rows over all seeds of the first ``MOST_POINTS`` points."""
    found = table[table["seed"] == ALL]
    if len(result.records) <= MOST_POINTS:
        return found
    keys = list(result.places[0].key)
    points = {tuple(row[key] for key in keys) for row in result.records[:MOST_POINTS]}
    return found[[point in points for point in found[keys].itertuples(index=False, name=None)]]


def _measured(result: StudyResult, table: DataFrame) -> list[dict[str, Any]]:
    """Rows over all seeds, with a gap between points. Empty if there are no such measures, or if the study is of
    probes, whose delays are not its subject."""
    if table.empty or result.study.is_of_probes:
        return []
    keys = list(result.places[0].key)
    points = {tuple(row[key] for key in keys): row for row in result.records}
    rows: list[dict[str, Any]] = []
    before = None
    for found in _first_points(result, table).to_dict("records"):
        row = {str(name): value for name, value in found.items()}
        point = tuple(row[key] for key in keys)
        first = point != before
        rpm = {name: points[point][name] if first else math.nan for name in RPM}
        rows.append({**row, **rpm, "gap": first and before is not None})
        before = point
    return rows


def _applications(result: StudyResult) -> list[tuple[application.ApplicationKind, list[dict[str, Any]]]]:
    """One table per kind of application, with a gap between points. Empty if there are none."""
    keys = list(result.places[0].key)
    found = list(application.tables(result.applications))
    for _, rows in found:
        points = [tuple(row[key] for key in keys) for row in rows]
        several = len(set(points)) < len(points)
        for before, here, row in zip([None, *points], points, rows, strict=False):
            row["gap"] = several and before not in (None, here)
    return found


def _cells(table: DataFrame) -> dict[str, list[Any]]:
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return {"columns": [str(name) for name in table.columns], "rows": rows}


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")
    return str(value)
