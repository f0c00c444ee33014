"""Writes what pages' scripts share with Python's figures: web/draw/palette.json has for each colour of Python's figures
the colours on pages, and web/capture/look.json the colours, marks and words of captures."""

from __future__ import annotations

import json
from pathlib import Path

from sawtooth.capture import marks
from sawtooth.figures import palette
from sawtooth.scenario import CONTROLS

WEB = Path(__file__).resolve().parents[1] / "web"
SYMBOLS = {"^": "up", "s": "square", "D": "diamond", "X": "cross", "o": "circle", "v": "down", "P": "plus"}
"""matplotlib's letters for marks, as pages call them."""


def texts() -> dict[Path, str]:
    """The files' content."""
    content = {
        "roles": palette.ROLES,
        "controls": {one.name: one.colour for one in CONTROLS.values() if one.colour is not None},
        "others": [palette.colour(None, at) for at in range(6)],
        "light": palette.LIGHT,
        "dark": palette.DARK,
    }
    look = {
        **{name.lower(): getattr(marks, name) for name in ("DATA", "ACK", "WINDOW", "SACK", "DSACK", "RTT")},
        "marks": {
            number: {"name": mark.name, "colour": mark.colour, "symbol": SYMBOLS[mark.shape]}
            for number, mark in marks.MARKS.items()
        },
        "limits": {number: vars(limit) for number, limit in marks.LIMITS.items()},
    }
    written = {WEB / "draw" / "palette.json": content, WEB / "capture" / "look.json": look}
    return {place: json.dumps(one, indent=2) + "\n" for place, one in written.items()}


if __name__ == "__main__":
    for place, text in texts().items():
        place.write_text(text, encoding="utf-8")
