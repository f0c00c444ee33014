"""Distance: how far the simulator's throughput is from the kernel's with one congestion control, as measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Distance:
    """Of ``points`` of a grid under ``fidelity/``: median, 90th percentile and largest of exp |ln(sim/kernel)| - 1 of
    the mean throughput, the kernel's side from its record. tools/controls.py writes it.
    """

    grid: str
    points: int
    median: float
    p90: float
    worst: float
    worst_point: str


def distance(name: str) -> Distance | None:
    """None where it was not measured."""
    found = json.loads((files("sawtooth") / "data" / "controls.json").read_text(encoding="utf-8"))
    return Distance(**found[name]) if name in found else None
