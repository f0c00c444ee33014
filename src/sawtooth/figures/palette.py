"""Colours and names for all figures. The colours are by Okabe and Ito and can be distinguished with any colour
vision."""

from __future__ import annotations

from typing import Any

from sawtooth.scenario import CONTROLS

PAPER = "#ffffff"
INK = "#1f2933"
MUTED = "#5f6b78"
GRID = "#e3e7ec"
LINE = "#d9e0e7"
SOFT = "#f5f7fa"
ACCENT = "#0072b2"
BASELINE = "#9aa5b1"
BEHIND = "#cdd4dc"
PUBLISHED = "#000000"

LIGHT = {
    **{"#0072b2": "#0066a0", "#d55e00": "#a84400", "#e69f00": "#c48700", "#009e73": "#008a64"},
    **{"#cc79a7": "#cc73a6", "#56b4e9": "#309cde"},
}
"""Replacement colours on light pages, darker so that lines on white have the contrast of 3:1 that WCAG 2.2 requires
(1.4.11), and as easy to distinguish. Figures in files use the original colours."""
DARK = {
    **{PAPER: "#14191f", INK: "#e4e9ee", MUTED: "#9aa7b4", GRID: "#2b333c"},
    **{LINE: "#37424d", SOFT: "#1d242c"},
    **{BASELINE: "#808c99", BEHIND: "#46515c", PUBLISHED: "#f7f9fa"},
    **{"#0072b2": "#448fe6", "#d55e00": "#ee6a2c", "#e69f00": "#f0b545", "#009e73": "#1fae86"},
    **{"#cc79a7": "#eaa9cc", "#56b4e9": "#b4ecff"},
}
"""Replacement colours on dark pages."""
ROLES = {"paper": PAPER, "ink": INK, "muted": MUTED, "grid": GRID, "line": LINE, "soft": SOFT, "accent": ACCENT}
"""Colours by their purpose on pages."""

_OTHERS = ("#cc79a7", "#56b4e9", "#e69f00", "#0072b2", "#d55e00", "#009e73")


def colour(value: Any, position: int) -> str:
    """A congestion control always has the same colour; other series get one by their position."""
    control = CONTROLS.get(str(value))
    own = None if control is None else control.colour
    return own or _OTHERS[position % len(_OTHERS)]


def shown(value: Any) -> str:
    """A key column's value in its usual spelling: CUBIC, 1, 0.5."""
    if isinstance(value, float):
        return f"{value:g}"
    control = CONTROLS.get(str(value))
    return str(value) if control is None else control.label
