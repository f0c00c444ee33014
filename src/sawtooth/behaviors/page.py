"""kernels.html: what changed between kernels, behavior by behavior, and kernels.csv with the same table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sawtooth.behaviors.catalogue import Catalogue
from sawtooth.behaviors.changes import SAME, VERDICTS, Comparison
from sawtooth.behaviors.text import RULE, line
from sawtooth.figures import render
from sawtooth.io.atomic_io import write_bytes
from sawtooth.io.csv import csv_text

FILE, TABLE = "kernels.html", "kernels.csv"


def write_page(comparisons: Sequence[Comparison], catalogue: Catalogue, directory: Path) -> Path:
    """Writes kernels.html and kernels.csv. Returns the page. Raises SawtoothError ``unwritable-output`` or
    ``disk-full``."""
    import pandas as pd

    table = pd.concat([one.table() for one in comparisons], ignore_index=True)
    write_bytes(directory / TABLE, csv_text(table).encode())
    order = {verdict: at for at, verdict in enumerate(VERDICTS)}
    sections = []
    for one in comparisons:
        judged = sorted((change for change in one.changes if change.verdict != SAME), key=lambda it: order[it.verdict])
        sections.append((one, [line(change) for change in one.changed], [[it.verdict, *line(it)] for it in judged]))
    reference = comparisons[0].reference
    content = {
        "title": catalogue.title,
        "reference": reference,
        "seeds": len(reference.values),
        "behaviors": catalogue.behaviors,
        "within": comparisons[0].tolerance,
        "rule": RULE,
        "verdicts": list(VERDICTS),
        "counts": [
            [one.other.label, one.other.kernel.version, *(one.count(verdict) for verdict in VERDICTS)]
            for one in comparisons
        ],
        "sections": sections,
        "situations": list({one.name.split("/")[0]: one.title for one in catalogue.situations}.items()),
        "failed": [
            [side.label, situation, why]
            for side in (reference, *(one.other for one in comparisons))
            for situation, why in {one["situation"]: one["why"] for one in side.failures}.items()
        ],
    }
    page = directory / FILE
    write_bytes(page, render("sawtooth.behaviors", "kernels.html.j2", content).encode())
    return page
