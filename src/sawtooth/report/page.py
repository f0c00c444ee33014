"""report.html: one page that needs no network, with every figure, its table, the comparison and the provenance."""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.draw.figure import Figure
from sawtooth.draw.fonts import families
from sawtooth.draw.lines import LineFigure
from sawtooth.draw.palette import shown
from sawtooth.draw.panels import PanelFigure, value_text
from sawtooth.errors import SawtoothError
from sawtooth.pages import sealed
from sawtooth.report.figures import figures
from sawtooth.report.interactive import fragment, library
from sawtooth.report.plots import draw
from sawtooth.run import Run
from sawtooth.stats import STATISTICS
from sawtooth.storage import write_bytes, writing
from sawtooth.study import application, estimates, store
from sawtooth.study.axis import text
from sawtooth.study.means import THE_SAME, interval, intervals, means
from sawtooth.study.measures import RPM
from sawtooth.study.result import StudyResult
from sawtooth.study.shares import ALL
from sawtooth.tables import csv_text

if TYPE_CHECKING:
    from pandas import DataFrame

_SPREAD = ("std", "min", "25%", "50%", "75%", "max")
MOST_ROWS = 500
"""Of a figure's table in the page; the CSV beside it has them all."""


def write_report(result: StudyResult) -> Path:
    """Writes plots/NAME.png, .svg and .csv for each figure, and report.html; returns the latter's path.

    What is there already is replaced: all of it follows from the saved runs. Raises SawtoothError
    ``unwritable-output``, ``disk-full`` or ``not-a-result``.
    """
    from jinja2 import Environment, StrictUndefined

    plots = result.directory / "plots"
    if plots.is_symlink():
        message = "plots is a link to somewhere else; nothing is written through it"
        raise SawtoothError("not-a-result", message, file=plots, fix="remove the link")
    with writing(plots):
        plots.mkdir(exist_ok=True)
    drawn = figures(result)
    for figure in drawn:
        draw(figure, plots)
        write_bytes(plots / f"{figure.name}.csv", csv_text(figure.table).encode())
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["shown"] = shown
    environment.filters["text"] = text
    environment.filters["number"] = _number
    environment.filters["signed"] = _signed
    environment.filters["short"] = _short
    environment.filters["percent"] = _percent
    source = (resources.files("sawtooth.report") / "templates" / "report.html.j2").read_text(encoding="utf-8")
    html = environment.from_string(source).render(_content(result, drawn))
    path = result.directory / "report.html"
    write_bytes(path, sealed(html).encode())
    return path


def _content(result: StudyResult, drawn: list[PanelFigure | LineFigure]) -> dict[str, Any]:
    from markupsafe import Markup

    description = result.description
    first = Run.load(store.point_directory(result.directory, result.places[0].id), tables=())
    scenario = first.scenario
    seeds = list(dict.fromkeys(place.seed for place in result.places))
    return {
        "study": result.study,
        "engine": result.engine,
        "answers": [] if result.study.is_of_probes else _answers(result),
        "fits": _fits(result),
        "estimates": _estimates(result),
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                "caption": _caption(figure),
                "html": Markup(fragment(figure)),
                "table": _cells(figure.table.head(MOST_ROWS)),
                "rows": len(figure.table),
            }
            for figure in drawn
        ],
        "most_rows": MOST_ROWS,
        "library": Markup(library().replace("</script", "<\\/script")),
        "keys": [(key, result.study.title_of(key)) for key in result.places[0].key],
        "rows": _rows(result),
        "changes": result.pooled[result.study.roles().x].nunique() > 1,
        "baseline": _at(result, result.study.roles().baseline),
        "shares": _shares(result),
        "latency": _measured(result, result.latency),
        "completions": _measured(result, result.completions),
        "applications": _applications(result),
        "spread": [(name, title) for name, title in zip(STATISTICS[2:], _SPREAD, strict=True)],
        "published": result.published,
        "warnings": result.warnings,
        "seeds": seeds,
        "points": len(result.places),
        "duration": str(scenario.duration),
        "means": means(result.records),
        "intervals": intervals(result.records),
        "interval": str(scenario.interval),
        "scenario": json.dumps(scenario.to_dict(), indent=2, ensure_ascii=False),
        "vary": {axis.field: ", ".join(text(value) for value in axis.values) for axis in result.study.axes()},
        "description": description,
    }


def _caption(figure: Figure) -> str:
    _, missing = families(figure.words)
    if not missing:
        return figure.caption
    return f"{figure.caption} No font of the machine that drew it has {missing}: boxes stand for that in PNG and SVG."


