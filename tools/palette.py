"""Writes web/draw/palette.json: for each colour of Python's figures, the colours on pages."""

from __future__ import annotations

import json
from pathlib import Path

from sawtooth.figures import palette

PLACE = Path(__file__).resolve().parents[1] / "web" / "draw" / "palette.json"


def text() -> str:
    """The file's content."""
    controls = {name: palette.colour(name, 0) for name in ("cubic", "bbr", "bbr3", "reno", "dctcp", "prague")}
    others = [palette.colour(None, at) for at in range(6)]
    content = {
        "roles": palette.ROLES,
        "controls": controls,
        "others": others,
        "light": palette.LIGHT,
        "dark": palette.DARK,
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
