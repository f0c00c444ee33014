"""Queues: which packet leaves next, and which are dropped or marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Discipline:
    """``kind``: tc's name, or "fifo". ``parameters``: as the core computed them (crates/net/src/scenario/queue.rs),
    with the unit at the end of a name."""

    kind: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str) -> Any:
        """A parameter; None if it is absent."""
        return dict(self.parameters).get(name)

    def to_json(self) -> str:
        """As in the core's JSON."""
        return json.dumps({self.kind: dict(self.parameters)})


def discipline(told: Mapping[str, Mapping[str, Any]] | None) -> Discipline | None:
    """From the core's JSON."""
    for kind, given in (told or {}).items():
        return Discipline(kind, tuple(given.items()))
    return None
