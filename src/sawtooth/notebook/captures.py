"""Shows a capture: its connections as in the terminal; for a chosen connection the time-sequence graph."""

from __future__ import annotations

from sawtooth.capture import Capture
from sawtooth.capture.pictures import draw
from sawtooth.capture.text import describe
from sawtooth.notebook.page import picture, table

_MOST_LINES = 12
_COLUMNS = (
    *("connection", "from", "acknowledged_bytes", "duration_s", "goodput_bps", "rtt_base_s"),
    *("loss_rate", "retransmits", "timeouts"),
)


def text(capture: Capture) -> str:
    """The lines that the command ``capture`` prints, shortened if there are many."""
    lines = describe(capture.facts, capture.connection).splitlines()
    cut = (
        [f"… and {len(lines) - _MOST_LINES} more lines: .connections is the table"] if len(lines) > _MOST_LINES else []
    )
    return "\n".join([*lines[:_MOST_LINES], *cut])


def parts(capture: Capture) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    first, *_ = describe(capture.facts).splitlines()
    rows = capture.connections
    shown = rows[[name for name in _COLUMNS if name in rows]]
    pictures = []
    if len(capture.segments):
        words = f"time-sequence graph of connection {capture.connection}"
        pictures = [picture(lambda aside: draw(capture, aside), words)]
    return first, [f"problem: {problem}" for problem in capture.problems], pictures, [table(shown)] * bool(len(shown))
