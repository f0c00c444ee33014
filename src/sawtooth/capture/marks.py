"""Colors, marks and words of capture pictures, shared by PNG, SVG and the page."""

from __future__ import annotations

from dataclasses import dataclass

DATA = "#0072b2"
ACK = "#009e73"
WINDOW = "#e69f00"
SACK = "#b07cc6"
DSACK = "#ff3d9a"
RTT = "#0072b2"


@dataclass(frozen=True)
class Mark:
    """One ``kind`` of data segments: its name, color, and shape in matplotlib's letters."""

    name: str
    colour: str
    shape: str


MARKS = {
    1: Mark("fast retransmission", "#d7191c", "^"),
    2: Mark("timeout", "#c2185b", "s"),
    3: Mark("tail loss probe", "#e8590c", "D"),
    4: Mark("spurious retransmission", "#f0569a", "X"),
    5: Mark("out of order", "#56b4e9", "o"),
    6: Mark("fills a hole", "#ef3b2c", "v"),
    7: Mark("zero-window probe, keep-alive", "#5c677d", "P"),
    11: Mark("copy of a packet", "#9aa5b1", "o"),
}
"""Marks for everything except data in order. Retransmissions are red; shapes distinguish the kinds without color."""


@dataclass(frozen=True)
class Limit:
    """What limits the transfer in an interval: its name, its colour, and the fact that has its seconds."""

    name: str
    colour: str
    fact: str


LIMITS = {
    1: Limit("nothing to send", "#56b4e9", "sender_s"),
    2: Limit("receive window", "#e69f00", "receiver_window_s"),
    3: Limit("congestion window", "#cc79a7", "congestion_window_s"),
    4: Limit("path", "#009e73", "path_s"),
    5: Limit("idle", "#cdd4dc", "idle_s"),
}
"""By the number in column ``limit`` of the table ``series``; 0, unknown, has none."""

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def scale(largest: float, unit: str) -> tuple[float, str]:
    """A divisor that makes ``largest`` easy to read, with its unit: (1e6, "MB")."""
    for factor, prefix in _PREFIXES:
        if largest >= factor and not (unit == "B" and factor < 1):
            return factor, prefix + unit
    return 1.0, unit


def quantity(value: float, unit: str) -> str:
    """A number with its unit, to three digits: 44.9 MB."""
    factor, scaled = scale(value, unit)
    return f"{value / factor:.3g} {scaled}" if value / factor < 999.5 else f"{value / factor:.0f} {scaled}"


def rate(bps: float | None) -> str:
    """Bit/s to four digits, for every goodput shown: 44.92 Mbit/s."""
    if bps is None:
        return "–"
    factor, scaled = scale(bps, "bit/s")
    return f"{bps / factor:.4g} {scaled}" if bps / factor < 999.95 else f"{bps / factor:.0f} {scaled}"
