"""Page: what a notebook shows of one value: a heading, lines, a picture, a table; no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth import temporary

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS = 20
"""Of a table; the rest is counted."""


def page(heading: str, lines: Sequence[str], pictures: Sequence[str], tables: Sequence[str]) -> str:
    """Parts in order; ``heading`` and ``lines`` are text, the others are HTML already."""
    said = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
    return f"<div><strong>{html.escape(heading)}</strong>{said}{''.join(pictures)}{''.join(tables)}</div>"


def picture(draw: Callable[[Path], Sequence[Path]], words: str) -> str:
    """The first PNG that ``draw`` writes into a directory; ``words`` stand in for it where it cannot be seen."""
    with temporary.directory() as aside:
        files = [path for path in draw(aside) if path.suffix == ".png"]
        told = base64.b64encode(files[0].read_bytes()).decode("ascii")
    style = "max-width: 100%; width: 760px; background: white"
    return f'<img alt="{html.escape(words, quote=True)}" style="{style}" src="data:image/png;base64,{told}">'


def table(rows: DataFrame) -> str:
    """The first rows, numbers as people write them."""
    shown = rows.head(MOST_ROWS)
    told: str = shown.to_html(index=False, border=0, na_rep="–", float_format=lambda value: f"{value:.4g}", escape=True)
    left = len(rows) - len(shown)
    more = f"<div>… and {left} more rows</div>" if left > 0 else ""
    return f'<div style="overflow-x: auto">{told}</div>{more}'
