"""Page: the HTML of one value in a notebook: heading, lines, a picture, a table. It has no script and loads nothing."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.io import tempdirs

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 20
"""Rows shown of a table; the number of the others follows."""


def page(heading: str, lines: Sequence[str], pictures: Sequence[str], tables: Sequence[str]) -> str:
    """Joins the parts in order. ``heading`` and ``lines`` are plain text; the others are already HTML."""
    said = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
    return f"<div><strong>{html.escape(heading)}</strong>{said}{''.join(pictures)}{''.join(tables)}</div>"


def picture(draw: Callable[[Path], Sequence[Path]], words: str) -> str:
    """The first PNG that ``draw`` writes into a directory, embedded; ``words`` is its alternative text."""
    with tempdirs.directory() as aside:
        files = [path for path in draw(aside) if path.suffix == ".png"]
        encoded = base64.b64encode(files[0].read_bytes()).decode("ascii")
    style = "max-width: 100%; width: 760px; background: white"
    return f'<img alt="{html.escape(words, quote=True)}" style="{style}" src="data:image/png;base64,{encoded}">'


def table(rows: DataFrame) -> str:
    """The first rows of a table, with readable numbers."""
    shown = rows.head(MOST_ROWS)
    markup: str = shown.to_html(
        index=False, border=0, na_rep="–", float_format=lambda value: f"{value:.4g}", escape=True
    )
    left = len(rows) - len(shown)
    more = f"<div>… and {left} more rows</div>" if left > 0 else ""
    return f'<div style="overflow-x: auto">{markup}</div>{more}'