def _answers(result: StudyResult) -> list[dict[str, Any]]:
    """The change from the baseline to the first value that stands out, for each series and panel."""
    roles = result.study.roles()
    at = _at(result, roles.detail)
    found = []
    for row in result.records:
        if row[roles.x] == roles.detail and not math.isnan(row["change_percent"]):
            names = [roles.series] if roles.series else []
            who = ", ".join(shown(row[name]) for name in [*names, *roles.panels]) or result.study.name
            found.append(
                {
                    "who": who,
                    "at": at,
                    "change": row["change_percent"],
                    "mean": row["mean_mbps"],
                    "published": row["published_change_percent"],
                }
            )
    return found


def _fits(result: StudyResult) -> list[dict[str, Any]]:
    """How well estimates fit the truth, for each series and panel of a study of probes; else nothing."""
    if not result.study.is_of_probes:
        return []
    roles = result.study.roles()
    names = [*([roles.series] if roles.series else []), *roles.panels]
    table = result.probed[result.probed["true_mbps"] > 0]
    groups = table.groupby(names, sort=False) if names else [((), table)]
    return [
        {
            "who": ", ".join(_at_column(result, name, value) for name, value in zip(names, values, strict=True))
            or result.study.name,
            "fit": estimates.Fit.of(rows),
            "least": float(rows["true_mbps"].min()),
            "most": float(rows["true_mbps"].max()),
        }
        for values, rows in groups
        if len(rows)
    ]


def _estimates(result: StudyResult) -> list[dict[str, Any]]:
    """A row a point: what a flow got and the estimate of it; of a study of probes only."""
    if not result.study.is_of_probes:
        return []
    rows = estimates.summary(result.probed, list(result.places[0].key))
    return [{**row, "interval": estimates.interval(row)} for row in rows]


def _at_column(result: StudyResult, name: str, value: Any) -> str:
    return value_text(result.study.title_of(name), value) if isinstance(value, (int, float)) else shown(value)


def _at(result: StudyResult, value: Any) -> str:
    return value_text(result.study.title_of(result.study.roles().x), value)


def _rows(result: StudyResult) -> list[dict[str, Any]]:
    """The study's table, with misprints named and a gap between groups."""
    x = result.study.roles().x
    keys = list(result.places[0].key)
    rows: list[dict[str, Any]] = []
    before = None
    for row in result.records:
        group = [row[key] for key in keys if key != x]
        known = result.published.row({key: row[key] for key in keys}) if result.published is not None else None
        misprint = known["mean_mbps"] if known is not None and not known["trusted"] else None
        shown_interval = interval(row, ",.2f").replace("-", "–")
        rows.append(
            {**row, "interval": shown_interval, "misprint": misprint, "gap": before is not None and group != before}
        )
        before = group
    return rows


def _shares(result: StudyResult) -> list[dict[str, Any]]:
    """A row a flow over all seeds, with a gap between points; empty where no scenario has several flows."""
    if result.shares.empty:
        return []
    keys = list(result.places[0].key)
    rows: list[dict[str, Any]] = []
    before = None
    for found in result.shares[result.shares["seed"] == ALL].to_dict("records"):
        row = {str(name): value for name, value in found.items()}
        low, high = row["share_low_percent"], row["share_high_percent"]
        row["interval"] = THE_SAME if low == high else f"{_number(low, 1)} … {_number(high, 1)}"
        point = [row[key] for key in keys]
        rows.append({**row, "first": point != before, "gap": before not in (None, point)})
        before = point
    return rows


def _measured(result: StudyResult, table: DataFrame) -> list[dict[str, Any]]:
    """Rows over all seeds, with a gap between points; empty where there is nothing of the kind, or where the study is
    of probes, whose waiting is not the question."""
    if table.empty or result.study.is_of_probes:
        return []
    keys = list(result.places[0].key)
    points = {tuple(row[key] for key in keys): row for row in result.records}
    rows: list[dict[str, Any]] = []
    before = None
    for found in table[table["seed"] == ALL].to_dict("records"):
        row = {str(name): value for name, value in found.items()}
        point = tuple(row[key] for key in keys)
        first = point != before
        rpm = {name: points[point][name] if first else math.nan for name in RPM}
        rows.append({**row, **rpm, "gap": first and before is not None})
        before = point
    return rows


def _applications(result: StudyResult) -> list[tuple[application.Told, list[dict[str, Any]]]]:
    """A table for each kind of application, with a gap between points; empty where there is none."""
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


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.1%}"


def _signed(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:+.1f}%".replace("-", "−")
