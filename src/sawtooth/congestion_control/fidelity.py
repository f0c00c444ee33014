"""Fidelity: the measured difference between the simulator's throughput and the kernel's for one congestion control."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Distance:
    """The difference over ``points`` of a grid under ``fidelity/``: median, 90th percentile and maximum of exp
    |ln(sim/kernel)| - 1 for the mean throughput; the kernel's values are from its record. Written by
    experiments/controls.py.
    """

    grid: str
    points: int
    median: float
    p90: float
    worst: float
    worst_point: str


def distance(name: str) -> Distance | None:
    """The distance of a congestion control; None if it was not measured."""
    found = json.loads((files("sawtooth") / "data" / "controls.json").read_text(encoding="utf-8"))
    return Distance(**found[name]) if name in found else None
