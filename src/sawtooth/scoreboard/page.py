"""scoreboard.html: each control over all networks, and a table of every network, with links into the lab."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sawtooth.errors import SawtoothError
from sawtooth.figures import render
from sawtooth.figures.page_shell import embedded, script
from sawtooth.figures.palette import shown
from sawtooth.io.atomic_io import write_bytes
from sawtooth.io.csv import csv_text
from sawtooth.lab.site import built
from sawtooth.scoreboard.board import Board, Cell
from sawtooth.scoreboard.lab_link import lab_link
from sawtooth.scoreboard.measures import MEASURES, Measure
from sawtooth.scoreboard.networks import Control, Network
from sawtooth.scoreboard.text import RULE, lines, title

FILE = "scoreboard.html"
_LAB = "lab"
_CONTROL = "CONTROL"
"""In links, the place of the congestion control."""


def write_page(board: Board) -> Path:
    """Writes scoreboard.html, scoreboard.csv and, if it is built, the lab into the results. Returns the page.

    Raises SawtoothError ``unwritable-output`` or ``disk-full``.
    """
    directory = board.result.directory
    write_bytes(directory / "scoreboard.csv", csv_text(board.table()).encode())
    try:
        built().export(directory / _LAB)
        lab = True
    except SawtoothError as error:
        if error.code != "lab-missing":
            raise
        lab = False
    page = directory / FILE
    write_bytes(page, render("sawtooth.scoreboard", "scoreboard.html.j2", _content(board, lab)).encode())
    return page


def _content(board: Board, lab: bool) -> dict[str, Any]:
    tables = []
    for marks in (False, True):
        if standings := board.standings(marks):
            head, *rows = lines(standings)
            tables.append((title(board, marks), head, rows))
    study = board.result.study
    return {
        "title": study.title or study.name,
        "networks": len(board.networks),
        "seeds": len({place.seed for place in board.result.places}),
        "engine": board.result.engine,
        "rule": RULE,
        "tables": tables,
        "warnings": board.result.warnings,
        "lab": lab,
        "content": Markup(embedded(_cells(board, lab))),
        "script": Markup(script("scoreboard")),
    }


def _cells(board: Board, lab: bool) -> dict[str, Any]:
    cells = {(cell.network.name, cell.control.name): cell for cell in board.cells}
    by_network = [[cells.get((network.name, one.name)) for one in board.controls] for network in board.networks]
    return {
        "measures": [{"title": one.title, "digits": one.digits, "more": one.more} for one in MEASURES],
        "controls": [{"label": shown(one.name), "cc": "" if one.is_file else one.name} for one in board.controls],
        "networks": [
            {"name": one.name, "title": one.title, "lab": _link(one) if lab else ""} for one in board.networks
        ],
        "values": [[[_value(cell, measure) for cell in row] for row in by_network] for measure in MEASURES],
        "runs": [
            [None if cell is None else [cell.broken, len(cell.runs), f"points/{cell.point}"] for cell in row]
            for row in by_network
        ],
    }


def _value(cell: Cell | None, measure: Measure) -> list[Any] | None:
    over = None if cell is None else cell.interval(measure)
    if cell is None or over is None:
        return None
    half = max(over.mean - over.low, over.high - over.mean)
    seeds = [measure.value(ran) for ran in cell.runs.values()]
    known = [None if math.isnan(value) else value for value in seeds]
    return [over.mean, None if math.isnan(half) else half, known]


def _link(network: Network) -> str:
    """Empty if the lab lacks a field of the network."""
    tables = network.scenario(Control("cubic", "cubic")).to_dict()
    for flow in tables["flows"]:
        if flow["name"] in network.own:
            flow["cc"] = _CONTROL
    link = lab_link(tables)
    return "" if link is None else f"{_LAB}/index.html{link}"
