"""The congestion controls that a scenario may name, as the core records them (``crates/tcp/src/cc/records.rs``)."""

from __future__ import annotations

from dataclasses import dataclass

from sawtooth import _core


@dataclass(frozen=True)
class CongestionControl:
    """``name``: Linux's. ``label``: in figures. ``law``: how it changes its window. ``source``: where this is
    described. ``parameters``: of Linux's module, with their defaults. ``colour``: None if figures choose one by
    position. ``patched``: mainline Linux lacks it. ``simulated``: the versions that ``sim`` has, and ``by_marks`` those
    of them that depend on ECN marks; None is Linux's version, a name a variant.
    """

    name: str
    label: str
    title: str
    law: str
    source: str
    parameters: str
    colour: str | None
    patched: bool
    simulated: tuple[str | None, ...]
    by_marks: tuple[str | None, ...]


def _records() -> dict[str, CongestionControl]:
    lists = ("simulated", "by_marks")
    found = [CongestionControl(**one | {key: tuple(one[key]) for key in lists}) for one in _core.registry()["controls"]]
    return {one.name: one for one in found}


CONTROLS = _records()
"""By name."""
CONGESTION_CONTROLS = tuple(CONTROLS)
"""All of Linux, by Linux's names, and those that only patched kernels have. Each engine decides which ones it has. A
named kernel may have others."""
LINUX_CONTROLS = tuple(one.name for one in CONTROLS.values() if not one.patched)
"""The controls of unpatched Linux."""
