"""Progress of the points that are running, as their workers report it."""

from __future__ import annotations

from pathlib import Path


def fractions(directory: Path) -> float:
    """The sum of the fractions of all running points in ``directory``/progress."""
    total = 0.0
    for path in (directory / "progress").glob("*"):
        try:
            total += min(1.0, max(0.0, float(path.read_text())))
        except (OSError, ValueError):
            # The worker is removing or rewriting the file at this moment; the next poll sees it.
            continue
    return total
