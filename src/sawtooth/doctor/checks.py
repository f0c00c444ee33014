"""Checks: the examination as a list of what works and what does not, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sawtooth.doctor.examination import MODULE


@dataclass(frozen=True)
class Check:
    """One check. ``name``: for example "engine sim", "tool iperf3", "qdiscs fq_codel", "warning". ``reasons``: why it
    does not work, in sentences; if it works, notes about it."""

    name: str
    works: bool
    reasons: tuple[str, ...] = ()


def checks(found: dict[str, Any]) -> list[Check]:
    """The checks for the result of ``examine``: engines, tools, features of this host's kernel, warnings."""
    listed = [Check(f"engine {name}", one["works"], tuple(one["reasons"])) for name, one in found["engines"].items()]
    for name, tool in found["tools"].items():
        missing = tool["path"] is None
        listed.append(Check(f"tool {name}", not missing, (f"install the package {tool['package']}",) * missing))
    for topic, states in found["capabilities"].items():
        for name, state in states.items():
            works = state is True or state == MODULE
            reason = "a module, loaded at first use" if state == MODULE else str(state)
            listed.append(Check(f"{topic} {name}", works, () if state is True else (reason,)))
    return listed + [Check("warning", False, (text,)) for text in found["warnings"]]
